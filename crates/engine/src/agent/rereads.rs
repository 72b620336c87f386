//! Reading again what has not changed: where the text still stands in what the model is sent, it is told so instead of
//! being sent the same once more. After a compaction, or outside the window of a stage, the text is sent again.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use fusee_model::{Message, ToolCall};
use fusee_tools::{Seen, ToolOutput};
use serde_json::Value;

use super::driver::Driver;

/// What the model is told.
pub(crate) const UNCHANGED: &str =
    "[Not changed since you last read it: the same text stands earlier in this conversation.]";

/// Texts that the model was sent, by tool, files and text, and where.
#[derive(Debug, Default)]
pub(crate) struct Rereads {
    sent: HashMap<u64, Sent>,
    /// The call that last gave the whole text of a file, and where.
    whole: HashMap<String, (String, usize)>,
}

impl Rereads {
    /// The call that last gave the whole text of this file, and where its answer stood.
    pub(crate) fn whole(&self, path: &str) -> Option<(&str, usize)> {
        self.whole.get(path).map(|(call, at)| (call.as_str(), *at))
    }
}

#[derive(Debug)]
struct Sent {
    call_id: String,
    /// Where it stood in the request then, which is where it stands still unless that was made anew.
    at: usize,
}

impl Driver<'_> {
    /// The answer to a read: itself, or a pointer to the same text where that stands already.
    pub(crate) fn read_once(&mut self, call: &ToolCall, mut output: ToolOutput) -> ToolOutput {
        if !output.ok || output.seen.is_empty() || !output.changed.is_empty() {
            return output;
        }
        let key = key(&call.name, &output);
        if self.rereads.sent.get(&key).is_some_and(|sent| self.stands(sent, &output.content)) {
            self.facts.fed_back("unchanged_read");
            UNCHANGED.clone_into(&mut output.content);
            output.truncated = false;
        } else {
            let at = self.conversation.request().messages().len();
            self.rereads.sent.insert(key, Sent { call_id: call.id.clone(), at });
            if !output.truncated && is_whole(call) {
                let sent = |seen: &Seen| (seen.path.clone(), (call.id.clone(), at));
                self.rereads.whole.extend(output.seen.iter().map(sent));
            }
        }
        output
    }

    /// Whether this text stands, whole, in the result of that call in the next request.
    fn stands(&self, sent: &Sent, text: &str) -> bool {
        let is_it = |message: &Message| matches!(message, Message::Tool { call_id, content, .. } if *call_id == sent.call_id && content == text);
        let messages = self.conversation.request().messages();
        messages.get(sent.at).is_some_and(is_it) || messages.iter().any(is_it)
    }
}

/// Whether a call asks for whole files.
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
