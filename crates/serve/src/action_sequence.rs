//! The actions of a run in their order (calls and messages), the alignment of two such sequences, and a run as Markdown.

use std::collections::HashMap;

use fusee::engine::journal::event::Role;
use fusee::journal::{Event, EventRecord};
use schemars::JsonSchema;
use serde::Serialize;
use similar::{Algorithm, DiffOp};

use crate::outline::key_argument;

/// Maximum number of actions of a run that are compared.
pub(crate) const MAX_ACTIONS: usize = 2_000;

/// Maximum number of characters of an action that are shown.
const SHOWN: usize = 400;

/// Something a run did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Action {
    /// Number of its event.
    pub(crate) seq: u64,
    /// Tool, or `message`.
    pub(crate) name: String,
    /// The telling argument, or the text, shortened.
    pub(crate) text: String,
    /// Whether it succeeded; absent for messages and for calls without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ok: Option<bool>,
    /// Duration in milliseconds, for calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ms: Option<u64>,
    /// What is compared.
    #[serde(skip)]
    key: String,
}

/// Two actions side by side.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct AlignedActions {
    /// Action of the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) a: Option<Action>,
    /// Action of the second run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) b: Option<Action>,
    /// Whether both are the same.
    pub(crate) same: bool,
}

/// Collects the actions of a run.
#[derive(Default)]
pub(crate) struct ActionSequence {
    actions: Vec<Action>,
    calls: HashMap<String, usize>,
}

impl ActionSequence {
    /// Adds the next event; returns whether there is room for more.
    pub(crate) fn add(&mut self, record: &EventRecord) -> bool {
        let seq = record.seq;
        match &record.event {
            Event::ToolCall { call_id, name, arguments } => {
                self.calls.insert(call_id.clone(), self.actions.len());
                let (name, text, key) =
                    (name.clone(), cut(&key_argument(arguments)), format!("{name} {arguments}"));
                self.actions.push(Action { seq, name, text, ok: None, ms: None, key });
            }
            Event::ToolResult(result) => {
                let call = self.calls.get(&result.call_id).and_then(|at| self.actions.get_mut(*at));
                if let Some(call) = call {
                    (call.ok, call.ms) = (Some(result.ok), Some(result.duration_ms));
                }
            }
            Event::Message { role, text } => {
                let name = match role {
                    Role::User => "user",
                    Role::Assistant => "message",
                };
                let key = format!("{name} {text}");
                self.actions.push(Action {
                    seq,
                    name: name.to_owned(),
                    text: cut(text),
                    ok: None,
                    ms: None,
                    key,
                });
            }
            _ => {}
        }
        self.actions.len() < MAX_ACTIONS
    }
}

/// Aligns two sequences by their longest common subsequence.
pub(crate) fn align(a: &ActionSequence, b: &ActionSequence) -> Vec<AlignedActions> {
    let keys = |sequence: &ActionSequence| -> Vec<String> {
        sequence.actions.iter().map(|action| action.key.clone()).collect()
    };
    let (left, right) = (keys(a), keys(b));
    let mut rows = Vec::new();
    for op in similar::capture_diff_slices(Algorithm::Myers, &left, &right) {
        let (old, new) = (op.old_range(), op.new_range());
        let same = matches!(op, DiffOp::Equal { .. });
        for n in 0..old.len().max(new.len()) {
            let at = |sequence: &ActionSequence, range: &std::ops::Range<usize>| {
                (n < range.len()).then(|| sequence.actions.get(range.start + n).cloned()).flatten()
            };
            rows.push(AlignedActions { a: at(a, &old), b: at(b, &new), same });
        }
    }
    rows
}

/// An event as Markdown; empty if a reader does not need it.
pub(crate) fn markdown(record: &EventRecord) -> String {
    match &record.event {
        Event::TaskStarted(started) => {
            format!("# {}\n\nModel `{}`\n\n", started.request.trim(), started.model)
        }
        Event::Message { role: Role::User, text } => format!("**You:** {}\n\n", text.trim()),
        Event::Message { role: Role::Assistant, text } => format!("{}\n\n", text.trim()),
        Event::Reasoning { text } => {
            format!("> {}\n\n", text.trim().replace('\n', "\n> "))
        }
        Event::ToolCall { name, arguments, .. } => {
            format!("**{name}**\n\n{}\n", fenced("json", &arguments.to_string()))
        }
        Event::ToolResult(result) => fenced("", &result.content) + "\n",
        Event::Error { message, .. } => format!("**Error:** {message}\n\n"),
        Event::TaskComplete(complete) => format!(
            "---\n\n{} turns, {} tokens, {} ms\n\n",
            complete.total_turns, complete.total_tokens, complete.duration_ms
        ),
        _ => String::new(),
    }
}

/// A code block with a fence that its content does not contain.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.lines().map(|line| line.chars().take_while(|c| *c == '`').count()).max();
    let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
