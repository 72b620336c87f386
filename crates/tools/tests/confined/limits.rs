//! Resource limits: a command that exceeds one is killed, the reason is reported, and the machine stays
//! usable.

use std::io::Write;
use std::time::{Duration, Instant};

use fusee_tools::Sandbox;
use fusee_tools::sandbox::{CgroupLimits, CommandEnd, ExceededLimit, ResourceLimits};

use crate::stage::{Outcome, Stage, Test, eventually, processes_with};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("denied_programs_are_not_executed_whatever_starts_them", denied_programs_are_not_executed),
    ("four_thousand_forks_are_ended", four_thousand_forks_are_ended),
    ("threads_count_as_well", threads_count_as_well),
    ("memory_of_one_process_ends_before_the_machines", memory_of_one_process_ends_before_the_machines),
    ("memory_of_many_processes_counts_together", memory_of_many_processes_counts_together),
    ("processor_time_of_many_processes_counts_together", processor_time_of_many_processes_counts_together),
    ("processor_time_of_one_process_is_limited_too", processor_time_of_one_process_is_limited_too),
    ("files_in_memory_count_as_memory", files_in_memory_count_as_memory),
    ("a_file_does_not_grow_past_its_limit", a_file_does_not_grow_past_its_limit),
    ("all_commands_together_stay_below_a_bound", all_commands_together_stay_below_a_bound),
    ("what_stays_within_its_bounds_is_left_alone", what_stays_within_its_bounds_is_left_alone),
];

fn bounded(stage: &Stage, sandbox: &Sandbox, limits: ResourceLimits, command: &str) -> Outcome {
    let mut bounded = Stage::at(stage.fork_server.clone(), &stage.base);
    bounded.limits = limits;
    bounded.run(sandbox, command)
}

/// With and without the namespace sandbox.
fn both(stage: &Stage) -> [Sandbox; 2] {
    [stage.sandbox(), Sandbox::Off]
}

fn four_thousand_forks_are_ended(stage: &Stage) {
    let bomb = "exec python3 -c 'import os, time
for _ in range(4000):
    if os.fork() == 0:
        os.setsid()
        time.sleep(61)
        os._exit(0)
print(\"all of them\")
time.sleep(60)' fork-bomb-$0";
    for (number, sandbox) in both(stage).iter().enumerate() {
        let limits = ResourceLimits { processes: 150, ..ResourceLimits::default() };
        let begun = Instant::now();
        let mark = format!("fork-bomb-{}-{number}", stage.base.file_name().unwrap().display());
        let outcome = bounded(stage, sandbox, limits, &bomb.replace("fork-bomb-$0", &mark));
        let finished = outcome.result.unwrap();
        assert_eq!(finished.exceeded, Some(ExceededLimit::Processes), "{}", outcome.output);
        assert_eq!((outcome.output.as_str(), finished.unkillable), ("", 0));
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        eventually(|| processes_with(&mark).is_empty());
        assert_eq!(stage.good(sandbox, "echo alive"), "alive\n");
    }
}

fn threads_count_as_well(stage: &Stage) {
    let threads = "exec python3 -c 'import threading, time
for _ in range(300): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
time.sleep(60)'";
    let limits = ResourceLimits { processes: 100, ..ResourceLimits::default() };
    let outcome = bounded(stage, &stage.sandbox(), limits, threads);
    assert_eq!(outcome.result.unwrap().exceeded, Some(ExceededLimit::Processes));
}

fn memory_of_one_process_ends_before_the_machines(stage: &Stage) {
    let bomb = "exec python3 -c 'kept = []
while len(kept) < 600: kept.append(bytearray(1 << 20))'";
    for sandbox in both(stage) {
        let limits = ResourceLimits { memory_bytes: 200 << 20, ..ResourceLimits::default() };
        let outcome = bounded(stage, &sandbox, limits, bomb);
        let finished = outcome.result.unwrap();
        let refused = finished.ending == CommandEnd::Exited(1) && outcome.output.contains("MemoryError");
        assert!(
            refused || finished.exceeded == Some(ExceededLimit::Memory),
            "{finished:?} {}",
            outcome.output
        );
    }
}

fn memory_of_many_processes_counts_together(stage: &Stage) {
    // Each is within the limit, all of them together are not.
    let bomb = "exec python3 -c 'import os, time
for _ in range(6):
    if os.fork() == 0:
        kept = bytearray(80 << 20)
        time.sleep(60)
        os._exit(0)
time.sleep(60)'";
    for sandbox in both(stage) {
        let limits = ResourceLimits { memory_bytes: 200 << 20, ..ResourceLimits::default() };
        let outcome = bounded(stage, &sandbox, limits, bomb);
        assert_eq!(outcome.result.unwrap().exceeded, Some(ExceededLimit::Memory), "{}", outcome.output);
    }
}

fn processor_time_of_many_processes_counts_together(stage: &Stage) {
    let busy = "for n in 1 2 3 4; do (i=0; while :; do i=$((i+1)); done) & done; wait";
    for sandbox in both(stage) {
        let limits = ResourceLimits { cpu_s: 1, ..ResourceLimits::default() };
        let outcome = bounded(stage, &sandbox, limits, busy);
        let finished = outcome.result.unwrap();
        assert_eq!(finished.exceeded, Some(ExceededLimit::Cpu), "{finished:?}");
    }
}

/// A single process is ended by the supervisor, which says why, and not by the system's own limit.
fn processor_time_of_one_process_is_limited_too(stage: &Stage) {
    for sandbox in both(stage) {
        let limits = ResourceLimits { cpu_s: 1, ..ResourceLimits::default() };
        let outcome = bounded(stage, &sandbox, limits, "while :; do :; done");
        let finished = outcome.result.unwrap();
        assert_eq!(finished.exceeded, Some(ExceededLimit::Cpu), "{finished:?}");
    }
}

fn files_in_memory_count_as_memory(stage: &Stage) {
    let fill = "exec python3 -c 'import os, time
kept = os.memfd_create(\"kept\")
for _ in range(40):
    os.write(kept, bytes(10 << 20))
time.sleep(60)'";
    for sandbox in both(stage) {
        let limits = ResourceLimits { memory_bytes: 200 << 20, ..ResourceLimits::default() };
        let outcome = bounded(stage, &sandbox, limits, fill);
        assert_eq!(outcome.result.unwrap().exceeded, Some(ExceededLimit::Memory), "{}", outcome.output);
    }
}

fn a_file_does_not_grow_past_its_limit(stage: &Stage) {
    for sandbox in both(stage) {
        let limits = ResourceLimits { file_bytes: 1 << 20, ..ResourceLimits::default() };
        let outcome = bounded(stage, &sandbox, limits, "head -c 5000000 /dev/zero > large; wc -c < large");
        assert!(outcome.output.ends_with("1048576\n"), "{}", outcome.output);
    }
}

/// In a cgroup the kernel does the counting, so nothing can grow faster than it is measured.
#[expect(clippy::disallowed_methods, reason = "only the test runner tells whether this is the only test")]
fn all_commands_together_stay_below_a_bound(stage: &Stage) {
    // Other tests in the same process would be limited as well.
    if std::env::var_os("NEXTEST").is_none() {
        return;
    }
    let bounds = CgroupLimits { memory_bytes: 300 << 20, tasks: 120 };
    let surrounded = stage.runtime.block_on(stage.fork_server.limit_all(bounds));
    let Ok(held) = surrounded else {
        let _ = writeln!(std::io::stderr(), "this machine lets us make no control group: {surrounded:?}");
        return;
    };
    let unbounded = ResourceLimits::default();
    if held.contains("pids") {
        let forks = "exec python3 -c 'import os, time
for count in range(4000):
    try: pid = os.fork()
    except OSError: break
    if pid == 0:
        time.sleep(60)
        os._exit(0)
print(count < 120, flush=True)'";
        for sandbox in both(stage) {
            assert_eq!(bounded(stage, &sandbox, unbounded, forks).output, "True\n");
        }
    }
    if held.contains("memory") {
        let memory = "exec python3 -c 'import os, time
children = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        kept = bytearray(80 << 20)
        time.sleep(3)
        os._exit(0)
    children.append(pid)
print(any(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9 for pid in children))'";
        for sandbox in both(stage) {
            assert_eq!(bounded(stage, &sandbox, unbounded, memory).output, "True\n");
        }
    }
    assert_eq!(stage.good(&stage.sandbox(), "echo alive"), "alive\n");
}

fn what_stays_within_its_bounds_is_left_alone(stage: &Stage) {
    let limits = ResourceLimits { cpu_s: 30, memory_bytes: 256 << 20, processes: 20, file_bytes: 1 << 20 };
    for sandbox in both(stage) {
        let outcome = bounded(stage, &sandbox, limits, "(sleep 0.3; echo one) & sleep 0.4; echo two");
        assert_eq!(outcome.output, "one\ntwo\n");
        assert_eq!(outcome.result.unwrap().exceeded, None);
    }
}

fn denied_programs_are_not_executed(stage: &Stage) {
    let environment = stage.environment();
    // A shell cannot be denied to itself, and a program of many names stays.
    let denied = ["id", "sh", "no-such-program", "/usr/bin/env"].map(str::to_owned);
    let policy = stage.policy(&environment).without_programs(&denied, &environment);
    stage.write("script.py", "import os\nos.execvp('id', ['id', '-u'])\n");
    let ways = [
        "id -u",
        "/usr/bin/id -u",
        "env id -u",
        "python3 script.py",
        "sh -c 'exec id -u'",
        "cp /usr/bin/id mine; chmod +x mine; ./mine -u",
        "ln -s /usr/bin/id other; ./other -u",
        "find . -maxdepth 0 -exec id -u \\;",
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/id -u",
    ];
    for sandbox in [Sandbox::namespaces(policy.clone()), Sandbox::landlock(policy)] {
        for way in ways {
            let ran = stage.run(
                &sandbox,
                &format!("({way}) 2>/dev/null | grep -x '[0-9][0-9]*'; rm -f mine other; echo end"),
            );
            assert_eq!(ran.output, "end\n", "{way}");
        }
        assert_eq!(stage.good(&sandbox, "sh -c 'env true && echo good'"), "good\n");
    }
    assert!(
        stage.good(&stage.sandbox(), "id -u").trim().parse::<u32>().is_ok(),
        "it runs if it is not denied"
    );
}
