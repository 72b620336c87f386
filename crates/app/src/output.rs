//! Writing to stdout and stderr. A reader that went away is no failure of ours: what is left is not written.

use std::io::{self, Write};

use crate::failure::Failure;

/// Writes all of it to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes all of it to stderr; where that fails there is nobody left to tell.
pub(crate) fn error(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
