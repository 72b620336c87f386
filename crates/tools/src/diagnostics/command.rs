//! A configured command as a checker: runs it on one file and reads the errors from its output.

use std::fs::File;
use std::sync::LazyLock;
use std::time::Duration;

use grep_matcher::{Captures as _, Matcher as _};
use grep_regex::RegexMatcher;

use super::{FoundError, MAX_READ};
use crate::Workspace;
use crate::sandbox::{CommandEnd, CommandRequest};
use crate::tool::shell::CommandSettings;

/// Maximum bytes of output that are read.
const MAX_OUTPUT: usize = 256 << 10;

/// `path:line:column: message` and `path(line,column): message`, as most checkers print them.
const POSITION: &str = r"^(?:(.+?):([0-9]+)(?::([0-9]+))?:?\s+(.+)|(.+?)\(([0-9]+),([0-9]+)\):?\s+(.+))$";

/// Beginnings of messages that are not errors.
const NOT_ERRORS: [&str; 6] = ["warning", "note", "info", "hint", "help", "style"];

/// The errors that a command finds in a file; `None` if it does not end in time or cannot be run.
pub(super) async fn run(
    commands: &CommandSettings,
    workspace: &Workspace,
    command: &str,
    path: &str,
    limit: Duration,
) -> Option<Vec<FoundError>> {
    let fork_server = commands.fork_server.as_ref()?;
    let line = command_line(command, path);
    let request = CommandRequest {
        command: &line,
        directory: File::open(workspace.root()).ok()?.into(),
        input: None,
        environment: &commands.environment,
        sandbox: &commands.sandbox,
        limits: commands.limits,
    };
    let mut output = Vec::new();
    let heard = |bytes: &[u8]| output.extend_from_slice(&bytes[..bytes.len().min(MAX_OUTPUT - output.len())]);
    let mut late = false;
    let stop = async {
        tokio::time::sleep(limit).await;
        late = true;
    };
    let ended = fork_server.run(request, heard, stop).await.ok()?;
    match ended.ending {
        CommandEnd::Exited(code) if !late && code != 127 => {
            Some(read(&String::from_utf8_lossy(&output), path, code != 0))
        }
        _ => None,
    }
}

fn command_line(command: &str, path: &str) -> String {
    let quoted = format!("'{}'", path.replace('\'', "'\\''"));
    match command.contains("{file}") {
        true => command.replace("{file}", &quoted),
        false => format!("{command} {quoted}"),
    }
}

/// Reads the errors about a file. If the command failed without naming a position, its last line is the error.
fn read(output: &str, path: &str, failed: bool) -> Vec<FoundError> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut errors: Vec<FoundError> = Vec::new();
    for line in output.lines().map(str::trim_end) {
        let Some((file, error)) = position(line) else { continue };
        let is_about_it =
            file == path || path.ends_with(&format!("/{file}")) || file.ends_with(&format!("/{name}"));
        let message = error.message.to_ascii_lowercase();
        let is_error = !NOT_ERRORS.iter().any(|word| message.starts_with(word));
        if is_about_it && is_error && errors.len() < MAX_READ {
            errors.push(error);
        }
    }
    if errors.is_empty()
        && failed
        && !output.lines().any(|line| position(line).is_some())
        && let Some(last) = output.lines().map(str::trim).rfind(|line| !line.is_empty())
    {
        errors.push(FoundError { line: 0, column: 0, message: last.to_owned() });
    }
    errors
}

/// The file and the error that a line names.
fn position(line: &str) -> Option<(&str, FoundError)> {
    static MATCHER: LazyLock<Option<RegexMatcher>> = LazyLock::new(|| RegexMatcher::new(POSITION).ok());
    let matcher = MATCHER.as_ref()?;
    let mut captures = matcher.new_captures().ok()?;
    if !matcher.captures(line.as_bytes(), &mut captures).ok()? {
        return None;
    }
    let text = |group: usize| captures.get(group).map(|found| &line[found.start()..found.end()]);
    let first = if text(1).is_some() { 1 } else { 5 };
    let number = |group: usize| text(group).and_then(|text| text.parse().ok()).unwrap_or_default();
    let message = text(first + 3)?.trim();
    let message = message.strip_prefix("error:").unwrap_or(message).trim().to_owned();
    Some((text(first)?, FoundError { line: number(first + 1), column: number(first + 2), message }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str, path: &str) -> Vec<String> {
        let shown = |error: FoundError| format!("{}:{} {}", error.line, error.column, error.message);
        read(output, path, true).into_iter().map(shown).collect()
    }

    #[test]
    fn errors_of_common_checkers_are_read() {
        let output = "src/a.c:3:5: error: expected ';'\nsrc/a.c:4:1: warning: unused\n\
            src/b.c:1:1: error: in another file\n/work/src/a.c:9: undefined name\nFound 2 errors.\n\
            src/a.c:12:8: F401 `os` imported but unused\n";
        let expected = ["3:5 expected ';'", "9:0 undefined name", "12:8 F401 `os` imported but unused"];
        assert_eq!(shown(output, "src/a.c"), expected);
        assert_eq!(shown("src/a.ts(3,7): error TS2322: no\n", "src/a.ts"), ["3:7 error TS2322: no"]);
    }

    #[test]
    fn a_failure_without_a_position_is_its_last_line() {
        let output = "  File \"a.py\", line 3\n    x = (\nSyntaxError: '(' was never closed\n\n";
        assert_eq!(shown(output, "a.py"), ["0:0 SyntaxError: '(' was never closed"]);
        assert_eq!(read("all fine", "a.py", false), []);
        assert_eq!(shown("b.py:1:1: error: other\n", "a.py"), Vec::<String>::new());
    }

    #[test]
    fn the_path_is_quoted() {
        assert_eq!(command_line("check {file} strict", "a b's.py"), r"check 'a b'\''s.py' strict");
        assert_eq!(command_line("check", "a.py"), "check 'a.py'");
    }
}
