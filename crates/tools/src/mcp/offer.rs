//! What a server offers, brought into bounds: names that a model may call, descriptions and schemas of a size that it can
//! be sent with every request.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::Category;

use super::Lists;

/// Longest description of a tool; the rest is cut.
const MOST_DESCRIPTION: usize = 2048;
/// Largest schema of a tool's arguments; a tool with a larger one is left out.
const MOST_SCHEMA: usize = 16 * 1024;
/// Tools of one server; the rest is left out.
const MOST_TOOLS: usize = 128;
/// Longest name that a model may call.
const MOST_NAME: usize = 64;

/// A tool that a server offered when a run began. A run keeps these: replaying and resuming see the same tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    /// The server.
    pub server: String,
    /// The tool, as the server calls it.
    pub tool: String,
    /// The same as a model calls it.
    pub name: String,
    /// For the model.
    pub description: String,
    /// A JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether it only looks, as the server says.
    pub category: Category,
}

/// What a server offers, and what of it is left out and why.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// What can be called.
    pub tools: Vec<Offered>,
    /// What cannot, in words.
    pub left_out: Vec<String>,
}

impl Offer {
    /// Takes in a list of tools as the protocol has it.
    pub(super) fn add(&mut self, listed: &[Value], server: &str, lists: &Lists) {
        for tool in listed {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let allowed = lists.allow.as_ref().is_none_or(|allow| allow.iter().any(|known| known == name));
            if !allowed || lists.block.iter().any(|known| known == name) {
                continue;
            }
            if self.tools.len() >= MOST_TOOLS {
                self.left_out.push(format!("`{name}`: more than {MOST_TOOLS} tools"));
                continue;
            }
            match offered(tool, name, server) {
                Ok(offered) if self.tools.iter().any(|known| known.name == offered.name) => {
                    self.left_out.push(format!("`{name}`: another tool has the same name"));
                }
                Ok(offered) => self.tools.push(offered),
                Err(why) => self.left_out.push(format!("`{name}`: {why}")),
            }
        }
    }
}

fn offered(tool: &Value, name: &str, server: &str) -> Result<Offered, String> {
    let parameters = match tool.get("inputSchema") {
        Some(schema) if schema.is_object() => schema.clone(),
        _ => serde_json::json!({ "type": "object" }),
    };
    let size = parameters.to_string().len();
    if size > MOST_SCHEMA {
        return Err(format!("its schema has {size} bytes, more than {MOST_SCHEMA}"));
    }
    let mut description = tool.get("description").and_then(Value::as_str).unwrap_or(name).to_owned();
    if description.len() > MOST_DESCRIPTION {
        let end =
            (0..=MOST_DESCRIPTION).rev().find(|at| description.is_char_boundary(*at)).unwrap_or_default();
        description.truncate(end);
        description.push('…');
    }
    let looks = tool.pointer("/annotations/readOnlyHint").and_then(Value::as_bool) == Some(true);
    Ok(Offered {
        server: server.to_owned(),
        tool: name.to_owned(),
        name: callable(server, name),
        description,
        parameters,
        category: if looks { Category::Read } else { Category::Write },
    })
}

/// A name that begins with the server's and that models may call: `^[a-zA-Z0-9_-]{1,64}$`.
fn callable(server: &str, tool: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
            .collect()
    };
    let mut name = format!("{}_{}", plain(server), plain(tool));
    name.truncate(MOST_NAME);
    name
}

#[cfg(test)]
mod tests;
