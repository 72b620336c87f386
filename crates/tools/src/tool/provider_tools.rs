//! Translates calls of tools that a provider defined and trained its models on into calls of our tools. The
//! model crate offers them if a profile says so; translating here means that gates, the sandbox and the
//! journal see only our tools.

use serde_json::{Map, Value, json};

/// Names of the text editor tool, current and former.
const EDITORS: [&str; 2] = ["str_replace_based_edit_tool", "str_replace_editor"];
/// Name of the shell tool.
const SHELL: &str = "bash";

/// Translates a provider's call; `None` if it is not one. The result depends only on the call's text and not
/// on the disk, because a replay translates it again.
#[must_use]
pub fn to_own_call(name: &str, arguments: &str) -> Option<(&'static str, String)> {
    let is_editor = EDITORS.contains(&name);
    if !is_editor && name != SHELL {
        return None;
    }
    let arguments = crate::tool::arguments::lenient(arguments).ok()?;
    let arguments = arguments.as_object()?;
    let (name, ours) = if is_editor { edit(arguments)? } else { ("shell", restart(arguments)?) };
    Some((name, ours.to_string()))
}

/// Every command runs in its own shell, so a restart only prints that.
fn restart(arguments: &Map<String, Value>) -> Option<Value> {
    let restarts = arguments.get("restart").is_some_and(|restart| *restart == Value::Bool(true));
    restarts.then(|| json!({ "command": "echo 'Every command starts in a new shell, in the workspace.'" }))
}

fn edit(arguments: &Map<String, Value>) -> Option<(&'static str, Value)> {
    let text = |name: &str| arguments.get(name).cloned().unwrap_or_default();
    let path = text("path");
    Some(match arguments.get("command")?.as_str()? {
        "view" if is_directory(&path) => ("list_dir", json!({ "path": path })),
        "view" => ("read_file", view(path, arguments.get("view_range"))),
        "create" => ("write_file", json!({ "path": path, "content": text("file_text") })),
        "str_replace" => {
            // Without `new_str` the text is deleted.
            let new = arguments.get("new_str").cloned().unwrap_or_else(|| "".into());
            ("edit_file", json!({ "path": path, "old": text("old_str"), "new": new }))
        }
        "insert" => {
            let inserted = arguments.get("insert_text").or_else(|| arguments.get("new_str"))?.as_str()?;
            let line = arguments.get("insert_line")?.as_u64()?;
            ("apply_patch", json!({ "patch": insertion(path.as_str()?, line, inserted) }))
        }
        _ => return None,
    })
}

/// Decides by the name alone, without the disk.
fn is_directory(path: &Value) -> bool {
    path.as_str().is_some_and(|path| path.is_empty() || path == "." || path.ends_with('/'))
}

/// Arguments for a line range; a last line of -1 means the end of the file.
fn view(path: Value, range: Option<&Value>) -> Value {
    let ends = range.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let [first, last] = ends else { return json!({ "path": path }) };
    let (first, last) = (first.as_u64().unwrap_or(1).max(1), last.as_u64());
    match last {
        Some(last) => json!({ "path": path, "offset": first, "limit": last.saturating_sub(first) + 1 }),
        None => json!({ "path": path, "offset": first }),
    }
}

/// Builds a patch that inserts lines after a line; line 0 is the start of the file.
fn insertion(path: &str, line: u64, text: &str) -> String {
    let lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    let mut patch = format!("--- {path}\n+++ {path}\n@@ -{line},0 +{},{} @@\n", line + 1, lines.len());
    for line in lines {
        patch.push('+');
        patch.push_str(line);
        patch.push('\n');
    }
    patch
}

#[cfg(test)]
mod tests;
