//! The keyboard of a terminal in raw mode.

use std::io;
use std::sync::mpsc as std_mpsc;

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event};
use crossterm::{execute, terminal};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// Raw mode for as long as this lives, however we end.
pub(super) struct Raw;

impl Raw {
    pub(super) fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // Where this fails the terminal is gone.
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = terminal::disable_raw_mode();
    }
}

/// Keys as they come. The next is only read after [`go_on`](Self::go_on), so that another program can have the
/// keyboard in between.
pub(super) struct Keys {
    events: mpsc::Receiver<io::Result<Event>>,
    go: std_mpsc::Sender<()>,
}

impl Keys {
    pub(super) fn listen() -> Result<Self, Failure> {
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
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        let keys = Self { events, go };
        keys.go_on();
        Ok(keys)
    }

    /// The next key, paste or change of size.
    pub(super) async fn next(&mut self) -> Option<io::Result<Event>> {
        self.events.recv().await
    }

    /// One more may be read.
    pub(super) fn go_on(&self) {
        // A reader that is gone has said so in its last event.
        let _ = self.go.send(());
    }
}
