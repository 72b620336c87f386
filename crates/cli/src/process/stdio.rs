//! Writing to stdout and stderr, the one place where text from files, models, servers and journals is made safe
//! for a terminal: [`print`] and [`error`] show control characters instead of sending them. A closed pipe is not
//! an error: the remaining output is dropped.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use fusee::engine::text::render::sanitize;

use crate::process::error::CliError;

/// Writes text for people to stdout.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    print_styled(&sanitized(text))
}

/// Writes text that may contain our own colours, and whose other parts are sanitized.
pub(crate) fn print_styled(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a result or the content of a file to stdout: exactly as it is into a pipe or file, sanitized on a
/// terminal.
pub(crate) fn print_exact(text: &str) -> Result<(), CliError> {
    if io::stdout().is_terminal() { print(text) } else { print_styled(text) }
}

/// Writes JSON or text for people to stdout.
pub(crate) fn print_as(is_json: bool, text: &str) -> Result<(), CliError> {
    if is_json { print_json(text) } else { print(text) }
}

/// Writes JSON to stdout.
pub(crate) fn print_json(json: &str) -> Result<(), CliError> {
    print_styled(&escaped_json(json))
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

/// Writes text for people to stderr, ignoring errors because there is no other channel to report them on.
pub(crate) fn error(text: &str) {
    error_styled(&sanitized(text));
}

/// Writes text that may contain our own colours, and whose other parts are sanitized, to stderr.
pub(crate) fn error_styled(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Stdout for answers: see [`print_exact`].
pub(crate) struct ExactStdout;

impl Write for ExactStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = io::stdout().lock();
        if out.is_terminal() {
            out.write_all(sanitized(&String::from_utf8_lossy(bytes)).as_bytes())?;
        } else {
            out.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush()
    }
}

/// Text of several lines without control characters.
fn sanitized(text: &str) -> Cow<'_, str> {
    let is_safe = |line: &str| matches!(sanitize(line), Cow::Borrowed(_));
    if text.split('\n').all(is_safe) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split('\n').map(sanitize).collect::<Vec<_>>().join("\n"))
}

/// JSON whose strings escape every character that a terminal would act on. It means the same.
pub(crate) fn escaped_json(json: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte < 0x7f;
    if json.bytes().all(is_plain) || matches!(sanitized(json), Cow::Borrowed(_)) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    let mut buffer = [0; 4];
    for c in json.chars() {
        let alone: &str = c.encode_utf8(&mut buffer);
        if c == '\n' || matches!(sanitize(alone), Cow::Borrowed(_)) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests;
