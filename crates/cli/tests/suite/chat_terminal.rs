//! Further keys and commands of the chat in a real terminal: background, own commands, search, lists, plan mode, suspend.

use std::time::{Duration, Instant};

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{binary, fusee};
use crate::terminal::Terminal;

fn chat(project: &Project, lines: &[Line]) -> Terminal {
    let model = project.script(lines);
    let terminal = Terminal::open(project, &format!("--model {model} --sandbox off"));
    terminal.until("approve auto");
    terminal
}

/// Runs of the project, newest first.
fn runs(project: &Project) -> Vec<Value> {
    let listed = fusee(project).args(["runs", "--json"]).run().exits(0).stdout;
    serde_json::from_str(&listed).unwrap()
}

fn events(project: &Project, run: &Value) -> Vec<Value> {
    fusee(project).args(["show", "--json", run["run"].as_str().unwrap()]).run().exits(0).events_until_killed()
}

#[test]
fn ctrl_b_moves_the_task_to_the_background_after_its_call() {
    let project = Project::new();
    let slow = json!({"command": "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo slept"});
    let question = json!({"question": "Which colour?"});
    let terminal =
        chat(&project, &[Line::call("shell", slow), Line::call("ask_user", question), Line::text("Blue.")]);
    terminal.say("work slowly");
    let begun = Instant::now();
    while !project.dir().join("begun").exists() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
    terminal.keys(&["C-b"]);
    terminal.until("moving to the background");
    project.write("go", "");
    terminal.until("the task continues in the background");
    // The chat is free, and leaving it does not touch the task.
    terminal.say("/quit");
    terminal.until("LEFT 0");
    let run = runs(&project).remove(0);
    let id = run["run"].as_str().unwrap();
    let watched = fusee(&project).args(["attach", id]).stdin("blue\n").run().exits(0);
    assert_eq!(watched.stdout, "Blue.\n");
    let events = events(&project, &run);
    let results = of_type(&events, "tool_result");
    assert!(results[0]["content"].as_str().unwrap().contains("slept"), "{results:?}");
    assert_eq!(results[0]["fate"], Value::Null, "the command ran once, to its end");
    assert_eq!(of_type(&events, "task_resumed").len(), 1);
    assert!(results[1]["content"].as_str().unwrap().contains("blue"));
}

#[test]
fn a_question_that_is_answered_elsewhere_leaves_the_screen() {
    let project = Project::new();
    let write = json!({"path": "a.txt", "content": "a"});
    let model = project.script(&[Line::call("write_file", write), Line::text("Written.")]);
    let terminal = Terminal::open(&project, &format!("--model {model} --sandbox off --approve ask"));
    terminal.until("approve ask");
    terminal.say("write it");
    terminal.until("allow?");
    let watched = fusee(&project).args(["attach"]).stdin("y\n").run().exits(0);
    assert_eq!(watched.stdout, "Written.\n");
    let screen = terminal.until("completed");
    assert!(screen.contains("answered elsewhere") && !screen.contains("allow? y once"), "{screen}");
    assert_eq!(project.read("a.txt"), "a");
}

#[test]
fn a_command_of_the_users_is_shown_ended_and_told_to_the_model() {
    let project = Project::new();
    let terminal = chat(&project, &[Line::text("I see.")]);
    terminal.say("!echo from me; exit 3");
    terminal.until("exit status: 3");
    terminal.say("!sleep 100");
    terminal.until("running sleep 100");
    terminal.keys(&["Escape"]);
    terminal.until("signal: 15");
    terminal.say("what did I run?");
    terminal.until("I see.");
    let started = of_type(&events(&project, &runs(&project)[0]), "task_started")[0]["request"].to_string();
    assert!(started.contains("$ echo from me; exit 3\\nfrom me"), "{started}");
}

#[test]
fn earlier_messages_are_searched_and_conversations_chosen() {
    let project = Project::new();
    let terminal = chat(
        &project,
        &[Line::text("First answer."), Line::text("Second answer."), Line::text("Third answer.")],
    );
    terminal.say("about apples");
    terminal.until("First answer.");
    terminal.say("/new");
    terminal.until("new conversation");
    terminal.say("about pears");
    terminal.until("Second answer.");
    terminal.keys(&["C-r"]);
    terminal.keys(&["a", "p", "p"]);
    terminal.until("search: app");
    terminal.until("  about apples");
    terminal.keys(&["Escape"]);
    terminal.say("/clear");
    terminal.until("new conversation");
    terminal.say("/sessions");
    let list = terminal.until("continue a conversation");
    assert!(list.contains("about pears") && list.contains("about apples"), "{list}");
    terminal.keys(&["Down"]);
    terminal.keys(&["Enter"]);
    // The earlier messages are shown.
    let shown = terminal.until("the next message continues run");
    let after = shown.split("/sessions").last().unwrap();
    assert!(after.contains("> about apples") && after.contains("First answer."), "{shown}");
    terminal.say("and now?");
    terminal.until("Third answer.");
    let listed = runs(&project);
    let started = of_type(&events(&project, &listed[0]), "task_started")[0].clone();
    assert_eq!(started["continues"], listed[2]["run"]);
    terminal.say("/quit");
    // A new conversation begins with the choice.
    let model = project.script(&[Line::text("Fourth answer.")]);
    let terminal = Terminal::open(&project, &format!("--model {model} --sandbox off --continue"));
    let list = terminal.until("continue a conversation");
    assert!(list.contains("about pears") && list.contains("and now?"), "{list}");
    terminal.keys(&["Down"]);
    terminal.keys(&["Enter"]);
    terminal.until("Second answer.");
    terminal.say("and those?");
    terminal.until("Fourth answer.");
    let started = of_type(&events(&project, &runs(&project)[0]), "task_started")[0].clone();
    assert_eq!(started["continues"], listed[1]["run"]);
}

#[test]
fn esc_esc_goes_back_to_a_turn_of_the_conversation() {
    let project = Project::new().with("a.txt", "zero\n");
    let write = |text: &str| Line::call("write_file", json!({"path": "b.txt", "content": text}));
    let terminal = chat(
        &project,
        &[
            write("one\n"),
            Line::text("First answer."),
            write("two\n"),
            Line::call("shell", json!({"command": "echo three > c.txt"})),
            Line::text("Second answer."),
            Line::text("Third answer."),
        ],
    );
    terminal.say("write one");
    terminal.until("First answer.");
    terminal.say("write two");
    terminal.until("Second answer.");
    // The first one only says what the second one does.
    terminal.keys(&["Escape"]);
    terminal.until("esc again goes back to an earlier point");
    terminal.keys(&["Escape"]);
    let list = terminal.until("go back to an earlier point");
    for row in [
        "> \u{20}\u{20}after shell echo three > c.txt",
        "after write_file b.txt (1 line)",
        "before > write two",
        "after the answer",
        "before > write one",
    ] {
        assert!(list.contains(row.trim_start_matches("> ")), "{row}: {list}");
    }
    // After the first call of the second message: only the files.
    terminal.keys(&["Down"]);
    terminal.keys(&["Enter"]);
    terminal.until("will be removed  c.txt");
    std::thread::sleep(Duration::from_millis(500));
    terminal.keys(&["f"]);
    terminal.until("the conversation is unchanged");
    assert!(!project.dir().join("c.txt").exists());
    assert_eq!(project.read("b.txt"), "two\n");
    // Before the second message: files and conversation. The message is in the input again.
    terminal.say("/rewind");
    terminal.until("go back to an earlier point");
    terminal.keys(&["Down", "Down"]);
    terminal.keys(&["Enter"]);
    terminal.until("go back to this point?");
    std::thread::sleep(Duration::from_millis(500));
    terminal.keys(&["b"]);
    terminal.until("the next message continues from there");
    terminal.until("> write two");
    assert_eq!(project.read("b.txt"), "one\n");
    terminal.keys(&["Enter"]);
    terminal.until("Third answer.");
    let runs = runs(&project);
    let first = runs.last().unwrap()["run"].clone();
    let started = of_type(&events(&project, &runs[0]), "task_started")[0].clone();
    assert_eq!((&started["continues"], &started["request"]), (&first, &json!("write two")));
}

#[test]
fn plan_mode_refuses_changes_until_the_plan_is_accepted() {
    let project = Project::new();
    let write = || Line::call("write_file", json!({"path": "a.txt", "content": "a"}));
    let terminal = chat(&project, &[write(), Line::text("The plan."), write(), Line::text("Carried out.")]);
    terminal.say("/plan on");
    terminal.until("plan mode · approve auto");
    terminal.say("change a.txt");
    terminal.until("carry out this plan?");
    assert!(!project.dir().join("a.txt").exists());
    std::thread::sleep(Duration::from_millis(500));
    terminal.keys(&["y"]);
    terminal.until("Carried out.");
    assert_eq!(project.read("a.txt"), "a");
    assert!(!terminal.until("approve auto").contains("plan mode · approve auto ·\n"));
}

#[test]
fn status_and_cost_describe_the_conversation_and_init_asks_for_a_file() {
    let project = Project::new();
    let terminal = chat(&project, &[Line::text("Written.").usage(1000, 20)]);
    terminal.say("/init");
    terminal.until("Written.");
    let run = runs(&project).remove(0);
    let request = of_type(&events(&project, &run), "task_started")[0]["request"].to_string();
    assert!(request.contains("Write AGENTS.md"), "{request}");
    terminal.say("/status");
    terminal.until("conversation  1 message, the last one");
    terminal.say("/cost");
    terminal.until("1 message, 1 model reply,");
}

#[test]
fn ctrl_z_suspends_and_fg_restores_the_screen() {
    let project = Project::new();
    let model = project.script(&[Line::text("Awake.")]);
    let command = format!("set -m; {} --model {model}; echo STOPPED; read -r _; fg", binary());
    let terminal = Terminal::start(&project, &command);
    terminal.until("/help ·");
    terminal.tmux(&["send-keys", "-l", "half a mess"]);
    terminal.until("> half a mess");
    terminal.keys(&["C-z"]);
    let stopped = terminal.until("STOPPED");
    assert!(!stopped.contains("> half a mess"), "the area is cleared: {stopped}");
    // The terminal is the shell's again: it reads a line.
    terminal.keys(&["Enter"]);
    terminal.until("> half a mess");
    terminal.say("age");
    terminal.until("● half a message");
    terminal.until("Awake.");
    terminal.say("/quit");
    terminal.until("LEFT 0");
}
