//! The names that Claude Code uses for tools and their parameters. A hook whose matcher only fits the other name
//! reads and writes the other names, so that hooks written for Claude Code work unchanged.

use serde_json::{Map, Value, json};

/// A tool and its name in Claude Code.
pub(super) struct OtherName {
    pub(super) ours: &'static str,
    pub(super) theirs: &'static str,
    /// Parameters: our name, their name.
    parameters: &'static [(&'static str, &'static str)],
}

const FILE: &[(&str, &str)] = &[("path", "file_path")];

const NAMES: &[OtherName] = &[
    name("shell", "Bash", &[("background", "run_in_background")]),
    name("run_script", "Bash", &[]),
    name("read_file", "Read", FILE),
    name("read_files", "Read", &[]),
    name("write_file", "Write", FILE),
    name(
        "edit_file",
        "Edit",
        &[("path", "file_path"), ("old", "old_string"), ("new", "new_string"), ("all", "replace_all")],
    ),
    name("apply_patch", "Edit", &[]),
    name("apply_patch", "Write", &[]),
    name("list_dir", "LS", &[]),
    name("find_files", "Glob", &[]),
    name("search_text", "Grep", &[("include", "glob")]),
    name("shell_poll", "BashOutput", &[]),
    name("shell_kill", "KillShell", &[]),
    name("spawn_subtask", "Task", &[]),
    name("spawn_subtask", "Agent", &[]),
    name("fetch_url", "WebFetch", &[]),
    name("web_search", "WebSearch", &[]),
];

const fn name(
    ours: &'static str,
    theirs: &'static str,
    parameters: &'static [(&'static str, &'static str)],
) -> OtherName {
    OtherName { ours, theirs, parameters }
}

/// The other names of a tool.
pub(super) fn others(ours: &str) -> impl Iterator<Item = &'static OtherName> {
    NAMES.iter().filter(move |name| name.ours == ours)
}

impl OtherName {
    /// Arguments of ours with their names.
    pub(super) fn to_theirs(&self, arguments: &Value) -> Value {
        let Value::Object(arguments) = arguments else { return arguments.clone() };
        let mut theirs: Map<String, Value> = Map::new();
        for (key, value) in arguments {
            let name = self.parameters.iter().find(|(ours, _)| ours == key).map_or(key.as_str(), |it| it.1);
            theirs.insert(name.to_owned(), value.clone());
        }
        // Milliseconds there, seconds here.
        if let Some(seconds) = self.timeout(&theirs) {
            theirs.insert("timeout".to_owned(), json!(seconds.saturating_mul(1000)));
        }
        Value::Object(theirs)
    }

    /// Arguments of theirs with our names.
    pub(super) fn to_ours(&self, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { return arguments };
        let mut ours: Map<String, Value> = Map::new();
        for (key, value) in arguments {
            let name = self.parameters.iter().find(|(_, theirs)| *theirs == key);
            ours.insert(name.map_or(key, |(ours, _)| (*ours).to_owned()), value);
        }
        if let Some(milliseconds) = self.timeout(&ours) {
            ours.insert("timeout".to_owned(), json!(milliseconds.div_ceil(1000)));
        }
        Value::Object(ours)
    }

    fn timeout(&self, arguments: &Map<String, Value>) -> Option<u64> {
        arguments.get("timeout").filter(|_| self.ours == "shell").and_then(Value::as_u64)
    }
}
