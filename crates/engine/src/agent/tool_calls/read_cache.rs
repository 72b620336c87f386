//! Deduplicates repeated reads: if the unchanged text is still in the conversation, the result refers to it
//! instead of repeating it. After a compaction, or outside a stage's history window, the text is sent again.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use fusee_model::{Message, ToolCall};
use fusee_tools::{SeenVersion, ToolOutput};
use serde_json::Value;

/// Result for the model in place of the repeated text.
pub(crate) const UNCHANGED: &str =
    "[Not changed since you last read it: the same text stands earlier in this conversation.]";

/// Read results the model has been sent, keyed by a hash of tool, files and text.
#[derive(Debug, Default)]
pub(crate) struct SentReads {
    sent: HashMap<u64, SentRead>,
    /// The call that last returned the full text of a file, and its message index.
    whole: HashMap<String, (String, usize)>,
}

impl SentReads {
    /// Replaces the text of a read by a reference, if `messages`, those of the next request, contain the same
    /// text. Returns whether it did.
    pub(crate) fn dedup(&mut self, call: &ToolCall, output: &mut ToolOutput, messages: &[Message]) -> bool {
        if !output.ok || output.seen.is_empty() || !output.changed.is_empty() {
            return false;
        }
        let key = key(&call.name, output);
        let stands = self.sent.get(&key).is_some_and(|sent| {
            messages.get(sent.at).is_some_and(|message| holds(message, sent, &output.content))
                || messages.iter().any(|message| holds(message, sent, &output.content))
        });
        if stands {
            UNCHANGED.clone_into(&mut output.content);
            output.truncated = false;
            return true;
        }
        let at = messages.len();
        self.sent.insert(key, SentRead { call_id: call.id.clone(), at });
        if !output.truncated && is_whole(call) {
            let sent = |seen: &SeenVersion| (seen.path.clone(), (call.id.clone(), at));
            self.whole.extend(output.seen.iter().map(sent));
        }
        false
    }

    /// The call that last returned the full text of this file, and the index of its result.
    pub(crate) fn whole(&self, path: &str) -> Option<(&str, usize)> {
        self.whole.get(path).map(|(call, at)| (call.as_str(), *at))
    }
}

#[derive(Debug)]
struct SentRead {
    call_id: String,
    /// Index in the request at that time, which is still valid unless the request was rebuilt.
    at: usize,
}

/// Whether a message is the result of that call with this text.
fn holds(message: &Message, sent: &SentRead, text: &str) -> bool {
    matches!(message, Message::Tool { call_id, content, .. } if *call_id == sent.call_id && content == text)
}

/// Whether a call reads entire files.
fn is_whole(call: &ToolCall) -> bool {
    let arguments = serde_json::from_str::<Value>(&call.arguments).unwrap_or_default();
    matches!(call.name.as_str(), "read_file" | "read_files")
        && ["offset", "limit", "start_line", "end_line"].iter().all(|part| arguments.get(part).is_none())
}

fn key(tool: &str, output: &ToolOutput) -> u64 {
    let mut hasher = DefaultHasher::new();
    (tool, &output.content).hash(&mut hasher);
    output.seen.iter().for_each(|seen| seen.path.hash(&mut hasher));
    hasher.finish()
}
