//! Tool calls as a client shows them: title, kind, files and diff, computed from the arguments, so that they are the
//! same when a session is loaded.

mod patch;

use std::path::Path;

use agent_client_protocol_schema::v1::{
    ContentBlock, Diff, TextContent, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolKind,
};
use fusee::engine::tools::tool::apply_patch;
use serde_json::Value;

/// Characters of a title.
const MAX_TITLE: usize = 160;

/// A call as it starts.
pub(crate) fn started(call_id: &str, name: &str, arguments: &Value, workspace: &Path) -> ToolCall {
    ToolCall::new(call_id.to_owned(), title(name, arguments))
        .name(name.to_owned())
        .kind(kind(name))
        .status(ToolCallStatus::InProgress)
        .content(diffs(name, arguments, workspace))
        .locations(locations(name, arguments, workspace))
        .raw_input(arguments.clone())
}

/// Text as the content of a call.
pub(crate) fn text_content(text: &str) -> ToolCallContent {
    ToolCallContent::from(ContentBlock::Text(TextContent::new(text)))
}

/// The changes that a call makes, as far as its arguments say so.
pub(crate) fn diffs(name: &str, arguments: &Value, workspace: &Path) -> Vec<ToolCallContent> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| arguments.get(key).and_then(Value::as_str));
    let path = || Some(workspace.join(text(&["path"])?));
    let replaced = || {
        let (old, new) = (text(&["old", "old_string"])?, text(&["new", "new_string"])?);
        Some(Diff::new(path()?, new).old_text(old.to_owned()))
    };
    let written = || Some(Diff::new(path()?, text(&["content"])?));
    let diffs: Vec<Diff> = match name {
        "edit_file" => replaced().into_iter().collect(),
        "write_file" => written().into_iter().collect(),
        "apply_patch" => patch::diffs(text(&["patch"]).unwrap_or_default(), workspace),
        _ => Vec::new(),
    };
    diffs.into_iter().map(ToolCallContent::Diff).collect()
}

fn kind(name: &str) -> ToolKind {
    match name {
        "read_file" | "read_files" | "list_dir" => ToolKind::Read,
        "search_text" | "find_files" => ToolKind::Search,
        "edit_file" | "write_file" | "apply_patch" => ToolKind::Edit,
        "shell" => ToolKind::Execute,
        "fetch_url" | "web_search" => ToolKind::Fetch,
        "plan_tasks" | "ask_user" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

fn title(name: &str, arguments: &Value) -> String {
    let main = ["command", "path", "pattern", "query", "question", "request"]
        .iter()
        .find_map(|key| arguments.get(key).and_then(Value::as_str));
    let text = match (name, main) {
        ("shell", Some(command)) => command.to_owned(),
        (_, Some(value)) => format!("{name} {value}"),
        (_, None) => name.to_owned(),
    };
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(MAX_TITLE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn locations(name: &str, arguments: &Value, workspace: &Path) -> Vec<ToolCallLocation> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    if let (true, Some(patch)) = (name == "apply_patch", text("patch")) {
        let paths = apply_patch::changed_paths(patch).into_iter();
        return paths.map(|path| ToolCallLocation::new(workspace.join(path))).collect();
    }
    let Some(path) = text("path") else { return Vec::new() };
    let line = ["start", "start_line", "line", "offset"]
        .iter()
        .find_map(|key| arguments.get(key).and_then(Value::as_u64))
        .and_then(|line| u32::try_from(line).ok());
    vec![ToolCallLocation::new(workspace.join(path)).line(line)]
}
