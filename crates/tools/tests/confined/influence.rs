//! Attempts to influence the processes that supervise a command: signals, tracing, memory, scheduling and
//! `/proc`. They belong to the list in `escapes`; limits and priorities are in `poison`.

use crate::escapes::{Attempt, does};
use crate::stage::Stage;

/// Functions that the attempts share. `above` is the supervisor.
const COMMON: &str = "\
import ctypes, fcntl, os, signal, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
above = int(os.environ['ABOVE'])
EFAULT, ENOMEM, EINVAL = 14, 12, 22

def call(*arguments):
    ctypes.set_errno(0)
    result = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    return result, ctypes.get_errno()

def succeeded(result, *errors):
    value, error = result
    if value >= 0 or error in errors:
        print('done')
    else:
        print(os.strerror(error))

def stopped():
    'Whether the supervisor is stopped now; it goes on afterwards.'
    for _ in range(20):
        state = open(f'/proc/{above}/stat').read().rsplit(')', 1)[1].split()[0]
        if state in 'Tt':
            os.kill(above, signal.SIGCONT)
            print('done')
            return
        time.sleep(0.01)

def memory():
    'One iovec that points to nothing.'
    return ctypes.create_string_buffer(struct.pack('QQ', 0, 16)), ctypes.create_string_buffer(16)
";

/// Writes the shared functions, and where the fork server is.
fn with_common(stage: &Stage) -> Option<Box<dyn std::any::Any>> {
    stage.write("common.py", COMMON);
    stage.write("keeper", &format!("{}\n", stage.fork_server.process_id()));
    None
}

/// A Python program as a command; `from common import *` comes first.
macro_rules! python {
    ($program:expr) => {
        concat!(
            "ABOVE=$PPID python3 - <<'E'\nimport sys; sys.path.insert(0, '.')\nfrom common import *\n",
            $program,
            "\nE"
        )
    };
}

/// The same, aimed at the fork server.
macro_rules! at_fork_server {
    ($program:expr) => {
        concat!("ABOVE=$(cat keeper) python3 - <<'E'\nimport sys; sys.path.insert(0, '.')\nfrom common import *\n", $program, "\nE")
    };
}

pub(crate) fn attempts() -> Vec<Attempt> {
    let to = |name, command| does(name, command).after(with_common);
    vec![
        to("stop_its_supervisor", python!("os.kill(above, signal.SIGSTOP); stopped()")),
        to(
            "stop_its_supervisor_by_thread",
            python!("print(call(200, above, 19)); print(call(234, above, above, 19)); stopped()"),
        ),
        to(
            "stop_its_supervisor_with_a_queued_signal",
            python!("info = ctypes.create_string_buffer(struct.pack('iii', 19, 0, -1) + bytes(116)); print(call(129, above, 19, info)); stopped()"),
        ),
        to(
            "stop_its_supervisor_by_descriptor",
            python!("print(call(424, call(434, above, 0)[0], 19, 0, 0)); stopped()"),
        ),
        to(
            "stop_its_supervisor_by_a_file",
            python!(
                "
ours, theirs = os.pipe()
fcntl.fcntl(ours, fcntl.F_SETOWN, above)
fcntl.fcntl(ours, 10, signal.SIGSTOP)
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(theirs, b'x')
# Its end would stop the process again.
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_NONBLOCK)
fcntl.fcntl(ours, fcntl.F_SETOWN, 0)
stopped()"
            ),
        ),
        to("stop_the_fork_server", at_fork_server!("os.kill(above, signal.SIGSTOP); stopped()")),
        to(
            "stop_the_fork_server_by_a_file",
            at_fork_server!(
                "
ours, theirs = os.pipe()
fcntl.fcntl(ours, fcntl.F_SETOWN, above)
fcntl.fcntl(ours, 10, signal.SIGSTOP)
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(theirs, b'x')
# Its end would stop the process again.
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_NONBLOCK)
fcntl.fcntl(ours, fcntl.F_SETOWN, 0)
stopped()"
            ),
        ),
        to("trace_its_supervisor", python!("succeeded(call(101, 0x4206, above, 0, 0))")).needing_root(),
        to("trace_the_fork_server", at_fork_server!("succeeded(call(101, 0x4206, above, 0, 0))")).needing_root(),
        to(
            "read_memory_of_its_supervisor",
            python!("there, here = memory(); mine = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(here), 16)); succeeded(call(310, above, mine, 1, there, 1, 0), EFAULT)"),
        )
        .needing_root(),
        to(
            "write_memory_of_its_supervisor",
            python!("there, here = memory(); mine = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(here), 16)); succeeded(call(311, above, mine, 1, there, 1, 0), EFAULT)"),
        )
        .needing_root(),
        to("take_a_file_of_its_supervisor", python!("succeeded(call(438, call(434, above, 0)[0], 0, 0))"))
            .needing_root(),
        to("take_a_file_of_the_fork_server", at_fork_server!("succeeded(call(438, call(434, above, 0)[0], 0, 0))"))
            .needing_root(),
        to("compare_with_its_supervisor", python!("succeeded(call(312, os.getpid(), above, 1, 0, 0))"))
            .where_possible(),
        to("move_pages_of_its_supervisor", python!("succeeded(call(279, above, 0, 0, 0, 0, 0))")).where_possible(),
        to(
            "migrate_pages_of_its_supervisor",
            python!("node = ctypes.create_string_buffer(struct.pack('Q', 1)); succeeded(call(256, above, 64, node, node))"),
        )
        .where_possible(),
        to(
            "advise_about_memory_of_its_supervisor",
            python!("there, _ = memory(); succeeded(call(440, call(434, above, 0)[0], there, 1, 20, 0), ENOMEM, EFAULT, EINVAL)"),
        )
        .where_possible(),
        to(
            "read_the_locks_of_its_supervisor",
            python!("head = ctypes.create_string_buffer(16); succeeded(call(274, above, head, ctypes.addressof(head) + 8))"),
        )
        .where_possible(),
        to("share_a_core_with_its_supervisor", python!("succeeded(call(157, 62, 1, above, 1, 0))")).where_possible(),
        to("offer_its_supervisor_to_the_oom_killer", "echo 500 > /proc/$PPID/oom_score_adj && echo done").needing_root(),
        to("change_timers_of_its_supervisor", "echo 4000000000 > /proc/$PPID/timerslack_ns && echo done").where_possible(),
        to("clear_references_of_its_supervisor", "echo 1 > /proc/$PPID/clear_refs && echo done").where_possible(),
        to("change_dumps_of_its_supervisor", "echo 0 > /proc/$PPID/coredump_filter && echo done").where_possible(),
        to("name_its_supervisor", "echo x > /proc/$PPID/comm && echo done").where_possible(),
        to("write_memory_of_its_supervisor_as_a_file", ": >> /proc/$PPID/mem && echo done").needing_root(),
        to("change_the_group_of_its_supervisor", "echo 19 > /proc/$PPID/autogroup && echo done").where_possible(),
    ]
}
