//! The chat in a real terminal; tmux provides the keyboard and the screen.

use std::process::Command;
use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Server};
use serde_json::json;

use crate::sandbox::{ELSEWHERE, NO_NAMESPACES};
use crate::support::{KEY, binary, fusee};

/// A separate tmux server with one session.
pub(crate) struct Terminal {
    socket: String,
}

impl Terminal {
    pub(crate) fn open(project: &Project, arguments: &str) -> Self {
        Self::start(project, &format!("{} {arguments}", binary()))
    }

    /// Like [`open`](Self::open), where the kernel lacks a system call.
    fn open_without(call: &str, project: &Project, arguments: &str) -> Self {
        let wrapper = project.scratch("without.py");
        std::fs::write(&wrapper, ELSEWHERE).unwrap();
        Self::start(project, &format!("python3 {} {call} {} {arguments}", wrapper.display(), binary()))
    }

    pub(crate) fn start(project: &Project, command: &str) -> Self {
        let socket = project.scratch("tmux").display().to_string();
        // ctrl-c is for the program; the shell around it must survive.
        let line = format!("trap : INT; {command}; echo LEFT $?; exec sleep 1000");
        let session = ["-u", "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"];
        let started = Command::new("tmux")
            .args(["-S", &socket])
            .args(session)
            .args(["sh", "-c", &line])
            .env_clear()
            .envs(project.environment())
            .envs([("OPENAI_API_KEY", KEY), ("EDITOR", "printf edited >")])
            .current_dir(project.dir())
            .status();
        assert!(started.unwrap().success(), "tmux does not start");
        Self { socket }
    }

    pub(crate) fn tmux(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("tmux").arg("-u").arg("-S").arg(&self.socket).args(arguments).output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    pub(crate) fn say(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-"])
    }

    #[track_caller]
    pub(crate) fn until(&self, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(words) {
                return screen;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "no {words:?} on the screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn process(&self) -> u32 {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        std::fs::read_to_string(children).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output();
    }
}

#[test]
fn a_whole_session_with_a_task_an_approval_a_cancellation_and_a_resize() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"}))
            .with_text("I will **write** it."),
        Line::text("# Written\n\n- it is `there`\n"),
        Line::call("shell", json!({"command": "touch begun; sleep 60"})),
        Line::text("Third answer."),
    ]);
    let terminal = Terminal::open(&project, &format!("-m {script} --approve ask --sandbox off"));
    terminal.until("approve ask");
    terminal.say("write one");
    let asked = terminal.until("allow?");
    assert!(asked.contains("+ one"), "{asked}");
    terminal.until("I will write it.");
    std::thread::sleep(Duration::from_millis(500));
    terminal.keys(&["y"]);
    let written = terminal.until("completed ·");
    assert!(written.contains("● write one") && written.contains("• it is there"), "{written}");
    assert!(written.contains("changed a.txt"), "{written}");
    assert_eq!(project.read("a.txt"), "one\n");

    terminal.say("wait");
    terminal.until("allow?");
    std::thread::sleep(Duration::from_millis(500));
    terminal.keys(&["y"]);
    while !project.dir().join("begun").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    terminal.say("third");
    terminal.until("queued: third");
    terminal.tmux(&["resize-window", "-x", "50", "-y", "20"]);
    std::thread::sleep(Duration::from_millis(300));
    terminal.tmux(&["resize-window", "-x", "90", "-y", "24"]);
    terminal.until("queued: third");
    // The queued message is the next one the stopped task receives.
    terminal.keys(&["Escape"]);
    let third = terminal.until("Third answer.");
    assert_eq!(third.matches("● wait").count(), 1, "{third}");
    assert!(third.contains("to the model: third") && !third.contains("● third"), "{third}");

    terminal.keys(&["C-g"]);
    terminal.until("> edited");
    terminal.keys(&["C-u"]);
    terminal.say("/quit");
    terminal.until("LEFT 0");
}

#[test]
fn a_key_stops_the_turn_words_go_on_with_it_and_another_key_ends_the_task_alone() {
    for key in ["Escape", "C-c"] {
        let project = Project::new();
        let begun = |file: &str| Line::call("shell", json!({"command": format!("touch {file}; sleep 60")}));
        let script = project.script(&[
            begun("one"),
            begun("two"),
            Line::call("ask_user", json!({"question": "Which colour?"})),
            Line::text("Painted.").matching("red"),
        ]);
        let terminal = Terminal::open(&project, &format!("-m {script} --sandbox off"));
        let exists = |file: &str| {
            while !project.dir().join(file).exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        terminal.until("approve auto");
        terminal.say("work");
        exists("one");
        terminal.keys(&[key]);
        terminal.until("stopped; what should it do next?");
        terminal.say("do it quickly");
        terminal.until("to the model: do it quickly");
        exists("two");
        terminal.keys(&[key]);
        terminal.until("stopped; what should it do next?");
        terminal.keys(&[key]);
        terminal.until("cancelled ·");
        // The chat continues, and the model may ask questions in it.
        terminal.say("paint it");
        terminal.until("Which colour?");
        terminal.say("red");
        terminal.until("Painted.");
        terminal.say("/quit");
        terminal.until("LEFT 0");
        let runs = fusee(&project).args(["runs", "--json"]).run().exits(0).stdout;
        let runs: Vec<serde_json::Value> = serde_json::from_str(&runs).unwrap();
        let statuses: Vec<&str> = runs.iter().map(|run| run["status"].as_str().unwrap()).collect();
        assert_eq!(statuses, ["completed", "cancelled"], "newest first");
        for run in runs {
            let run = run["run"].as_str().unwrap();
            let shown = fusee(&project).args(["show", run, "--json"]).run().exits(0);
            let events = shown.events();
            let fates = fusee_testkit::events::of_type(&events, "tool_result");
            let aborted = fates.iter().filter(|result| result["fate"] == "aborted").count();
            assert_eq!(aborted, if events.last().unwrap()["status"] == "cancelled" { 2 } else { 0 });
            fusee(&project).args(["replay", run]).run().exits(0);
        }
        // Processes started by the terminal end with it.
        drop(terminal);
        project.assert_no_process_left();
    }
}

#[test]
fn killed_in_the_middle_of_a_task_it_asks_and_goes_on() {
    let project = Project::new();
    let script = project
        .script(&[Line::call("shell", json!({"command": "touch begun; sleep 60"})), Line::text("Went on.")]);
    let terminal = Terminal::open(&project, &format!("-m {script} --sandbox off"));
    terminal.until("approve auto");
    terminal.say("long work");
    while !project.dir().join("begun").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = rustix::process::Pid::from_raw(terminal.process().cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    terminal.until("LEFT 137");
    let script = project.script(&[Line::text("unused")]);
    let again = Terminal::open(&project, &format!("-m {script} --sandbox off"));
    again.until("this run was interrupted");
    std::thread::sleep(Duration::from_millis(500));
    again.keys(&["y"]);
    again.until("completed ·");
    again.keys(&["C-d"]);
    again.until("LEFT 0");
    let runs = fusee(&project).args(["runs", "--json"]).run().exits(0).stdout;
    assert!(runs.contains("\"completed\"") && !runs.contains("\"open\""), "{runs}");
}

#[test]
fn a_resize_in_the_middle_of_an_answer_loses_nothing_and_what_is_typed_meanwhile_waits() {
    let project = Project::new();
    let words: Vec<String> = (0..120).map(|n| format!("word{n:03}")).collect();
    let text = words.chunks(12).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n\n");
    let slow = Message::text(&text).stream().in_pieces_of(200).pausing(Duration::from_millis(80)).prepare();
    let quick = Message::text("Second answer.").stream().prepare();
    let server = Server::with_answer_check(move |n, _| if n == 0 { slow.clone() } else { quick.clone() });
    let model = format!("-m openai:scripted --api chat --base-url {} --sandbox off", server.base_url());
    let terminal = Terminal::open(&project, &model);
    terminal.until("approve auto");
    terminal.say("write a lot");
    terminal.until("word020");
    terminal.tmux(&["resize-window", "-x", "44", "-y", "12"]);
    terminal.until("word040");
    terminal.say("/task (+ 40 2)");
    terminal.until("queued: /task (+ 40 2)");
    terminal.tmux(&["resize-window", "-x", "100", "-y", "30"]);
    terminal.until("42");
    terminal.say("and again");
    let screen = terminal.until("Second answer.");
    let lost: Vec<&String> = words.iter().filter(|word| !screen.contains(word.as_str())).collect();
    assert!(lost.is_empty(), "{lost:?} are not on the screen:\n{screen}");
    terminal.say("/quit");
    terminal.until("LEFT 0");
}

#[test]
fn words_after_a_stop_bring_the_files_they_name() {
    for (plain, question) in [("", "what should it do next?"), ("--plain", "What now?")] {
        let project = Project::new().with("notes.txt", "the word is marmalade\n");
        let script = project.script(&[
            Line::call("shell", json!({"command": "touch begun; sleep 60"})),
            Line::text("Read it.").matching("the word is marmalade"),
        ]);
        let terminal = Terminal::open(&project, &format!("{plain} -m {script} --sandbox off"));
        terminal.until("/help");
        terminal.say("work");
        while !project.dir().join("begun").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        terminal.keys(&["C-c"]);
        terminal.until(question);
        terminal.say("look at @notes.txt instead");
        terminal.until("Read it.");
        terminal.say("/quit");
        terminal.until("LEFT 0");
    }
}

#[test]
fn a_question_names_the_sandbox_that_a_command_runs_in() {
    let project = Project::new();
    for (without, shown) in [
        ("", "(sandboxed: can change only the project, no network)"),
        (NO_NAMESPACES, "(sandboxed by Landlock: can write files only in the project, no network)"),
    ] {
        let script =
            project.script(&[Line::call("shell", json!({"command": "true"})), Line::text("Finished.")]);
        let line = format!("--plain -m {script} --approve ask");
        let terminal = match without {
            "" => Terminal::open(&project, &line),
            call => Terminal::open_without(call, &project, &line),
        };
        terminal.until("; /help");
        terminal.say("run it");
        let asked = terminal.until(" n [REASON]:");
        assert!(asked.contains(shown), "{asked}");
        terminal.say("y");
        terminal.until("Finished.");
    }
}

#[test]
fn in_plain_lines_a_question_shows_the_change_and_what_holds_a_command_and_its_answer_lasts() {
    let project = Project::new().with("a.txt", "one\n");
    let shell = || Line::call("shell", json!({"command": "true"}));
    let script = project.script(&[
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::call("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"})),
        shell(),
        Line::text("First."),
        shell(),
        Line::call("shell", json!({"command": "false"})),
        Line::text("Second."),
    ]);
    let line = format!("--plain -m {script} --approve ask --sandbox off");
    let terminal = Terminal::open(&project, &line);
    terminal.until("; /help");
    terminal.say("change it");
    let asked = terminal.until(" n [REASON]:");
    let question = "approval needed for edit_file: this run asks before anything is changed\n    a.txt\n    - one\n    + two\n    \
                    y  this call only\n    s  edit_file on a.txt, in this conversation\n";
    assert!(asked.contains(question), "what led to it comes first: {asked}");
    terminal.say("a");
    terminal.until("(not sandboxed: runs with your permissions)");
    terminal.say("s");
    terminal.until("First.");
    terminal.say("again");
    let asked = terminal.until("    false\n");
    assert_eq!(
        asked.matches("y  this call only").count(),
        3,
        "`true` is allowed for the conversation: {asked}"
    );
    terminal.say("n rather not");
    let message = terminal.until("Second.");
    assert!(message.contains("denied: the user said no: rather not"), "{message}");
    terminal.say("/quit");
    terminal.until("LEFT");
    // A permanent approval also applies to the next chat.
    let edit = Line::call("edit_file", json!({"path": "a.txt", "old": "two", "new": "three"}));
    let script =
        project.script(&[Line::call("read_file", json!({"path": "a.txt"})), edit, Line::text("Third.")]);
    let again = Terminal::open(&project, &format!("--plain -m {script} --approve ask --sandbox off"));
    again.until("; /help");
    again.say("once more");
    again.until("Third.");
    assert_eq!(project.read("a.txt"), "three\n");
}

#[test]
fn a_question_longer_than_the_screen_is_allowed_only_after_its_end_was_shown() {
    let project = Project::new();
    let command: String = (1..=60).map(|n| format!("echo {n} >> ran.txt\n")).collect();
    let again = Line::call("shell", json!({"command": "echo 1 >> ran.txt"}));
    let script = project.script(&[
        Line::call("shell", json!({"command": command, "stdin": "the input\n"})),
        again,
        Line::text("Done."),
    ]);
    let terminal = Terminal::open(&project, &format!("-m {script} --approve ask --sandbox off"));
    terminal.until("approve ask");
    terminal.say("go");
    let asked = terminal.until("scroll to the end to allow");
    assert!(asked.contains("lines 1 to 14 of 62"), "{asked}");
    std::thread::sleep(Duration::from_millis(500));
    // Too early: nothing happens.
    terminal.keys(&["y", "a", "s"]);
    terminal.keys(&["Space", "Down"]);
    terminal.until("lines 16 to 29 of 62");
    assert!(!project.dir().join("ran.txt").exists());
    for _ in 0..4 {
        terminal.keys(&["Space"]);
    }
    let end = terminal.until("lines 49 to 62 of 62");
    assert!(end.contains("< the input"), "{end}");
    terminal.until("allow?");
    terminal.keys(&["s"]);
    // The answer covered that command alone.
    let other = terminal.until("    echo 1 >> ran.txt");
    assert!(other.contains("s and a apply to: exactly this command"), "{other}");
    terminal.until("allow? y once");
    std::thread::sleep(Duration::from_millis(500));
    terminal.keys(&["n", "Enter"]);
    terminal.until("Done.");
    assert_eq!(project.read("ran.txt").lines().count(), 60);
}

#[test]
fn the_command_menu_scrolls_completes_with_enter_and_takes_a_unique_beginning() {
    let project = Project::new();
    let terminal = Terminal::open(&project, &format!("-m {}", project.script(&[Line::text("Done.")])));
    terminal.until("/help ·");
    terminal.keys(&["/"]);
    let menu = terminal.until(" more: ↓");
    assert!(menu.contains("/task") && !menu.contains("/quit"), "{menu}");
    // One step up from the top is the end of the list.
    terminal.keys(&["Up"]);
    let end = terminal.until("/quit");
    assert!(!end.contains("/task") && !end.contains(" more: "), "{end}");
    terminal.keys(&["Up", "Enter"]);
    terminal.until("> /help\n");
    terminal.keys(&["Enter"]);
    terminal.until("Anything else is sent to the model.");
    terminal.say("/qui");
    terminal.until("LEFT 0");
}
