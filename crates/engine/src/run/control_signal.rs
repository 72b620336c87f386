//! Control of a run by other processes: they leave a signal in its journal, and the process that works on the run takes
//! it and acts through its [`RunControl`]. Answers to questions are signals too, but those are taken by the wait
//! (`approval::signal_name`).

use std::time::Duration;

use fusee_journal::event::Event;
use fusee_journal::{Branch, DurableRun as _, Journal, JournalError, RunId};
use serde_json::Value;

use super::control::RunControl;

/// How often the journal is looked at.
const POLL: Duration = Duration::from_millis(300);

/// How long a sender waits until its signal is taken.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval at which a sender looks.
const SEND_POLL: Duration = Duration::from_millis(50);

/// Code of the warning about a message that did not reach the model.
const NOT_DELIVERED: &str = "message_not_delivered";

/// Something that a process asks of a run that another process works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlSignal {
    /// End the run.
    Cancel,
    /// Stop the current turn and ask how to continue.
    StopTurn,
    /// Give the model this message, as [`RunControl::say`] does.
    Message(String),
}

/// Result of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalOutcome {
    /// The process that works on the run has taken it.
    Taken,
    /// An earlier signal of this kind has not been taken yet.
    Busy,
    /// The run has ended, or nobody works on it.
    NotRunning,
}

impl ControlSignal {
    /// Names of all signals. None is the name of a wait, which begins with a branch.
    const NAMES: [&str; 3] = ["control cancel", "control stop", "control message"];

    fn name(&self) -> &'static str {
        match self {
            Self::Cancel => Self::NAMES[0],
            Self::StopTurn => Self::NAMES[1],
            Self::Message(_) => Self::NAMES[2],
        }
    }

    fn read(name: &str, value: Value) -> Option<Self> {
        match (name, value) {
            ("control cancel", _) => Some(Self::Cancel),
            ("control stop", _) => Some(Self::StopTurn),
            ("control message", Value::String(text)) => Some(Self::Message(text)),
            _ => None,
        }
    }

    /// Sends the signal to the process that works on a run and waits until it is taken, for at most 3 seconds.
    pub async fn send(&self, journal: &Journal, run: &RunId) -> Result<SignalOutcome, JournalError> {
        if !journal.is_active(run) {
            return Ok(SignalOutcome::NotRunning);
        }
        let value = match self {
            Self::Message(text) => Value::String(text.clone()),
            Self::Cancel | Self::StopTurn => Value::Null,
        };
        let Some(signal) = journal.offer_signal(run, self.name(), &value).await? else {
            return Ok(SignalOutcome::Busy);
        };
        let taken = async {
            while journal.is_active(run) {
                match journal.find_signal(run, self.name())? {
                    Some((left, _)) if left == signal => tokio::time::sleep(SEND_POLL).await,
                    _ => return Ok(SignalOutcome::Taken),
                }
            }
            Ok::<_, JournalError>(SignalOutcome::NotRunning)
        };
        match tokio::time::timeout(ACCEPT_TIMEOUT, taken).await {
            Ok(Ok(SignalOutcome::Taken)) => Ok(SignalOutcome::Taken),
            Ok(Err(error)) => Err(error),
            // Taken back, so that a later process does not act on it; unless that comes too late.
            Ok(Ok(_)) | Err(_) => Ok(match journal.remove_signal(signal).await? {
                true => SignalOutcome::NotRunning,
                false => SignalOutcome::Taken,
            }),
        }
    }
}

/// Removes what was asked of an earlier process.
pub(super) async fn discard(journal: &Journal, run: &RunId) -> Result<(), JournalError> {
    for name in ControlSignal::NAMES {
        if let Some((signal, _)) = journal.find_signal(run, name)? {
            journal.remove_signal(signal).await?;
        }
    }
    Ok(())
}

/// Acts on the signals that other processes leave, until the run has ended. A journal that cannot be read ends the
/// listening; the run itself reports the fault.
pub(super) async fn listen(control: RunControl, journal: Journal, resumed: bool) {
    if resumed && discard(&journal, control.id()).await.is_err() {
        return;
    }
    loop {
        tokio::time::sleep(POLL).await;
        if control.is_ended() {
            return;
        }
        for name in ControlSignal::NAMES {
            let Ok(found) = journal.find_signal(control.id(), name) else { return };
            let Some((signal, value)) = found else { continue };
            // Whoever removes it acts on it.
            if journal.remove_signal(signal).await.unwrap_or(false)
                && let Some(asked) = ControlSignal::read(name, value)
            {
                act(&control, asked);
            }
        }
    }
}

fn act(control: &RunControl, asked: ControlSignal) {
    match asked {
        ControlSignal::Cancel => control.cancel(),
        ControlSignal::StopTurn => {
            control.turn_stop().stop();
        }
        // Stopping a turn takes time in which the run may be cancelled.
        ControlSignal::Message(text) => {
            let control = control.clone();
            tokio::spawn(async move {
                if let Err(error) = control.say(text).await {
                    let message = format!("a message was not delivered: {error}");
                    let code = NOT_DELIVERED.to_owned();
                    control.sqlite_run.note(&Branch::main(), Event::Warning { code, message });
                    // A run that has ended cannot tell any more.
                    let _ = control.sqlite_run.flush().await;
                }
            });
        }
    }
}
