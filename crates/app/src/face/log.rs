//! The log of a run: every event with its time, whole texts below it. For reading what happened when.

use std::io::{self, Write};

use fusee_engine::journal::Stamped;
use fusee_engine::text::render::harmless;
use serde_json::Value;

use super::{Face, words};

#[cfg(test)]
mod tests;

/// Text longer than this stands on lines of its own.
const SHORT: usize = 60;

/// Writes a log.
pub(crate) struct Log<W> {
    out: W,
    phases: PhasePlace,
    /// What is told of phases, for the end.
    apart: String,
}

/// Where phase events stand in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhasePlace {
    /// Among the others.
    Inline,
    /// In a part of their own at the end.
    Apart,
    /// Nowhere.
    Nowhere,
}

impl<W: Write> Log<W> {
    /// A log on `out`.
    pub(crate) fn new(out: W, phases: PhasePlace) -> Self {
        Self { out, phases, apart: String::new() }
    }
}

impl<W: Write + Send> Face for Log<W> {
    fn show(&mut self, stamped: &Stamped) -> io::Result<()> {
        // By its JSON form, so that no field of any event can be forgotten here.
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
                    below.push_str(&format!("      {}\n", harmless(part)));
                }
            }
        }
        let entry = format!("{}\n{below}", harmless(&line));
        match self.phases {
            _ if words::of_phase(&stamped.event).is_none() => self.out.write_all(entry.as_bytes()),
            PhasePlace::Inline => self.out.write_all(entry.as_bytes()),
            PhasePlace::Apart => {
                self.apart.push_str(&entry);
                Ok(())
            }
            PhasePlace::Nowhere => Ok(()),
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

/// What stands at the beginning of the line, or is the same on every one.
const ENVELOPE: &[&str] = &["seq", "ts", "run", "task", "type"];
