//! Files listed by a template: from a command's stdout only, complete, as text; problems are reported to the
//! user.

use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

fn with_template(inner: &str) -> Project {
    let text = format!(
        "<task name=\"t\" type=\"atomic\"><description>Do it</description><instructions>x</instructions>{inner}</task>"
    );
    Project::new().with(".fusee/templates/t.xml", &text)
}

fn listing(command: &str) -> Project {
    with_template(&format!(
        "<inputs><input name=\"p\" default=\"\"/></inputs><file_paths source=\"command\"><command>{command}</command></file_paths>"
    ))
}

fn task<'p>(project: &'p Project, lines: &[Line], words: &[&str]) -> Command<'p> {
    let model = project.script(lines);
    fusee(project).args(["task", "t"]).args(words).args(["--sandbox", "off", "--model", &model])
}

fn result(project: &Project, lines: &[Line], words: &[&str], exit: i32) -> Value {
    let shown = task(project, lines, words).args(["--json"]).run().exits(exit);
    serde_json::from_str(&shown.stdout).unwrap()
}

fn error(result: &Value) -> (&str, &str) {
    let error = &result["notes"]["error"];
    (error["reason"].as_str().unwrap(), error["message"].as_str().unwrap())
}

#[test]
fn a_command_lists_files_by_its_stdout_alone() {
    let project = listing("echo '[id].txt'; echo 'exit code.txt'; echo no such path {{p}} 1>&amp;2")
        .with("[id].txt", "the letter i\n")
        .with("exit code.txt", "the letter e\n");
    let answer = Line::text("ok").matching("the letter i[\\s\\S]*the letter e");
    assert_eq!(result(&project, &[answer], &[], 0)["notes"]["context_files_count"], 2);
    let failed = result(&listing("echo gone; echo it broke 1&gt;&amp;2; exit 3"), &[], &[], 1);
    let command = "echo gone; echo it broke 1>&2; exit 3";
    let said = format!("the file-listing command `{command}` failed: it broke [exit code 3]");
    assert_eq!(error(&failed), ("context_retrieval_failure", said.as_str()));
}

#[test]
fn a_long_listing_is_whole_or_refused() {
    let long = "d".repeat(200);
    let project = (0..150).fold(listing("ls */*"), |project, n| {
        project.with(&format!("{long}/{n:03}.txt"), &format!("file {n:03}.\n"))
    });
    let answer = Line::text("ok").matching("file 000\\.[\\s\\S]*file 075\\.[\\s\\S]*file 149\\.");
    assert_eq!(result(&project, &[answer], &[], 0)["notes"]["context_files_count"], 150);
    let failed = result(&listing("seq 201"), &[], &[], 1);
    let said = "201 files are listed, but at most 200 can be included; list fewer in `<file_paths>`";
    assert_eq!(error(&failed), ("context_retrieval_failure", said));
    let failed = result(&listing("seq 100000"), &[], &[], 1);
    let said =
        "the file-listing command `seq 100000` printed more than 256 KiB; let it list at most 200 files";
    assert_eq!(error(&failed), ("context_retrieval_failure", said));
}

#[test]
fn an_input_in_a_command_is_one_word_of_the_shell() {
    let project =
        listing("ls {{p}}").with("a.txt", "the letter a\n").with("it's; $(b).txt", "the letter b\n");
    for evil in ["p=a.txt; touch PWNED", "p=$(touch PWNED)", "p=`touch PWNED`", "p='; touch PWNED; '"] {
        let failed = result(&project, &[], &[evil], 1);
        assert_eq!(error(&failed).0, "context_retrieval_failure", "{evil}: {failed}");
        assert!(!project.dir().join("PWNED").exists(), "{evil}");
    }
    let answer = Line::text("ok").matching("the letter b");
    assert_eq!(result(&project, &[answer], &["p=it's; $(b).txt"], 0)["status"], "COMPLETE");
    let plan = task(&project, &[], &["p=it's; x", "--dry-run"]).run().exits(0).stdout;
    assert!(plan.contains(r"ls 'it'\''s; x'"), "{plan}");
}

#[test]
fn a_placeholder_inside_of_a_commands_quotes_is_a_mistake() {
    for command in ["ls '{{p}}'", "ls \"{{p}}\"", "ls `echo {{p}}`", "ls # {{p}}", "ls \\{{p}}", "ls ${{p}}"]
    {
        let project = listing(command);
        let shown = fusee(&project).args(["check", ".fusee/templates/t.xml"]).run().exits(1);
        let said = shown.stdout + &shown.stderr;
        assert!(
            said.contains("quoted-placeholder") && said.contains("write it unquoted"),
            "{command}: {said}"
        );
    }
    for command in ["ls 'a b' {{p}}", "ls \"it's\" {{p}} # {", "ls $(echo {{p}})/x", "ls a#b{{p}} x{{p}}y"] {
        fusee(&listing(command)).args(["check", ".fusee/templates/t.xml"]).run().exits(0);
    }
}

#[test]
fn a_listed_file_is_shown_whole() {
    let lines: String = (1..=2500).map(|n| format!("line {n}\n")).collect();
    let project = with_template("<file_paths><path>a.txt</path></file_paths>")
        .with("a.txt", &format!("{}<END>\n{lines}", "w".repeat(5000)));
    let answer = Line::text("ok").matching("w{5000}<END>[\\s\\S]*line 2500\\n?");
    assert_eq!(result(&project, &[answer], &[], 0)["status"], "COMPLETE");
    project.write("a.txt", &"word ".repeat(2_000_000));
    let failed = result(&project, &[], &[], 3);
    assert_eq!(failed["notes"]["error"]["type"], "RESOURCE_EXHAUSTION");
    let (reason, message) = error(&failed);
    assert_eq!(reason, "context");
    assert!(message.starts_with("the file `a.txt` does not fit: it has 10000000 bytes"), "{message}");
}

#[test]
fn a_listed_file_that_is_no_text_fails_the_task() {
    let project = with_template("<file_paths><path>a.bin</path></file_paths>");
    for bytes in [&b"\x89PNG\r\n\x1a\n\0\0\0"[..], &[0xfe, 0xff, 0xf1, 0x81, b'\n', 0x93, 0xc0, 0xc1]] {
        std::fs::write(project.dir().join("a.bin"), bytes).unwrap();
        let failed = result(&project, &[], &[], 1);
        let (reason, message) = error(&failed);
        assert_eq!(reason, "context_parsing_failure", "{failed}");
        assert!(message.starts_with("cannot include the file `a.bin`: `a.bin` is not text"), "{message}");
        fusee(&project).args(["task", "t", "--dry-run"]).run().exits(1);
    }
    // A single byte in a legacy encoding does not make a text binary.
    std::fs::write(project.dir().join("a.bin"), b"The caf\xe9 is open until ten.\n").unwrap();
    assert_eq!(result(&project, &[Line::text("ok")], &[], 0)["status"], "COMPLETE");
}

#[test]
fn a_dry_run_shows_a_file_as_often_as_the_run() {
    let project = with_template("<file_paths><path>a.txt</path><path>a.txt</path></file_paths>")
        .with("a.txt", "the letter a\n");
    let plan = fusee(&project).args(["task", "t", "--dry-run"]).run().exits(0).stdout;
    assert_eq!(plan.matches("## File a.txt").count(), 1, "{plan}");
}

#[test]
fn what_cannot_be_shown_is_told_to_a_person() {
    let said = |inner: &str, words: &[&str]| {
        let project = with_template(inner).with("src/a.txt", "a\n");
        error(&result(&project, &[], words, 1)).1.to_owned()
    };
    assert_eq!(
        said("<file_paths><path>gone.txt</path></file_paths>", &[]),
        "cannot include the file `gone.txt`: `gone.txt` does not exist; correct the paths in `<file_paths>` or in the request"
    );
    assert_eq!(
        said("<file_paths><path>src</path></file_paths>", &[]),
        "cannot include the file `src`: `src` is a directory; correct the paths in `<file_paths>` or in the request"
    );
    assert_eq!(
        said("<inputs><input name=\"p\"/></inputs><file_paths><path>{{p}}</path></file_paths>", &["p="]),
        "a listed path is empty: set the input it is built from, or remove it from `<file_paths>`"
    );
}

#[test]
fn files_of_a_command_are_replayed() {
    let project = listing("ls a.txt").with("a.txt", "the letter a\n");
    task(&project, &[Line::text("ok")], &["--run-id", "r"]).run().exits(0);
    project.write("a.txt", "another\n");
    let replayed = fusee(&project).args(["replay", "r"]).run().exits(0);
    assert_eq!(replayed.stdout, "ok\n");
    assert_eq!(json!(project.read("a.txt")), json!("another\n"));
}
