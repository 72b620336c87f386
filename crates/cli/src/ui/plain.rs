//! Output for pipes and logs: one line per event on stderr, only the answer on stdout.

use std::io::{self, Write};
use std::time::Duration;

use fusee::engine::journal::event::{Event, Role, TaskComplete, TaskStatus};
use fusee::engine::journal::{Branch, EventRecord};
use serde_json::Value;

use super::summary::RunTally;
use super::{RunHeader, Ui, format};

#[cfg(test)]
mod tests;

/// Writes a run's events as plain lines.
pub(crate) struct PlainUi<O, E> {
    out: O,
    err: E,
    plan: RunHeader,
    tally: RunTally,
    changes: Vec<String>,
    /// The model's latest message, held back until it is known whether it is the answer.
    held: Option<String>,
    /// A call recorded by an earlier process whose result has not arrived yet.
    open: Option<String>,
}

impl<O: Write, E: Write> PlainUi<O, E> {
    /// Creates a writer with the answer on `out` and everything else on `err`.
    pub(crate) fn new(out: O, err: E, plan: RunHeader) -> Self {
        let tally = RunTally::new(plan.brief);
        Self { out, err, plan, tally, changes: Vec::new(), held: None, open: None }
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        let mut text = fusee::engine::text::render::sanitize(text).into_owned();
        text.push('\n');
        self.err.write_all(text.as_bytes())
    }

    fn describe_sandbox(&mut self) -> io::Result<()> {
        match self.held.take() {
            Some(text) if self.plan.is_draft(&text) => Ok(()),
            Some(text) => text.trim().lines().try_for_each(|line| self.line(&format!("  {line}"))),
            None => Ok(()),
        }
    }

    fn complete(&mut self, run: &str, complete: &TaskComplete) -> io::Result<()> {
        if complete.status != TaskStatus::Completed {
            self.describe_sandbox()?;
        }
        for line in self.tally.lines(complete, run) {
            self.line(&line.paint(false))?;
        }
        self.err.flush()?;
        if complete.status == TaskStatus::Completed && !complete.answer.is_empty() {
            self.out.write_all(complete.answer.trim_end().as_bytes())?;
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}

impl<O: Write + Send, E: Write + Send> Ui for PlainUi<O, E> {
    /// Batches events: nobody reads a log faster than this, and a run with short turns is spared a thread
    /// switch per event.
    fn batch_delay(&self) -> Duration {
        Duration::from_millis(20)
    }

    fn show(&mut self, stamped: &EventRecord) -> io::Result<()> {
        self.tally.note(stamped);
        match &stamped.event {
            // Tasks of a flow are shown as stages, tasks of a workflow by their request.
            Event::TaskStarted(started) if stamped.task != Branch::main() => {
                self.describe_sandbox()?;
                self.line(&format!(
                    "task {} · {}",
                    stamped.task,
                    format::one_line(format::request_text(&started.request), 120)
                ))
            }
            Event::TaskStarted(started) => {
                let (run, model, sandbox) = (&stamped.run, &started.model, &started.sandbox);
                self.line(&format!("run {run} · {model} · sandbox {sandbox}"))
            }
            Event::TaskResumed { .. } => self.line(&format!("run {} resumed", stamped.run)),
            Event::TurnStart { turn_index, input_tokens, max_turns, .. } => {
                self.describe_sandbox()?;
                let (turn, max, tokens) =
                    (turn_index + 1, max_turns.unwrap_or(self.plan.max_turns), format::tokens(*input_tokens));
                self.line(&format!("turn {turn}/{max} · {tokens} tokens"))
            }
            Event::Message { role: Role::Assistant, text } => {
                self.held = Some(text.clone());
                Ok(())
            }
            Event::Message { role: Role::User, text } => {
                // A user message may answer the text that was held back, so that text goes first.
                self.describe_sandbox()?;
                self.line(&format!("  to the model: {}", format::one_line(text, 160)))
            }
            Event::ToolCall { name, arguments, .. } => {
                self.describe_sandbox()?;
                self.line(&call(name, arguments))
            }
            Event::ToolResult(result) => {
                if let Some(call) = self.open.take() {
                    self.line(&call)?;
                }
                let (verdict, took) = (format::verdict(result), format::span(result.duration_ms));
                let why = if result.ok || result.exit_code.is_some() {
                    String::new()
                } else {
                    format!(": {}", format::one_line(format::first_line(&result.content), 160))
                };
                self.line(&format!("    {verdict} · {took}{why}"))?;
                // Change events precede the result of their call, but read better after it.
                let changes = std::mem::take(&mut self.changes);
                changes.iter().try_for_each(|change| self.line(change))
            }
            Event::FileChanged { path, change } => {
                self.changes.push(format!("    {} {path}", format::change(*change)));
                Ok(())
            }
            Event::Compaction { tokens_before, tokens_after, .. } => self.line(&format!(
                "  conversation compacted from {} to {} tokens",
                format::tokens(*tokens_before),
                format::tokens(*tokens_after)
            )),
            Event::Expansion { section_keys, reason, .. } => {
                self.line(&format!("  opened {}: {}", section_keys.join(", "), format::one_line(reason, 160)))
            }
            Event::Retry { attempt, after_ms, reason } => {
                let after = format::span(*after_ms);
                self.line(&format!(
                    "  attempt {attempt} failed, retrying in {after}: {}",
                    format::one_line(reason, 200)
                ))
            }
            Event::ApprovalRequested { name, arguments, .. } if name == "ask_user" => {
                let question = arguments["question"].as_str().unwrap_or_default();
                self.line(&format!("    question: {}", format::one_line(question, 2000)))
            }
            Event::ApprovalRequested { name, reason, .. } => {
                self.line(&format!("    approval needed for {name}: {reason}"))
            }
            Event::ApprovalResolved { approved: true, .. } => self.line("    allowed"),
            Event::ApprovalResolved { approved: false, reason, .. } => {
                let reason = reason.as_deref().unwrap_or("no");
                self.line(&format!("    denied: {}", format::one_line(reason, 160)))
            }
            Event::Log { message } => self.line(&format!("  {}", format::one_line(message, 2000))),
            Event::Warning { message, .. } => {
                self.line(&format!("  warning: {}", format::one_line(message, 400)))
            }
            Event::TaskReportInvalid { problems, .. } => {
                self.line(&format!("  warning: invalid task report: {}", problems.join("; ")))
            }
            Event::Hook(_)
            | Event::Network(_)
            | Event::Rewound { .. }
            | Event::FlowChosen { .. }
            | Event::FilesLocated(_)
            | Event::Sample(_)
            | Event::StageStarted { .. }
            | Event::StageComplete { .. }
            | Event::FlowStageReport(_)
            | Event::PhaseState { .. }
            | Event::PhaseTransition { .. }
            | Event::PhaseProbeError { .. } => {
                self.describe_sandbox()?;
                format::flow_text(&stamped.event).map_or(Ok(()), |text| self.line(&text))
            }
            Event::TaskComplete(complete) if stamped.task == Branch::main() => {
                self.complete(stamped.run.as_str(), complete)
            }
            // Covered by the final event, or transient.
            Event::TaskComplete(_)
            | Event::Error { .. }
            | Event::TurnComplete { .. }
            | Event::TaskReport(_)
            | Event::Reasoning { .. }
            | Event::MessageDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::ToolOutput { .. }
            | Event::Gap { .. } => Ok(()),
        }
    }

    fn note_rendered(&mut self, stamped: &EventRecord) {
        self.tally.note(stamped);
        if let Event::ToolCall { name, arguments, .. } = &stamped.event {
            self.open = Some(call(name, arguments));
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.err.flush()
    }

    fn close(&mut self) -> io::Result<()> {
        self.err.flush()
    }
}

fn call(name: &str, arguments: &Value) -> String {
    let gist = format::summarize_arguments(name, arguments);
    if gist.is_empty() { format!("  > {name}") } else { format!("  > {name} {gist}") }
}
