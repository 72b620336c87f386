//! `!command` of the chat: a command of the user's, run by `sh` in the project's directory, outside of any sandbox. Its
//! output is shown as it comes, and the next message takes it to the model.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::mpsc;

/// Lines of output on their way to the screen.
const LINE_BUFFER: usize = 256;

/// Maximum length of a line in bytes; longer ones are split.
const LINE_BYTES: u64 = 16 << 10;

/// Bytes at the end of the output that the model is shown.
const MAX_OUTPUT_BYTES: usize = 16 << 10;

/// A running command of the user's. Dropping it ends the command.
pub(crate) struct UserCommand {
    /// The command as typed.
    pub(crate) line: String,
    output: mpsc::Receiver<CommandOutput>,
    group: Pid,
    kept: String,
    ended: bool,
}

/// What a command does.
pub(crate) enum CommandOutput {
    /// It wrote a line.
    Line(String),
    /// It ended; the text says how, and is empty after a success.
    Ended(String),
}

impl UserCommand {
    /// Starts a command.
    #[expect(clippy::disallowed_methods, reason = "the user's own command, typed by hand")]
    pub(crate) fn start(line: &str, directory: &Path) -> io::Result<Self> {
        let (from, to) = io::pipe()?;
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(directory).process_group(0);
        command.stdin(Stdio::null()).stdout(to.try_clone()?).stderr(to);
        let mut child = command.spawn()?;
        // It holds the writing ends of the pipe.
        drop(command);
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let group = group.ok_or_else(|| io::Error::other("the process has no id"))?;
        let (sender, output) = mpsc::channel(LINE_BUFFER);
        let read = move || {
            let mut from = BufReader::new(from);
            let mut bytes = Vec::new();
            while from.by_ref().take(LINE_BYTES).read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
                let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
                bytes.clear();
                if sender.blocking_send(CommandOutput::Line(line)).is_err() {
                    break;
                }
            }
            let end = match child.wait() {
                Ok(status) if status.success() => String::new(),
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            };
            // The chat may have ended.
            let _ = sender.blocking_send(CommandOutput::Ended(end));
        };
        std::thread::Builder::new().name("command".to_owned()).spawn(read)?;
        Ok(Self { line: line.to_owned(), output, group, kept: String::new(), ended: false })
    }

    /// Waits for what it does next.
    pub(crate) async fn next(&mut self) -> CommandOutput {
        let next = self.output.recv().await.unwrap_or_else(|| CommandOutput::Ended(String::new()));
        match &next {
            CommandOutput::Line(line) => {
                self.kept.push_str(line);
                self.kept.push('\n');
                self.cut();
            }
            CommandOutput::Ended(_) => self.ended = true,
        }
        next
    }

    /// Ends the command and everything it started.
    pub(crate) fn stop(&self) {
        if !self.ended {
            // A group that is gone needs no signal.
            let _ = kill_process_group(self.group, Signal::TERM);
        }
    }

    /// The command and the end of its output, for the model.
    pub(crate) fn for_model(&self, end: &str) -> String {
        let Self { line, kept, .. } = self;
        let end = if end.is_empty() { String::new() } else { format!("({end})\n") };
        format!("The user ran this command themselves:\n$ {line}\n{kept}{end}")
    }

    fn cut(&mut self) {
        if self.kept.len() > 2 * MAX_OUTPUT_BYTES {
            let from = self.kept.len() - MAX_OUTPUT_BYTES;
            let line = self.kept.as_bytes().iter().skip(from).position(|byte| *byte == b'\n');
            let at = line.map_or(from, |line| from + line + 1);
            self.kept = format!("…\n{}", self.kept.get(at..).unwrap_or_default());
        }
    }
}

impl Drop for UserCommand {
    fn drop(&mut self) {
        self.stop();
    }
}
