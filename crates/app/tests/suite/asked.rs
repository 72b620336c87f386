//! Questions before a call in a real terminal: what is asked, and what each answer does, for this call, this run, this
//! project, and the model.

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Outcome, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::fusee::{binary, fusee};

/// Runs a program in a terminal of its own and types an answer to each question, after it was asked. What was on the
/// screen is said at the end, without colours.
const AT_A_TERMINAL: &str = r#"
import json, os, pty, re, select, sys, time
answers, line = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm-256color"
    os.execv(line[0], line)
seen, asked, deadline = b"", 0, time.time() + 60
while time.time() < deadline:
    ready = select.select([terminal], [], [], 0.1)[0]
    if ready:
        try: data = os.read(terminal, 65536)
        except OSError: break
        if not data: break
        seen += data
    elif asked < len(answers) and seen.count(b"n and why: ") > asked:
        os.write(terminal, (answers[asked] + "\r").encode())
        asked += 1
plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen).replace(b"\r", b"")
sys.stdout.buffer.write(plain)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// A run of these commands with each question answered.
fn asked(project: &Project, run: &str, commands: &[&str], answers: &[&str]) -> Outcome {
    let mut lines: Vec<Line> =
        commands.iter().map(|command| Line::call("shell", json!({"command": command}))).collect();
    lines.push(Line::text("Done."));
    let script = project.script(&lines);
    let line = ["run", "x", "--approve", "ask", "--sandbox", "off", "--run-id", run, "--model", &script];
    let program = ["-c", AT_A_TERMINAL, &json!(answers).to_string(), binary()];
    project.command("python3").args(program.into_iter().chain(line)).run().exits(0)
}

fn results(project: &Project, run: &str) -> Vec<Value> {
    let events = fusee(project).args(["show", run, "--json"]).run().exits(0).events();
    of_type(&events, "tool_result").into_iter().cloned().collect()
}

fn questions(outcome: &Outcome) -> usize {
    outcome.stdout.matches("allow it?").count()
}

#[test]
fn a_question_says_what_and_why_and_each_answer_does_what_it_says() {
    let project = Project::new();
    let commands = ["echo one", "echo one", "echo two", "echo two", "echo three", "echo four"];
    let answers = ["y", "perhaps", "y", "s", "a", "n use make instead"];
    let first = asked(&project, "first", &commands, &answers);
    assert!(
        first.stdout.contains("shell  this run asks before anything is changed\n    echo one\n"),
        "{}",
        first.stdout
    );
    assert!(
        first.stdout.contains("allow it? y, s for this run, a for always here, or n and why: "),
        "{}",
        first.stdout
    );
    // Once is once; for the run is for the run; what is no answer is asked again.
    assert_eq!(questions(&first), 5, "{}", first.stdout);
    assert!(first.stdout.contains("perhaps\ny, s for the rest of this run"), "{}", first.stdout);
    let said = results(&project, "first");
    let contents: Vec<&str> = said.iter().map(|result| result["content"].as_str().unwrap()).collect();
    assert!(
        contents[..5]
            .iter()
            .zip(["one", "one", "two", "two", "three"])
            .all(|(content, word)| content.starts_with(word)),
        "{contents:?}"
    );
    // The reason is the model's to read.
    assert_eq!(contents[5], "Not run: the user said no: use make instead.");
    assert_eq!(said[5]["fate"], json!("refused"));

    // For always is for the next run too, and for no other command; for a run is for that run.
    let second = asked(&project, "second", &["echo three", "echo two"], &["n"]);
    assert_eq!(questions(&second), 1, "{}", second.stdout);
    let said = results(&project, "second");
    assert!(said[0]["content"].as_str().unwrap().starts_with("three"), "{}", said[0]);
    assert_eq!(said[1]["content"], json!("Not run: the user said no."));
    // Answers are steps: without a person and a terminal both runs say the same again.
    for run in ["first", "second"] {
        fusee(&project).args(["replay", run]).run().exits(0);
    }
}
