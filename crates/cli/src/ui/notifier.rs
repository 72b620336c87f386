//! Tells the user that a run needs them or has ended: by the terminal's bell, by a sequence that terminals turn into a
//! desktop notification, and by a command of the user's. Configured by `notify` and `notify_command`.

use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fusee::engine::journal::event::{Event, TaskStatus};
use fusee::engine::journal::{Branch, EventRecord};
use fusee::engine::text::render::sanitize;

use super::{Ui, format};
use crate::config::Config;
use crate::process::stdio;

#[cfg(test)]
mod tests;

/// How long the command may take; then it is killed.
const COMMAND_TIME: Duration = Duration::from_secs(10);

/// Interval between two checks of whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of characters of a notification.
const SHOWN: usize = 120;

/// How a terminal is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TerminalNotice {
    Bell,
    Osc9,
    Osc777,
}

/// Where notifications go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notifier {
    terminal: Option<TerminalNotice>,
    command: Option<String>,
}

/// What the user is told.
struct Notice<'a> {
    /// `needs_you`, `completed`, `failed` or `cancelled`.
    event: &'static str,
    run: &'a str,
    title: &'a str,
    text: String,
}

impl Notifier {
    /// The user's notifications.
    pub(crate) fn new(config: &Config) -> Self {
        let terminal = match config.text("notify") {
            Some("bell") => Some(TerminalNotice::Bell),
            Some("osc9") => Some(TerminalNotice::Osc9),
            Some("osc777") => Some(TerminalNotice::Osc777),
            _ => None,
        };
        Self { terminal, command: config.text("notify_command").map(str::to_owned) }
    }

    /// Without the terminal, for a run in the background.
    #[must_use]
    pub(crate) fn without_terminal(self) -> Self {
        Self { terminal: None, ..self }
    }

    /// Without the command, for a watcher of a run whose own process runs it.
    #[must_use]
    pub(crate) fn without_command(self) -> Self {
        Self { command: None, ..self }
    }

    /// Whether nobody is told.
    pub(crate) fn is_off(&self) -> bool {
        self.terminal.is_none() && self.command.is_none()
    }

    fn tell(&self, notice: &Notice<'_>) {
        if let Some(kind) = self.terminal {
            stdio::error_styled(&sequence(kind, notice));
        }
        if let Some(command) = &self.command {
            // A notification that fails must not disturb the run it is about.
            let _ = run(command, notice);
        }
    }
}

fn sequence(kind: TerminalNotice, notice: &Notice<'_>) -> String {
    let title = sanitize(notice.title).replace(';', ",");
    let text = sanitize(&notice.text);
    match kind {
        TerminalNotice::Bell => "\u{7}".to_owned(),
        TerminalNotice::Osc9 => format!("\u{1b}]9;{text}: {title}\u{7}"),
        TerminalNotice::Osc777 => format!("\u{1b}]777;notify;{text}: {title};fusee\u{7}"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the user's own command, which is no command of a model")]
fn run(command: &str, notice: &Notice<'_>) -> io::Result<()> {
    let mut child = std::process::Command::new("sh")
        .args(["-c", command])
        .env("FUSEE_NOTIFY_EVENT", notice.event)
        .env("FUSEE_NOTIFY_RUN", notice.run)
        .env("FUSEE_NOTIFY_TITLE", &*sanitize(notice.title))
        .env("FUSEE_NOTIFY_TEXT", &*sanitize(&notice.text))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > COMMAND_TIME {
            child.kill()?;
            child.wait()?;
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Reads the events of a run and notifies.
pub(crate) struct NotificationUi {
    notifier: Notifier,
    title: String,
}

impl NotificationUi {
    pub(crate) fn new(notifier: Notifier) -> Self {
        Self { notifier, title: String::new() }
    }

    fn notice(&self, record: &EventRecord) -> Option<(&'static str, String)> {
        match &record.event {
            Event::ApprovalRequested { name, arguments, .. } if name == "ask_user" => {
                let question = arguments["question"].as_str().unwrap_or_default();
                Some(("needs_you", format!("asks: {}", format::one_line(question, SHOWN))))
            }
            Event::ApprovalRequested { name, .. } => Some(("needs_you", format!("{name} needs approval"))),
            Event::TaskComplete(complete) if record.task == Branch::main() => {
                let event = match complete.status {
                    TaskStatus::Completed => "completed",
                    TaskStatus::Failed => "failed",
                    TaskStatus::Cancelled => "cancelled",
                };
                Some((event, event.to_owned()))
            }
            _ => None,
        }
    }
}

impl Ui for NotificationUi {
    fn show(&mut self, record: &EventRecord) -> io::Result<()> {
        if let Event::TaskStarted(started) = &record.event
            && record.task == Branch::main()
        {
            self.title = format::one_line(format::request_text(&started.request), SHOWN);
        }
        if let Some((event, text)) = self.notice(record) {
            self.notifier.tell(&Notice { event, run: record.run.as_str(), title: &self.title, text });
        }
        Ok(())
    }
}
