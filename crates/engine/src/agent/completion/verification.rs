//! Verifies the work with the command of the flow: the results, and what the model has been told of them.
//! `runtime_actions.rs` runs the command.

use std::collections::VecDeque;

use fusee_journal::RunAborted;

use super::runtime_actions::{EDIT_REFUSED, FileEffects, RuntimeActions};
use crate::agent::flow::{Feedback, FlowEditFormat, FlowState, TaskRules, is_unusable};
use crate::agent::machine::CallResults;

/// Maximum characters of the verification output shown, counted from the end.
const VERIFY_TAIL: usize = 4000;

/// Number of last lines shown when a failure is repeated without a file change in between.
const VERIFY_LINES: usize = 8;

/// The verification command, its last result, and the file state it applies to.
#[derive(Debug, Default)]
pub(crate) struct Verification {
    command: Option<String>,
    /// Commands to try if that one cannot run.
    alternatives: VecDeque<String>,
    /// Advice on a failure. It is appended last because small models follow the last instruction best.
    advice: &'static str,
    /// The verified file state; `None` before the first run.
    about: Option<u64>,
    /// The file state whose result the model has been told.
    reported: Option<u64>,
    passed: bool,
    tail: String,
    runs: u32,
}

impl Verification {
    pub(crate) fn new(rules: &TaskRules) -> Self {
        let advice = match rules.edit_format {
            _ if rules.one_answer => "",
            FlowEditFormat::Tools => "\n\nFind out why, and call a tool that changes what is wrong.",
            FlowEditFormat::Whole | FlowEditFormat::Blocks => "\n\nFind out why, and change what is wrong.",
        };
        let alternatives = rules.verify_alternatives.iter().cloned().collect();
        Self { command: rules.verify.clone(), alternatives, advice, ..Self::default() }
    }

    /// Whether the model may claim to be done: no rule forbids it and the current file state has not failed
    /// verification.
    pub(crate) fn can_finish(&self, flow: &FlowState) -> bool {
        let found_wrong = self.about == Some(flow.facts.state()) && !self.passed;
        flow.may_end().is_ok() && !found_wrong
    }

    /// Why the task must not end, if that is so.
    pub(crate) fn unfinished(&self, flow: &FlowState) -> Option<Feedback> {
        flow.may_end().err().or_else(|| self.failure(flow.facts.state()))
    }

    /// Why the work in this file state is not verified, if there is a command.
    fn failure(&self, files: u64) -> Option<Feedback> {
        let command = self.command.as_deref()?;
        if self.about == Some(files) && self.passed {
            return None;
        }
        let tail = &self.tail;
        let text = if self.reported == Some(files) {
            format!(
                "The work is still not done: no file has changed since `{command}` failed, and words alone change \
                 none.\n\n{}",
                last_lines(tail, VERIFY_LINES)
            )
        } else {
            format!("The work is not done: `{command}` does not pass.\n\n{tail}")
        };
        Some(Feedback { text: format!("{}{}", text.trim_end(), self.advice), kind: "verify_failed" })
    }

    /// Like [`Self::failure`], and records that the model has been told.
    fn report(&mut self, files: u64) -> Option<Feedback> {
        let feedback = self.failure(files);
        self.reported = self.about;
        feedback
    }

    fn record(&mut self, files: u64, passed: bool, output: &str) {
        (self.about, self.passed, self.tail) = (Some(files), passed, tail(output));
    }

    /// Unmet requirements of a task that ended. A verified task need not have signalled completion.
    pub(crate) fn missing(&self, flow: &FlowState) -> Vec<String> {
        let verified = self.command.is_some() && self.failure(flow.facts.state()).is_none();
        if verified { flow.unmet() } else { flow.missing() }
    }

    /// Runs the command, unless it has already run for the current file state.
    pub(crate) async fn run(&mut self, runtime: &mut RuntimeActions<'_, '_>) -> Result<(), RunAborted> {
        let files = runtime.flow.facts.state();
        if self.about == Some(files) {
            return Ok(());
        }
        while let Some(command) = self.command.clone() {
            self.runs += 1;
            let id = format!("verify-{}", self.runs);
            let output = runtime.run_command(&id, &command, FileEffects::Ignored).await?;
            if output.ok || self.alternatives.is_empty() || !is_unusable(&output.content) {
                runtime.flow.facts.record_verification(&command, output.ok);
                self.record(files, output.ok, &output.content);
                break;
            }
            self.command = self.alternatives.pop_front();
        }
        Ok(())
    }

    /// Verifies the files before the first change. Returns the failure as text; `None` if the command passes.
    pub(crate) async fn initial_failure(
        &mut self,
        runtime: &mut RuntimeActions<'_, '_>,
    ) -> Result<Option<String>, RunAborted> {
        self.run(runtime).await?;
        let Some(command) = self.command.as_deref().filter(|_| !self.passed) else { return Ok(None) };
        self.reported = self.about;
        Ok(Some(format!("`{command}` does not pass yet:\n\n{}", self.tail.trim())))
    }

    /// Applies the edits of an answer in words and verifies the work. Returns why the answer must not end the
    /// task, if that is so.
    pub(crate) async fn review(
        &mut self,
        runtime: &mut RuntimeActions<'_, '_>,
        answer: &str,
    ) -> Result<Option<Feedback>, RunAborted> {
        if runtime.run.task.rules.sample.is_some() {
            return self.review_candidate(runtime, answer).await;
        }
        let refused = runtime.take_edits(answer).await?;
        // A refused edit, for instance of a protected test, does not invalidate verified work.
        let verifiable = self.command.is_some() && runtime.flow.facts.has_changes();
        if refused.as_ref().is_some_and(|feedback| !verifiable || feedback.kind != EDIT_REFUSED) {
            return Ok(refused);
        }
        if let Err(feedback) = runtime.flow.may_end() {
            return Ok(Some(feedback));
        }
        self.run(runtime).await?;
        Ok(match (refused, self.report(runtime.flow.facts.state())) {
            (Some(refused), Some(failed)) => {
                Some(Feedback { text: format!("{}\n\n{}", refused.text, failed.text), ..failed })
            }
            (_, failed) => failed,
        })
    }

    /// Judges one of several answers, without touching the workspace.
    async fn review_candidate(
        &mut self,
        runtime: &mut RuntimeActions<'_, '_>,
        answer: &str,
    ) -> Result<Option<Feedback>, RunAborted> {
        let files = match runtime.candidate(answer).await? {
            Ok(files) => files,
            Err(feedback) => return Ok(Some(feedback)),
        };
        let Some(command) = self.command.clone() else { return Ok(None) };
        self.runs += 1;
        let output = runtime.run_on_candidate(&format!("verify-{}", self.runs), &command, files).await?;
        runtime.flow.facts.record_verification(&command, output.ok);
        let root = runtime.run.session().workspace.shown_root().to_owned();
        runtime.files.sample.verified(output.ok, &output.content, &root);
        let state = runtime.flow.facts.state();
        self.record(state, output.ok, &output.content);
        Ok(self.report(state))
    }

    /// After the calls of a turn: records whether they ended a stage, else verifies changed files and records
    /// whether that completed the work. The model is told of a failure.
    pub(crate) async fn review_calls(
        &mut self,
        runtime: &mut RuntimeActions<'_, '_>,
        results: &mut CallResults,
    ) -> Result<(), RunAborted> {
        if results.aborted {
            return Ok(());
        }
        results.stage_answer = runtime.flow.is_over();
        let facts = &runtime.flow.facts;
        if !results.continues()
            || self.command.is_none()
            || !(facts.has_changes() || facts.idle_write)
            || self.about == Some(facts.state())
        {
            return Ok(());
        }
        self.run(runtime).await?;
        let flow = &mut *runtime.flow;
        match self.report(flow.facts.state()) {
            None => {
                // Before any change, a passing command says nothing about the work.
                let done = flow.facts.has_changes() && flow.may_end().is_ok() && flow.unmet().is_empty();
                results.verified_by = self.command.clone().filter(|_| done);
            }
            Some(Feedback { text, kind }) => {
                flow.facts.count_feedback(kind);
                runtime.conversation.say(runtime.run, &text);
            }
        }
        Ok(())
    }
}

fn tail(text: &str) -> String {
    let count = text.chars().count();
    if count <= VERIFY_TAIL {
        return text.to_owned();
    }
    let rest: String = text.chars().skip(count - VERIFY_TAIL).collect();
    format!("[…]\n{rest}")
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests;
