//! A question of a server to the user, as one question in plain text for every field of its form.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value, json};

/// Maximum fields of a form.
const MAX_FIELDS: usize = 10;
/// Maximum bytes of a server's words in a question.
const MAX_WORDS: usize = 2000;

/// A form that the user fills in, field by field.
#[derive(Debug)]
pub(super) struct Form {
    message: String,
    /// Name and schema of the fields that are not filled in.
    fields: Vec<(String, Value)>,
    required: Vec<String>,
    content: Map<String, Value>,
}

impl Form {
    /// Reads a form; `None` if it is not one that can be filled in here.
    pub(super) fn read(request: &ElicitRequestParams) -> Option<Self> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return None;
        };
        let schema = serde_json::to_value(requested_schema).ok()?;
        let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let required: Vec<String> = required.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        let mut fields: Vec<(String, Value)> = properties.into_iter().collect();
        fields.reverse();
        (fields.len() <= MAX_FIELDS).then(|| Self {
            message: plain(message),
            fields,
            required,
            content: Map::new(),
        })
    }

    /// The question about the next field, or whether to go on if there are no fields.
    pub(super) fn question(&self, server: &str) -> String {
        let Self { message, .. } = self;
        let Some((name, schema)) = self.fields.last() else {
            return format!("The MCP server `{server}` asks: {message} (yes or no)");
        };
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(plain);
        let mut question = format!("The MCP server `{server}` asks: {message}\n{}", plain(name));
        question.extend(text("description").or_else(|| text("title")).map(|words| format!(": {words}")));
        let choices = choices(schema);
        if !choices.is_empty() {
            question.push_str(&format!(" (one of: {})", plain(&choices.join(", "))));
        } else if let Some(kind) = text("type").filter(|kind| kind != "string") {
            question.push_str(&format!(" ({kind})"));
        }
        if !self.required.contains(name) {
            question.push_str(" (may be left empty)");
        }
        question
    }

    /// Takes the answer to the question. Returns the reply to the server once there is nothing more to ask.
    pub(super) fn fill(&mut self, answer: Option<&str>) -> Option<ElicitResult> {
        let declined = || Some(ElicitResult::new(ElicitationAction::Decline));
        let Some(answer) = answer.map(str::trim) else { return declined() };
        match self.fields.pop() {
            None if truth(answer) == Some(true) => {}
            None => return declined(),
            Some((name, _)) if answer.is_empty() && !self.required.contains(&name) => {}
            Some((name, schema)) => match value(answer, &schema) {
                Some(value) => {
                    self.content.insert(name, value);
                }
                None => return declined(),
            },
        }
        self.fields.is_empty().then(|| {
            let content = Value::Object(std::mem::take(&mut self.content));
            ElicitResult::new(ElicitationAction::Accept).with_content(content)
        })
    }
}

/// The values that a field may have, if it lists them.
fn choices(schema: &Value) -> Vec<String> {
    let listed = schema.get("enum").and_then(Value::as_array);
    let named = schema.get("oneOf").and_then(Value::as_array);
    let named = named.into_iter().flatten().filter_map(|choice| choice.get("const"));
    listed.into_iter().flatten().chain(named).filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// An answer as a value of the field's type; `None` if it is not one.
fn value(answer: &str, schema: &Value) -> Option<Value> {
    let choices = choices(schema);
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => truth(answer).map(Value::Bool),
        Some("integer") => answer.parse::<i64>().ok().map(Value::from),
        Some("number") => answer.parse::<f64>().ok().map(|number| json!(number)),
        Some("array") => Some(answer.split(',').map(|item| Value::from(item.trim())).collect()),
        _ if choices.is_empty() => Some(Value::from(answer)),
        _ => choices.into_iter().find(|choice| choice.eq_ignore_ascii_case(answer)).map(Value::from),
    }
}

fn truth(answer: &str) -> Option<bool> {
    match answer.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" | "ok" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// A server's words, without control characters and not too long.
fn plain(words: &str) -> String {
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    words[..words.floor_char_boundary(MAX_WORDS)].to_owned()
}

#[cfg(test)]
mod tests;
