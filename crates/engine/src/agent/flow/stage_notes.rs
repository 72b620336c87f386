//! Short notes passed from one stage to the next, from the model's words and the recorded facts.

use serde_json::Value;

use crate::agent::Facts;

/// Maximum characters of the model's words in a note.
const NOTE_CHARACTERS: usize = 600;

/// One line about a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StageNote {
    pub(crate) label: String,
    pub(crate) text: String,
}

impl StageNote {
    /// Summarises a stage.
    pub(crate) fn new(label: &str, answer: &str, payload: Option<&Value>, facts: &Facts) -> Self {
        let mut text = one_line(answer, NOTE_CHARACTERS);
        for (key, word) in [("decisions", "decided"), ("risks", "risks"), ("next_actions", "next")] {
            let items = payload.and_then(|payload| payload.get(key)).and_then(Value::as_array);
            let items: Vec<&str> = items.into_iter().flatten().filter_map(Value::as_str).collect();
            if !items.is_empty() {
                text.push_str(&format!(" {word}: {}.", items.join("; ")));
            }
        }
        let changed: Vec<&str> = facts.changed().map(|(path, _)| path).collect();
        if !changed.is_empty() {
            text.push_str(&format!(" [changed: {}]", changed.join(", ")));
        }
        Self { label: label.to_owned(), text: one_line(&text, 2 * NOTE_CHARACTERS) }
    }
}

/// Renders the newest `window` notes; all if `window` is negative.
pub(crate) fn shown(notes: &[StageNote], window: i64) -> Option<String> {
    let count = usize::try_from(window).unwrap_or(notes.len()).min(notes.len());
    let lines: Vec<String> =
        notes[notes.len() - count..].iter().map(|note| format!("- {}: {}", note.label, note.text)).collect();
    (!lines.is_empty()).then(|| format!("Notes of the work so far:\n{}", lines.join("\n")))
}

/// Collapses a text to one line of at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
