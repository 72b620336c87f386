//! Background runs: `--detach`, `fusee attach`, `fusee cancel`, and `fusee runs` by state.

use std::time::{Duration, Instant};

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project, Running};
use fusee_testkit::script::Line;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::support::{at_terminal, binary, fusee};

/// `fusee run --detach` with a scripted model under this id.
fn detached<'p>(project: &'p Project, model: &str, run: &str) -> Command<'p> {
    let line = ["run", "Do the work.", "--detach", "--sandbox", "off", "--model", model, "--run-id", run];
    fusee(project).args(line)
}

/// A project with a script that writes a file and ends.
fn with_write() -> (Project, String) {
    let project = Project::new();
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "a"})),
        Line::text("Written."),
    ]);
    (project, model)
}

fn events(project: &Project, run: &str) -> Vec<Value> {
    fusee(project).args(["show", run, "--json"]).run().exits(0).events_until_killed()
}

/// The entry of a run in `fusee runs --json`.
fn listed(project: &Project, run: &str) -> Value {
    let rows = fusee(project).args(["runs", "--json"]).run().exits(0).stdout;
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    rows.into_iter().find(|row| row["run"] == run).unwrap_or_default()
}

/// Waits until a run is listed in this state.
fn wait_for_state(project: &Project, run: &str, state: &str) -> Value {
    let begun = Instant::now();
    loop {
        let row = listed(project, run);
        if row["state"] == state {
            return row;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "not {state}: {row}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The process that works on a run.
fn worker(project: &Project, run: &str) -> Pid {
    let pid = project.read(&format!(".fusee/locks/{run}.lock"));
    Pid::from_raw(pid.trim().parse().unwrap()).unwrap()
}

fn attach(project: &Project, run: &str) -> Running {
    fusee(project).args(["attach", run]).start()
}

#[test]
fn a_detached_run_survives_its_terminal_its_parent_and_a_hangup() {
    let project = Project::new();
    let wait = Line::call("shell", json!({"command": "while [ ! -e go ]; do sleep 0.05; done; echo gone"}));
    let model = project.script(&[wait, Line::text("Done.")]);
    // The terminal ends with the shell in it, which kills itself right after.
    let line = format!("run x --detach --sandbox off --run-id far --model {model}; kill -9 $$");
    let shell = format!("{} {line}", binary());
    let terminal = project.command("script").args(["-qec", &shell, "/dev/null"]).start();
    let said = terminal.wait();
    assert!(said.stdout.contains("far\r\n"), "{}", said.stdout);
    let row = wait_for_state(&project, "far", "running");
    assert_eq!((&row["status"], &row["title"]), (&json!("open"), &json!("x")));
    let pid = worker(&project, "far");
    let session = rustix::process::getsid(Some(pid)).unwrap();
    assert_eq!(session, pid, "it leads its own session");
    kill_process(pid, Signal::HUP).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    test_kill_process(pid).expect("it survives the hangup");
    project.write("go", "");
    wait_for_state(&project, "far", "done");
    let events = events(&project, "far");
    assert_eq!(of_type(&events, "task_complete")[0]["answer"], "Done.");
    project.assert_no_process_left();
}

#[test]
fn the_id_is_on_stdout_and_every_stream_is_let_go_of() {
    let (project, model) = with_write();
    // The outcome is only complete once nobody holds the pipes: not even the run that still waits for approval.
    let line = format!("run x --detach --approve ask --sandbox off --run-id mine --model {model}");
    let shell = format!("said=$({} {line} 2>&1); echo \"$said\"", binary());
    let begun = project.command("sh").args(["-c", &shell]).run().exits(0);
    let said: Vec<&str> = begun.stdout.lines().collect();
    assert_eq!(said, ["mine", "running in the background; `fusee attach mine` watches it"]);
    let row = wait_for_state(&project, "mine", "needs_you");
    assert_eq!(row["doing"], "waits for approval: write_file a.txt (1 line)");
    let table = fusee(&project).args(["runs"]).run().exits(0).stdout;
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[1].starts_with("mine") && rows[1].contains("needs you"), "{table}");
    assert_eq!(rows[2], "  waits for approval: write_file a.txt (1 line)");
    fusee(&project).args(["cancel", "mine"]).run().exits(0);
    assert_eq!(listed(&project, "mine")["state"], "cancelled");
    assert_eq!(fusee(&project).args(["attach", "mine"]).run().exits(130).stdout, "");
}

#[test]
fn a_run_that_cannot_start_says_why_with_its_exit_code() {
    let (project, model) = with_write();
    let missing = detached(&project, "script:absent.jsonl", "x").run().exits(2);
    assert_eq!(missing.stdout, "");
    assert!(missing.stderr.starts_with("error: ") && missing.stderr.contains("absent.jsonl"));
    assert_eq!(missing.stderr.matches("error:").count(), 1, "{}", missing.stderr);
    detached(&project, &model, "taken").run().exits(0);
    wait_for_state(&project, "taken", "done");
    let taken = detached(&project, &model, "taken").run().exits(2);
    assert!(taken.stdout.is_empty() && taken.stderr.contains("taken"), "{}", taken.stderr);
    let flags = detached(&project, &model, "y").args(["--json"]).run().exits(2);
    assert!(flags.stderr.contains("cannot be used with"), "{}", flags.stderr);
    assert_eq!(listed(&project, "y"), Value::Null);
}

#[test]
fn piped_text_and_tasks_and_reviews_run_in_the_background_too() {
    let project = Project::new();
    let model = project.script(&[Line::text("Read.")]);
    let piped = fusee(&project)
        .args(["run", "-", "--detach", "--model", &model, "--run-id", "piped"])
        .stdin("What does it say?");
    assert_eq!(piped.run().exits(0).stdout, "piped\n");
    wait_for_state(&project, "piped", "done");
    assert_eq!(of_type(&events(&project, "piped"), "task_started")[0]["request"], "What does it say?");
    let task = ["task", "(string-append \"a\" \"b\")", "--detach", "--run-id", "sum"];
    assert_eq!(fusee(&project).args(task).run().exits(0).stdout, "sum\n");
    wait_for_state(&project, "sum", "done");
    let help = fusee(&project).args(["task", "list_dir", "--detach", "--help"]).run().exits(0);
    assert!(help.stdout.contains("list_dir"), "{}", help.stdout);
}

#[test]
fn an_approval_that_two_terminals_answer_has_one_result() {
    for round in 0..3 {
        let (project, model) = with_write();
        detached(&project, &model, "r").args(["--approve", "ask"]).run().exits(0);
        wait_for_state(&project, "r", "needs_you");
        let (mut yes, mut no) = (attach(&project, "r"), attach(&project, "r"));
        yes.type_in("y\n");
        no.type_in("n no thanks\n");
        let (yes, no) = (yes.wait().exits(0), no.wait().exits(0));
        let events = events(&project, "r");
        let resolved = of_type(&events, "approval_resolved");
        assert_eq!(resolved.len(), 1, "round {round}");
        let allowed = resolved[0]["approved"] == true;
        assert_eq!(project.dir().join("a.txt").exists(), allowed);
        let output = |said: &str| said.contains("answered elsewhere first; your answer is not used");
        let (first, second) = if allowed { (&yes, &no) } else { (&no, &yes) };
        assert!(!output(&first.stderr), "{}", first.stderr);
        assert!(output(&second.stderr), "{}", second.stderr);
        assert!(second.stderr.contains(if allowed { "    allowed" } else { "    denied" }));
        assert_eq!((yes.stdout.as_str(), no.stdout.as_str()), ("Written.\n", "Written.\n"));
    }
}

#[test]
fn a_question_of_the_model_is_answered_from_a_pipe_and_the_past_is_summed_up() {
    let project = Project::new().with("n.txt", "one\n");
    let model = project.script(&[
        Line::call("read_file", json!({"path": "n.txt"})),
        Line::call("ask_user", json!({"question": "Which colour?"})),
        Line::text("Blue it is."),
    ]);
    detached(&project, &model, "q").run().exits(0);
    let row = wait_for_state(&project, "q", "needs_you");
    assert_eq!(row["doing"], "asks: Which colour?");
    // `attach` without a name takes the run that works.
    let watched = fusee(&project).args(["attach"]).stdin("blue\n").run().exits(0);
    assert_eq!(watched.stdout, "Blue it is.\n");
    let lines: Vec<&str> = watched.stderr.lines().collect();
    assert!(lines[0].starts_with("run q"), "{lines:?}");
    assert!(lines[1].starts_with("so far: 2 turns, 2 tool calls; now: asks: Which colour?"), "{lines:?}");
    assert!(lines.contains(&"    question: Which colour?"), "{lines:?}");
    let events = events(&project, "q");
    assert!(of_type(&events, "tool_result")[1]["content"].as_str().unwrap().contains("blue"));
    // Attaching to a run that has ended gives its end.
    assert_eq!(fusee(&project).args(["attach", "last"]).run().exits(0).stdout, "Blue it is.\n");
    let none = fusee(&project).args(["attach"]).run().exits(2);
    assert!(none.stderr.contains("no active run here"), "{}", none.stderr);
}

#[test]
fn a_killed_worker_is_interrupted_within_a_second_and_resumes_in_the_background() {
    let (project, model) = with_write();
    detached(&project, &model, "r").args(["--approve", "ask"]).run().exits(0);
    wait_for_state(&project, "r", "needs_you");
    let watcher = attach(&project, "r");
    std::thread::sleep(Duration::from_millis(300));
    kill_process(worker(&project, "r"), Signal::KILL).unwrap();
    let killed = Instant::now();
    assert_eq!(wait_for_state(&project, "r", "interrupted")["status"], "open");
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    let watched = watcher.wait().exits(1);
    assert!(watched.stderr.contains("run r is no longer active"), "{}", watched.stderr);
    let table = fusee(&project).args(["runs"]).run().exits(0).stdout;
    assert!(table.lines().nth(1).unwrap().contains("interrupted"), "{table}");
    fusee(&project).args(["attach", "r"]).run().exits(1);
    fusee(&project).args(["cancel", "r"]).run().exits(2);
    // A run that somebody works on is not the one to resume.
    detached(&project, &model, "other").args(["--approve", "ask"]).run().exits(0);
    wait_for_state(&project, "other", "needs_you");
    let held = fusee(&project).args(["resume", "other"]).run().exits(2);
    assert!(held.stderr.contains("`fusee attach other` watches it"), "{}", held.stderr);
    assert_eq!(fusee(&project).args(["resume", "--detach"]).run().exits(0).stdout, "r\n");
    fusee(&project).args(["cancel", "other"]).run().exits(0);
    wait_for_state(&project, "r", "needs_you");
    fusee(&project).args(["attach", "r"]).stdin("y\n").run().exits(0);
    assert_eq!(project.read("a.txt"), "a");
    assert_eq!(listed(&project, "r")["state"], "done");
}

#[test]
fn at_a_terminal_a_line_is_a_message_and_ctrl_c_leaves_the_run_running() {
    let project = Project::new();
    let model = project.script(&[Line::text("Never said.").delay_ms(60_000), Line::text("As you wish.")]);
    detached(&project, &model, "r").run().exits(0);
    let mut left = at_terminal(&project, "attach r");
    left.wait_for_stdout("the run", |said| said.contains("run r"));
    left.type_in(crate::support::CTRL_C);
    let said = left.wait().exits(130).stdout;
    assert!(said.contains("detached; the run continues"), "{said}");
    assert_eq!(listed(&project, "r")["state"], "running");
    let mut terminal = at_terminal(&project, "attach r");
    terminal.wait_for_stdout("the run", |said| said.contains("run r"));
    terminal.type_in("say something else\n");
    let said = terminal.wait().exits(0).stdout;
    assert!(said.contains("sent: the turn stops, and the model continues with your message"), "{said}");
    assert!(said.contains("As you wish.") && !said.contains("answered elsewhere"), "{said}");
    let events = events(&project, "r");
    let messages: Vec<&Value> = of_type(&events, "message").into_iter().map(|event| &event["text"]).collect();
    assert_eq!(messages, [&json!("say something else"), &json!("As you wish.")]);
}

#[test]
fn json_events_of_a_watched_run_are_complete() {
    let (project, model) = with_write();
    detached(&project, &model, "r").args(["--approve", "ask"]).run().exits(0);
    wait_for_state(&project, "r", "needs_you");
    let watcher = fusee(&project).args(["attach", "r", "--json"]).start();
    fusee(&project).args(["attach", "r"]).stdin("y\n").run().exits(0);
    let watched = watcher.wait().exits(0);
    let shown = fusee(&project).args(["show", "r", "--json"]).run().exits(0).stdout;
    assert_eq!(watched.stdout, shown);
}

#[test]
fn a_command_of_the_user_is_told_what_happens_but_not_one_of_an_untrusted_project() {
    let (project, model) = with_write();
    let output = project.scratch("told");
    let line = "$FUSEE_NOTIFY_EVENT $FUSEE_NOTIFY_RUN $FUSEE_NOTIFY_TITLE: $FUSEE_NOTIFY_TEXT";
    let command = format!("echo \"{line}\" >> {}", output.display());
    let settings = format!("notify_command = '{command}'\n");
    // A project's own command runs only once the project is trusted.
    project.write("fusee.toml", &settings);
    let begun = detached(&project, &model, "first").run().exits(0);
    assert!(begun.stderr.contains("notify_command"), "{}", begun.stderr);
    wait_for_state(&project, "first", "done");
    std::fs::remove_file(project.dir().join("fusee.toml")).unwrap();
    assert!(!output.exists());
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    detached(&project, &model, "second").args(["--approve", "ask"]).run().exits(0);
    wait_for_state(&project, "second", "needs_you");
    fusee(&project).args(["attach", "second"]).stdin("y\n").run().exits(0);
    let begun = Instant::now();
    let expected = "needs_you second Do the work.: write_file needs approval\n\
                    completed second Do the work.: completed\n";
    while std::fs::read_to_string(&output).unwrap_or_default() != expected {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", std::fs::read_to_string(&output));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_terminal_rings_when_the_run_it_shows_ends() {
    let project = Project::new().with("fusee.toml", "notify = \"bell\"\n");
    let model = project.script(&[Line::text("Done.")]);
    let said = at_terminal(&project, &format!("run x --sandbox off --model {model}")).wait().exits(0).stdout;
    assert_eq!(said.matches('\u{7}').count(), 1, "{said:?}");
    let said =
        at_terminal(&project, &format!("run x --sandbox off --model {model} 2>/dev/null")).wait().stdout;
    assert_eq!(said.matches('\u{7}').count(), 0, "{said:?}");
}
