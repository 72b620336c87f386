//! Opens a text in the user's own editor.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::{execute, terminal};

use fusee::system;

use crate::process::environment::Environment;

/// The editor's command line from `VISUAL` or `EDITOR`, in shell syntax.
pub(super) fn editor(environment: &Environment) -> Option<String> {
    ["VISUAL", "EDITOR"].into_iter().find_map(|name| environment.text(name)).map(str::to_owned)
}

/// Opens the text in the editor and returns the edited text.
pub(super) fn edit(program: &str, text: &str) -> io::Result<String> {
    let name = system::new_run_id().map_err(io::Error::other)?;
    let path = std::env::temp_dir().join(format!("fusee-message-{name}.md"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    terminal::disable_raw_mode()?;
    execute!(io::stdout(), DisableBracketedPaste)?;
    let ended = run(program, &path);
    terminal::enable_raw_mode()?;
    execute!(io::stdout(), EnableBracketedPaste)?;
    let edited = fs::read_to_string(&path);
    let _ = fs::remove_file(&path);
    if ended?.success() { edited } else { Err(io::Error::other("it exited with an error")) }
}

#[expect(
    clippy::disallowed_methods,
    reason = "runs the user's own editor, on request, on the user's terminal"
)]
fn run(program: &str, path: &std::path::Path) -> io::Result<std::process::ExitStatus> {
    let line = format!("{program} \"$1\"");
    std::process::Command::new("/bin/sh").args(["-c", &line, "sh"]).arg(path).status()
}
