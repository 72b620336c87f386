//! Killing a run between any two steps and resuming it changes neither its value nor its effects, and no
//! effect that was answered is requested again.

use std::collections::HashMap;
use std::sync::Arc;

use fusee_lang::{
    EffectFailure, EffectKind, EvaluationLimits, Machine, Program, ResumeInput, RuntimeError, TaskResult,
    Value, Yield,
};
use serde_json::{Map as JsonMap, Value as Json};

use crate::world::{World, describe};

/// An answer as stored in a journal.
#[derive(Clone)]
enum Kept {
    Go,
    Reply(TaskResult),
    Json(Json),
    Failed(EffectFailure),
}

impl Kept {
    fn from_input(input: &ResumeInput) -> Kept {
        match input {
            ResumeInput::Reply(reply) => Kept::Reply(reply.clone()),
            ResumeInput::Json(json) => Kept::Json(json.clone()),
            ResumeInput::Failed(failure) => Kept::Failed(failure.clone()),
            _ => Kept::Go,
        }
    }

    fn again(self) -> ResumeInput {
        match self {
            Kept::Go => ResumeInput::Go,
            Kept::Reply(reply) => ResumeInput::Reply(reply),
            Kept::Json(json) => ResumeInput::Json(json),
            Kept::Failed(failure) => ResumeInput::Failed(failure),
        }
    }
}

/// Answers by branch and step number, with the effect each belongs to.
#[derive(Default)]
struct Journal {
    answers: HashMap<(String, usize), (String, Kept)>,
}

/// Why a run stopped.
enum Stop {
    Killed,
    Fault(Box<RuntimeError>),
}

/// One process lifetime: at most `left` new answers before it is killed.
struct Life<'j> {
    journal: &'j mut Journal,
    world: &'j mut World,
    left: usize,
}

impl Life<'_> {
    fn drive(&mut self, mut machine: Machine, branch: &str) -> Result<Value, Stop> {
        let mut input = ResumeInput::Go;
        let mut n = 0;
        loop {
            let effect = match machine.resume(input) {
                Yield::Done(value) => return Ok(value),
                Yield::Fault(fault) => return Err(Stop::Fault(fault)),
                Yield::Pause => {
                    input = ResumeInput::Go;
                    continue;
                }
                Yield::Effect(effect) => effect,
            };
            let key = (branch.to_owned(), n);
            n += 1;
            if let EffectKind::FanOut(fan_out) = &effect.kind {
                let mut values = Vec::new();
                let mut failed = None;
                for index in 0..fan_out.len() {
                    let element = fan_out.machine(index).unwrap();
                    match self.drive(element, &format!("{branch}{}.{index}/", key.1)) {
                        Ok(value) => values.push(value),
                        Err(Stop::Fault(fault)) => {
                            failed = Some(fault);
                            break;
                        }
                        Err(Stop::Killed) => return Err(Stop::Killed),
                    }
                }
                input = failed.map_or(ResumeInput::Branches(values), ResumeInput::BranchFailed);
                continue;
            }
            let question = format!("{} at {}", describe(&effect.kind), effect.location);
            input = match self.journal.answers.get(&key) {
                Some((asked, kept)) => {
                    assert_eq!(asked, &question, "the program asks what it asked before");
                    kept.clone().again()
                }
                None => {
                    if self.left == 0 {
                        return Err(Stop::Killed);
                    }
                    self.left -= 1;
                    self.world.effects.push(format!("{branch}{}", describe(&effect.kind)));
                    let answer = self.world.answer(effect.kind, branch);
                    self.journal.answers.insert(key, (question, Kept::from_input(&answer)));
                    answer
                }
            };
        }
    }
}

fn live(program: &Arc<Program>, each_life: usize) -> (String, Vec<String>, usize) {
    let (mut journal, mut world) = (Journal::default(), World::default());
    for lives in 1.. {
        let machine = Machine::start(program, &JsonMap::new(), EvaluationLimits::default()).unwrap();
        let mut life = Life { journal: &mut journal, world: &mut world, left: each_life };
        let outcome = match life.drive(machine, "") {
            Ok(value) => value.display(10_000),
            Err(Stop::Fault(fault)) => fault.to_string(),
            Err(Stop::Killed) => continue,
        };
        return (outcome, world.effects, lives);
    }
    unreachable!("a program ends after as many lives as it has steps")
}

fn dies_anywhere(text: &str) {
    let compiled = World::default().compile(text);
    let program =
        compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics.clone().into_sorted()));
    let (outcome, effects, lives) = live(&program, usize::MAX);
    assert_eq!(lives, 1);
    assert!(effects.len() > 2, "too few steps to die between: {effects:?}");
    for each_life in [1, 2, 3, 7] {
        let (after_deaths, effects_after, lives) = live(&program, each_life);
        assert_eq!(after_deaths, outcome);
        assert_eq!(effects_after, effects);
        assert!(lives > effects.len() / (each_life + 1));
    }
}

#[test]
fn in_a_sequence_with_branches_inside_branches() {
    dies_anywhere(
        "(define names (list \"a\" \"b\" \"c\"))
         (log-message \"begin\")
         (define found (pmap (lambda (name)
           (define one (content (summarize (text name))))
           (define more (pmap (lambda (n) (content (echo (text (format \"{}{}\" one n))))) (range 0 2)))
           (string-join more \"|\")) names :limit 2))
         (ask-user (string-join found \" \"))",
    );
}

#[test]
fn in_loops_and_retries_and_catches() {
    dies_anywhere(
        "(define tried (retry 4 :backoff 1 (content (flaky (key \"k\") (fails 2)))))
         (define caught (try (content (broken (why tried))) (catch (e) (content (echo (text (get e \"message\"))))) (finally (log-message \"out\"))))
         (define loops
           (director-evaluator-loop
             (max-iterations 3) (initial-director-input caught)
             (director (lambda (input i) (content (echo (text input)))))
             (executor (lambda (plan i) (content (summarize (text plan)))))
             (evaluator (lambda (result plan i) (run_script (command (if (< i 3) \"false\" \"true\")))))
             (controller (lambda (feedback plan result i) (if (ok? feedback) (stop result) (continue result))))))
         (with-limits (:turns 3) (for-each (lambda (n) (log-message n)) (range 0 3)))
         (while (string-starts-with? loops \"summary\") :max 9 (set! loops (content (echo (text (string-replace loops \"summary of \" \"\"))))))
         loops",
    );
}

#[test]
fn in_a_run_that_fails() {
    dies_anywhere(
        "(log-message 1)
         (pmap (lambda (n) (echo (text (to-string n))) (if (= n 2) (content (broken (why \"two\"))) n)) (range 0 4))",
    );
}
