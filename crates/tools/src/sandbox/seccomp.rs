//! The seccomp filter: system calls that a command may not make at all.
//!
//! Namespaces and mounts, or Landlock, decide what a command can reach. The filter blocks what they do not
//! cover (socket families without a network namespace, key rings, setuid files) and calls that a command has
//! no use for but an attack on the kernel has. A refused call returns an error and never kills the process.

use std::ffi::c_long;

use libc::{EAFNOSUPPORT, ENOSYS, EPERM, sock_filter};

/// Offsets into `seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

/// Offset of the low half of an argument, which holds flags, modes and socket families.
const fn argument(index: u32) -> u32 {
    16 + 8 * index + if cfg!(target_endian = "big") { 4 } else { 0 }
}

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;
#[cfg(target_arch = "riscv64")]
const NATIVE: u32 = 0xC000_00F3;
/// Matches no architecture, so nothing runs; the probe finds and reports that.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const NATIVE: u32 = 0;

/// Calls that fail with EPERM whatever their arguments.
const REFUSED: &[c_long] = &[
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Opens a file by its handle, bypassing every path.
    libc::SYS_open_by_handle_at,
    // Key rings belong to the user, not to a namespace.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Calls that affect the machine as a whole.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    // Large kernel interfaces that are rarely needed; programs fall back to others.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];

/// Calls that fail with ENOSYS as on an old kernel, because their arguments are behind a pointer that the
/// filter cannot read. Callers fall back to the older call.
const ENOSYS_CALLS: &[c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

/// fchmodat2 has the same number on every architecture; the libc crate does not define it yet.
const FCHMODAT2: c_long = 452;

/// Calls that take a file mode, with the index of that argument. A mode with the setuid bit is refused.
const MODE_CALLS: &[(c_long, u32)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Calls whose mode matters only if they create a file, with the index of their flags argument; the mode is
/// the next argument.
const OPEN_CALLS: &[(c_long, u32)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// O_CREAT, and the bit of O_TMPFILE that it does not share with O_DIRECTORY.
const CREATE_FLAGS: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)).cast_unsigned();

/// Scheduling calls that take a PID as their first argument; 0 is the caller.
const SCHEDULING_CALLS: &[c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// Priority calls that take a kind of target and then its id, with the kind for a single process. 0 is the
/// caller.
const PRIORITY_CALLS: &[(c_long, u32)] = &[(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)];

/// Socket families that are confined by the network namespace or by a path. Others, vsock above all, ignore
/// namespaces.
const SOCKET_FAMILIES: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// System V IPC and POSIX message queues, which all processes of a user share unless they are in an IPC
/// namespace.
const IPC_CALLS: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// The sockets that a command may create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedSockets {
    /// Families that a namespace or a path confines, for commands in a namespace sandbox.
    Namespaced,
    /// Network families and connected pairs, for commands in a namespace sandbox that have the machine's network: they
    /// would reach its abstract sockets, which belong to the network namespace.
    NamespacedWithoutUnix,
    /// Only connected pairs. Path sockets are refused, because they can be reached whatever files are
    /// granted.
    Pairs,
    /// Connected pairs, and sockets on the machine's network.
    PairsAndNetwork,
}

impl AllowedSockets {
    fn socket_families(self) -> &'static [i32] {
        match self {
            Self::Namespaced => SOCKET_FAMILIES,
            Self::Pairs => &[],
            Self::NamespacedWithoutUnix | Self::PairsAndNetwork => {
                &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
            }
        }
    }

    fn has_namespaces(self) -> bool {
        matches!(self, Self::Namespaced | Self::NamespacedWithoutUnix)
    }
}

/// Masks the socket type without its flags.
const SOCKET_KIND: u32 = 0xf;

/// ioctl requests that inject input into a terminal.
const TERMINAL_REQUESTS: &[u32] = &[0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */];

const NEW_NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP)
    .cast_unsigned();

/// Number of calls in one chunk of the filter.
const CHUNK_LEN: usize = 8;

/// Builds the filter for this architecture.
///
/// The kernel evaluates it once for every existing call when it is installed, so each path through it must be
/// short: the calls are sorted by number, in chunks that are skipped with one jump.
pub(super) fn filter(sockets: AllowedSockets) -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE),
        // The calls of another architecture have other numbers; refuse all of them.
        skip_if(SeccompTest::Equal, NATIVE, 1),
        return_errno(ENOSYS),
        load(NUMBER),
    ];
    // The x32 numbers of x86-64 are aliases of the same calls.
    #[cfg(target_arch = "x86_64")]
    program.extend([skip_unless(SeccompTest::AtLeast, 0x4000_0000, 1), return_errno(ENOSYS)]);
    let rules = rules(sockets);
    let mut parts = rules.chunks(CHUNK_LEN).peekable();
    while let Some(part) = parts.next() {
        let mut body: Vec<sock_filter> = part.iter().flat_map(|(call, steps)| when(*call, steps)).collect();
        body.push(ALLOW);
        if let Some((first_of_next, _)) = parts.peek().and_then(|next| next.first()) {
            program.push(skip_if(SeccompTest::AtLeast, *first_of_next, length(&body)));
        }
        program.append(&mut body);
    }
    program
}

/// The instructions for each call that is not simply allowed, sorted by call number.
fn rules(sockets: AllowedSockets) -> Vec<(u32, Vec<sock_filter>)> {
    let mut rules: Vec<(u32, Vec<sock_filter>)> = Vec::new();
    let mut rule = |call: c_long, steps: Vec<sock_filter>| rules.push((number(call), steps));
    for &call in REFUSED {
        rule(call, vec![return_errno(EPERM)]);
    }
    for &call in ENOSYS_CALLS {
        rule(call, vec![return_errno(ENOSYS)]);
    }
    for &(call, index) in MODE_CALLS {
        rule(call, refused_with_bits(index, libc::S_ISUID));
    }
    for &(call, index) in OPEN_CALLS {
        let mut steps = vec![load(argument(index)), skip_if(SeccompTest::Bits, CREATE_FLAGS, 1), ALLOW];
        steps.append(&mut refused_with_bits(index + 1, libc::S_ISUID));
        rule(call, steps);
    }
    rule(libc::SYS_clone, refused_with_bits(0, NEW_NAMESPACES));
    let mut requests = vec![load(argument(1))];
    for &request in TERMINAL_REQUESTS {
        requests.extend([skip_unless(SeccompTest::Equal, request, 1), return_errno(EPERM)]);
    }
    requests.push(ALLOW);
    rule(libc::SYS_ioctl, requests);
    rule(libc::SYS_socket, only_families(sockets.socket_families()));
    rule(libc::SYS_prlimit64, only_own_limits());
    let pairs = match sockets {
        AllowedSockets::Namespaced => only_families(SOCKET_FAMILIES),
        _ => only_connected_pairs(),
    };
    rule(libc::SYS_socketpair, pairs);
    if !sockets.has_namespaces() {
        for &call in IPC_CALLS {
            rule(call, vec![return_errno(ENOSYS)]);
        }
        // In a PID namespace there is only the supervisor besides the command's own processes, and it has a
        // capability that makes the kernel refuse these.
        for &call in SCHEDULING_CALLS {
            rule(
                call,
                vec![load(argument(0)), skip_if(SeccompTest::Equal, 0, 1), return_errno(EPERM), ALLOW],
            );
        }
        for &(call, process) in PRIORITY_CALLS {
            rule(call, only_own_priority(process));
        }
    }
    rules.sort_by_key(|(call, _)| *call);
    rules
}

fn only_families(known: &[i32]) -> Vec<sock_filter> {
    let mut families = vec![load(argument(0))];
    for &family in known {
        families.extend([skip_unless(SeccompTest::Equal, family.cast_unsigned(), 1), ALLOW]);
    }
    families.push(return_errno(EAFNOSUPPORT));
    families
}

/// Allows Unix pairs, except for datagram sockets, which could send to other addresses.
fn only_connected_pairs() -> Vec<sock_filter> {
    vec![
        load(argument(0)),
        skip_if(SeccompTest::Equal, libc::AF_UNIX.cast_unsigned(), 1),
        return_errno(EAFNOSUPPORT),
        load(argument(1)),
        masked(SOCKET_KIND),
        skip_unless(SeccompTest::Equal, libc::SOCK_DGRAM.cast_unsigned(), 1),
        return_errno(EAFNOSUPPORT),
        ALLOW,
    ]
}

/// Allows a process to change its own resource limits, and to read anyone's. The kernel would let it change
/// those of every process of the same user, which could kill our own.
fn only_own_limits() -> Vec<sock_filter> {
    vec![
        load(argument(0)),
        skip_unless(SeccompTest::Equal, 0, 1),
        ALLOW,
        // The new limits: both halves of the pointer.
        load(argument(2)),
        skip_unless(SeccompTest::Equal, 0, 3),
        load(argument(2) ^ 4),
        skip_unless(SeccompTest::Equal, 0, 1),
        ALLOW,
        return_errno(EPERM),
    ]
}

/// Allows a process to change its own priority.
fn only_own_priority(process: u32) -> Vec<sock_filter> {
    vec![
        load(argument(0)),
        skip_unless(SeccompTest::Equal, process, 3),
        load(argument(1)),
        skip_unless(SeccompTest::Equal, 0, 1),
        ALLOW,
        return_errno(EPERM),
    ]
}

const ALLOW: sock_filter = statement(0x06 /* return */, libc::SECCOMP_RET_ALLOW);

/// Refuses a call if an argument has any of these bits set.
fn refused_with_bits(index: u32, bits: u32) -> Vec<sock_filter> {
    vec![load(argument(index)), skip_unless(SeccompTest::Bits, bits, 1), return_errno(EPERM), ALLOW]
}

/// Runs `steps` if the call has this number. The steps end with a return.
fn when(call: u32, steps: &[sock_filter]) -> Vec<sock_filter> {
    let mut all = vec![skip_unless(SeccompTest::Equal, call, length(steps))];
    all.extend_from_slice(steps);
    all
}

/// Number of instructions to jump over. A jump reaches 255 of them; a test checks that every chunk stays
/// below that.
fn length(steps: &[sock_filter]) -> u8 {
    u8::try_from(steps.len()).unwrap_or(u8::MAX)
}

#[derive(Clone, Copy)]
enum SeccompTest {
    Equal,
    AtLeast,
    Bits,
}

impl SeccompTest {
    fn code(self) -> u16 {
        let operation = match self {
            Self::Equal => 0x10,
            Self::AtLeast => 0x30,
            Self::Bits => 0x40,
        };
        0x05 | operation
    }
}

/// Skips `skip` instructions if the test holds.
fn skip_if(test: SeccompTest, value: u32, skip: u8) -> sock_filter {
    sock_filter { code: test.code(), jt: skip, jf: 0, k: value }
}

/// Skips `skip` instructions if the test does not hold.
fn skip_unless(test: SeccompTest, value: u32, skip: u8) -> sock_filter {
    sock_filter { code: test.code(), jt: 0, jf: skip, k: value }
}

fn masked(bits: u32) -> sock_filter {
    statement(0x54 /* and */, bits)
}

fn load(offset: u32) -> sock_filter {
    statement(0x20 /* load a word */, offset)
}

fn return_errno(error: i32) -> sock_filter {
    statement(
        0x06, /* return */
        libc::SECCOMP_RET_ERRNO | (error.cast_unsigned() & libc::SECCOMP_RET_DATA),
    )
}

const fn statement(code: u16, value: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k: value }
}

/// The call number as the filter sees it. Call numbers are small.
fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
