//! Hooks of Claude Code's settings, as the project's own file.

use std::io;
use std::path::Path;

use fusee::engine::hook::HookEvent;
use fusee::engine::tools::workspace::bounded_read;
use serde_json::{Map, Value, json};

/// Where Claude Code keeps a project's settings.
pub(super) const FILE: &str = ".claude/settings.json";

/// The hooks found, as the text of `hooks.json`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClaudeHooks {
    pub(super) text: String,
    /// What has no counterpart here.
    pub(super) left_out: Vec<String>,
}

/// Reads the hooks of a settings file; `None` if there are none.
pub(super) fn read(path: &Path) -> Result<Option<ClaudeHooks>, String> {
    match bounded_read::read_text(path, crate::config::MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {FILE}: {error}")),
        Ok(text) => serde_json::from_str(&text)
            .map(|settings: Value| convert(&settings))
            .map_err(|error| format!("{FILE} is not valid JSON: {error}")),
    }
}

fn convert(settings: &Value) -> Option<ClaudeHooks> {
    let mut left_out = Vec::new();
    let mut events = Map::new();
    for (name, groups) in settings.get("hooks")?.as_object()? {
        if HookEvent::named(name).is_none() {
            left_out.push(format!("hooks of {name}, an event that Fusee does not have"));
            continue;
        }
        let mut kept = Vec::new();
        for group in groups.as_array().into_iter().flatten() {
            let hooks = group.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
            let (commands, others): (Vec<Value>, Vec<Value>) =
                hooks.into_iter().partition(|hook| hook["type"] == "command");
            left_out.extend(others.iter().map(|hook| format!("a {name} hook of type {}", hook["type"])));
            if !commands.is_empty() {
                let mut group = group.clone();
                group["hooks"] = Value::Array(commands);
                kept.push(group);
            }
        }
        if !kept.is_empty() {
            events.insert(name.clone(), Value::Array(kept));
        }
    }
    if events.is_empty() {
        return None;
    }
    let text = serde_json::to_string_pretty(&json!({ "hooks": events })).unwrap_or_default();
    Some(ClaudeHooks { text: format!("{text}\n"), left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_here_is_kept_and_the_rest_is_named() {
        let settings = json!({ "permissions": {}, "hooks": {
            "PreToolUse": [{ "matcher": "Bash", "hooks": [
                { "type": "command", "command": "check", "timeout": 5 }, { "type": "prompt", "prompt": "x" }] }],
            "WorktreeCreate": [{ "hooks": [{ "type": "command", "command": "y" }] }],
        } });
        let found = convert(&settings).unwrap();
        let expected = json!({ "hooks": { "PreToolUse": [
            { "matcher": "Bash", "hooks": [{ "type": "command", "command": "check", "timeout": 5 }] }] } });
        assert_eq!(serde_json::from_str::<Value>(&found.text).unwrap(), expected);
        assert_eq!(
            found.left_out,
            [
                "a PreToolUse hook of type \"prompt\"",
                "hooks of WorktreeCreate, an event that Fusee does not have"
            ]
        );
        assert_eq!(convert(&json!({ "model": "x" })), None);
    }
}
