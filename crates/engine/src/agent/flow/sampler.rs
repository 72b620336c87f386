//! Makes the attempts of a stage that takes several answers (`samples.rs` decides about them), some of them at the same
//! time where the server can, and writes the winner to the workspace.

use std::collections::BTreeMap;

use fusee_journal::event::{ErrorCode, ErrorDetail, Event, Sample, TaskStatus};
use fusee_journal::{ChildBody, ChildEnd, RunAborted, StepKind, StepRequest};
use fusee_tools::ContentHash;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::fallback;
use super::preload::{self, PreloadedFile};
use super::samples::{Candidate, Candidates, NextAttempt, Sampling, Verdict, judged};
use super::settings::{FlowEditFormat, RuntimeAction};
use super::stage_notes::StageNote;
use super::stage_runner::{StageRunner, StageSpec, failures, is_final};
use super::task_rules::FlowShape;
use crate::agent::turn_manager::TurnManager;
use crate::agent::{Facts, FinishedTask, TaskOutcome};

/// Maximum number of answers at the same time, whatever the server can do.
const MAX_PARALLEL: u32 = 8;

/// Result of the attempts of a stage.
#[derive(Default)]
struct Attempts {
    count: u32,
    facts: Facts,
    verdicts: Vec<Sample>,
    /// The attempt that decided about the end: one that passed, or the last one.
    last: Option<FinishedTask>,
}

impl StageRunner<'_> {
    /// Runs one stage by taking several answers: the first that passes, or else the best one. The inner error is
    /// the outcome of the task if none passed.
    pub(crate) async fn run_sampled(
        &mut self,
        mut stage: StageSpec,
        sampling: Sampling,
    ) -> Result<Result<(), Box<TaskOutcome>>, RunAborted> {
        let after = std::mem::take(&mut stage.rules.after);
        if let FlowShape::Stage(requirements) = &mut stage.rules.shape {
            // Answers change copies of the workspace.
            requirements.change = false;
        }
        let mut candidates = Candidates::new(sampling);
        let (mut attempts, mut slots) = (Attempts::default(), None);
        loop {
            let parallel = match slots {
                _ if attempts.count == 0 => 1,
                Some(slots) => slots,
                None => *slots.insert(self.slots().await?),
            };
            match candidates.next(parallel) {
                NextAttempt::Stop => break,
                NextAttempt::Choose => {
                    let number = self.choose(&stage, candidates.unverified()).await?;
                    candidates.choose(number);
                }
                next => {
                    if self.attempts(&stage, &next, &mut candidates, &mut attempts).await? {
                        break;
                    }
                }
            }
        }
        self.finish_samples(&stage, &after, &candidates, attempts).await
    }

    /// Makes the next attempts. Returns whether they are the last.
    async fn attempts(
        &mut self,
        stage: &StageSpec,
        next: &NextAttempt,
        candidates: &mut Candidates,
        attempts: &mut Attempts,
    ) -> Result<bool, RunAborted> {
        let mut stage = stage.clone();
        let (count, hint) = match next {
            NextAttempt::Samples { count, .. } => (*count, None),
            NextAttempt::Repair { failure } => (1, Some(failure.as_str())),
            NextAttempt::Escalate { model, failure } => {
                stage.model = Some(model.clone());
                (1, failure.as_deref())
            }
            NextAttempt::Choose | NextAttempt::Stop => return Ok(true),
        };
        let rules = candidates.rules(next);
        stage.rules.sample = Some(rules.clone());
        let ended = self.make_attempts(&stage, attempts.count + 1, count, hint, &attempts.facts).await?;
        attempts.count += count;
        let mut over = false;
        for (n, finished) in ended {
            self.absorb(stage.model.as_ref(), &finished);
            attempts.facts.absorb(&finished.facts);
            let verdict = judged(n, &rules, &finished);
            self.emit(Event::Sample(verdict.clone()));
            attempts.verdicts.push(verdict);
            let passed = finished.sample.verdict == Verdict::Passed;
            candidates.add(n, finished.sample.clone());
            if passed || !over {
                attempts.last = Some(finished);
            }
            over |= passed || attempts.last.as_ref().is_some_and(|last| is_final(&last.outcome));
        }
        Ok(over)
    }

    /// Makes this many attempts, at the same time if there are several. The first that passes stops the others.
    async fn make_attempts(
        &self,
        stage: &StageSpec,
        first: u32,
        count: u32,
        hint: Option<&str>,
        so_far: &Facts,
    ) -> Result<BTreeMap<u32, FinishedTask>, RunAborted> {
        for attempt in first..first + count {
            self.emit(Event::StageStarted { stage: stage.id.clone(), label: stage.label.clone(), attempt });
        }
        let main = self.main();
        if count == 1 {
            return Ok([(first, self.attempt(stage, first, hint, so_far, &main.cancel).await?)].into());
        }
        let call = StepRequest::new(&main.branch, StepKind::FanOut, "samples")
            .with_args(json!({ "first": first, "count": count }));
        let ends = Mutex::new(BTreeMap::new());
        let recorded = {
            let ends = &ends;
            let child = |n: u32| -> ChildBody<'_> {
                Box::new(move |stop| {
                    Box::pin(async move {
                        let finished = self.attempt(stage, n, hint, so_far, &stop).await?;
                        let end = match (finished.sample.verdict, finished.outcome.status) {
                            // Stops the others.
                            (Verdict::Passed, _) => ChildEnd::Failed(Value::Null),
                            (_, TaskStatus::Cancelled) => ChildEnd::Stopped(Value::Null),
                            _ => ChildEnd::Done(Value::Null),
                        };
                        ends.lock().insert(n, finished);
                        Ok(end)
                    })
                })
            };
            let children = (first..first + count).map(child).collect();
            main.engine.fan_out(call, children, count as usize, &main.cancel).await?
        };
        let mut ends = ends.into_inner();
        if recorded.replayed {
            // The children are in the journal, each on its own branch.
            for n in (first..).take(recorded.value.reports.len()) {
                ends.insert(n, self.attempt(stage, n, hint, so_far, &main.cancel).await?);
            }
        }
        Ok(ends)
    }

    /// How many answers may be requested at once: configured, or what the server says.
    async fn slots(&self) -> Result<u32, RunAborted> {
        if let Some(configured) = self.flow().parallel_samples {
            return Ok(configured.clamp(1, MAX_PARALLEL));
        }
        let main = self.main();
        let call = StepRequest::new(&main.branch, StepKind::Environment, "slots");
        let model = &main.session.model;
        let found: Option<u32> = main.engine.step(call, async { model.slots().await }).await?.value;
        Ok(found.unwrap_or(1).clamp(1, MAX_PARALLEL))
    }

    /// Lets the model choose among answers that nothing verifies. Returns its number, from 1.
    async fn choose(
        &mut self,
        stage: &StageSpec,
        candidates: &[Candidate],
    ) -> Result<Option<usize>, RunAborted> {
        let mut shown = String::new();
        for (n, candidate) in candidates.iter().enumerate() {
            let file = |(path, text): (&String, &String)| PreloadedFile {
                path: path.clone(),
                text: text.clone(),
                hash: ContentHash::of(text.as_bytes()),
                cut: false,
                target: false,
            };
            let files: Vec<PreloadedFile> = candidate.files.iter().map(file).collect();
            shown.push_str(&format!("Answer {}:\n\n{}\n\n", n + 1, preload::render(&files)));
        }
        let mut stage = stage.clone();
        stage.task = format!("{shown}Which of these answers is right? Reply with its number alone.");
        (stage.id, stage.label) = ("choose".to_owned(), "choose".to_owned());
        (stage.rules.verify, stage.rules.sample) = (None, None);
        stage.rules.edit_format = FlowEditFormat::Tools;
        stage.rules.before = RuntimeAction::default();
        let cancel = self.main().cancel.clone();
        let finished = self.attempt(&stage, 1, None, &Facts::default(), &cancel).await?;
        self.absorb(stage.model.as_ref(), &finished);
        let answer = &finished.outcome.answer;
        let digits: String =
            answer.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        Ok(digits.parse().ok())
    }

    /// Writes the winner to the workspace and reports on the stage.
    async fn finish_samples(
        &mut self,
        stage: &StageSpec,
        after: &RuntimeAction,
        candidates: &Candidates,
        attempts: Attempts,
    ) -> Result<Result<(), Box<TaskOutcome>>, RunAborted> {
        let Attempts { count, mut facts, verdicts, last } = attempts;
        let Some(last) = last else { return Ok(Ok(())) };
        let passed = last.sample.verdict == Verdict::Passed;
        let mut missing = failures(&last);
        let mut outcome = last.outcome;
        let cancelled = outcome.status == TaskStatus::Cancelled;
        let winner = candidates.winner().filter(|_| !cancelled);
        let mut completed = passed;
        let mut payload = json!({ "samples": verdicts });
        match winner {
            Some((winner, why)) => {
                payload["kept"] = json!({ "n": winner.n, "why": why });
                let written = self.write(winner, after).await?;
                facts.absorb(&written.facts);
                let unverified = !passed && candidates.best().is_none();
                completed = (passed || unverified) && written.problems.is_empty();
                if unverified {
                    outcome.answer =
                        format!("{}\n\nNothing verified this change: {why}.", outcome.answer.trim_end());
                    outcome.error = None;
                }
                if !written.problems.is_empty() {
                    missing = written.problems;
                    outcome.error = Some(not_written(&missing));
                } else if !completed {
                    // What the last attempt was told is no use to the user.
                    missing = vec![winner.describe(count)];
                    missing.extend(winner.first_failure().map(|failure| format!("it fails: {failure}")));
                    if let Some(error) = &mut outcome.error {
                        error.message = missing.join("; ");
                    }
                }
            }
            None if cancelled || is_final(&outcome) => {}
            None => {
                let tries = if count == 1 { "try" } else { "tries" };
                let details = format!("no usable answer in {count} {tries}; {}", missing.join("; "));
                outcome = fallback::nothing_changed(outcome, &details);
            }
        }
        let summary = if completed { outcome.answer.clone() } else { missing.join("; ") };
        self.notes.push(StageNote::new(&stage.label, &summary, None, &facts));
        self.report(stage, completed, count, &facts, &summary, Some(payload));
        if completed {
            self.set_answer(outcome.answer);
            return Ok(Ok(()));
        }
        if outcome.status == TaskStatus::Completed {
            outcome.status = TaskStatus::Failed;
        }
        Ok(Err(Box::new(self.failed(&stage.id, outcome, &missing, false))))
    }

    /// Writes the files of a candidate to the workspace, and runs the command that follows.
    async fn write(&mut self, winner: &Candidate, after: &RuntimeAction) -> Result<Written, RunAborted> {
        let main = self.main();
        for path in winner.files.keys() {
            // Its answer is based on a version that the run has seen, or replaces a file on purpose.
            preload::remember_version(&main.session.workspace, path);
        }
        let mut actions = TurnManager::new(main, self.last_ms());
        let problems = actions.runtime().write_candidate(&winner.files).await?;
        actions.runtime().run_after(after).await?;
        let facts = std::mem::take(&mut actions.flow.facts);
        let (spent, last_ms) = (actions.run.meter.spent.clone(), actions.run.meter.last_ms);
        drop(actions);
        self.facts.absorb(&facts);
        self.add_spent(&spent, last_ms);
        Ok(Written { problems, facts })
    }
}

/// Result of writing the winner.
struct Written {
    problems: Vec<String>,
    facts: Facts,
}

fn not_written(problems: &[String]) -> ErrorDetail {
    ErrorDetail {
        code: ErrorCode::TurnFailed,
        reason: "tool_execution_error".to_owned(),
        message: format!("the answer could not be written: {}", problems.join("; ")),
    }
}
