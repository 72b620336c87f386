//! The closing fields of a body, assembled in the same order for every format: model, sampling,
//! format-specific fields, streaming, and last the fields given verbatim by the user. The formats choose the
//! fields.

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};

use super::json;
use crate::{ModelTraits, RequestOptions, ToolChoice};

/// Fields in insertion order.
pub(crate) struct BodyTail(Map<String, Value>);

impl BodyTail {
    /// The fields of a request for the model `id`.
    pub(crate) fn new(id: &str) -> Self {
        BodyTail(Map::new()).field("model", Some(id))
    }

    /// Adds a field if it has a value.
    pub(crate) fn field(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        self.0.extend(value.map(|value| (name.to_owned(), value.into())));
        self
    }

    /// Adds the sampling parameters, unless the server rejects them.
    pub(crate) fn sampling(self, options: &RequestOptions, traits: ModelTraits) -> Self {
        if traits.fixed_sampling {
            return self;
        }
        self.field("temperature", options.temperature).field("top_p", options.top_p)
    }

    /// Adds the tool choice in OpenAI's format; `named` encodes the choice of a particular tool.
    pub(crate) fn choice(self, choice: &ToolChoice, named: fn(&str) -> Value) -> Self {
        let choice = match choice {
            ToolChoice::Auto => None,
            ToolChoice::Nothing => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Named(name) => Some(named(name)),
        };
        self.field("tool_choice", choice)
    }

    /// Adds the fields given verbatim by the user, which override ours.
    pub(crate) fn with_overrides(mut self, options: &RequestOptions) -> Self {
        self.0.extend(options.extra.iter().map(|(key, value)| (key.clone(), value.clone())));
        self
    }

    /// Encodes the fields as the rest of a body.
    pub(crate) fn into_bytes(self) -> Bytes {
        let mut out = BytesMut::new();
        json(&mut out, &self.0);
        if let Some(brace) = out.first_mut() {
            *brace = b',';
        }
        out.freeze()
    }
}
