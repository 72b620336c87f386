//! Sanitizes a server's tool list: valid tool names, and descriptions and schemas small enough to be sent
//! with every model request.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::Access;

use super::ToolLists;

/// Maximum bytes of a tool description; the rest is cut.
const MAX_DESCRIPTION: usize = 2048;
/// Maximum bytes of a tool's argument schema; tools with a larger one are left out.
const MAX_SCHEMA: usize = 16 * 1024;
/// Maximum tools per server; the rest are left out.
const MAX_TOOLS: usize = 128;
/// Maximum bytes of a tool's name; tools with a longer one are left out.
const MAX_OFFERED_NAME: usize = 256;
/// Maximum messages about tools that were left out.
const MAX_LEFT_OUT: usize = 20;
/// Maximum length of a tool name for a model.
const MAX_NAME: usize = 64;

/// A tool that a server offered when a run started. It is stored with the run, so replay and resume see the
/// same tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// Name of the server.
    pub server: String,
    /// Tool name used by the server.
    pub tool: String,
    /// Tool name used by the model.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// `Read` if the server annotates the tool as read-only, otherwise `Write`.
    pub category: Access,
    /// Whether the definition is not sent with each request; see [`deferral`](super::deferral).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
}

/// The usable tools of a server, and the reasons why others were left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolList {
    /// Usable tools.
    pub tools: Vec<OfferedTool>,
    /// One message per tool that was left out, with the reason.
    pub left_out: Vec<String>,
}

impl ToolList {
    /// Adds one page of the `tools/list` result.
    pub(super) fn add(&mut self, listed: &[Value], server: &str, lists: &ToolLists) {
        for tool in listed {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let allowed = lists.allow.as_ref().is_none_or(|allow| allow.iter().any(|known| known == name));
            if !allowed || lists.block.iter().any(|known| known == name) {
                continue;
            }
            if self.tools.len() >= MAX_TOOLS {
                self.leave_out(format!("further tools: it has more than {MAX_TOOLS}"));
                return;
            }
            let shown: String = name.chars().take(MAX_NAME).flat_map(char::escape_debug).collect();
            match offered(tool, name, server) {
                Ok(offered) if self.tools.iter().any(|known| known.name == offered.name) => {
                    self.leave_out(format!("`{shown}`: another tool has the same name"));
                }
                Ok(offered) => self.tools.push(offered),
                Err(why) => self.leave_out(format!("`{shown}`: {why}")),
            }
        }
    }

    /// Adds a message about what was left out, unless it was said before or there are too many.
    pub(super) fn leave_out(&mut self, message: String) {
        match self.left_out.len() {
            _ if self.left_out.contains(&message) => {}
            ..MAX_LEFT_OUT => self.left_out.push(message),
            MAX_LEFT_OUT => self.left_out.push("further tools".to_owned()),
            _ => {}
        }
    }
}

fn offered(tool: &Value, name: &str, server: &str) -> Result<OfferedTool, String> {
    if name.len() > MAX_OFFERED_NAME {
        return Err(format!("its name has {} bytes, more than {MAX_OFFERED_NAME}", name.len()));
    }
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    if name.chars().any(char::is_control) {
        return Err("its name has control characters".to_owned());
    }
    let parameters = match tool.get("inputSchema") {
        Some(schema) if schema.is_object() => schema.clone(),
        _ => serde_json::json!({ "type": "object" }),
    };
    let size = parameters.to_string().len();
    if size > MAX_SCHEMA {
        return Err(format!("its schema has {size} bytes, more than {MAX_SCHEMA}"));
    }
    let mut description = tool.get("description").and_then(Value::as_str).unwrap_or(name).to_owned();
    if description.len() > MAX_DESCRIPTION {
        let end =
            (0..=MAX_DESCRIPTION).rev().find(|at| description.is_char_boundary(*at)).unwrap_or_default();
        description.truncate(end);
        description.push('…');
    }
    let read_only = tool.pointer("/annotations/readOnlyHint").and_then(Value::as_bool) == Some(true);
    Ok(OfferedTool {
        server: server.to_owned(),
        tool: name.to_owned(),
        name: model_facing_name(server, name),
        description,
        parameters,
        category: if read_only { Access::Read } else { Access::Write },
        deferred: false,
    })
}

/// Tool name for models, prefixed with the server's name: `^[a-zA-Z0-9_-]{1,64}$`.
fn model_facing_name(server: &str, tool: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
            .collect()
    };
    let mut name = format!("{}_{}", plain(server), plain(tool));
    name.truncate(MAX_NAME);
    name
}

#[cfg(test)]
mod tests;
