//! Approval questions in a real terminal: what is asked, and the effect of each answer on this call, this
//! run, this project, and the model.

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Outcome, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{binary, fusee};

/// Runs a program in its own terminal and types an answer to each question after it appears. Prints the
/// screen content at the end, without colours.
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
    elif asked < len(answers) and seen.count(b"n [REASON]: ") > asked:
        os.write(terminal, (answers[asked] + "\r").encode())
        asked += 1
plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen).replace(b"\r", b"")
sys.stdout.buffer.write(plain)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Runs these commands and answers each question.
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
    outcome.stdout.matches("y  this call only").count()
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
    for words in [
        "s  exactly this command, until the run ends\n",
        "a  exactly this command, always in this project; `fusee approvals` revokes\n",
        "w  make s and a wider: every command that begins with `echo one`\n",
    ] {
        assert!(first.stdout.contains(words), "{words}: {}", first.stdout);
    }
    // An answer for one call is used once, one for the run lasts for the run, and invalid input is asked
    // again.
    assert_eq!(questions(&first), 5, "{}", first.stdout);
    assert!(first.stdout.contains("perhaps\nallow? y, s, a, w, or n [REASON]: "), "{}", first.stdout);
    let said = results(&project, "first");
    let contents: Vec<&str> = said.iter().map(|result| result["content"].as_str().unwrap()).collect();
    assert!(
        contents[..5]
            .iter()
            .zip(["one", "one", "two", "two", "three"])
            .all(|(content, word)| content.starts_with(word)),
        "{contents:?}"
    );
    // The model reads the reason.
    assert_eq!(contents[5], "Not run: the user said no: use make instead.");
    assert_eq!(said[5]["fate"], json!("refused"));

    // A permanent answer also applies to the next run, but to no other command; one for a run does not.
    let second = asked(&project, "second", &["echo three", "echo two"], &["n"]);
    assert_eq!(questions(&second), 1, "{}", second.stdout);
    let said = results(&project, "second");
    assert!(said[0]["content"].as_str().unwrap().starts_with("three"), "{}", said[0]);
    assert_eq!(said[1]["content"], json!("Not run: the user said no."));
    // Answers are journaled steps: both runs replay without a user and a terminal.
    for run in ["first", "second"] {
        fusee(&project).args(["replay", run]).run().exits(0);
    }
}
