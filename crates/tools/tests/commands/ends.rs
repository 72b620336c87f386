//! No process of a command outlives it: not those that left its session, and not when the main process is
//! killed.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fusee_tools::ToolOutput;
use serde_json::json;

use crate::stage::{NONE, Stage, Test, call, eventually, is_alive, processes_with};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("a_command_that_takes_too_long_is_ended", a_command_that_takes_too_long_is_ended),
    ("a_cancelled_command_is_ended_and_keeps_its_output", a_cancelled_command_is_ended_and_keeps_its_output),
    ("what_a_command_left_running_is_ended_and_said", what_a_command_left_running_is_ended_and_said),
    ("a_child_in_a_session_of_its_own_is_ended", a_child_in_a_session_of_its_own_is_ended),
    ("a_daemon_is_ended", a_daemon_is_ended),
    ("a_deep_tree_that_ignores_signals_is_ended", a_deep_tree_that_ignores_signals_is_ended),
    ("a_chain_of_forks_is_ended", a_chain_of_forks_is_ended),
    ("a_dropped_call_is_ended", a_dropped_call_is_ended),
    ("a_killed_supervisor_takes_its_command_along", a_killed_supervisor_takes_its_command_along),
    ("our_own_death_ends_everything", our_own_death_ends_everything),
    ("a_killed_fork_server_is_replaced", a_killed_fork_server_is_replaced),
    ("two_hundred_commands_run_at_once", two_hundred_commands_run_at_once),
    ("commands_that_wait_for_each_other_all_start", commands_that_wait_for_each_other_all_start),
    ("the_keeper_sleeps_while_commands_come_one_by_one", the_keeper_sleeps_while_commands_come_one_by_one),
    ("descriptors_and_processes_do_not_add_up", descriptors_and_processes_do_not_add_up),
    ("the_keeper_hears_no_interrupt", the_keeper_hears_no_interrupt),
];

fn a_command_that_takes_too_long_is_ended(stage: &Stage) {
    let mark = stage.mark("timeout");
    let begun = Instant::now();
    let output = stage.run(json!({"command": format!("echo before; sleep {mark}"), "timeout": 0.3}));
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(
        output,
        ToolOutput::error(
            "before\n[timed out after 0.3 s and was ended with everything it had started; give a longer `timeout`, or run it with `background`]"
        )
    );
    assert_eq!(processes_with(&mark), NONE);
}

fn a_cancelled_command_is_ended_and_keeps_its_output(stage: &Stage) {
    let mark = stage.mark("cancel");
    let cancel = stage.context.cancel.clone();
    let started = stage.path("started");
    let canceller = std::thread::spawn(move || {
        eventually(|| started.exists());
        cancel.cancel();
    });
    let output = stage.run(json!({"command": format!("echo before; touch started; sleep {mark} & wait")}));
    canceller.join().unwrap();
    let expected = "before\n[cancelled; it was ended with everything it had started]";
    assert_eq!(output, ToolOutput { aborted: true, ..ToolOutput::error(expected) });
    assert_eq!(processes_with(&mark), NONE);
    let late = stage.run(json!({"command": "touch late"}));
    assert_eq!(late, ToolOutput::aborted("Cancelled before it began."));
    assert!(!stage.path("late").exists());
}

fn what_a_command_left_running_is_ended_and_said(stage: &Stage) {
    let mark = stage.mark("left");
    let begun = Instant::now();
    let output = stage.run(json!({"command": format!("sleep {mark} & sleep {mark} & echo started")}));
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(
        output.content,
        "started\n[exit code 0; 2 processes it had left running were ended: use `background` for what is to go on]"
    );
    assert_eq!(processes_with(&mark), NONE);
}

fn a_child_in_a_session_of_its_own_is_ended(stage: &Stage) {
    let mark = stage.mark("session");
    let output = stage.run(json!({"command": format!("setsid sleep {mark} & sleep 0.1; echo done")}));
    assert!(
        output.ok && output.content.contains("1 process it had left running was ended"),
        "{}",
        output.content
    );
    assert_eq!(processes_with(&mark), NONE);
}

fn a_daemon_is_ended(stage: &Stage) {
    let mark = stage.mark("daemon");
    // Forked twice, in its own session, with all streams closed: reparented away from the command.
    let daemon = format!(
        "(setsid sh -c '(exec sleep {mark} </dev/null >/dev/null 2>&1 &) ; echo $$ > first' &) ; sleep 0.2"
    );
    let output = stage.run(json!({ "command": daemon }));
    assert!(output.ok, "{}", output.content);
    assert!(!stage.line_of("first").is_empty());
    assert_eq!(processes_with(&mark), NONE);
    let again = stage.run(json!({"command": format!("{daemon}; sleep 60"), "timeout": 0.5}));
    assert!(!again.ok);
    assert_eq!(processes_with(&mark), NONE);
}

fn a_deep_tree_that_ignores_signals_is_ended(stage: &Stage) {
    let mark = stage.mark("deep");
    let script = format!("deep{mark}.sh");
    std::fs::write(
        stage.path(&script),
        format!(
            "trap '' TERM INT HUP\nn=$1\n[ $n = 0 ] && exec sleep {mark}\nsetsid sh {script} $((n-1)) &\nsetsid sh {script} $((n-1)) &\nwait\n"
        ),
    )
    .unwrap();
    let output = stage.run(json!({"command": format!("sh {script} 5"), "timeout": 1.5}));
    assert!(output.content.contains("timed out"), "{}", output.content);
    assert_eq!(processes_with(&mark), NONE);
    assert_eq!(processes_with(&script), NONE);
}

fn a_chain_of_forks_is_ended(stage: &Stage) {
    // Each process starts the next and ends, so none lives for long.
    let script = format!("hop{}.sh", stage.mark("hop"));
    std::fs::write(stage.path(&script), format!("echo $$ > last\nsh {script} &\n")).unwrap();
    let output = stage.run(json!({"command": format!("sh {script}; sleep 30"), "timeout": 0.4}));
    assert!(output.content.contains("timed out"), "{}", output.content);
    assert_eq!(processes_with(&script), NONE);
}

fn a_dropped_call_is_ended(stage: &Stage) {
    let mark = stage.mark("dropped");
    stage.runtime.block_on(async {
        let command = stage.call("shell", json!({"command": format!("setsid sleep {mark}")}));
        let _ = tokio::time::timeout(Duration::from_millis(300), command).await;
    });
    eventually(|| processes_with(&mark).is_empty());
}

fn a_killed_supervisor_takes_its_command_along(stage: &Stage) {
    let mark = stage.mark("supervisor");
    let path = stage.path("pid");
    let killer = std::thread::spawn(move || {
        eventually(|| std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')));
        let supervisor: i32 = std::fs::read_to_string(&path).unwrap().trim().parse().unwrap();
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(supervisor).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
    });
    let output = stage.run(json!({"command": format!("echo begun; echo $PPID > pid; setsid sleep {mark}")}));
    killer.join().unwrap();
    assert_eq!(
        output,
        ToolOutput::error(
            "begun\n[The command's supervisor was killed, and the command with it; its effects are unknown.]"
        )
    );
    eventually(|| processes_with(&mark).is_empty());
    assert!(stage.run(json!({"command": "true"})).ok, "the keeper must go on");
}

/// Runs in a copy of this program that is to be killed.
pub(crate) fn be_killed(stage: &Stage) -> ExitCode {
    std::fs::write(stage.path("keeper"), format!("{}\n", stage.fork_server.process_id())).unwrap();
    let mark = stage.line_of("mark");
    stage.runtime.block_on(async {
        let one = |number: usize| {
            let command = format!(
                "sleep {mark} & (setsid sh -c '(sleep {mark} </dev/null >/dev/null 2>&1 &) ; sleep {mark}' &) ; sleep 0.1; echo ready > ready{number}; sleep {mark}"
            );
            stage.call("shell", json!({ "command": command }))
        };
        tokio::join!(one(1), one(2), one(3));
    });
    ExitCode::FAILURE
}

#[expect(
    clippy::disallowed_methods,
    reason = "the copy must be an ordinary child, so that it can be killed like one"
)]
fn copy_of_this_program(stage: &Stage, mode: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([Path::new(mode), &stage.path(".")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn our_own_death_ends_everything(stage: &Stage) {
    let mark = stage.mark("death");
    std::fs::write(stage.path("mark"), format!("{mark}\n")).unwrap();
    let mut victim = copy_of_this_program(stage, "--victim");
    for number in 1..=3 {
        stage.line_of(&format!("ready{number}"));
    }
    let fork_server: i32 = stage.line_of("keeper").parse().unwrap();
    assert!(is_alive(fork_server));
    eventually(|| processes_with(&mark).len() >= 12);
    let begun = Instant::now();
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually(|| processes_with(&mark).is_empty() && !is_alive(fork_server));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// Number of times that another process takes over from a fork server.
const TAKEOVERS: usize = 15;

/// Runs in a copy of this program, whose fork servers no other test needs. Writes what every command answered.
pub(crate) fn lose_fork_servers(stage: &Stage) -> ExitCode {
    let mark = stage.mark("takeover");
    let kill = || {
        let fork_server = stage.fork_server.process_id();
        let pid = rustix::process::Pid::from_raw(fork_server).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        eventually(|| !is_alive(fork_server));
    };
    let mut answers = Vec::new();
    for _ in 0..TAKEOVERS {
        // A command that is running goes on without the fork server.
        let running = std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                stage.run(
                    json!({"command": "touch begun; while [ ! -e killed ]; do sleep 0.01; done; echo whole"}),
                )
            });
            eventually(|| stage.path("begun").exists());
            kill();
            std::fs::write(stage.path("killed"), "").unwrap();
            running.join().unwrap()
        });
        answers.push(running.content);
        let calls = [1, 2, 3].map(|number| {
            stage.call("shell", json!({"command": format!("echo {number}; setsid sleep {mark} & sleep 0.1")}))
        });
        for output in stage.runtime.block_on(futures_util::future::join_all(calls)) {
            answers.push(output.content.lines().next().unwrap_or_default().to_owned());
        }
        if processes_with(&mark) != NONE {
            answers.push("processes are left".to_owned());
        }
        for name in ["begun", "killed"] {
            std::fs::remove_file(stage.path(name)).unwrap();
        }
    }
    kill();
    answers.extend([0, 1].map(|_| stage.run(json!({"command": "touch ran"})).content));
    std::fs::write(stage.path("answers"), answers.join("\n")).unwrap();
    ExitCode::SUCCESS
}

/// Another process takes over as often as it is promised; then that no command can be run is an error.
fn a_killed_fork_server_is_replaced(stage: &Stage) {
    assert!(copy_of_this_program(stage, "--lose-fork-servers").wait().unwrap().success());
    let gone =
        "The process that starts commands is gone; no command can be run until Fusee is started again.";
    let expected = format!("{}{gone}\n{gone}", "whole\n[exit code 0]\n1\n2\n3\n".repeat(TAKEOVERS));
    assert_eq!(std::fs::read_to_string(stage.path("answers")).unwrap(), expected);
    assert!(!stage.path("ran").exists());
}

fn two_hundred_commands_run_at_once(stage: &Stage) {
    let begun = Instant::now();
    let outputs = stage.runtime.block_on(async {
        let tasks: Vec<_> = (0..200)
            .map(|number| {
                let (toolbox, context) = (stage.toolbox.clone(), stage.context.clone());
                tokio::spawn(async move {
                    let command = format!("echo {number}; sleep 0.5; echo {number}");
                    call(&toolbox, "shell", json!({ "command": command }), &context).await
                })
            })
            .collect();
        let mut outputs = Vec::new();
        for task in tasks {
            outputs.push(task.await.unwrap());
        }
        outputs
    });
    for (number, output) in outputs.iter().enumerate() {
        assert_eq!(output.content, format!("{number}\n{number}\n[exit code 0]"));
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

/// Sent at once to the only ready supervisor, so that most commands queue behind one that waits for them.
fn commands_that_wait_for_each_other_all_start(stage: &Stage) {
    let all = "while [ $(ls here.* | wc -l) -lt 12 ]; do sleep 0.01; done";
    let commands =
        (0..12).map(|number| json!({"command": format!("touch here.{number}; {all}"), "timeout": 60.0}));
    let calls = commands.map(|arguments| stage.call("shell", arguments));
    let outputs = stage.runtime.block_on(futures_util::future::join_all(calls));
    for output in outputs {
        assert_eq!(output.content, "(no output)\n[exit code 0]");
    }
}

fn the_keeper_sleeps_while_commands_come_one_by_one(stage: &Stage) {
    let fork_server = stage.fork_server.process_id();
    let woken = || {
        let status = std::fs::read_to_string(format!("/proc/{fork_server}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().last().unwrap().parse::<u32>().unwrap()
    };
    let supervisor = || stage.run(json!({"command": "echo $PPID"})).content;
    let first = supervisor();
    // The fork server may still be busy with the first command, which arrived before it was ready itself.
    eventually(|| {
        let before = woken();
        std::thread::sleep(Duration::from_millis(50));
        woken() == before
    });
    let before = woken();
    for _ in 0..20 {
        assert_eq!(supervisor(), first);
    }
    // Occasionally a command is taken so fast that no supervisor seems to have been ready for it.
    assert!(woken() - before < 10, "{} times for 20 commands", woken() - before);
}

fn descriptors_and_processes_do_not_add_up(stage: &Stage) {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let fork_server = stage.fork_server.process_id();
    let kept = || std::fs::read_dir(format!("/proc/{fork_server}/fd")).unwrap().count();
    stage.run(json!({"command": "true"}));
    let before = (open(), kept());
    for round in 0..40 {
        let timeout = if round % 4 == 0 { 0.02 } else { 5.0 };
        stage.run(json!({"command": "sleep 0.03 & cat; sleep 0.01", "stdin": "x", "timeout": timeout}));
    }
    assert_eq!((open(), kept()), before);
    let children = format!("/proc/{fork_server}/task/{fork_server}/children");
    // One supervisor stays ready for the next command.
    eventually(|| std::fs::read_to_string(&children).unwrap().split_whitespace().count() == 1);
}

fn the_keeper_hears_no_interrupt(stage: &Stage) {
    let fork_server = rustix::process::Pid::from_raw(stage.fork_server.process_id()).unwrap();
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP]
    {
        rustix::process::kill_process(fork_server, signal).unwrap();
    }
    assert!(stage.run(json!({"command": "true"})).ok);
    // A terminal interrupt goes to the process group of the main process.
    let group = |pid| rustix::process::getpgid(pid).unwrap();
    eventually(|| group(Some(fork_server)) != group(None));
}
