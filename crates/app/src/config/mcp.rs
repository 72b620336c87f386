//! `[mcp.NAME]`: servers whose tools a model may use, as they stand in a file.

use fusee_engine::text::{Span, near};
use serde_json::json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Origin;

/// Longest name of a server: its tools' names begin with it.
const MOST_NAME: usize = 32;
const FIELDS: [&str; 8] = ["command", "args", "env", "url", "headers", "allow", "block", "timeout_s"];

/// A server as the user describes it. What its values mean in this environment is found out when it is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct McpEntry {
    pub(crate) name: String,
    pub(crate) reach: Reach,
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) block: Vec<String>,
    pub(crate) timeout_s: u64,
    pub(crate) origin: Origin,
}

/// A program or an address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reach {
    Program { command: Vec<String>, env: Vec<(String, String)> },
    Address { url: String, headers: Vec<(String, String)> },
}

/// What is wrong, and where.
pub(super) type Problems = Vec<(Span, String)>;

/// Reads one entry.
pub(super) fn read(
    name: &str,
    at: Span,
    value: &Spanned<DeValue<'_>>,
    origin: Origin,
) -> Result<McpEntry, Problems> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MOST_NAME || !name.chars().all(plain) {
        return Err(vec![(
            at,
            format!("a server's name is 1 to {MOST_NAME} of A-Z a-z 0-9 _ -, not `{name}`"),
        )]);
    }
    let DeValue::Table(fields) = value.get_ref() else {
        return Err(vec![(
            value.span().into(),
            format!("`mcp.{name}` is a table: command and args, or url"),
        )]);
    };
    let mut problems: Problems = fields
        .iter()
        .filter(|(field, _)| !FIELDS.contains(&field.get_ref().as_ref()))
        .map(|(field, _)| {
            let hint = near::did_you_mean(field.get_ref(), FIELDS)
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default();
            (field.span().into(), format!("`mcp.{name}` has no `{}`{hint}", field.get_ref()))
        })
        .collect();
    let list = |field: &str, problems: &mut Problems| words(fields, field, name, problems);
    let pairs = |field: &str, problems: &mut Problems| table(fields, field, name, problems);
    let mut command = list("command", &mut problems).unwrap_or_default();
    command.extend(list("args", &mut problems).unwrap_or_default());
    let (env, headers) = (pairs("env", &mut problems), pairs("headers", &mut problems));
    let url = fields.get("url").and_then(|url| url.get_ref().as_str()).map(str::to_owned);
    let reach = match (command.is_empty(), url) {
        (false, None) => Some(Reach::Program { command, env }),
        (true, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
            Some(Reach::Address { url, headers })
        }
        _ => {
            problems.push((
                at,
                format!("`mcp.{name}` needs either a `command` or a `url` that begins with http"),
            ));
            None
        }
    };
    let timeout_s = match fields.get("timeout_s").map(Spanned::get_ref) {
        None => Some(60),
        Some(DeValue::Integer(number)) => {
            number.as_str().parse().ok().filter(|number| (1..=3600).contains(number))
        }
        Some(_) => None,
    };
    if timeout_s.is_none() {
        problems.push((at, format!("`mcp.{name}.timeout_s` is a whole number from 1 to 3600")));
    }
    let allow = list("allow", &mut problems);
    let block = list("block", &mut problems).unwrap_or_default();
    match (reach, timeout_s) {
        (Some(reach), Some(timeout_s)) if problems.is_empty() => {
            Ok(McpEntry { name: name.to_owned(), reach, allow, block, timeout_s, origin })
        }
        _ => Err(problems),
    }
}

/// A list of texts, or one text.
fn words(fields: &DeTable<'_>, field: &str, name: &str, problems: &mut Problems) -> Option<Vec<String>> {
    let value = fields.get(field)?;
    let read = match value.get_ref() {
        DeValue::String(text) => Some(vec![text.to_string()]),
        DeValue::Array(items) => {
            items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        }
        _ => None,
    };
    if read.is_none() {
        problems.push((value.span().into(), format!("`mcp.{name}.{field}` is a list of texts")));
    }
    read
}

fn table(fields: &DeTable<'_>, field: &str, name: &str, problems: &mut Problems) -> Vec<(String, String)> {
    let Some(value) = fields.get(field) else { return Vec::new() };
    let read = match value.get_ref() {
        DeValue::Table(inner) => inner
            .iter()
            .map(|(key, value)| Some((key.get_ref().to_string(), value.get_ref().as_str()?.to_owned())))
            .collect(),
        _ => None,
    };
    read.unwrap_or_else(|| {
        problems.push((value.span().into(), format!("`mcp.{name}.{field}` is a table of texts")));
        Vec::new()
    })
}

/// For editors.
pub(super) fn schema() -> serde_json::Value {
    let words = json!({ "type": ["array", "string"], "items": { "type": "string" } });
    let texts = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "description": "MCP servers whose tools a model may use. In a project only after `fusee trust`.",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "command": words,
                "args": words,
                "env": texts,
                "url": { "type": "string", "pattern": "^https?://" },
                "headers": texts,
                "allow": words,
                "block": words,
                "timeout_s": { "type": "integer", "minimum": 1, "maximum": 3600 },
            },
            "additionalProperties": false,
        },
    })
}
