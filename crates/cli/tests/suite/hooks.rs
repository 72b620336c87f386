//! Hooks: the documented examples of Claude Code and Codex, written anew, and what happens when a hook misbehaves.

use std::time::{Duration, Instant};

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

/// A hook entry for `hooks.json`.
fn hook(command: &str) -> Value {
    json!({ "type": "command", "command": command, "timeout": 20 })
}

/// A trusted project with these hooks.
fn project(hooks: &Value) -> Project {
    let project = Project::new().with(".fusee/hooks.json", &json!({ "hooks": hooks }).to_string());
    trust(&project);
    project
}

fn trust(project: &Project) -> String {
    fusee(project).args(["trust", "--yes"]).run().exits(0).stdout
}

fn shell(command: &str) -> Line {
    Line::call("shell", json!({ "command": command }))
}

fn run(project: &Project, lines: &[Line]) -> Vec<Value> {
    run_json(project, &project.script(lines)).run().exits(0).events()
}

fn result(events: &[Value]) -> &Value {
    of_type(events, "tool_result")[0]
}

fn decisions(events: &[Value]) -> Vec<String> {
    of_type(events, "hook")
        .iter()
        .map(|it| format!("{} {}", it["event"], it["decision"]).replace('"', ""))
        .collect()
}

/// The validator that Claude Code's manual shows: it looks for commands that have a better form.
const VALIDATOR: &str = r#"
import json, re, sys
data = json.load(sys.stdin)
if data["tool_name"] != "Bash":
    sys.exit(1)
command = data["tool_input"]["command"]
if re.search(r"^grep\b(?!.*\|)", command):
    print("Use 'rg' instead of 'grep'", file=sys.stderr)
    sys.exit(2)
"#;

#[test]
fn a_validator_written_for_claude_code_works_unchanged() {
    let hooks = json!({ "PreToolUse": [{ "matcher": "Bash",
        "hooks": [hook("python3 \"$CLAUDE_PROJECT_DIR\"/.claude/validate.py")] }] });
    let project = Project::new()
        .with(".claude/validate.py", VALIDATOR)
        .with(".fusee/hooks.json", &json!({ "hooks": hooks }).to_string());
    let said = trust(&project);
    assert!(said.contains("PreToolUse (Bash): python3"), "{said}");
    let events = run(&project, &[shell("grep x y"), shell("echo fine"), Line::text("Done.")]);
    assert_eq!(decisions(&events), ["PreToolUse block", "PreToolUse none"]);
    let results = of_type(&events, "tool_result");
    assert_eq!(results[0]["fate"], json!("refused"));
    assert_eq!(results[0]["content"], json!("Not run: refused by a hook: Use 'rg' instead of 'grep'"));
    assert_eq!(results[1]["content"].as_str().unwrap().lines().next(), Some("fine"));
    // The scripts that a hook runs are part of what is trusted.
    project.write(".claude/validate.py", "import sys\n");
    let lapsed = run_json(&project, &project.script(&[shell("grep x y"), Line::text("Done.")])).run();
    assert!(lapsed.stderr.contains("hooks are ignored"), "{}", lapsed.stderr);
    assert!(of_type(&lapsed.events(), "hook").is_empty());
}

#[test]
fn a_hook_reads_the_event_and_runs_in_the_workspace_without_keys() {
    let script = "cat > seen.json; pwd > where.txt; env > environment.txt";
    let project = project(&json!({ "PreToolUse": [{ "matcher": "shell", "hooks": [hook(script)] }] }));
    let model = project.script(&[shell("true"), Line::text("Done.")]);
    let command =
        run_json(&project, &model).args(["--run-id", "seen"]).env("OPENAI_API_KEY", "sk-0123456789abc");
    command.run().exits(0);
    let seen: Value = serde_json::from_str(&project.read("seen.json")).unwrap();
    for (field, value) in [
        ("hook_event_name", json!("PreToolUse")),
        ("session_id", json!("seen")),
        ("cwd", json!(project.dir().canonicalize().unwrap())),
        ("tool_name", json!("shell")),
        ("tool_input", json!({ "command": "true" })),
        ("transcript_path", Value::Null),
    ] {
        assert_eq!(seen[field], value, "{field} in {seen:#}");
    }
    assert!(seen["tool_use_id"].is_string() && seen.get("transcript_path").is_some(), "{seen:#}");
    assert_eq!(project.read("where.txt").trim(), project.dir().canonicalize().unwrap().display().to_string());
    let environment = project.read("environment.txt");
    assert!(
        !environment.contains("sk-0123456789abc") && environment.contains("CLAUDE_PROJECT_DIR="),
        "{environment}"
    );
}

#[test]
fn hooks_of_a_project_do_not_run_before_it_is_trusted() {
    let hooks = json!({ "hooks": { "SessionStart": [{ "hooks": [hook("touch ran")] }] } });
    let project = Project::new().with(".fusee/hooks.json", &hooks.to_string());
    let script = project.script(&[Line::text("Done.")]);
    let ran = run_json(&project, &script).run().exits(0);
    assert!(ran.stderr.contains("hooks are ignored") && ran.stderr.contains("fusee trust"), "{}", ran.stderr);
    assert!(!project.dir().join("ran").exists());
    trust(&project);
    run_json(&project, &script).run().exits(0);
    assert!(project.dir().join("ran").exists());
    // A change of the file takes the trust away.
    std::fs::remove_file(project.dir().join("ran")).unwrap();
    project.write(".fusee/hooks.json", &hooks.to_string().replace("touch ran", "touch ran; touch more"));
    let changed = run_json(&project, &script).run().exits(0);
    assert!(changed.stderr.contains("has changed since you trusted it"), "{}", changed.stderr);
    assert!(!project.dir().join("ran").exists() && !project.dir().join("more").exists());
}

#[test]
fn the_users_own_hooks_need_no_trust() {
    let project = Project::new();
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let hooks = json!({ "hooks": { "UserPromptSubmit": [{ "hooks": [hook("echo Today is Friday.")] }] } });
    std::fs::write(folder.join("hooks.json"), hooks.to_string()).unwrap();
    let script = project.script(&[Line::text("Done.").matching("Today is Friday.")]);
    let events = run_json(&project, &script).run().exits(0).events();
    assert_eq!(decisions(&events), ["UserPromptSubmit none"]);
}

#[test]
fn a_session_starts_once_in_a_conversation() {
    let count = "echo started >> ../started.txt; cat > /dev/null";
    let project = project(&json!({ "SessionStart": [{ "matcher": "startup", "hooks": [hook(count)] }] }));
    let script = project.script(&[Line::text("One."), Line::text("Two.")]);
    run_json(&project, &script).run().exits(0);
    run_json(&project, &script).args(["--continue"]).run().exits(0);
    assert_eq!(std::fs::read_to_string(project.dir().join("../started.txt")).unwrap(), "started\n");
}

#[test]
fn the_strictest_of_several_hooks_decides() {
    let allow =
        r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"#;
    let deny = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not here"}}'"#;
    let project = project(&json!({ "PreToolUse": [{ "hooks": [hook(allow), hook(deny)] }] }));
    let events = run(&project, &[shell("touch made"), Line::text("Done.")]);
    assert_eq!(decisions(&events), ["PreToolUse allow", "PreToolUse deny"]);
    assert_eq!(result(&events)["content"], json!("Not run: refused by a hook: not here"));
    assert!(!project.dir().join("made").exists());
}

#[test]
fn allow_spares_a_question_but_not_one_that_a_rule_demands() {
    let allow = r#"echo '{"decision":"approve"}'"#;
    let project = project(&json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": [hook(allow)] }] }));
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let rules = "[[rules]]\ncommand = \"touch secret\"\nthen = \"deny\"\n[[rules]]\ncommand = \"touch asked\"\nthen = \"ask\"\n";
    std::fs::write(folder.join("config.toml"), rules).unwrap();
    let lines = [shell("touch made"), shell("touch secret"), shell("touch asked"), Line::text("Done.")];
    let command = run_json(&project, &project.script(&lines)).args(["--approve", "ask"]);
    let events = command.run().exits(0).events();
    let fates: Vec<&Value> = of_type(&events, "tool_result").iter().map(|result| &result["fate"]).collect();
    assert_eq!(fates, [&Value::Null, &json!("refused"), &json!("refused")]);
    assert!(project.dir().join("made").exists() && !project.dir().join("secret").exists());
}

#[test]
fn ask_makes_a_question_and_a_permission_hook_answers_it() {
    let ask =
        r#"echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"careful"}}'"#;
    let answer = r#"grep -q 'touch good' && echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}' || true"#;
    let output = "cat >> told.txt";
    let project = project(&json!({
        "PreToolUse": [{ "hooks": [hook(ask)] }],
        "PermissionRequest": [{ "hooks": [hook(answer)] }],
        "Notification": [{ "hooks": [hook(output)] }],
    }));
    let events = run(&project, &[shell("touch good"), shell("touch other"), Line::text("Done.")]);
    let results = of_type(&events, "tool_result");
    assert_eq!(results[0]["fate"], Value::Null);
    assert!(results[1]["content"].as_str().unwrap().contains("nobody is there"), "{}", results[1]);
    let asked = of_type(&events, "approval_requested");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["reason"], json!("a hook requires approval: careful"));
    let output = project.read("told.txt");
    assert!(
        output.contains("permission_prompt") && output.matches("hook_event_name").count() == 1,
        "{output}"
    );
}

#[test]
fn changed_arguments_are_checked_like_those_of_the_model() {
    let change = r#"sed 's/.*/{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"touch changed"}}}/'"#;
    let changed = project(&json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": [hook(change)] }] }));
    run(&changed, &[shell("touch original"), Line::text("Done.")]);
    assert!(changed.dir().join("changed").exists() && !changed.dir().join("original").exists());
    // A rule refuses the new command.
    let folder = changed.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[[rules]]\ncommand = \"touch changed\"\nthen = \"deny\"\n")
        .unwrap();
    let events = run(&changed, &[shell("touch original"), Line::text("Done.")]);
    assert_eq!(result(&events)["content"], json!("Not run: denied by a user rule."));
    // The tool's schema refuses another.
    let wrong = change.replace("\"command\":\"touch changed\"", "\"line\":1");
    let wrong = project(&json!({ "PreToolUse": [{ "hooks": [hook(&wrong)] }] }));
    let events = run(&wrong, &[shell("touch original"), Line::text("Done.")]);
    let said = result(&events)["content"].as_str().unwrap();
    assert!(said.starts_with("Not run: a hook changed the arguments, and they do not fit"), "{said}");
    assert!(!wrong.dir().join("original").exists());
}

#[test]
fn names_of_claude_code_are_used_for_its_tools() {
    let script = "cat > seen.json; echo '{\"hookSpecificOutput\":{\"updatedInput\":{\"file_path\":\"b.txt\",\"content\":\"from the hook\"}}}'";
    let project = project(&json!({ "PreToolUse": [{ "matcher": "Edit|Write", "hooks": [hook(script)] }] }));
    let write = Line::call("write_file", json!({ "path": "a.txt", "content": "from the model" }));
    run(&project, &[write, Line::text("Done.")]);
    let seen: Value = serde_json::from_str(&project.read("seen.json")).unwrap();
    assert_eq!(seen["tool_name"], json!("Write"));
    assert_eq!(seen["tool_input"], json!({ "file_path": "a.txt", "content": "from the model" }));
    assert_eq!(project.read("b.txt"), "from the hook");
    assert!(!project.dir().join("a.txt").exists());
}

#[test]
fn what_a_hook_says_after_a_call_is_told_to_the_model() {
    let format = "cat > seen.json; echo 'line 1 is too long' >&2; exit 2";
    let project = project(&json!({ "PostToolUse": [{ "matcher": "Write", "hooks": [hook(format)] }] }));
    let write = Line::call("write_file", json!({ "path": "a.txt", "content": "x" }));
    let events = run(&project, &[write, Line::text("Done.").matching("line 1 is too long")]);
    assert!(result(&events)["content"].as_str().unwrap().ends_with("\n\n[hook] line 1 is too long"));
    let seen: Value = serde_json::from_str(&project.read("seen.json")).unwrap();
    assert_eq!(seen["tool_response"]["ok"], json!(true));
    assert_eq!(project.read("a.txt"), "x");
}

#[test]
fn a_stop_hook_keeps_the_task_going_until_it_agrees() {
    let stop = "test -e done.txt || { echo 'done.txt is missing' >&2; exit 2; }";
    let project = project(&json!({ "Stop": [{ "hooks": [hook(stop)] }] }));
    let lines = [
        Line::text("Finished."),
        Line::call("write_file", json!({ "path": "done.txt", "content": "" }))
            .matching("done.txt is missing"),
        Line::text("Now it is."),
    ];
    let events = run(&project, &lines);
    assert_eq!(decisions(&events), ["Stop block", "Stop none"]);
    assert_eq!(events.last().unwrap()["answer"], json!("Now it is."));
}

#[test]
fn a_stop_hook_that_never_agrees_does_not_hold_the_task_for_ever() {
    let project = project(&json!({ "Stop": [{ "hooks": [hook("echo again >&2; exit 2")] }] }));
    let lines: Vec<Line> = (0..20).map(|n| Line::text(&format!("Answer {n}."))).collect();
    let events = run(&project, &lines);
    assert_eq!(of_type(&events, "hook").len(), 9);
    assert_eq!(events.last().unwrap()["answer"], json!("Answer 8."));
}

#[test]
fn a_blocked_request_is_not_sent() {
    let project =
        project(&json!({ "UserPromptSubmit": [{ "hooks": [hook("echo no secrets >&2; exit 2")] }] }));
    let ended = run_json(&project, &project.script(&[Line::text("Sent.")])).run().exits(1);
    let events = ended.events();
    assert!(of_type(&events, "turn_start").is_empty());
    let error = events.last().unwrap()["error"]["message"].as_str().unwrap();
    assert_eq!(error, "a hook blocked the request: no secrets");
}

#[test]
fn continue_false_ends_the_task() {
    let stop = r#"echo '{"continue":false,"stopReason":"enough for today"}'"#;
    let project = project(&json!({ "PostToolUse": [{ "hooks": [hook(stop)] }] }));
    let lines = [shell("true"), Line::text("Never said.")];
    let events = run_json(&project, &project.script(&lines)).run().exits(1).events();
    let error = events.last().unwrap()["error"]["message"].as_str().unwrap();
    assert!(error.contains("enough for today"), "{error}");
}

#[test]
fn hooks_that_hang_flood_or_crash_are_bounded_and_decide_nothing() {
    let hang = json!({ "type": "command", "command": "sleep 100 & sleep 100", "timeout": 1 });
    let hooks = [
        hang,
        hook("yes"),
        hook("yes >&2"),
        hook("kill -9 $$"),
        hook("/no/such/program"),
        hook("echo '{bad'"),
    ];
    let project = project(&json!({ "PreToolUse": [{ "hooks": hooks }] }));
    let began = Instant::now();
    let events = run(&project, &[shell("touch made"), Line::text("Done.")]);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(decisions(&events), vec!["PreToolUse failed"; 6]);
    let reasons: Vec<&str> =
        of_type(&events, "hook").iter().map(|it| it["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons[0], "it did not end within 1 s");
    assert_eq!(reasons[1], "it wrote more than 1048576 bytes");
    assert_eq!(reasons[2], "it wrote more than 1048576 bytes");
    assert!(reasons[4].starts_with("it ended with code 127: "), "{}", reasons[4]);
    assert!(project.dir().join("made").exists());
    project.assert_no_process_left();
}

#[test]
fn a_task_cannot_replace_the_program_of_a_hook() {
    let project = Project::new().with("check.sh", "exit 0\n");
    let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [hook("sh check.sh")] }] } });
    project.write(".fusee/hooks.json", &hooks.to_string());
    trust(&project);
    let write = Line::call("write_file", json!({ "path": "check.sh", "content": "touch escaped\n" }));
    let read = Line::call("read_file", json!({ "path": "check.sh" }));
    let events = run(&project, &[read, write, shell("true"), Line::text("Done.")]);
    assert_eq!(project.read("check.sh"), "touch escaped\n");
    let results = of_type(&events, "tool_result");
    let said = results[2]["content"].as_str().unwrap();
    assert!(said.contains("was not run, because") && said.contains("check.sh has changed"), "{said}");
    assert!(!project.dir().join("escaped").exists());
}

#[test]
fn a_resumed_run_does_not_ask_a_hook_again_and_a_killed_hook_is_asked_again() {
    let count = "echo asked >> ../asked.txt";
    let slow = "echo begun >> ../begun.txt; test -e ../go || sleep 60";
    let project = project(&json!({ "PreToolUse": [
        { "matcher": "list_dir", "hooks": [hook(count)] }, { "matcher": "Bash", "hooks": [hook(slow)] }] }));
    let outside =
        |name: &str| std::fs::read_to_string(project.dir().join("..").join(name)).unwrap_or_default();
    let lines = [Line::call("list_dir", json!({})), shell("touch made"), Line::text("Done.")];
    let mut running = run_json(&project, &project.script(&lines)).args(["--run-id", "killed"]).start();
    while outside("begun.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    project.assert_no_process_left();
    std::fs::write(project.dir().join("../go"), "").unwrap();
    fusee(&project).args(["resume", "killed", "--json"]).run().exits(0);
    assert_eq!((outside("asked.txt").as_str(), outside("begun.txt").as_str()), ("asked\n", "begun\nbegun\n"));
    assert!(project.dir().join("made").exists());
    // A replay runs no hooks and gives the same events.
    fusee(&project).args(["replay", "killed"]).run().exits(0);
    assert_eq!((outside("asked.txt").as_str(), outside("begun.txt").as_str()), ("asked\n", "begun\nbegun\n"));
}

#[test]
fn revoked_hooks_do_not_run_in_a_resumed_run() {
    let project = project(&json!({ "PreToolUse": [{ "hooks": [hook("echo ran >> ../ran.txt")] }] }));
    let lines = [shell("echo begun > begun.txt; sleep 60"), shell("true"), Line::text("Done.")];
    let mut running = run_json(&project, &project.script(&lines)).args(["--run-id", "killed"]).start();
    while project.read("begun.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    fusee(&project).args(["trust", "--revoke"]).run().exits(0);
    // Revoking also takes the journal's trust back only where it came with the project; this one is our own.
    let events = fusee(&project).args(["resume", "killed", "--json"]).run().exits(0).events_after_resume();
    assert_eq!(decisions(&events), ["PreToolUse failed"]);
    assert_eq!(std::fs::read_to_string(project.dir().join("../ran.txt")).unwrap(), "ran\n");
}

#[test]
fn mistakes_in_the_file_are_reported_with_their_place() {
    let project = Project::new().with(
        ".fusee/hooks.json",
        "{\"hooks\": {\"PreToolUse\": [\n  {\"matcher\": \"[\", \"hooks\": []}]}}\n",
    );
    let said = fusee(&project).args(["check"]).run().exits(1).stdout;
    assert!(said.contains("hooks.json:2") && said.contains("is not a regular expression"), "{said}");
    let said = fusee(&project).args(["trust", "--yes"]).run().exits(2).stderr;
    assert!(said.contains("is not a regular expression"), "{said}");
}

#[test]
fn init_offers_the_hooks_of_claude_code() {
    let settings = json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "true" }] }] } });
    let project = Project::new().with(".claude/settings.json", &settings.to_string());
    let output = fusee(&project).args(["init"]).run().exits(0);
    assert!(output.stderr.contains("`fusee init --hooks` copies them"), "{}", output.stderr);
    assert!(!project.dir().join(".fusee/hooks.json").exists());
    fusee(&project).args(["init", "--hooks"]).run().exits(0);
    let copied: Value = serde_json::from_str(&project.read(".fusee/hooks.json")).unwrap();
    assert_eq!(copied, settings);
    assert!(trust(&project).contains("Stop: true"));
}

#[test]
fn calls_of_a_workflow_pass_the_hooks_as_well() {
    let project =
        project(&json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": [hook("echo no >&2; exit 2")] }] }));
    project.write("w.fusee", "(run_script (command \"touch made\"))\n");
    let ended = fusee(&project).args(["task", "w.fusee", "--sandbox", "off", "--json"]).run();
    assert!(!project.dir().join("made").exists(), "{ended:#?}");
    assert!(ended.stdout.contains("refused by a hook: no"), "{ended:#?}");
}
