//! The contract with drivers: limits that abort an evaluation, invalid answers, pauses, inputs, concurrent
//! branches.

use std::sync::Arc;

use fusee_lang::{
    EffectFailure, EffectKind, EvaluationLimits, FanOut, LimitsId, Machine, Program, ResumeInput,
    RuntimeError, TaskResult, Value, Yield,
};
use serde_json::{Map as JsonMap, json};

use crate::world::World;

fn program(text: &str) -> Arc<Program> {
    let compiled = World::default().compile(text);
    let problems = compiled.diagnostics.clone().into_sorted();
    compiled.program.unwrap_or_else(|| panic!("{problems:?}"))
}

fn start(text: &str) -> Machine {
    Machine::start(&program(text), &JsonMap::new(), EvaluationLimits::default()).unwrap()
}

fn failure(message: &str) -> EffectFailure {
    let (kind, reason) = ("RESOURCE_EXHAUSTION".to_owned(), Some("cost".to_owned()));
    EffectFailure { kind, reason, message: message.to_owned(), cause: Some(json!({ "message": "the bill" })) }
}

/// Summarizes a yield as its kind and a text.
fn seen(found: &Yield) -> (&'static str, String) {
    match found {
        Yield::Done(value) => ("done", value.display(1000)),
        Yield::Fault(fault) => ("fault", fault.headline()),
        Yield::Effect(effect) => ("effect", effect.kind.name().to_owned()),
        Yield::Pause => ("pause", String::new()),
    }
}

fn entered(found: &Yield) -> LimitsId {
    match found {
        Yield::Effect(effect) => match effect.kind {
            EffectKind::EnterLimits { id, .. } => id,
            _ => panic!("{:?}", seen(found)),
        },
        _ => panic!("{:?}", seen(found)),
    }
}

#[test]
fn machines_and_what_they_yield_can_go_to_other_threads() {
    fn goes<T: Send + 'static>() {}
    goes::<Machine>();
    goes::<Yield>();
    goes::<ResumeInput>();
    goes::<FanOut>();
    fn shared<T: Sync>() {}
    shared::<Program>();
    shared::<Value>();
}

#[test]
fn a_limit_is_raised_where_it_was_set_and_not_caught_inside() {
    let text = "(try
        (with-limits (:usd 1)
          (try (echo (text \"a\")) (catch (e) \"caught inside\") (finally (log-message \"cleaned up\"))))
        (catch (e) (list (error-reason e) (get-in e (list \"cause\" \"message\")))))";
    let mut machine = start(text);
    let id = entered(&machine.resume(ResumeInput::Go));
    assert_eq!(seen(&machine.resume(ResumeInput::Go)), ("effect", "task".into()));
    let found = machine.resume(ResumeInput::LimitReached(Some(id), failure("the money is spent")));
    assert_eq!(seen(&found), ("effect", "log".into()));
    assert_eq!(seen(&machine.resume(ResumeInput::Go)), ("effect", "leave_limits".into()));
    assert_eq!(seen(&machine.resume(ResumeInput::Go)), ("done", "(\"cost\" \"the bill\")".into()));
}

#[test]
fn a_limit_of_an_outer_region_passes_the_inner_one() {
    let text = "(with-limits (:usd 1) (try (with-limits (:turns 1) (echo (text \"a\"))) (catch (e) \"caught between\")))";
    let mut machine = start(text);
    let outer = entered(&machine.resume(ResumeInput::Go));
    let inner = entered(&machine.resume(ResumeInput::Go));
    assert_ne!(outer, inner);
    assert_eq!(seen(&machine.resume(ResumeInput::Go)).1, "task");
    let found = machine.resume(ResumeInput::LimitReached(Some(outer), failure("spent")));
    assert_eq!(seen(&found).1, "leave_limits");
    assert_eq!(seen(&machine.resume(ResumeInput::Go)).1, "leave_limits");
    assert_eq!(seen(&machine.resume(ResumeInput::Go)), ("fault", "1:52: spent".into()));
}

#[test]
fn a_limit_of_the_run_is_caught_by_nothing() {
    let mut machine = start("(try (echo (text \"a\")) (catch (e) 1) (finally (log-message \"x\")))");
    machine.resume(ResumeInput::Go);
    let found = machine.resume(ResumeInput::LimitReached(None, failure("time is up")));
    assert_eq!(seen(&found), ("fault", "1:6: time is up".into()));
    assert_eq!(
        seen(&machine.resume(ResumeInput::Go)),
        ("fault", "1:1: the workflow has already ended".into())
    );
}

#[test]
fn a_failed_effect_is_raised_at_its_form_and_can_be_caught() {
    let mut machine =
        start("(try (echo\n (text \"a\")) (catch (e) (list (get e \"line\") (get e \"message\"))))");
    machine.resume(ResumeInput::Go);
    assert_eq!(seen(&machine.resume(ResumeInput::Failed(failure("no")))), ("done", "(1 \"no\")".into()));
}

#[test]
fn a_pause_leaves_room_to_raise() {
    let text = "(defun spin (n) (if (= n 0) 'spun (spin (- n 1)))) (try (spin 1000000) (catch (e) (error-reason e)))";
    let mut machine = start(text);
    assert_eq!(seen(&machine.resume(ResumeInput::Go)).0, "pause");
    assert_eq!(seen(&machine.resume(ResumeInput::Go)).0, "pause");
    assert_eq!(seen(&machine.resume(ResumeInput::Failed(failure("stop")))), ("done", "cost".into()));
    let mut world = World::default();
    let value = world.run(&program(text), &JsonMap::new(), EvaluationLimits::default()).unwrap();
    assert_eq!((value.display(10).as_str(), world.pauses), ("spun", 5));
}

#[test]
fn an_answer_that_does_not_fit_is_a_fault() {
    let misfits = [
        ("(echo (text \"a\"))", ResumeInput::Go),
        ("(echo (text \"a\"))", ResumeInput::Json(json!(1))),
        ("(log-message 1)", ResumeInput::Reply(TaskResult::complete("x"))),
        ("(ask-user \"a\")", ResumeInput::Branches(vec![])),
        ("(pmap not (list 1 2))", ResumeInput::Branches(vec![Value::Nil])),
    ];
    for (text, input) in misfits {
        let mut machine = start(text);
        machine.resume(ResumeInput::Go);
        let found = machine.resume(input);
        assert_eq!(seen(&found), ("fault", "1:1: the answer does not match the effect".into()), "{text}");
    }
    assert_eq!(seen(&start("1").resume(ResumeInput::Json(json!(1)))).0, "fault");
}

#[test]
fn inputs_are_checked_all_at_once() {
    let text = "(params (file string) (count number :default 2) (flag boolean)) (list file count flag)";
    let program = program(text);
    let names: Vec<_> =
        program.params().map(|param| (param.name.as_str(), param.kind.name(), param.required)).collect();
    assert_eq!(names, [("file", "string", true), ("count", "number", false), ("flag", "boolean", true)]);
    let inputs = json!({ "flie": "a", "flag": "yes" });
    let problems =
        Machine::start(&program, inputs.as_object().unwrap(), EvaluationLimits::default()).err().unwrap();
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "missing parameter `file` (string)",
            "the parameter `flag` must be of type boolean",
            "unknown parameter `flie`; did you mean `file`?",
        ]
    );
    let inputs = json!({ "file": "a.rs", "flag": true });
    let mut machine =
        Machine::start(&program, inputs.as_object().unwrap(), EvaluationLimits::default()).unwrap();
    assert_eq!(seen(&machine.resume(ResumeInput::Go)), ("done", "(\"a.rs\" 2 true)".into()));
}

#[test]
fn the_calls_of_a_program_are_known_before_it_runs() {
    let text = "(defatom greet (params (name string)) (instructions \"Hi {{name}}\"))
        (greet (name \"Ada\"))
        (summarize (text (string-append \"a\" \"b\")) (style \"dry\"))
        (call (first (list \"echo\")) (text \"x\"))";
    let program = program(text);
    let calls: Vec<String> = program
        .calls()
        .map(|call| {
            let arguments: Vec<String> = call
                .arguments
                .iter()
                .map(|argument| {
                    let value = argument.literal.as_ref().map_or("…".to_owned(), ToString::to_string);
                    format!("{}={value}", argument.key)
                })
                .collect();
            let atom = if call.atom.is_some() { " (its own)" } else { "" };
            format!("{} {}{atom} {}", call.location.start, call.callee.unwrap_or("?"), arguments.join(" "))
        })
        .collect();
    assert_eq!(
        calls,
        ["2:9 greet (its own) name=\"Ada\"", "3:9 summarize text=… style=\"dry\"", "4:9 ? text=\"x\""]
    );
}

/// Interleaves the branches of a `pmap`, at most `limit` at a time, picking the next one to resume by `seed`.
/// Returns the answer and the maximum number of branches that were active at once.
fn side_by_side(world: &mut World, fan_out: &FanOut, mut seed: u64) -> (ResumeInput, usize) {
    let limit = fan_out.limit().unwrap_or(usize::MAX);
    let mut values: Vec<Option<Value>> = vec![None; fan_out.len()];
    let mut running: Vec<(usize, Machine, ResumeInput)> = Vec::new();
    let (mut next, mut most) = (0, 0);
    loop {
        while running.len() < limit && next < fan_out.len() {
            running.push((next, fan_out.machine(next).unwrap(), ResumeInput::Go));
            next += 1;
        }
        most = most.max(running.len());
        if running.is_empty() {
            return (ResumeInput::Branches(values.into_iter().map(|value| value.unwrap()).collect()), most);
        }
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let turn = (seed >> 33) as usize % running.len();
        let (index, mut machine, input) = running.swap_remove(turn);
        match machine.resume(input) {
            Yield::Done(value) => values[index] = Some(value),
            Yield::Fault(fault) => return (ResumeInput::BranchFailed(fault), most),
            Yield::Pause => running.push((index, machine, ResumeInput::Go)),
            Yield::Effect(effect) => {
                let input = match effect.kind {
                    EffectKind::FanOut(inner) => side_by_side(world, &inner, seed).0,
                    kind => world.answer(kind, ""),
                };
                running.push((index, machine, input));
            }
        }
    }
}

fn concurrently(text: &str, seed: u64) -> (Result<Value, Box<RuntimeError>>, usize) {
    let mut world = World::default();
    let mut machine = start(text);
    let mut input = ResumeInput::Go;
    let mut most = 0;
    loop {
        input = match machine.resume(input) {
            Yield::Done(value) => return (Ok(value), most),
            Yield::Fault(fault) => return (Err(fault), most),
            Yield::Pause => ResumeInput::Go,
            Yield::Effect(effect) => match effect.kind {
                EffectKind::FanOut(fan_out) => {
                    let (answer, busiest) = side_by_side(&mut world, &fan_out, seed);
                    most = most.max(busiest);
                    answer
                }
                kind => world.answer(kind, ""),
            },
        };
    }
}

#[test]
fn a_thousand_branches_fifty_at_a_time_keep_their_order() {
    let text = "(pmap (lambda (n) (string-length (content (summarize (text (to-string n)))))) (range 0 1000) :limit 50)";
    let (value, most) = concurrently(text, 7);
    let expected: Vec<Value> = (0..1000).map(|n: i64| Value::Int(11 + n.to_string().len() as i64)).collect();
    assert_eq!(value.unwrap(), Value::list(expected));
    assert_eq!(most, 50);
}

#[test]
fn the_order_in_which_branches_run_cannot_be_seen() {
    let text = "(define base 10)
        (defun twice (f) (lambda (x) (f (f x))))
        (pmap (lambda (n)
                (define sum base)
                (pmap (lambda (m) (define k m) (set! k (* k n)) (content (echo (text (to-string k))))) (range 0 n))
                (for-each (lambda (i) (set! sum (+ sum i))) (range 0 n))
                (list n ((twice (lambda (x) (+ x sum))) n)))
              (range 0 12) :limit 5)";
    let (first, _) = concurrently(text, 1);
    let first = first.unwrap().display(10_000);
    for seed in 2..20 {
        assert_eq!(concurrently(text, seed).0.unwrap().display(10_000), first);
    }
}

#[test]
fn a_variable_made_by_one_branch_is_not_changed_by_another() {
    // A branch returns a closure over its own variable. The main branch may then use and change it, but
    // branches started later may not.
    let text = "(define makers (pmap (lambda (n) (define v n) (lambda (w) (set! v (+ v w)) v)) (list 1 2)))
        (define f (first makers))
        (define after (list (f 10) (f 10)))
        (list after (try (pmap (lambda (n) (f n)) (list 1 2)) (catch (e) (get e \"code\"))))";
    assert_eq!(concurrently(text, 3).0.unwrap().display(1000), "((11 21) \"shared-variable\")");
}

#[test]
fn a_failing_branch_is_raised_with_the_way_it_took() {
    let text = "(defun check (n) (if (= n 3) (first (list)) n))\n(defun all () (list (pmap check (list 1 2 3))))\n(all)";
    let (value, _) = concurrently(text, 5);
    let fault = value.unwrap_err();
    assert_eq!(
        fault.to_string(),
        "example.fusee:1:30: `first` of an empty list\n  in check\n  in pmap at example.fusee:2:21\n  in all at example.fusee:3:1"
    );
    assert_eq!(
        fault.to_json(),
        json!({
            "type": "TASK_FAILURE", "reason": "unexpected_error", "message": "1:30: `first` of an empty list",
            "code": "out-of-range", "file": "example.fusee", "line": 1, "column": 30,
            "trail": ["check", "pmap at example.fusee:2:21", "all at example.fusee:3:1"],
        })
    );
}

#[test]
fn an_element_that_fails_at_once_fails_where_the_pmap_stands() {
    let (value, _) = concurrently("(list 1)\n(list (pmap first (list 1)))", 1);
    let fault = value.unwrap_err();
    assert_eq!(
        fault.to_string(),
        "example.fusee:2:7: `first` needs a list, not an integer 1\n  in pmap at example.fusee:2:7"
    );
}

#[test]
fn what_was_raised_is_in_the_error_even_if_it_is_no_data() {
    let mut machine = start("(raise (list 1 first))");
    let Yield::Fault(fault) = machine.resume(ResumeInput::Go) else { panic!("it raises") };
    let error = fault.to_json();
    assert_eq!(error["message"], json!("1:1: (1 <function first>)"));
    assert_eq!(error["value"], json!("(1 <function first>)"));
}

#[test]
fn effects_have_a_kind_a_callee_and_arguments() {
    let text = "(defatom greet (params (name string)) (instructions \"Hi {{name}}\")) (greet (name \"Ada\") (model \"m\"))";
    let Yield::Effect(effect) = start(text).resume(ResumeInput::Go) else { panic!("it asks") };
    assert_eq!((effect.kind.name(), effect.kind.callee()), ("task", "greet"));
    let params = json!([{ "name": "name", "type": "string", "required": true }]);
    assert_eq!(
        effect.kind.arguments(),
        json!({
            "form": "call",
            "atom": { "name": "greet", "params": params, "instructions": "Hi {{name}}" },
            "inputs": { "name": "Ada" },
            "settings": { "model": "m" },
        })
    );
}
