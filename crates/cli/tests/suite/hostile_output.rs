//! Names and contents with escape sequences, through every command: no control character reaches the output.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::support::{at_terminal, fusee};

/// Sets the clipboard, clears the screen, and the same as a single character.
const ESCAPES: &str = "\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{9b}2J\u{202e}";

#[track_caller]
fn assert_harmless(case: &str, text: &str) {
    let is_control = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{202e}';
    assert!(!text.contains(is_control), "{case}: {text:?}");
}

/// A project whose every name and content is hostile, with a run that touched all of it.
fn hostile() -> Project {
    let project = Project::new()
        .with(&format!("a{ESCAPES}.txt"), &format!("needle {ESCAPES}\n"))
        .with("fusee.toml", &format!("\"max{ESCAPES}\" = 1\n"))
        .with("agents/bad.toml", &format!("name = \"{}\"\n", "x\\u001b[2J"))
        .with(&format!(".fusee/templates/b{ESCAPES}.xml"), &format!("<task name=\"{ESCAPES}\""))
        .with(
            ".fusee/templates/good.xml",
            "<task name=\"good\" type=\"atomic\"><description>needle \u{9b}2J words</description><instructions>Say \u{9b}2J it.</instructions></task>\n",
        )
        .with(&format!(".fusee/workflows/w{ESCAPES}.fusee"), &format!("(no-such-{ESCAPES} \"x\")\n"))
        .with("prompt.md", &format!("# Prompt\n\nSay {ESCAPES}\n"));
    let file = format!("a{ESCAPES}.txt");
    let command = format!("printf 'out {ESCAPES}' ; echo x > 'made{ESCAPES}.txt'");
    let script = project.script(&[
        Line::call("read_file", json!({ "path": file })).with_text(&format!("I read {ESCAPES}.")),
        Line::call("edit_file", json!({ "path": file, "old": "needle", "new": "thread" })),
        Line::call("shell", json!({ "command": command })),
        Line::call("no_such_tool", json!({ "x": ESCAPES })),
        Line::text(&format!("Done {ESCAPES}.")),
    ]);
    std::fs::remove_file(project.dir().join("fusee.toml")).unwrap();
    let request = format!("Do {ESCAPES}");
    let ran = fusee(&project)
        .args(["run", &request, "--run-id", "r", "--sandbox", "off", "--model", &script])
        .run()
        .exits(0);
    assert_harmless("run", &ran.stderr);
    let json = fusee(&project).args(["show", "r", "--json"]).run().exits(0);
    assert_harmless("show --json", &json.stdout);
    assert!(json.stdout.contains("\\u009b2J"), "the events are complete: {}", json.stdout);
    project.write("fusee.toml", &format!("\"max{ESCAPES}\" = 1\n"));
    project
}

/// Commands that talk to a program on both of their streams, or serve until they are stopped, or run on their own example.
const SERVERS: [&str; 9] =
    ["demo", "serve", "mcp", "acp", "answer", "pull", "worker", "dev-engine", "completions"];

/// Commands that print a model's answer, which is exact in a pipe.
const ANSWERS: [&str; 3] = ["attach", "fork", "resume"];

/// The commands of the help.
fn all_commands(project: &Project) -> Vec<String> {
    let help = fusee(project).args(["--help"]).run().exits(0).stdout;
    let name = |line: &str| {
        let (name, about) = line.strip_prefix("  ")?.split_once("  ")?;
        (!name.is_empty() && !name.contains(' ') && !about.trim().is_empty()).then(|| name.to_owned())
    };
    help.lines().filter_map(name).filter(|name| !SERVERS.contains(&name.as_str())).collect()
}

#[test]
fn no_command_sends_a_control_character_from_a_file_a_model_or_the_journal() {
    let project = hostile();
    let commands: &[&[&str]] = &[
        &["runs"],
        &["runs", "--json"],
        &["show", "r"],
        &["show", "r", "--full"],
        &["show", "r", "--log"],
        &["replay", "r"],
        &["replay", "r", "--json"],
        &["runs", "undo", "r", "--dry-run"],
        &["runs", "undo", "r", "--yes"],
        &["runs", "diff", "r", "r"],
        &["config"],
        &["config", "--json"],
        &["trust", "--yes"],
        &["approvals"],
        &["check"],
        &["check", "--format", "json"],
        &["check", ESCAPES],
        &["fmt", "--check", "."],
        &["memory", "index"],
        &["memory", "query", "needle", "thread"],
        &["memory", "query", "--json", "needle", "thread"],
        &["memory", "show"],
        &["memory", "show", "--json"],
        &["prompt", "render", "prompt.md"],
        &["prompt", "render", "prompt.md", "--format", "json"],
        &["templates"],
        &["templates", "--json"],
        &["templates", "show", "good", "--json"],
        &["match", "needle", "words"],
        &["match", "needle", "--json"],
        &["task", "good", "--help"],
        &["task", "good", "--dry-run"],
        &["task", "good", "--dry-run", "--json"],
        &["task", ESCAPES],
        &["task", "(no-such-\u{1b}[2J)"],
        &["doctor", "--quick"],
        &["models"],
        &["run", "x", "-m", ESCAPES],
        &["run", "x", "--agent", ESCAPES],
        &["show", ESCAPES],
        &["attach", "r"],
        &["attach", ESCAPES],
        &["cancel", "r"],
        &["rewind", "r", "1", "--dry-run"],
        &["rewind", "r", "0", "--yes"],
        &["fork", "r", "1", ESCAPES],
        &["adopt", "r", "--yes"],
        &["resume", "r"],
        &["resume", ESCAPES],
        &["replay", ESCAPES],
        &["review", "--base", ESCAPES, "-m", "script:none"],
        &["workflows"],
        &["workflows", "--json"],
        &["bench", "check", ESCAPES],
        &["bench", "list", "."],
        &["bench", "show", ESCAPES],
        &["mcp-login", ESCAPES],
        &["docs", ESCAPES],
        &["runs", "export", "r"],
        &["runs", "export", ESCAPES],
        &["runs", "gc"],
        &["init"],
    ];
    let is_missing = |name: &String| !commands.iter().any(|command| command[0] == name);
    let missing: Vec<String> = all_commands(&project).into_iter().filter(is_missing).collect();
    assert_eq!(missing, Vec::<String>::new(), "commands that are not tried");
    for command in commands {
        for without_settings in [false, true] {
            if without_settings {
                let _ = std::fs::remove_file(project.dir().join("fusee.toml"));
            } else {
                project.write("fusee.toml", &format!("\"max{ESCAPES}\" = 1\n"));
            }
            let ran = fusee(&project).args(command.iter().copied()).run();
            if !ANSWERS.contains(&command[0]) {
                assert_harmless(&format!("{command:?}, stdout"), &ran.stdout);
            }
            assert_harmless(&format!("{command:?}, stderr"), &ran.stderr);
        }
    }
}

#[test]
fn an_answer_is_exact_in_a_pipe_and_harmless_on_a_terminal() {
    let project = Project::new();
    let script = project.script(&[Line::text("Done \u{9b}2J \u{200f}.")]);
    let line = ["run", "x", "--run-id", "r", "--model", &script];
    let piped = fusee(&project).args(line).run().exits(0);
    assert_eq!(piped.stdout, "Done \u{9b}2J \u{200f}.\n");
    for command in ["show r", "replay r", "resume r"] {
        let shown = at_terminal(&project, command).wait().stdout;
        assert!(!shown.contains('\u{9b}') && shown.contains("Done \u{fffd}2J"), "{command}: {shown:?}");
    }
}
