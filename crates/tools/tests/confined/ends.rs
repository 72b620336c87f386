//! No process of a confined command outlives it either: PID 1 of its PID namespace takes all others along.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fusee_tools::Sandbox;
use fusee_tools::sandbox::{CommandEnd, CommandFailure};

use crate::stage::{Outcome, Stage, Test, eventually, processes_with};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("how_a_command_ended_is_told", how_a_command_ended_is_told),
    ("a_stopped_command_is_ended", a_stopped_command_is_ended),
    ("what_a_command_left_running_is_ended_and_counted", what_a_command_left_running_is_ended_and_counted),
    ("a_daemon_that_ignores_signals_is_ended", a_daemon_that_ignores_signals_is_ended),
    ("a_chain_of_forks_is_ended", a_chain_of_forks_is_ended),
    ("a_command_cannot_end_its_first_process", a_command_cannot_end_its_first_process),
    ("a_dropped_command_is_ended", a_dropped_command_is_ended),
    ("a_killed_supervisor_takes_its_command_along", a_killed_supervisor_takes_its_command_along),
    ("a_killed_first_process_takes_its_command_along", a_killed_first_process_takes_its_command_along),
    (
        "after_a_killed_supervisor_the_settings_are_checked",
        after_a_killed_supervisor_the_settings_are_checked,
    ),
    ("after_a_killed_fork_server_commands_are_confined", after_a_killed_fork_server_commands_are_confined),
    ("our_own_death_ends_everything", our_own_death_ends_everything),
    ("a_hundred_commands_run_at_once", a_hundred_commands_run_at_once),
    ("descriptors_and_processes_do_not_add_up", descriptors_and_processes_do_not_add_up),
];

/// A sleep duration that no other test uses, to find the process by.
fn mark(stage: &Stage, name: &str) -> String {
    let path = stage.path(name).display().to_string();
    format!("6{}", path.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte)))
}

fn stopped_after(stage: &Stage, command: &str, time: Duration) -> Outcome {
    let sandbox = stage.sandbox();
    let (workspace, environment) = (stage.workspace(), stage.environment());
    let stop = async move { tokio::time::sleep(time).await };
    stage.runtime.block_on(stage.run_until(&sandbox, command, &workspace, &environment, stop))
}

fn how_a_command_ended_is_told(stage: &Stage) {
    let sandbox = stage.sandbox();
    for (command, ending) in [
        ("true", CommandEnd::Exited(0)),
        ("exit 3", CommandEnd::Exited(3)),
        ("kill -9 $$", CommandEnd::Signalled(9)),
        ("no-such-program", CommandEnd::Exited(127)),
    ] {
        let finished = stage.run(&sandbox, command).result.unwrap();
        assert_eq!(
            (finished.ending, finished.killed_leftovers, finished.unkillable),
            (ending, 0, 0),
            "{command}"
        );
    }
}

fn a_stopped_command_is_ended(stage: &Stage) {
    let mark = mark(stage, "stopped");
    let begun = Instant::now();
    let outcome = stopped_after(
        stage,
        &format!("echo before; sleep {mark} & sleep {mark}"),
        Duration::from_millis(300),
    );
    assert!(begun.elapsed() < Duration::from_secs(3));
    let finished = outcome.result.unwrap();
    assert!(finished.stopped);
    assert_eq!(
        (outcome.output.as_str(), finished.ending, finished.unkillable),
        ("before\n", CommandEnd::Signalled(9), 0)
    );
    assert!(processes_with(&mark).is_empty());
}

fn what_a_command_left_running_is_ended_and_counted(stage: &Stage) {
    let mark = mark(stage, "left");
    let outcome =
        stage.run(&stage.sandbox(), &format!("sleep {mark} & setsid sleep {mark} & sleep 0.2; echo started"));
    let finished = outcome.result.unwrap();
    assert_eq!(
        (outcome.output.as_str(), finished.ending, finished.killed_leftovers),
        ("started\n", CommandEnd::Exited(0), 2)
    );
    assert!(processes_with(&mark).is_empty());
}

fn a_daemon_that_ignores_signals_is_ended(stage: &Stage) {
    let mark = mark(stage, "daemon");
    let daemon = format!(
        "(setsid sh -c 'trap \"\" TERM INT HUP; (exec sleep {mark} </dev/null >/dev/null 2>&1 &) ; echo $$ > first' &) ; sleep 0.3"
    );
    assert!(stage.run(&stage.sandbox(), &daemon).is_good());
    assert!(!stage.line_of("first").is_empty());
    assert!(processes_with(&mark).is_empty());
}

fn a_chain_of_forks_is_ended(stage: &Stage) {
    stage.write("leap.sh", "echo $$ > last\nsh leap.sh &\n");
    let outcome = stopped_after(stage, "sh leap.sh; sleep 30", Duration::from_millis(400));
    assert!(outcome.result.unwrap().stopped);
    assert!(processes_with("leap.sh").is_empty());
}

fn a_command_cannot_end_its_first_process(stage: &Stage) {
    let outcome = stage.run(
        &stage.sandbox(),
        "for signal in KILL TERM STOP SEGV; do kill -$signal 1; done; kill -KILL -1; echo survived",
    );
    // The second kill reaches every process it may, which is none but itself.
    assert!(outcome.output.ends_with("survived\n"), "{outcome:?}");
    assert!(outcome.is_good(), "{outcome:?}");
}

fn a_dropped_command_is_ended(stage: &Stage) {
    let mark = mark(stage, "dropped");
    let sandbox = stage.sandbox();
    let (workspace, environment) = (stage.workspace(), stage.environment());
    stage.runtime.block_on(async {
        let command = format!("setsid sleep {mark}");
        let run = stage.run_until(&sandbox, &command, &workspace, &environment, std::future::pending());
        let _ = tokio::time::timeout(Duration::from_millis(400), run).await;
    });
    eventually(|| processes_with(&mark).is_empty());
}

fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Kills the ancestor of a running command that is `steps` levels above its shell.
fn killed_from_above(stage: &Stage, steps: usize) {
    let mark = mark(stage, "above");
    let sandbox = stage.sandbox();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually(|| processes_with(&mark).len() == 2);
            let shell = processes_with("sh").into_iter().find(|pid| {
                std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(&mark))
            });
            let above = (0..steps).fold(shell.unwrap(), |pid, _| parent_of(pid));
            assert_ne!(above, stage.fork_server.process_id());
            let above = rustix::process::Pid::from_raw(above).unwrap();
            rustix::process::kill_process(above, rustix::process::Signal::KILL).unwrap();
        });
        stage.run(&sandbox, &format!("echo begun; sleep {mark} & setsid sleep {mark}; echo over"))
    });
    assert!(matches!(outcome.result, Err(CommandFailure::SupervisorGone(_))), "{outcome:?}");
    eventually(|| processes_with(&mark).is_empty());
    assert_eq!(stage.good(&sandbox, "echo again"), "again\n");
}

fn a_killed_supervisor_takes_its_command_along(stage: &Stage) {
    killed_from_above(stage, 2);
}

fn a_killed_first_process_takes_its_command_along(stage: &Stage) {
    killed_from_above(stage, 1);
}

/// Nothing that a command wrote stays where git would follow it, even if the process that checks for that is
/// killed while the command writes as fast as it can.
fn after_a_killed_supervisor_the_settings_are_checked(stage: &Stage) {
    stage.bare("git init -q .");
    let before = std::fs::read_to_string(stage.path(".git/config")).unwrap();
    for (sandbox, steps) in [(stage.sandbox(), 1), (stage.sandbox(), 2), (stage.fence(), 1)] {
        let mark = mark(stage, &format!("poison{steps}"));
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                eventually(|| processes_with(&mark).len() == 1);
                let shell = parent_of(processes_with(&mark)[0]);
                let above = (0..steps).fold(shell, |pid, _| parent_of(pid));
                assert_ne!(above, stage.fork_server.process_id());
                let above = rustix::process::Pid::from_raw(above).unwrap();
                rustix::process::kill_process(above, rustix::process::Signal::KILL).unwrap();
            });
            stage.run(
                &sandbox,
                &format!("mkdir -p bad; (while :; do echo ../bad > .git/commondir; echo evil > fusee.toml; echo evil > .git/config; done) 2>/dev/null & sleep {mark}; exit 1"),
            )
        });
        let said = format!("{outcome:?}");
        let whole = matches!(outcome.result, Err(CommandFailure::SupervisorGone(report)) if report.unrestored.is_empty());
        assert!(whole, "{said}");
        assert!(processes_with(&mark).is_empty());
        assert!(!stage.path(".git/commondir").exists() && !stage.path("fusee.toml").exists());
        assert_eq!(std::fs::read_to_string(stage.path(".git/config")).unwrap(), before);
    }
}

/// The process that takes over from a killed fork server confines commands as before, and checks after supervisors
/// that are killed.
fn after_a_killed_fork_server_commands_are_confined(stage: &Stage) {
    for sandbox in [stage.sandbox(), stage.fence()] {
        stage.good(&sandbox, "echo before");
        // The next supervisor is made while nothing runs; without one, nobody could take over.
        std::thread::sleep(Duration::from_millis(200));
        let fork_server = stage.fork_server.process_id();
        let pid = rustix::process::Pid::from_raw(fork_server).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let has_ended = || {
            let status = std::fs::read_to_string(format!("/proc/{fork_server}/status")).unwrap_or_default();
            status.is_empty() || status.contains("State:\tZ") || status.contains("State:\tX")
        };
        while !has_ended() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let command = format!("echo x > {}; echo after", stage.outside("made").display());
        let outcome = stage.run(&sandbox, &command);
        assert!(outcome.is_good() && outcome.output.ends_with("after\n"), "{outcome:?}");
        assert!(!stage.outside("made").exists());
        assert_ne!(stage.fork_server.process_id(), fork_server);
    }
    after_a_killed_supervisor_the_settings_are_checked(stage);
}

/// Runs in a copy of this program that is to be killed.
pub(crate) fn be_killed(stage: &Stage) -> ExitCode {
    stage.write("keeper", &format!("{}\n", stage.fork_server.process_id()));
    let mark = stage.line_of("mark");
    let sandbox = stage.sandbox();
    let (workspace, environment) = (stage.workspace(), stage.environment());
    stage.runtime.block_on(async {
        let one = |number: usize| {
            let command = format!(
                "sleep {mark} & (setsid sh -c '(sleep {mark} </dev/null >/dev/null 2>&1 &) ; sleep {mark}' &) ; sleep 0.1; echo ready > ready{number}; sleep {mark}"
            );
            let (sandbox, workspace, environment) = (&sandbox, &workspace, &environment);
            async move { stage.run_until(sandbox, &command, workspace, environment, std::future::pending()).await }
        };
        tokio::join!(one(1), one(2), one(3));
    });
    ExitCode::FAILURE
}

#[expect(
    clippy::disallowed_methods,
    reason = "the copy must be an ordinary child, so that it can be killed like one"
)]
fn our_own_death_ends_everything(stage: &Stage) {
    let mark = mark(stage, "death");
    stage.write("mark", &format!("{mark}\n"));
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([Path::new("--victim"), &stage.base])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    for number in 1..=3 {
        stage.line_of(&format!("ready{number}"));
    }
    let fork_server: i32 = stage.line_of("keeper").parse().unwrap();
    // The last of them may start a moment later.
    eventually(|| processes_with(&mark).len() >= 12);
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually(|| {
        processes_with(&mark).is_empty() && !Path::new(&format!("/proc/{fork_server}/fd/0")).exists()
    });
}

fn a_hundred_commands_run_at_once(stage: &Stage) {
    let sandbox = stage.sandbox();
    let (workspace, environment) = (stage.workspace(), stage.environment());
    let outcomes = stage.runtime.block_on(futures_util::future::join_all((0..100).map(|number| {
        let (sandbox, workspace, environment) = (&sandbox, &workspace, &environment);
        async move {
            let command = format!("echo {number}; sleep 0.3; echo {number}");
            stage.run_until(sandbox, &command, workspace, environment, std::future::pending()).await
        }
    })));
    for (number, outcome) in outcomes.iter().enumerate() {
        assert!(outcome.is_good(), "{outcome:?}");
        assert_eq!(outcome.output, format!("{number}\n{number}\n"));
    }
}

#[expect(clippy::disallowed_methods, reason = "only the test runner tells whether this is the only test")]
fn descriptors_and_processes_do_not_add_up(stage: &Stage) {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let fork_server = stage.fork_server.process_id();
    let children = format!("/proc/{fork_server}/task/{fork_server}/children");
    let alone = || std::fs::read_to_string(&children).unwrap().split_ascii_whitespace().count() <= 1;
    // Under nextest each test has its own process; otherwise other tests open files as well.
    let counts = std::env::var_os("NEXTEST").is_some();
    stage.good(&stage.sandbox(), "true");
    let before = open();
    for round in 0..10 {
        let sandbox = if round % 2 == 0 { stage.sandbox() } else { Sandbox::Off };
        stage.good(&sandbox, "sleep 0.03 & true");
        stage.good(&sandbox, "true");
    }
    if counts {
        assert_eq!(open(), before);
        eventually(alone);
    }
}
