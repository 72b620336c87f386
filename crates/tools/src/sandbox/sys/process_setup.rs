//! Process setup: raises RLIMIT_NOFILE, turns SIGXFSZ into EFBIG, and uses a single malloc arena. The fork
//! server is forked before this, so it and every command keep the limits that the user's shell has set.

use rustix::process::{Resource, Rlimit};

use crate::sandbox::sys::process;

/// Raises the soft limit on open files to the hard limit, makes writing past the file size limit an error
/// instead of a signal, and sets up the heap.
///
/// Must be called before any thread exists, and after [`crate::sandbox::init`]: programs that rely on a low limit of
/// open files are started from the fork server.
pub fn setup_process() {
    let files = rustix::process::getrlimit(Resource::Nofile);
    if files.current != files.maximum {
        // If this is refused, the limit stays as it was.
        let raised = Rlimit { current: files.maximum, maximum: files.maximum };
        let _ = rustix::process::setrlimit(Resource::Nofile, raised);
    }
    process::ignore_sigxfsz();
    process::use_single_arena();
}
