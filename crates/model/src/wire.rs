//! The formats servers speak. Each codec is a folder of its own and does no I/O: it writes messages into a
//! buffer and is fed what a server sent. [`crate::http`] moves the bytes.

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::{Message, RequestOptions, ToolSpec};

pub mod openai_chat;

/// A wire format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// OpenAI chat completions, which almost every server speaks.
    #[default]
    Chat,
}

impl Wire {
    /// The path of the endpoint, appended to the base URL.
    pub fn path(self) -> &'static str {
        match self {
            Wire::Chat => "chat/completions",
        }
    }

    /// What stands before the first message.
    pub(crate) fn opening(self, system: &str) -> Bytes {
        match self {
            Wire::Chat => openai_chat::opening(system),
        }
    }

    /// One message. `follows` tells whether another element of the same list stands before it.
    pub(crate) fn message(self, out: &mut BytesMut, message: &Message, follows: bool) {
        match self {
            Wire::Chat => openai_chat::message(out, message, follows),
        }
    }

    /// Whether the opening already holds an element of the message list.
    pub(crate) fn opening_lists_system(self, system: &str) -> bool {
        match self {
            Wire::Chat => !system.is_empty(),
        }
    }

    /// What stands after the last message, whatever the options are.
    pub(crate) fn tools(self, tools: &[ToolSpec]) -> Bytes {
        match self {
            Wire::Chat => openai_chat::tools(tools),
        }
    }

    /// The rest of the body.
    pub(crate) fn closing(self, id: &str, options: &RequestOptions) -> Bytes {
        match self {
            Wire::Chat => openai_chat::closing(id, options),
        }
    }
}
