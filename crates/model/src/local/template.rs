//! Renders a conversation with the chat template in the model file, in the format the model was trained on.
//! Templates are written for Python's Jinja; the Python features they use are added here.

use minijinja::{Environment, Error, ErrorKind, Value};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde::Serialize;
use serde_json::Map;
use serde_json::ser::Formatter;

use super::reasoning;
use super::request::LocalRequest;

/// For files without a template: the format most small models were trained on.
const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                      {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

const NAME: &str = "chat";
/// Fuel limit for rendering; no sane template needs more.
const MAX_WORK: u64 = 50_000_000;

/// A rendered prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChatPrompt {
    pub(super) text: String,
    /// Whether the prompt ends with an opened reasoning section.
    pub(super) thinks: bool,
}

/// A parsed chat template.
pub(super) struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// Parses a template; `bos` and `eos` are the tokens that some templates insert themselves.
    pub(super) fn read(source: Option<String>, bos: String, eos: String) -> Result<ChatTemplate, String> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_keep_trailing_newline(false);
        environment.set_fuel(Some(MAX_WORK));
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", |why: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, why))
        });
        environment
            .add_template_owned(NAME, source.unwrap_or_else(|| CHATML.to_owned()))
            .map_err(|error| format!("its chat template is invalid: {error}"))?;
        Ok(ChatTemplate { environment, bos, eos })
    }

    /// Renders the prompt. A prefilled beginning of the reply is placed at its end, and the model continues
    /// from there.
    pub(super) fn prompt(&self, asked: &LocalRequest) -> Result<ChatPrompt, String> {
        let (messages, begun) = asked.turns();
        let prompt = self.rendered(messages, &asked.tools).or_else(|error| {
            // Some templates reject a system prompt; prepend it to the first user message instead.
            let joined = without_system(messages).ok_or(error)?;
            self.rendered(&joined, &asked.tools)
        });
        let mut text = prompt.map_err(|error| {
            format!("its chat template rejects the conversation: {}", innermost_cause(&error))
        })?;
        let mut thinks = text.trim_end().ends_with(reasoning::OPEN);
        if thinks && (begun.is_some() || asked.grammar.is_some()) {
            // A prefilled or constrained reply is the answer itself, so close the reasoning section first.
            text = format!("{}\n{}\n\n", text.trim_end(), reasoning::CLOSE);
            thinks = false;
        }
        text.push_str(begun.unwrap_or_default());
        Ok(ChatPrompt { text, thinks })
    }

    /// Whether the template already inserted the BOS token.
    pub(super) fn inserts_bos(&self, prompt: &str) -> bool {
        !self.bos.is_empty() && prompt.starts_with(&self.bos)
    }

    fn rendered(&self, messages: &[serde_json::Value], tools: &[serde_json::Value]) -> Result<String, Error> {
        let tools = if tools.is_empty() { Value::from(()) } else { Value::from_serialize(tools) };
        self.environment.get_template(NAME)?.render(minijinja::context! {
            messages => Value::from_serialize(messages),
            tools => tools,
            add_generation_prompt => true,
            bos_token => self.bos,
            eos_token => self.eos,
        })
    }
}

/// The conversation with its system prompt merged into the first user message; `None` if not applicable.
fn without_system(messages: &[serde_json::Value]) -> Option<Vec<serde_json::Value>> {
    let [system, first, rest @ ..] = messages else { return None };
    if system["role"] != "system" || first["role"] != "user" {
        return None;
    }
    let content = format!("{}\n\n{}", system["content"].as_str()?, first["content"].as_str()?);
    let mut joined = vec![serde_json::json!({ "role": "user", "content": content })];
    joined.extend_from_slice(rest);
    Some(joined)
}

fn innermost_cause(error: &Error) -> String {
    error.detail().map_or_else(|| error.to_string(), str::to_owned)
}

/// JSON as Python writes it, which is what models have seen: a space after commas and colons, no HTML
/// escapes.
fn to_json(value: Value, options: minijinja::value::Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let wrong = |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    let mut out = Vec::new();
    match indent {
        Some(width) => {
            let indent = b" ".repeat(width.min(16));
            let pretty = serde_json::ser::PrettyFormatter::with_indent(&indent);
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, pretty)).map_err(wrong)?;
        }
        None => {
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Python)).map_err(wrong)?;
        }
    }
    Ok(Value::from_safe_string(String::from_utf8_lossy(&out).into_owned()))
}

struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}

/// Converts the arguments of a past call from text to an object, as templates expect.
pub(super) fn opened_arguments(call: &mut serde_json::Value) {
    let function: Option<&mut Map<String, serde_json::Value>> = call["function"].as_object_mut();
    let Some(arguments) = function.and_then(|function| function.get_mut("arguments")) else { return };
    if let Some(Ok(opened @ serde_json::Value::Object(_))) = arguments.as_str().map(serde_json::from_str) {
        *arguments = opened;
    }
}

#[cfg(test)]
mod tests;
