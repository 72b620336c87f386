//! Keyboard input of a terminal in raw mode.

use std::io;
use std::sync::mpsc as std_mpsc;

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event};
use crossterm::{execute, terminal};
use tokio::sync::mpsc;

use crate::process::error::CliError;

/// Guard that keeps the terminal in raw mode; dropping it restores the terminal on every exit path.
pub(super) struct RawMode;

impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(Self)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A failure means that the terminal is gone.
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = terminal::disable_raw_mode();
    }
}

/// Restores the terminal, stops the process group as a shell expects it, and takes the terminal again when continued.
pub(super) fn suspend() -> io::Result<()> {
    execute!(io::stdout(), DisableBracketedPaste)?;
    terminal::disable_raw_mode()?;
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
    terminal::enable_raw_mode()?;
    execute!(io::stdout(), EnableBracketedPaste)
}

/// Input events. The next one is only read after [`go_on`](Self::go_on), so that another program can use the
/// keyboard in between.
pub(super) struct Keys {
    events: mpsc::Receiver<io::Result<Event>>,
    go: std_mpsc::Sender<()>,
}

impl Keys {
    pub(super) fn listen() -> Result<Self, CliError> {
        let (sender, events) = mpsc::channel(1);
        let (go, may_go) = std_mpsc::channel::<()>();
        let read = move || {
            while may_go.recv().is_ok() {
                if sender.blocking_send(event::read()).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(read)
            .map_err(|error| CliError::failed(format!("cannot start a thread: {error}")))?;
        let keys = Self { events, go };
        keys.go_on();
        Ok(keys)
    }

    /// The next key press, paste or resize.
    pub(super) async fn next(&mut self) -> Option<io::Result<Event>> {
        self.events.recv().await
    }

    /// Allows one more event to be read.
    pub(super) fn go_on(&self) {
        // A reader that has exited has reported the reason in its last event.
        let _ = self.go.send(());
    }
}
