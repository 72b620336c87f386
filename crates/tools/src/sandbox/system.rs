//! The system calls that Rust has no safe form of, each wrapped once. Everything else in `sandbox` is safe code.
#![expect(unsafe_code, reason = "fork, exec and signals have no safe form; each use says why it is sound")]

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU8;

use rustix::process::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Which side of a fork we are.
pub(super) enum Fork {
    Parent(Pid),
    Child,
}

/// Forks this process.
///
/// Only called while there is one thread: by [`super::init`], which checks that, and by processes that come from it
/// and never make a thread. So the child may do anything its parent might.
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: with one thread no lock can be held by a thread that the child does not have.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Pid::from_raw(pid).map(Fork::Parent).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL)),
    }
}

/// Forks with signals held back in the child until it has said what it does with them. In the parent nothing changes.
pub(super) fn fork_deaf() -> io::Result<Fork> {
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
    if !matches!(forked, Ok(Fork::Child)) {
        // SAFETY: as above; a null old set is allowed.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    }
    forked
}

/// Starts a child that becomes another program, without copying this process: the child borrows our memory, and we
/// stand still, until it has. `become_program` returns only if it cannot, what the child exits with.
///
/// Like [`fork`] only called while there is one thread. What the child allocates before it becomes the program stays
/// allocated here, so it should not: a supervisor starts many.
pub(super) fn start(become_program: impl FnOnce() -> i32) -> io::Result<Pid> {
    borrow_to_child(0, become_program)
}

/// Starts a child that takes over from us, in whatever namespaces we have prepared: it has our memory and our open
/// files, and we stand still until it has ended. Much cheaper than a copy that we would wait for.
pub(super) fn hand_over_to_child(work: impl FnOnce() -> i32) -> io::Result<Pid> {
    borrow_to_child(libc::CLONE_FILES, work)
}

fn borrow_to_child<F: FnOnce() -> i32>(also: c_int, work: F) -> io::Result<Pid> {
    /// More than any child of ours needs; what is not touched is not there.
    const STACK: usize = 256 * 1024;

    extern "C" fn run<F: FnOnce() -> i32>(work: *mut libc::c_void) -> c_int {
        // SAFETY: points at the caller's Option, which outlives this child: the caller stands still until it is gone.
        let work = unsafe { &mut *work.cast::<Option<F>>() };
        exit_now(work.take().map_or(126, |work| work()))
    }

    // What the child takes out of here is the child's to drop.
    let mut work = Some(work);
    // Not zeroed: a supervisor does this for every command.
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / 16);
    // SAFETY: the stack grows down from its end, which is aligned as the calling conventions ask for, and lives until
    // the child is done with it, because CLONE_VFORK holds us until its exec or exit. With one thread and us standing
    // still nobody else uses the memory that the child shares.
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

/// Ends this process at once. A forked process must not run what its parent registered for its own end.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// A program with its arguments and environment, as the kernel wants them. Made by whoever starts a child, because what
/// the child allocates in borrowed memory stays there.
pub(super) struct Program<'p> {
    path: &'p CStr,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    _strings: std::marker::PhantomData<&'p CStr>,
}

impl<'p> Program<'p> {
    pub(super) fn new(path: &'p CStr, arguments: &[&'p CStr], environment: &[&'p CStr]) -> Self {
        let pointers = |strings: &[&CStr]| -> Vec<*const c_char> {
            strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (arguments, environment) = (pointers(arguments), pointers(environment));
        Self { path, arguments, environment, _strings: std::marker::PhantomData }
    }

    /// Becomes it; returns only what went wrong.
    pub(super) fn execute(&self) -> io::Error {
        // SAFETY: both lists end with a null pointer, and the strings they point at outlive this value.
        unsafe { libc::execve(self.path.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Bytes that this process shares with all it forks, for as long as any of them lives. All are zero.
pub(super) fn shared_bytes(count: usize) -> io::Result<&'static [AtomicU8]> {
    // SAFETY: a new mapping that nothing else stands for and that is never taken away; it is as long as was asked for,
    // zero is a valid AtomicU8, and atomics are all that anybody ever has of it.
    unsafe {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        let start = libc::mmap(std::ptr::null_mut(), count, protection, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts(start.cast::<AtomicU8>(), count))
    }
}

/// Makes `descriptor` known under a number of the standard streams, where it survives an exec.
pub(super) fn duplicate_to(descriptor: BorrowedFd<'_>, number: c_int) -> io::Result<()> {
    // SAFETY: both are plain numbers to dup2; nothing in this process owns the standard streams it replaces.
    if unsafe { libc::dup2(descriptor.as_raw_fd(), number) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Takes possession of a descriptor that was put under this number by [`duplicate_to`].
pub(super) fn own(number: c_int) -> OwnedFd {
    // SAFETY: only called for a number that was just duplicated to and that nothing else owns.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Makes a socket readable without waiting, on the runtime we are in.
pub(super) fn register(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is one open descriptor from its making to its drop, which is all that is asked for.
    unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }.map_err(io::Error::from)
}

/// Closes every descriptor from `first` on, at once or at the next exec.
pub(super) fn close_from(first: u32, when: Close) -> io::Result<()> {
    let flags = match when {
        Close::Now => 0,
        Close::AtExec => libc::CLOSE_RANGE_CLOEXEC,
    };
    // SAFETY: called only in a forked process that owns no descriptor in the range, or will not use it after exec.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[derive(Clone, Copy)]
pub(super) enum Close {
    Now,
    AtExec,
}

/// Closes one descriptor by number, for systems without close_range.
pub(super) fn close_number(number: c_int) {
    // SAFETY: called only in the keeper right after its fork, for numbers that no value of ours stands for.
    unsafe { libc::close(number) };
}

/// Signals that would end a keeper or supervisor before its work is done. They end when their socket hangs up.
const DEAF_TO: [c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTSTP];

/// Ignores what terminals and service managers send, and makes the end of children readable.
pub(super) fn watch_children() -> io::Result<OwnedFd> {
    for signal in DEAF_TO {
        set_disposition(signal, libc::SIG_IGN);
    }
    set_disposition(libc::SIGCHLD, libc::SIG_DFL);
    let set = signal_set(Some(libc::SIGCHLD));
    // SAFETY: the set is initialised, and a null old set is allowed.
    if unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the set is initialised; the returned descriptor is new and owned by nobody else.
    unsafe {
        let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor == -1 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

/// Kills everybody else in a namespace of processes whose first one we are. Elsewhere it does nothing: the same call
/// would reach the whole machine.
pub(super) fn end_all_others_of_own_namespace() {
    if rustix::process::getpid().is_init() {
        // SAFETY: takes two numbers; as the first process of a namespace nobody outside of it is reached.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Lets all threads share one heap. They are few and seldom ask at once, and a heap for each costs more memory and time
/// than waiting for another. To be called before there are threads.
pub(super) fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes two numbers; where they mean nothing nothing happens.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Makes a write past the largest allowed file an error like any other, instead of the end of this process.
pub(super) fn outlive_file_limits() {
    set_disposition(libc::SIGXFSZ, libc::SIG_IGN);
}

/// Gives every signal its default action, whatever this process was started with. Once, in the keeper: what it and
/// its supervisors are deaf to is then all that a command has to be given back.
pub(super) fn forget_signals() {
    (1..=64).for_each(set_default);
}

/// Puts signals back to how a program expects to find them.
pub(super) fn hear_again() {
    DEAF_TO.into_iter().for_each(set_default);
    let set = signal_set(None);
    // SAFETY: the set is initialised, and a null old set is allowed.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
}

/// By the bare system call: the C library refuses to touch two signals it uses itself, yet leaves them ignored in
/// what it starts.
fn set_default(signal: c_int) {
    // The kernel's form of a signal action, larger than it is anywhere; all zero is the default action.
    let default_action = [0u64; 8];
    // SAFETY: the kernel reads the action, which is long enough, and 8 is the size of its signal set. Signals that
    // cannot be set give an error and stay as they are.
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
    // SAFETY: only SIG_IGN and SIG_DFL are set, which run no code. Signals that cannot be set are left as they are.
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
