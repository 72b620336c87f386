//! `[mcp.NAME]`: MCP servers whose tools a model may use, as configured.

use fusee::engine::text::{Span, suggest};
use serde_json::json;

use super::ValueOrigin;
use super::spanned_tree::{Entry, Leaf, Node};

/// Maximum length of a server name; it is the prefix of its tools' names.
const MAX_NAME: usize = 32;
const FIELDS: [&str; 11] = [
    "command",
    "args",
    "env",
    "url",
    "headers",
    "client_id",
    "client_secret",
    "redirect_port",
    "allow",
    "block",
    "timeout_s",
];

/// A server as configured. Variables in its values are expanded when it is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct McpEntry {
    pub(crate) name: String,
    pub(crate) reach: McpTransport,
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) block: Vec<String>,
    pub(crate) timeout_s: u64,
    pub(crate) origin: ValueOrigin,
}

/// How the server is reached: as a child process or over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum McpTransport {
    Program { command: Vec<String>, env: Vec<(String, String)> },
    Address { url: String, headers: Vec<(String, String)>, login: LoginEntry },
}

/// How to log in at a server over HTTP, for an authorization server where clients cannot register themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LoginEntry {
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<String>,
    /// Port of the address that the browser is sent back to; any without it.
    pub(crate) redirect_port: Option<u16>,
}

/// Errors with their positions.
pub(super) type Problems = Vec<(Span, String)>;

/// Reads one entry.
pub(super) fn read(name: &str, at: Span, value: &Node, origin: ValueOrigin) -> Result<McpEntry, Problems> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
        return Err(vec![(
            at,
            format!("invalid server name `{name}`: must be 1 to {MAX_NAME} of A-Z a-z 0-9 _ -"),
        )]);
    }
    let Leaf::Table(fields) = &value.value else {
        return Err(vec![(
            value.span,
            format!("`mcp.{name}` must be a table with command and args, or url"),
        )]);
    };
    let mut problems: Problems = fields
        .iter()
        .filter(|field| !FIELDS.contains(&field.name.as_str()))
        .map(|field| {
            let hint = suggest::did_you_mean(&field.name, FIELDS)
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default();
            (field.at, format!("unknown key `{}` in `mcp.{name}`{hint}", field.name))
        })
        .collect();
    let list = |field: &str, problems: &mut Problems| words(fields, field, name, problems);
    let pairs = |field: &str, problems: &mut Problems| table(fields, field, name, problems);
    let mut command = list("command", &mut problems).unwrap_or_default();
    command.extend(list("args", &mut problems).unwrap_or_default());
    let (env, headers) = (pairs("env", &mut problems), pairs("headers", &mut problems));
    let url = field(fields, "url").and_then(text).map(str::to_owned);
    let login = login(fields, name, &mut problems);
    if login != LoginEntry::default() && url.is_none() {
        problems.push((at, format!("`mcp.{name}` has a client to log in with, but no `url`")));
    }
    let reach = match (command.is_empty(), url) {
        (false, None) => Some(McpTransport::Program { command, env }),
        (true, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
            Some(McpTransport::Address { url, headers, login })
        }
        _ => {
            problems
                .push((at, format!("`mcp.{name}` needs either `command` or a `url` that begins with http")));
            None
        }
    };
    let timeout_s = match field(fields, "timeout_s").map(|node| &node.value) {
        None => Some(60),
        Some(Leaf::Whole { number: Some(number), .. }) => {
            u64::try_from(*number).ok().filter(|number| (1..=3600).contains(number))
        }
        Some(_) => None,
    };
    if timeout_s.is_none() {
        problems.push((at, format!("`mcp.{name}.timeout_s` must be an integer from 1 to 3600")));
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

fn login(fields: &[Entry], server: &str, problems: &mut Problems) -> LoginEntry {
    let mut word = |name: &str| {
        let value = field(fields, name)?;
        let read = text(value).filter(|text| !text.is_empty()).map(str::to_owned);
        if read.is_none() {
            problems.push((value.span, format!("`mcp.{server}.{name}` must be a string")));
        }
        read
    };
    let (client_id, client_secret) = (word("client_id"), word("client_secret"));
    if let (None, Some(secret)) = (&client_id, field(fields, "client_secret")) {
        problems.push((secret.span, format!("`mcp.{server}.client_secret` needs `client_id`")));
    }
    let redirect_port = field(fields, "redirect_port").and_then(|value| {
        let port = match &value.value {
            Leaf::Whole { number: Some(number), .. } => u16::try_from(*number).ok().filter(|port| *port > 0),
            _ => None,
        };
        if port.is_none() {
            let message = format!("`mcp.{server}.redirect_port` must be an integer from 1 to 65535");
            problems.push((value.span, message));
        }
        port
    });
    LoginEntry { client_id, client_secret, redirect_port }
}

fn field<'a>(fields: &'a [Entry], name: &str) -> Option<&'a Node> {
    fields.iter().find(|entry| entry.name == name).map(|entry| &entry.node)
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Leaf::Text(text) => Some(text),
        _ => None,
    }
}

/// A list of strings, or a single string.
fn words(fields: &[Entry], name: &str, server: &str, problems: &mut Problems) -> Option<Vec<String>> {
    let value = field(fields, name)?;
    let read = match &value.value {
        Leaf::Text(text) => Some(vec![text.clone()]),
        Leaf::List(items) => items.iter().map(|item| text(item).map(str::to_owned)).collect(),
        _ => None,
    };
    if read.is_none() {
        problems.push((value.span, format!("`mcp.{server}.{name}` must be a list of strings")));
    }
    read
}

fn table(fields: &[Entry], name: &str, server: &str, problems: &mut Problems) -> Vec<(String, String)> {
    let Some(value) = field(fields, name) else { return Vec::new() };
    let read = match &value.value {
        Leaf::Table(inner) => inner
            .iter()
            .map(|entry| Some((entry.name.clone(), text(&entry.node)?.to_owned())))
            .collect::<Option<Vec<_>>>(),
        _ => None,
    };
    read.unwrap_or_else(|| {
        problems.push((value.span, format!("`mcp.{server}.{name}` must be a table of strings")));
        Vec::new()
    })
}

/// The JSON Schema of the `mcp` table.
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
                "client_id": { "type": "string", "minLength": 1 },
                "client_secret": { "type": "string", "minLength": 1 },
                "redirect_port": { "type": "integer", "minimum": 1, "maximum": 65535 },
                "allow": words,
                "block": words,
                "timeout_s": { "type": "integer", "minimum": 1, "maximum": 3600 },
            },
            "additionalProperties": false,
        },
    })
}
