//! The log of a run: every event with its timestamp and all its fields, long texts on lines of their own.

use std::io::{self, Write};

use fusee::engine::agent::flow::{FlowSettings, PhaseLog, PhaseMode};
use fusee::engine::journal::{Event, EventRecord};
use fusee::engine::text::render::sanitize;
use serde_json::Value;

use super::{Ui, format};

#[cfg(test)]
mod tests;

/// Values longer than this many bytes are written below the event's line.
const SHORT: usize = 60;

/// Writes a run's events as a log.
pub(crate) struct Log<W> {
    out: W,
    phases: PhaseLogTarget,
    /// Phase events collected for the section at the end.
    apart: String,
}

/// Where phase events appear in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseLogTarget {
    /// In sequence with all other events.
    Inline,
    /// In a separate section at the end.
    Apart,
    /// Omitted from the log.
    Nowhere,
}

impl PhaseLogTarget {
    /// Where a log shows the phases of a run, according to the run's own `phase_log`. Without phase control the only
    /// phases are those of `staged`, which are shown inline.
    pub(crate) fn from_flow(flow: &FlowSettings) -> Self {
        match flow.phase_log {
            PhaseLog::Log | PhaseLog::Both => Self::Apart,
            _ if flow.phase_control.mode != PhaseMode::Off => Self::Nowhere,
            _ => Self::Inline,
        }
    }
}

impl<W: Write> Log<W> {
    /// Creates a log on `out`.
    pub(crate) fn new(out: W, phases: PhaseLogTarget) -> Self {
        Self { out, phases, apart: String::new() }
    }
}

impl<W: Write + Send> Ui for Log<W> {
    fn show(&mut self, stamped: &EventRecord) -> io::Result<()> {
        // Fragments are not journaled; the whole text follows.
        if matches!(
            stamped.event,
            Event::MessageDelta { .. }
                | Event::ReasoningDelta { .. }
                | Event::ToolOutput { .. }
                | Event::Gap { .. }
        ) {
            return Ok(());
        }
        // Goes through the JSON form, so that no field of any event can be forgotten here.
        let Value::Object(fields) = serde_json::to_value(stamped)? else { return Ok(()) };
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut line = format!("{} {:>5} {} {}", text("ts"), stamped.seq, text("task"), text("type"));
        let mut below = String::new();
        for (key, value) in fields.iter().filter(|(key, _)| !ENVELOPE.contains(&key.as_str())) {
            let shown = match value {
                Value::String(text) => text.clone(),
                Value::Null => continue,
                other => other.to_string(),
            };
            if shown.len() <= SHORT && !shown.contains('\n') {
                line.push_str(&format!(
                    " {key}={}",
                    if shown.contains(' ') { format!("{shown:?}") } else { shown }
                ));
            } else {
                below.push_str(&format!("    {key}:\n"));
                for part in shown.trim_end().lines() {
                    below.push_str(&format!("      {}\n", sanitize(part)));
                }
            }
        }
        let entry = format!("{}\n{below}", sanitize(&line));
        match self.phases {
            _ if format::phase_text(&stamped.event).is_none() => self.out.write_all(entry.as_bytes()),
            PhaseLogTarget::Inline => self.out.write_all(entry.as_bytes()),
            PhaseLogTarget::Apart => {
                self.apart.push_str(&entry);
                Ok(())
            }
            PhaseLogTarget::Nowhere => Ok(()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        if !self.apart.is_empty() {
            let apart = std::mem::take(&mut self.apart);
            write!(self.out, "\nphases\n{apart}")?;
        }
        self.out.flush()
    }
}

/// Fields that are in the line's prefix, or identical on every line.
const ENVELOPE: &[&str] = &["seq", "ts", "run", "task", "type"];
