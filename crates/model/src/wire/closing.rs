//! The closing fields of a body, which every format puts together in the same way: who is asked, how it is sampled, what is
//! the format's own, whether it streams, and last what the user gave word for word. Which fields are whose is the
//! formats' part.

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};

use super::json;
use crate::{RequestOptions, ToolChoice, Traits};

/// Fields in the order in which they were added.
pub(crate) struct Closing(Map<String, Value>);

impl Closing {
    /// Those of a request for the model `id`.
    pub(crate) fn of(id: &str) -> Self {
        Closing(Map::new()).field("model", Some(id))
    }

    /// One more field, if there is something to say.
    pub(crate) fn field(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        self.0.extend(value.map(|value| (name.to_owned(), value.into())));
        self
    }

    /// How the reply is sampled, where that can be said.
    pub(crate) fn sampling(self, options: &RequestOptions, traits: Traits) -> Self {
        if traits.fixed_sampling {
            return self;
        }
        self.field("temperature", options.temperature).field("top_p", options.top_p)
    }

    /// OpenAI's way to say whether a tool is called; `named` is how one of them is named.
    pub(crate) fn choice(self, choice: &ToolChoice, named: fn(&str) -> Value) -> Self {
        let choice = match choice {
            ToolChoice::Auto => None,
            ToolChoice::Nothing => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Named(name) => Some(named(name)),
        };
        self.field("tool_choice", choice)
    }

    /// The fields that the user gave word for word: they win over those we would send.
    pub(crate) fn given(mut self, options: &RequestOptions) -> Self {
        self.0.extend(options.extra.iter().map(|(key, value)| (key.clone(), value.clone())));
        self
    }

    /// As the rest of a body.
    pub(crate) fn into_bytes(self) -> Bytes {
        let mut out = BytesMut::new();
        json(&mut out, &self.0);
        if let Some(brace) = out.first_mut() {
            *brace = b',';
        }
        out.freeze()
    }
}
