//! Builds lines of a `script:FILE` model, in the format that `fusee_model::script` reads. `project` writes the file.

use serde_json::{Value, json};

/// One reply of the scripted model.
#[derive(Clone, Debug)]
pub struct Line(Value);

impl Line {
    /// A text answer.
    pub fn text(text: &str) -> Self {
        Self(json!({ "text": text }))
    }

    /// A tool call; [`Line::and_call`] adds more.
    pub fn call(name: &str, arguments: Value) -> Self {
        Self(json!({})).and_call(name, arguments)
    }

    /// An error response of the server.
    pub fn error(status: u16, message: &str) -> Self {
        Self(json!({"error": {"status": status, "message": message}}))
    }

    /// An arbitrary object, for lines that no other method creates.
    pub fn raw(line: Value) -> Self {
        Self(line)
    }

    /// Adds a tool call. String arguments are sent verbatim.
    #[must_use]
    pub fn and_call(mut self, name: &str, arguments: Value) -> Self {
        let call = json!({"name": name, "arguments": arguments});
        match self.0.get_mut("tool_calls").and_then(Value::as_array_mut) {
            Some(calls) => calls.push(call),
            None => self.0["tool_calls"] = json!([call]),
        }
        self
    }

    /// Adds text to the calls.
    #[must_use]
    pub fn with_text(self, text: &str) -> Self {
        self.with("text", json!(text))
    }

    /// Adds reasoning before the rest.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.with("reasoning", json!(text))
    }

    /// Sets the reported usage.
    #[must_use]
    pub fn usage(self, input: u64, output: u64) -> Self {
        self.with("usage", json!({"input_tokens": input, "output_tokens": output}))
    }

    /// Cuts the stream off after this many characters.
    #[must_use]
    pub fn cut_after(self, characters: u64) -> Self {
        self.with("cut_after", json!(characters))
    }

    /// Delays the reply.
    #[must_use]
    pub fn delay_ms(self, ms: u64) -> Self {
        self.with("delay_ms", json!(ms))
    }

    /// Restricts the line to requests whose last message matches the regular expression.
    #[must_use]
    pub fn matching(self, expression: &str) -> Self {
        self.with("match", json!(expression))
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.0[key] = value;
        self
    }

    /// The line without its newline.
    pub fn to_json(&self) -> String {
        self.0.to_string()
    }
}
