//! Output channels: the answer on stdout, everything else on stderr, plain text in a pipe, stdin only on
//! request.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::support::{fusee, run, run_json};

fn looking(project: &Project) -> String {
    project.script(&[
        Line::call("shell", json!({"command": "echo from the command"})).with_text("I will look."),
        Line::text("The answer."),
    ])
}

#[test]
fn stdout_carries_the_answer_and_nothing_else() {
    let project = Project::new();
    let outcome = run(&project, &looking(&project)).run().exits(0);
    assert_eq!(outcome.stdout, "The answer.\n");
    assert!(outcome.stderr.contains("echo from the command"), "{}", outcome.stderr);
}

#[test]
fn a_pipe_gets_plain_lines() {
    let project = Project::new();
    let outcome = run(&project, &looking(&project)).run().exits(0);
    for (name, text) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{name} is not plain: {text:?}");
    }
}

#[test]
fn with_json_every_line_of_stdout_is_an_event() {
    let project = Project::new();
    let outcome = run_json(&project, &looking(&project)).run().exits(0);
    assert_eq!(outcome.stdout.lines().count(), outcome.events().len());
    assert!(outcome.stdout.ends_with("}\n"));
}

#[test]
fn a_failed_task_says_why_on_stderr_and_leaves_stdout_to_what_there_is() {
    let project = Project::new();
    let script = project.script(&[Line::error(401, "who are you?")]);
    let outcome = run(&project, &script).run().exits(1);
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("who are you?"), "{}", outcome.stderr);
}

#[test]
fn stdin_is_read_only_when_asked_for() {
    // The test kit leaves stdin open: a run that waited for it would hang here.
    let project = Project::new();
    let script = project.script(&[Line::text("Done.")]);
    run(&project, &script).run().exits(0);

    let script = project.script(&[Line::text("Read.")]);
    let events = fusee(&project)
        .args(["run", "-", "--model", &script, "--json"])
        .stdin("The request from stdin.\n")
        .run()
        .exits(0)
        .events();
    assert_eq!(events[0]["request"].as_str().unwrap().trim(), "The request from stdin.");
}

#[test]
fn bare_fusee_prints_the_short_help_with_a_handful_of_commands() {
    let project = Project::new();
    let help = fusee(&project).run().exits(0);
    assert!(help.stdout.contains("run") && help.stdout.contains("resume"), "{}", help.stdout);
    assert!(help.stdout.lines().count() < 30, "{}", help.stdout);
}

/// The pieces of a command's output put together are its output: none is sent twice.
#[test]
fn live_output_of_a_command_comes_in_pieces_that_do_not_repeat() {
    let project = Project::new();
    let command = "for n in 1 2 3 4; do echo line $n; sleep 0.3; done";
    let script = project.script(&[Line::call("shell", json!({"command": command})), Line::text("Done.")]);
    let events = fusee(&project)
        .args(["run", "x", "--json", "--sandbox", "off", "--model", &script])
        .run()
        .exits(0)
        .events();
    let pieces = of_type(&events, "tool_output");
    assert!(pieces.len() > 1, "{pieces:?}");
    let text: String = pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    assert!(
        "line 1\nline 2\nline 3\nline 4\n".starts_with(&text) && text.starts_with("line 1\nline 2\n"),
        "{text:?}"
    );
}

/// Events of a run whose background is checked.
fn asked(project: &Project, arguments: &[&str], stdin: Option<&str>) -> String {
    let model = project.script(&[Line::text("Done.")]);
    let command = fusee(project).args(["run", "--json", "--model", &model]).args(arguments.iter().copied());
    let command = match stdin {
        Some(text) => command.stdin(text),
        None => command,
    };
    command.run().exits(0).events()[0]["request"].as_str().unwrap().to_owned()
}

#[test]
fn piped_text_and_named_files_become_background_of_the_request() {
    let project = Project::new().with("notes.txt", "From the file.\n");
    let piped = asked(&project, &["summarise this"], Some("some data\n"));
    assert!(
        piped.starts_with("summarise this") && piped.ends_with("Standard input:\n\nsome data"),
        "{piped}"
    );
    let all = asked(&project, &["compare with @notes.txt", "--background", "Given."], Some("some data\n"));
    assert!(
        all.contains("Given.\n\nThe file notes.txt:\n\nFrom the file.\n\nStandard input:\n\nsome data"),
        "{all}"
    );
    // Nothing is waited for: the test kit leaves the pipe open and empty.
    let idle = asked(&project, &["nothing is piped"], None);
    assert_eq!(idle, "nothing is piped");
    assert_eq!(asked(&project, &["nothing at all"], Some("")), "nothing at all");
    let dash = asked(&project, &["-"], Some("the request"));
    assert_eq!(dash, "the request");
}

#[test]
fn piped_text_is_bounded_and_must_be_text() {
    let project = Project::new();
    let model = project.script(&[Line::text("Done."), Line::text("Done.")]);
    let long = "x".repeat(300 << 10);
    let cut = fusee(&project).args(["run", "x", "--json", "--model", &model]).stdin(&long).run().exits(0);
    assert!(cut.stderr.contains("only the first 256 kB of stdin are used"), "{}", cut.stderr);
    let request = cut.events()[0]["request"].as_str().unwrap().to_owned();
    assert!(
        request.ends_with("xx\n[the rest is left out]") && request.len() < 260 << 10,
        "{}",
        request.len()
    );
}

/// What a task leaves behind that runs later, outside of the sandbox.
#[test]
fn changed_files_that_tools_run_are_named_at_the_end_and_in_the_report() {
    let project = Project::new().with("package.json", "{}\n").with("Rakefile", "task :x\n");
    let calls = Line::call("write_file", json!({"path": "Makefile", "content": "all:\n"}))
        .and_call("write_file", json!({"path": "src/main.rs", "content": "fn main() {}\n"}));
    let command = "echo x > .envrc; mkdir .vscode; echo {} > .vscode/tasks.json; echo '{ }' > package.json; rm Rakefile";
    let lines = [calls, Line::call("shell", json!({ "command": command })), Line::text("Done.")];
    let model = project.script(&lines);
    let ran = fusee(&project).args(["run", "x", "--model", &model, "--sandbox", "off"]).run().exits(0);
    let line = "review first: tools run .envrc, .vscode/tasks.json, Makefile, package.json\n";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
    let shown = fusee(&project).args(["show", "--json"]).run().exits(0).stdout;
    let report = shown.lines().find(|line| line.contains("\"task_report\"")).unwrap();
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    assert_eq!(
        report["files_run_by_convention"],
        json!([".envrc", ".vscode/tasks.json", "Makefile", "package.json"])
    );
}

/// The list belongs to the loop: with stdin taken from it, only the first word would be asked about.
#[test]
fn a_loop_that_reads_a_file_keeps_its_lines() {
    let project = Project::new().with("list", "one\ntwo\nthree\n");
    let model = project.script(&[Line::text("Done.")]);
    let line = "while read -r word; do \"$BINARY\" run \"about $word\" --model \"$MODEL\"; done < list";
    let ran = project.command("bash").args(["-c", line]).env("BINARY", crate::support::binary());
    let ran = ran.env("MODEL", &model).run().exits(0);
    assert_eq!(ran.stdout, "Done.\nDone.\nDone.\n");
    assert!(
        ran.stderr.contains("note: ignoring stdin: another program, such as a shell loop, is reading"),
        "{}",
        ran.stderr
    );
    let listed = fusee(&project).args(["runs"]).run().exits(0).stdout;
    assert!(["about one", "about two", "about three"].iter().all(|title| listed.contains(title)), "{listed}");
    // A whole file is background.
    let line = "\"$BINARY\" run about --run-id whole --model \"$MODEL\" < list && \"$BINARY\" show whole";
    let ran = project.command("bash").args(["-c", line]).env("BINARY", crate::support::binary());
    let shown = ran.env("MODEL", &model).run().exits(0);
    assert!(shown.stdout.contains("Standard input:") && shown.stdout.contains("three"), "{}", shown.stdout);
    assert!(!shown.stderr.contains("note: stdin"), "{}", shown.stderr);
}
