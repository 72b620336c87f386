//! The kinds of hooks that the manuals of Claude Code and Codex show, written anew from their described formats, and run
//! unchanged. `hooks` tests what is particular to our own.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

/// A trusted project with these hooks and these files.
fn project(hooks: &Value, files: &[(&str, &str)]) -> Project {
    let project = Project::new().with(".fusee/hooks.json", &json!({ "hooks": hooks }).to_string());
    files.iter().for_each(|(path, text)| project.write(path, text));
    let said = fusee(&project).args(["trust", "--yes"]).run().exits(0);
    assert!(!said.stderr.contains("warning"), "{}", said.stderr);
    project
}

/// One hook of an event, in the form of both products.
fn hooks(event: &str, matcher: &str, command: &str) -> Value {
    json!({ event: [{ "matcher": matcher, "hooks": [{ "type": "command", "command": command, "timeout": 30 }] }] })
}

fn shell(command: &str) -> Line {
    Line::call("shell", json!({ "command": command }))
}

fn write(path: &str, content: &str) -> Line {
    Line::call("write_file", json!({ "path": path, "content": content }))
}

fn run(project: &Project, lines: &[Line]) -> Vec<Value> {
    run_json(project, &project.script(lines)).args(["--run-id", "r"]).run().exits(0).events()
}

fn contents(events: &[Value]) -> Vec<&str> {
    of_type(events, "tool_result").iter().map(|result| result["content"].as_str().unwrap()).collect()
}

#[test]
fn claude_code_logs_every_command() {
    let log = r#"python3 -c "import json, sys; call = json.load(sys.stdin)['tool_input']; print(call['command'], '-', call.get('description', 'No description'))" >> commands.txt"#;
    let project = project(&hooks("PreToolUse", "Bash", log), &[]);
    run(&project, &[shell("echo one"), write("a.txt", "x"), shell("echo two"), Line::text("Done.")]);
    assert_eq!(project.read("commands.txt"), "echo one - No description\necho two - No description\n");
}

#[test]
fn claude_code_formats_a_file_after_an_edit() {
    const FORMAT: &str = r#"
import json, re, sys
data = json.load(sys.stdin)
path = data.get("tool_input", {}).get("file_path", "")
if not path.endswith((".md", ".mdx")):
    sys.exit(0)
text = open(path).read()
tidy = re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"
if tidy != text:
    open(path, "w").write(tidy)
    print("Fixed the Markdown of " + path)
"#;
    let command = "python3 \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/format.py";
    let project = project(
        &hooks("PostToolUse", "Edit|MultiEdit|Write", command),
        &[(".claude/hooks/format.py", FORMAT)],
    );
    let edit =
        |old: &str, new: &str| Line::call("edit_file", json!({ "path": "notes.md", "old": old, "new": new }));
    let events = run(
        &project,
        &[
            write("notes.md", "# A\n\n\n\n\nb"),
            // The model has not seen what the formatter wrote.
            edit("b", "b\n\n\n\nc"),
            Line::call("read_file", json!({ "path": "notes.md" }))
                .matching("has changed since you last saw it"),
            edit("b", "b\n\n\n\nc"),
            write("x.txt", "\n\n\n\n"),
            Line::text("Done."),
        ],
    );
    assert_eq!(
        (project.read("notes.md"), project.read("x.txt")),
        ("# A\n\nb\n\nc\n".to_owned(), "\n\n\n\n".to_owned())
    );
    let succeeded = of_type(&events, "tool_result").into_iter().filter(|result| result["ok"] == true);
    assert_eq!(succeeded.count(), 4);
    fusee(&project).args(["replay", "r"]).run().exits(0);
}

#[test]
fn claude_code_protects_files() {
    let protect = r#"python3 -c "import json, sys; path = json.load(sys.stdin).get('tool_input', {}).get('file_path', ''); sys.exit(2 if any(p in path for p in ['.env', 'package-lock.json']) else 0)""#;
    let project = project(&hooks("PreToolUse", "Edit|MultiEdit|Write", protect), &[]);
    let events = run(&project, &[write(".env", "KEY=1"), write("a.txt", "x"), Line::text("Done.")]);
    assert_eq!(contents(&events)[0], "Not run: refused by a hook: it gave no reason");
    assert!(!project.dir().join(".env").exists() && project.dir().join("a.txt").exists());
}

#[test]
fn claude_code_decides_about_a_call_with_json() {
    const DECIDE: &str = r#"
import json, sys
data = json.load(sys.stdin)
command = data["tool_input"]["command"]
word = "deny" if "rm " in command else "ask" if "push" in command else "allow"
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word, "permissionDecisionReason": "by policy: " + word}, "suppressOutput": True}))
"#;
    let project =
        project(&hooks("PreToolUse", "Bash", "python3 .claude/decide.py"), &[(".claude/decide.py", DECIDE)]);
    let lines = [shell("rm -f a"), shell("echo git push"), shell("echo fine"), Line::text("Done.")];
    let events =
        run_json(&project, &project.script(&lines)).args(["--approve", "ask"]).run().exits(0).events();
    let contents = contents(&events);
    assert_eq!(contents[0], "Not run: refused by a hook: by policy: deny");
    assert!(contents[1].contains("nobody is there to approve it"), "{}", contents[1]);
    assert!(contents[2].starts_with("fine\n"), "{}", contents[2]);
    let asked = of_type(&events, "approval_requested");
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0]["reason"],
        json!("this run asks before anything is changed; a hook requires approval: by policy: ask")
    );
}

#[test]
fn claude_code_validates_a_prompt_and_adds_context() {
    const VALIDATE: &str = r#"
import json, re, sys
prompt = json.load(sys.stdin).get("prompt", "")
if re.search(r"(?i)\b(password|secret|key|token)\s*[:=]", prompt):
    print(json.dumps({"decision": "block", "reason": "The prompt may contain a secret. Rephrase it."}))
    sys.exit(0)
print("Current branch: develop")
"#;
    let project = project(
        // A matcher has no meaning for this event and is ignored.
        &hooks("UserPromptSubmit", "Bash", "python3 .claude/validate.py"),
        &[(".claude/validate.py", VALIDATE)],
    );
    run(&project, &[Line::text("Done.").matching("Current branch: develop")]);
    let script = project.script(&[Line::text("Sent.")]);
    let refused = fusee(&project)
        .args(["run", "My password: hunter2", "--model", &script, "--sandbox", "off", "--json"])
        .run()
        .exits(1)
        .events();
    assert!(of_type(&refused, "turn_start").is_empty());
    let error = refused.last().unwrap()["error"]["message"].as_str().unwrap();
    assert_eq!(error, "a hook blocked the request: The prompt may contain a secret. Rephrase it.");
}

#[test]
fn claude_code_adds_context_at_the_start_of_a_session() {
    let say = r#"echo '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"Open issue: 42"}}'"#;
    let started = project(&hooks("SessionStart", "startup", say), &[]);
    run(&started, &[Line::text("Done.").matching("Open issue: 42")]);
    let resumed = project(&hooks("SessionStart", "resume|compact", say), &[]);
    assert!(of_type(&run(&resumed, &[Line::text("Done.")]), "hook").is_empty());
}

#[test]
fn claude_code_is_notified_when_the_user_is_needed() {
    let notify = "cat > notified.json";
    let other = "touch other";
    let hooks = json!({ "Notification": [
        { "matcher": "permission_prompt", "hooks": [{ "type": "command", "command": notify }] },
        { "matcher": "idle_prompt", "hooks": [{ "type": "command", "command": other }] },
    ] });
    let project = project(&hooks, &[]);
    let script = project.script(&[shell("echo x"), Line::text("Done.")]);
    run_json(&project, &script).args(["--approve", "ask"]).run().exits(0);
    let seen: Value = serde_json::from_str(&project.read("notified.json")).unwrap();
    assert_eq!(
        (&seen["hook_event_name"], &seen["notification_type"]),
        (&json!("Notification"), &json!("permission_prompt"))
    );
    assert!(seen["message"].as_str().unwrap().contains("shell"), "{seen:#}");
    assert!(!project.dir().join("other").exists());
}

/// A server whose two tools say what they were given.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    def send(result): print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
    if method == "initialize":
        send({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}})
    elif method == "tools/list":
        send({"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ["write_note", "read_note"]]})
    elif method == "tools/call":
        send({"content": [{"type": "text", "text": json.dumps(message["params"]["arguments"])}]})
"#;

#[test]
fn tools_of_mcp_servers_have_the_names_of_claude_code_and_codex() {
    const CHANGE: &str = r#"
import json, sys
data = json.load(sys.stdin)
open("seen", "a").write(data["hook_event_name"] + " " + data["tool_name"] + "\n")
if data["hook_event_name"] == "PreToolUse":
    note = dict(data["tool_input"], author="hook")
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": note}}))
"#;
    let entry = |matcher: &str, command: &str| json!([{ "matcher": matcher, "hooks": [{ "type": "command", "command": command }] }]);
    let all = json!({
        "PreToolUse": [
            entry("mcp__memory__.*", "python3 .claude/change.py")[0],
            entry("mcp__.*__read_.*", "echo reading is forbidden >&2; exit 2")[0],
            entry("mcp__other__.*", "touch other")[0],
        ],
        "PostToolUse": entry("mcp__memory__write_note", "python3 .claude/change.py"),
    });
    let project = project(&all, &[(".claude/change.py", CHANGE), ("server.py", SERVER)]);
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[mcp.memory]\ncommand = [\"python3\", \"server.py\"]\n")
        .unwrap();
    let call = |name: &str| Line::call(name, json!({ "text": "x" }));
    let events = run(&project, &[call("memory_write_note"), call("memory_read_note"), Line::text("Done.")]);
    assert_eq!(
        contents(&events),
        [r#"{"text": "x", "author": "hook"}"#, "Not run: refused by a hook: reading is forbidden"]
    );
    assert_eq!(
        project.read("seen"),
        "PreToolUse mcp__memory__write_note\nPostToolUse mcp__memory__write_note\nPreToolUse mcp__memory__read_note\n"
    );
    assert!(!project.dir().join("other").exists());
    fusee(&project).args(["replay", "r"]).run().exits(0);
}

/// The file that Codex reads: a policy, a review of results, and a task that goes on.
fn codex() -> Value {
    let hook = |file: &str, status: &str| {
        let command = format!("python3 \"$(git rev-parse --show-toplevel)/.codex/hooks/{file}\"");
        json!([{ "type": "command", "command": command, "timeout": 30, "statusMessage": status }])
    };
    json!({
        "SessionStart": [{ "matcher": "startup|resume", "hooks": hook("start.py", "Loading notes") }],
        "UserPromptSubmit": [{ "hooks": hook("prompt.py", "Reading") }],
        "PreToolUse": [{ "matcher": "^Bash$", "hooks": hook("policy.py", "Checking Bash command") },
                       { "matcher": "^apply_patch$", "hooks": hook("patch.py", "Checking patch") }],
        "PermissionRequest": [{ "matcher": "Bash", "hooks": hook("permission.py", "Deciding") }],
        "PostToolUse": [{ "matcher": "^Bash$", "hooks": hook("review.py", "Reviewing Bash output") }],
        "Stop": [{ "hooks": hook("stop.py", "") }],
    })
}

const CODEX_FILES: &[(&str, &str)] = &[
    (".codex/hooks/start.py", "print('Load the conventions before editing.')\n"),
    (
        ".codex/hooks/prompt.py",
        "import json, sys\nassert json.load(sys.stdin)['prompt']\nprint(json.dumps({'hookSpecificOutput': {'hookEventName': 'UserPromptSubmit', 'additionalContext': 'Ask for a reproduction.'}}))\n",
    ),
    (
        ".codex/hooks/policy.py",
        "import json, sys\nif 'rm -rf' in json.load(sys.stdin)['tool_input']['command']:\n    print(json.dumps({'decision': 'block', 'reason': 'Destructive command blocked by hook.'}))\n",
    ),
    (
        ".codex/hooks/patch.py",
        "import json, sys\ndata = json.load(sys.stdin)\nassert data['tool_name'] == 'apply_patch'\nif 'vendor/' in data['tool_input']['command']:\n    print('vendor is not patched', file=sys.stderr)\n    sys.exit(2)\n",
    ),
    (
        ".codex/hooks/permission.py",
        "import json, sys\nallowed = 'make' in json.load(sys.stdin)['tool_input']['command']\nanswer = {'behavior': 'allow'} if allowed else {'behavior': 'deny', 'message': 'Blocked by repository policy.'}\nprint(json.dumps({'hookSpecificOutput': {'hookEventName': 'PermissionRequest', 'decision': answer}}))\n",
    ),
    (
        ".codex/hooks/review.py",
        "import json, sys\ndata = json.load(sys.stdin)\nif 'generated' in json.dumps(data['tool_response']):\n    print(json.dumps({'decision': 'block', 'reason': 'The output needs review.', 'hookSpecificOutput': {'hookEventName': 'PostToolUse', 'additionalContext': 'Generated files changed.'}}))\n",
    ),
    (
        ".codex/hooks/stop.py",
        "import json, sys\ndata = json.load(sys.stdin)\nif not data['stop_hook_active']:\n    assert data['last_assistant_message'] == 'Finished.'\n    print(json.dumps({'decision': 'block', 'reason': 'Run one more pass over the failing tests.'}))\n",
    ),
];

#[test]
fn a_file_of_codex_works_unchanged() {
    let project = project(&codex(), CODEX_FILES);
    std::process::Command::new("git").arg("init").arg("-q").current_dir(project.dir()).status().unwrap();
    let patch = |path: &str| {
        let text = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch");
        Line::call("apply_patch", json!({ "patch": text }))
    };
    let lines = [
        shell("rm -rf src").matching("Load the conventions before editing.(.|\n)*Ask for a reproduction."),
        shell("echo make generated"),
        shell("echo other"),
        patch("vendor/a.txt"),
        Line::text("Finished."),
        Line::text("Passed.").matching("Run one more pass over the failing tests."),
    ];
    let command = run_json(&project, &project.script(&lines)).args(["--approve", "ask", "--run-id", "r"]);
    let events = command.run().exits(0).events();
    assert_eq!(
        contents(&events),
        [
            "Not run: refused by a hook: Destructive command blocked by hook.",
            "make generated\n[exit code 0]\n\n[hook] The output needs review.\n\n[hook] Generated files changed.",
            "Not run: refused by a hook: Blocked by repository policy.",
            "Not run: refused by a hook: vendor is not patched",
        ]
    );
    assert_eq!(events.last().unwrap()["answer"], json!("Passed."));
    let failed = of_type(&events, "hook").into_iter().filter(|hook| hook["decision"] == "failed").count();
    assert_eq!(failed, 0, "{events:#?}");
    fusee(&project).args(["replay", "r"]).run().exits(0);
}

#[test]
fn a_hook_may_change_a_patch_under_the_name_of_codex() {
    let change = r#"python3 -c "import json, sys; call = json.load(sys.stdin)['tool_input']; call['command'] = call['command'].replace('wrong', 'right'); print(json.dumps({'hookSpecificOutput': {'hookEventName': 'PreToolUse', 'permissionDecision': 'allow', 'updatedInput': call}}))""#;
    let project = project(&hooks("PreToolUse", "Edit|Write", change), &[]);
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+wrong\n*** End Patch";
    run(&project, &[Line::call("apply_patch", json!({ "patch": patch })), Line::text("Done.")]);
    assert_eq!(project.read("a.txt"), "right\n");
}
