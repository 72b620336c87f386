//! The transcript of a recorded run: request, messages, calls and answers. `terminal` renders live output;
//! here the result of each call is known before the call is written.

use std::collections::HashMap;
use std::io::{self, Write};

use fusee::engine::journal::EventRecord;
use fusee::engine::journal::event::{Event, Role, TaskComplete, TaskStatus, ToolResult};
use fusee::engine::text::render::sanitize;

use super::summary::RunTally;
use super::{Ui, format};
use crate::process::clock;

#[cfg(test)]
mod tests;

/// Lines of a result that are shown unless the full transcript is requested.
const RESULT_LINES: usize = 8;

/// Width of the rule above a turn, in columns.
const RULE: usize = 72;

/// Writes a run's events as a transcript.
pub(crate) struct Transcript<W> {
    out: W,
    full: bool,
    calls: HashMap<String, String>,
    changes: Vec<String>,
    tally: RunTally,
    said: String,
}

impl<W: Write> Transcript<W> {
    /// Creates a transcript on `out`; `full` includes complete tool results.
    pub(crate) fn new(out: W, full: bool) -> Self {
        Self {
            out,
            full,
            calls: HashMap::new(),
            changes: Vec::new(),
            tally: RunTally::default(),
            said: String::new(),
        }
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", sanitize(text).trim_end())
    }

    fn text(&mut self, indent: &str, text: &str) -> io::Result<()> {
        text.trim_end().lines().try_for_each(|line| self.line(&format!("{indent}{line}")))
    }

    fn result(&mut self, result: &ToolResult) -> io::Result<()> {
        let call = self.calls.remove(&result.call_id).unwrap_or_else(|| result.call_id.clone());
        let (verdict, took) = (format::verdict(result), format::span(result.duration_ms));
        self.line(&format!("> {call}"))?;
        self.line(&format!("  {verdict} · {took}"))?;
        let lines = result.content.trim_end().lines().count();
        let most = if self.full { lines } else { RESULT_LINES };
        let shown: Vec<&str> = result.content.trim_end().lines().take(most).collect();
        for line in shown {
            self.line(&format!("  | {line}"))?;
        }
        if lines > most {
            self.line(&format!("  | … {}", format::count((lines - most) as u64, "more line")))?;
        }
        for change in std::mem::take(&mut self.changes) {
            self.line(&format!("  {change}"))?;
        }
        self.line("")
    }

    fn complete(&mut self, run: &str, complete: &TaskComplete) -> io::Result<()> {
        let answer = complete.answer.trim_end();
        if complete.status == TaskStatus::Completed && !answer.is_empty() && answer != self.said {
            let answer = answer.to_owned();
            self.text("", &answer)?;
            self.line("")?;
        }
        for line in self.tally.lines(complete, run) {
            self.line(&line.paint(false))?;
        }
        Ok(())
    }
}

impl<W: Write + Send> Ui for Transcript<W> {
    fn show(&mut self, stamped: &EventRecord) -> io::Result<()> {
        self.tally.note(stamped);
        match &stamped.event {
            // Tasks below the main one are shown as stages.
            Event::TaskStarted(_) if stamped.task != fusee::engine::journal::Branch::main() => Ok(()),
            Event::TaskStarted(started) => {
                let when = clock::local(stamped.ts_ms);
                self.line(&format!(
                    "run {} · {when} · {} · sandbox {}",
                    stamped.run, started.model, started.sandbox
                ))?;
                self.line("")?;
                self.text("  ", &started.request)?;
                self.line("")
            }
            Event::TaskResumed { .. } => {
                self.line(&format!("== resumed · {}", clock::local(stamped.ts_ms)))?;
                self.line("")
            }
            Event::TurnStart { turn_index, input_tokens, .. } => {
                let title = format!("turn {} · {} tokens", turn_index + 1, format::tokens(*input_tokens));
                let rule = "─".repeat(RULE.saturating_sub(title.chars().count() + 4));
                self.line(&format!("── {title} {rule}"))?;
                self.line("")
            }
            Event::Reasoning { text } => {
                self.text("  ~ ", text)?;
                self.line("")
            }
            Event::Message { role: Role::Assistant, text } => {
                text.trim_end().clone_into(&mut self.said);
                self.text("", text)?;
                self.line("")
            }
            Event::Message { role: Role::User, text } => {
                self.text("  < ", text)?;
                self.line("")
            }
            Event::ToolCall { call_id, name, arguments } => {
                let gist = format::summarize_arguments(name, arguments);
                self.calls.insert(call_id.clone(), format!("{name} {gist}").trim_end().to_owned());
                Ok(())
            }
            Event::ToolResult(result) => self.result(result),
            Event::FileChanged { path, change } => {
                self.changes.push(format!("{} {path}", format::change(*change)));
                Ok(())
            }
            Event::Compaction { tokens_before, tokens_after, .. } => {
                let (before, after) = (format::tokens(*tokens_before), format::tokens(*tokens_after));
                self.line(&format!("== conversation compacted from {before} to {after} tokens"))?;
                self.line("")
            }
            Event::Expansion { section_keys, reason, .. } => {
                self.line(&format!("== opened {}: {reason}", section_keys.join(", ")))?;
                self.line("")
            }
            Event::Retry { attempt, after_ms, reason } => {
                self.line(&format!(
                    "== attempt {attempt} failed, retrying in {}: {reason}",
                    format::span(*after_ms)
                ))?;
                self.line("")
            }
            Event::ApprovalRequested { name, reason, .. } => self.line(&format!("? {name}: {reason}")),
            Event::ApprovalResolved { approved, reason, .. } => {
                let word = if *approved { "allowed" } else { "denied" };
                let reason = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                self.line(&format!("  {word}{reason}"))
            }
            Event::Log { message } => self.line(message),
            Event::Warning { message, .. } => {
                self.line(&format!("! {message}"))?;
                self.line("")
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
            | Event::PhaseProbeError { .. } => match format::flow_text(&stamped.event) {
                Some(text) => {
                    self.line(&format!("== {text}"))?;
                    self.line("")
                }
                None => Ok(()),
            },
            Event::TaskComplete(complete) if stamped.task == fusee::engine::journal::Branch::main() => {
                self.complete(stamped.run.as_str(), complete)
            }
            Event::TaskComplete(_)
            | Event::TurnComplete { .. }
            | Event::Error { .. }
            | Event::TaskReport(_)
            | Event::TaskReportInvalid { .. }
            | Event::MessageDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::ToolOutput { .. }
            | Event::Gap { .. } => Ok(()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
