//! Wrappers for system calls that Rust has no safe interface to: processes, signals, descriptors.
#![expect(unsafe_code, reason = "fork, exec and signals have no safe API; each use says why it is sound")]

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU32};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Which side of a fork this process is.
pub(crate) enum ForkSide {
    Parent(Pid),
    Child,
}

/// Forks this process.
///
/// Only called while there is one thread: by [`crate::sandbox::init`], which checks that, and by processes that
/// descend from it and never create a thread. So the child may do anything its parent may.
pub(crate) fn fork() -> io::Result<ForkSide> {
    // SAFETY: with one thread, no lock can be held by a thread that the child does not have.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(ForkSide::Child),
        pid => {
            Pid::from_raw(pid).map(ForkSide::Parent).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
        }
    }
}

/// Forks with all signals blocked in the child until it has set its dispositions. The parent's mask is
/// unchanged.
pub(crate) fn fork_signals_blocked() -> io::Result<ForkSide> {
    let all = {
        let mut set = signal_set(None);
        // SAFETY: the set is initialised.
        unsafe { libc::sigfillset(&raw mut set) };
        set
    };
    let mut before = signal_set(None);
    // SAFETY: both sets are initialised.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    let forked = fork();
    if !matches!(forked, Ok(ForkSide::Child)) {
        // SAFETY: as above; a null old set is allowed.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    }
    forked
}

/// Starts a child that executes another program, without copying this process: the child shares its memory,
/// and this process is suspended until the exec. `become_program` returns, with the child's exit code, only
/// if it fails.
///
/// Like [`fork`], only called while there is one thread. What the child allocates before the exec stays
/// allocated here, so it should not allocate: a supervisor starts many children.
pub(crate) fn start(become_program: impl FnOnce() -> i32) -> io::Result<Pid> {
    vfork_shared(0, become_program)
}

/// Starts a child that takes over from this process, in whatever namespaces have been prepared: it shares
/// memory and open files, and this process is suspended until it has ended. Much cheaper than a forked copy
/// that would be waited for.
pub(crate) fn exec_in_child(work: impl FnOnce() -> i32) -> io::Result<Pid> {
    vfork_shared(libc::CLONE_FILES, work)
}

fn vfork_shared<F: FnOnce() -> i32>(also: c_int, work: F) -> io::Result<Pid> {
    /// More than any of these children needs; pages that are not touched cost nothing.
    const STACK: usize = 256 * 1024;

    extern "C" fn run<F: FnOnce() -> i32>(work: *mut libc::c_void) -> c_int {
        // SAFETY: points at the caller's Option, which outlives this child: the caller is suspended until it
        // is gone.
        let work = unsafe { &mut *work.cast::<Option<F>>() };
        exit_now(work.take().map_or(126, |work| work()))
    }

    // The closure is moved out by the child, which also drops it.
    let mut work = Some(work);
    // Not zeroed: a supervisor does this for every command.
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / 16);
    // SAFETY: the stack grows down from its end, which is aligned as the calling conventions require, and
    // lives until the child is done with it, because CLONE_VFORK suspends this process until its exec or
    // exit. With one thread, and that suspended, nothing else uses the memory that the child shares.
    let pid = unsafe {
        let top = stack.spare_capacity_mut().as_mut_ptr_range().end.cast::<libc::c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD | also;
        libc::clone(run::<F>, top, flags, (&raw mut work).cast())
    };
    match Pid::from_raw(pid) {
        Some(pid) if pid.as_raw_nonzero().get() > 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a process has ended, even if nobody has waited for it yet.
pub(crate) fn has_ended(pid: Pid) -> bool {
    let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return rustix::process::test_kill_process(pid).is_err();
    };
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&at_once)), Ok(1..))
}

/// Exits at once. A forked process must not run the exit handlers that its parent registered.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory of this process.
    unsafe { libc::_exit(code) }
}

/// A program with its arguments and environment, in the form that execve takes. Prepared by the parent,
/// because what the child allocates in shared memory stays allocated.
pub(crate) struct ExecProgram<'p> {
    path: &'p CStr,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    _strings: std::marker::PhantomData<&'p CStr>,
}

impl<'p> ExecProgram<'p> {
    pub(crate) fn new(path: &'p CStr, arguments: &[&'p CStr], environment: &[&'p CStr]) -> Self {
        let pointers = |strings: &[&CStr]| -> Vec<*const c_char> {
            strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (arguments, environment) = (pointers(arguments), pointers(environment));
        Self { path, arguments, environment, _strings: std::marker::PhantomData }
    }

    /// Executes it; returns only on failure.
    pub(crate) fn execute(&self) -> io::Error {
        // SAFETY: both lists end with a null pointer, and the strings they point to outlive this value.
        unsafe { libc::execve(self.path.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Zeroed bytes that this process shares with everything it forks, for as long as any of them lives.
pub(crate) fn shared_bytes(count: usize) -> io::Result<&'static [AtomicU8]> {
    let start = shared_memory(count)?;
    // SAFETY: the mapping has `count` bytes, is never unmapped, and is only ever accessed through these atomics; zero
    // is a valid AtomicU8.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU8>(), count) })
}

/// Like [`shared_bytes`], in words.
pub(crate) fn shared_words(count: usize) -> io::Result<&'static [AtomicU32]> {
    let start = shared_memory(count * size_of::<AtomicU32>())?;
    // SAFETY: as above; a mapping starts at a page, which is aligned for words.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU32>(), count) })
}

/// A new zeroed mapping that forked processes share. Pages that are not touched cost nothing.
fn shared_memory(bytes: usize) -> io::Result<*mut libc::c_void> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address that the kernel chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start) }
}

/// Duplicates `descriptor` to a fixed number, such as one of the standard streams, where it survives an exec.
pub(crate) fn duplicate_to(descriptor: BorrowedFd<'_>, number: c_int) -> io::Result<()> {
    // SAFETY: both are plain numbers to dup2; nothing in this process owns the standard streams it replaces.
    if unsafe { libc::dup2(descriptor.as_raw_fd(), number) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Takes ownership of a descriptor that [`duplicate_to`] created under this number.
pub(crate) fn take_ownership(number: c_int) -> OwnedFd {
    // SAFETY: only called for a number that was just duplicated to and that nothing else owns.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Registers a socket for reading with the current runtime.
pub(crate) fn register(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is one open descriptor from its creation to its drop, which is all that is required.
    unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }.map_err(io::Error::from)
}

/// Closes every descriptor from `first` on, at once or at the next exec.
pub(crate) fn close_from(first: u32, when: CloseRange) -> io::Result<()> {
    let flags = match when {
        CloseRange::Now => 0,
        CloseRange::AtExec => libc::CLOSE_RANGE_CLOEXEC,
    };
    // SAFETY: called only in a forked process that owns no descriptor in the range, or will not use it after
    // exec.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[derive(Clone, Copy)]
pub(crate) enum CloseRange {
    Now,
    AtExec,
}

/// Closes one descriptor by number, for systems without close_range.
pub(crate) fn close_number(number: c_int) {
    // SAFETY: called only in the fork server right after its fork, for numbers that no value owns.
    unsafe { libc::close(number) };
}

/// Signals that would end the fork server or a supervisor too early. They end when their socket is closed.
const IGNORED_SIGNALS: [c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTSTP];

/// Ignores the signals that terminals and service managers send, and returns a signalfd for SIGCHLD.
pub(crate) fn watch_children() -> io::Result<OwnedFd> {
    for signal in IGNORED_SIGNALS {
        set_disposition(signal, libc::SIG_IGN);
    }
    set_disposition(libc::SIGCHLD, libc::SIG_DFL);
    let set = signal_set(Some(libc::SIGCHLD));
    // SAFETY: the set is initialised, and a null old set is allowed.
    if unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the set is initialised; the returned descriptor is new and not owned elsewhere.
    unsafe {
        let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor == -1 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

/// Kills all other processes of the PID namespace, if this process is its PID 1. Otherwise it does nothing:
/// the same call would reach the whole machine.
pub(crate) fn kill_namespace_processes() {
    if rustix::process::getpid().is_init() {
        // SAFETY: takes two numbers; PID 1 of a namespace reaches no process outside of it.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Makes all threads share one malloc arena. They are few and rarely allocate at the same time, and an arena
/// for each costs more memory and time than the contention. Must be called before any thread exists.
pub(crate) fn use_single_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes two numbers; unsupported options are ignored.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Makes a write past the file size limit fail with EFBIG instead of killing this process.
pub(crate) fn ignore_sigxfsz() {
    set_disposition(libc::SIGXFSZ, libc::SIG_IGN);
}

/// Resets every signal to its default action, whatever this process was started with. Called once in the fork
/// server, so that only the signals in `IGNORED_SIGNALS` have to be reset for a command.
pub(crate) fn reset_signals() {
    (1..=64).for_each(set_default);
}

/// Restores the signal state that a program expects at its start.
pub(crate) fn restore_signals() {
    IGNORED_SIGNALS.into_iter().for_each(set_default);
    let set = signal_set(None);
    // SAFETY: the set is initialised, and a null old set is allowed.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
}

/// Uses the raw system call: the C library refuses to change two signals that it uses itself, but leaves them
/// ignored in programs it starts.
fn set_default(signal: c_int) {
    // The kernel's sigaction structure, at least as large as on any architecture; all zero is the default
    // action.
    let default_action = [0u64; 8];
    // SAFETY: the kernel reads the action, which is long enough, and 8 is the size of its signal set. Signals
    // that cannot be set give an error and stay as they are.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            default_action.as_ptr(),
            std::ptr::null_mut::<u64>(),
            8usize,
        );
    }
}

fn set_disposition(signal: c_int, disposition: libc::sighandler_t) {
    // SAFETY: only SIG_IGN and SIG_DFL are set, which run no code. Signals that cannot be set stay as they
    // are.
    unsafe { libc::signal(signal, disposition) };
}

fn signal_set(member: Option<c_int>) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the whole set before it is read.
    unsafe {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        let mut set = set.assume_init();
        if let Some(signal) = member {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}
