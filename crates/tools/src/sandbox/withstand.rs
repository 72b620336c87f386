//! What this process asks of the system for itself: that a limit is an error and no end, and one heap for its few
//! threads. The keeper, forked before, and so every command, keeps the limits that the user's shell has set.

use rustix::process::{Resource, Rlimit};

use super::system;

/// Raises the number of files this process may open as far as it may itself, and makes a file that may not grow any
/// further an error. Sets up the heap as well. To be called before there are threads, and after [`super::init`]: programs that count on a small number of files are
/// started from the keeper.
pub fn withstand_limits() {
    let files = rustix::process::getrlimit(Resource::Nofile);
    if files.current != files.maximum {
        // Where this is refused, the limit stays what it was.
        let raised = Rlimit { current: files.maximum, maximum: files.maximum };
        let _ = rustix::process::setrlimit(Resource::Nofile, raised);
    }
    system::outlive_file_limits();
    system::share_heap();
}
