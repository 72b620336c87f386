//! Reading `hooks.json`: what is valid, and where each problem is.

use fusee::engine::hook::HookEvent;
use fusee::engine::text::{Diagnostics, Source};

use super::{files_of, parse};

fn problems(text: &str) -> Vec<String> {
    let source = Source::new("hooks.json", text);
    let mut problems = Diagnostics::new();
    parse(&source, true, &mut problems);
    problems.into_sorted().iter().map(|it| format!("{}: {}", it.code, it.message)).collect()
}

#[test]
fn a_file_of_claude_code_is_read() {
    let text = r#"{"hooks": {"PreToolUse": [
        {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "check", "timeout": 10}]},
        {"matcher": "*", "hooks": [{"type": "command", "command": "log"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "bell", "timeout": 0.5}]}]}}"#;
    let source = Source::new("hooks.json", text);
    let mut problems = Diagnostics::new();
    let hooks = parse(&source, true, &mut problems);
    assert!(problems.is_empty());
    let shown: Vec<_> =
        hooks.iter().map(|it| (it.event, it.matcher.as_deref(), it.command.as_str(), it.timeout_s)).collect();
    assert_eq!(
        shown,
        [
            (HookEvent::PreToolUse, Some("Edit|Write"), "check", 10),
            (HookEvent::PreToolUse, None, "log", 60),
            (HookEvent::Stop, None, "bell", 1),
        ]
    );
}

#[test]
fn every_mistake_is_named() {
    assert_eq!(problems("[]"), ["wrong-type: the file: expected an object, found a list"]);
    assert_eq!(problems("{}"), ["missing-key: `hooks` is missing: {\"hooks\": {\"PreToolUse\": […]}}"]);
    let text = r#"{"hooks": {"PreTooluse": [], "Stop": [{}],
        "PreToolUse": [{"matcher": "(", "hooks": [{"type": "command"}, {"type": "prompt", "prompt": "x"},
        {"command": "x"}, {"type": "command", "command": "x", "timeout": 0}]}]}}"#;
    assert_eq!(
        problems(text),
        [
            "unknown-event: unknown event `PreTooluse`: its hooks are not run",
            "missing-key: `hooks` is missing in this group",
            "wrong-value: `matcher` is not a regular expression: unclosed group",
            "missing-key: `command` is missing",
            "unknown-type: hooks of type `prompt` are not supported: this one is not run",
            "unknown-key: `prompt` has no effect",
            "missing-key: `type` is missing: \"type\": \"command\"",
            "wrong-value: `timeout`: expected seconds from 1 to 3600, found 0",
        ]
    );
}

#[test]
fn files_that_a_command_names_are_found_however_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("hooks")).unwrap();
    for name in ["hooks/a.sh", "hooks/b.py", "c"] {
        std::fs::write(root.join(name), name).unwrap();
    }
    let command =
        "\"$CLAUDE_PROJECT_DIR\"/hooks/a.sh; python3 ${FUSEE_PROJECT_DIR}/hooks/b.py <./c && cat /etc/passwd";
    let found: Vec<_> = files_of(command, &root, &root).into_keys().collect();
    assert_eq!(found, ["c", "hooks/a.sh", "hooks/b.py"].map(|name| root.join(name)));
}
