//! Writing to stdout and stderr. A closed pipe is not an error: the remaining output is dropped.

use std::io::{self, Write};

use crate::process::error::CliError;

/// Writes and flushes `text` to stdout.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Asks a question that is answered with y or n on stdin.
pub(crate) fn confirm(question: &str) -> Result<bool, CliError> {
    error(question);
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .map_err(|error| CliError::failed(format!("cannot read the answer: {error}")))?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Writes `text` to stderr, ignoring errors because there is no other channel to report them on.
pub(crate) fn error(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
