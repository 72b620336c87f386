//! Ids of tool calls, unique within a task: some servers number the calls of every reply anew.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher as _, BuildHasherDefault};

use fusee_model::{Message, Reply, ToolCall};

/// The ids of the calls so far, as hashes. Which calls are renamed depends on them, and is therefore the same in a replay.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashSet<u64, BuildHasherDefault<DefaultHasher>>);

impl CallIds {
    /// The ids of the calls in these messages.
    pub(crate) fn from_messages(messages: &[Message]) -> Self {
        let mut ids = Self::default();
        for message in messages {
            if let Message::Assistant { tool_calls, .. } = message {
                for call in tool_calls {
                    ids.add(&call.id);
                }
            }
        }
        ids
    }

    /// Gives a new id to every call of a reply whose id an earlier call has.
    pub(crate) fn rename_repeated(&mut self, reply: &mut Reply) {
        for ToolCall { id, .. } in &mut reply.tool_calls {
            if !self.add(id) {
                let free =
                    (self.0.len()..).map(|number| format!("call_{number}")).find(|free| self.add(free));
                *id = free.unwrap_or_default();
            }
        }
    }

    /// Returns whether the id is new.
    fn add(&mut self, id: &str) -> bool {
        let hash = self.0.hasher().hash_one(id);
        self.0.insert(hash)
    }
}

#[cfg(test)]
mod tests;
