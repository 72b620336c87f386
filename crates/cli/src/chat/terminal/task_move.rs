//! `/background`: the running task goes on in a process of its own. This process finishes the tool calls in progress and
//! gives the run up; the other one resumes it from the journal.

use fusee::engine::journal::{RunAborted, RunId};
use tokio::task::JoinHandle;

use super::TerminalLoop;
use crate::command::detach;
use crate::ui::line::Style;

/// A task that is being given up.
pub(super) struct TaskMove(JoinHandle<Result<(), RunAborted>>);

impl TerminalLoop<'_, '_> {
    /// Begins to give the task up. Its events end when that is done.
    pub(super) fn move_to_background(&mut self) {
        let Some(live) = &self.live else { return };
        let control = live.control.clone();
        self.moving = Some(TaskMove(tokio::spawn(async move { control.park().await })));
        self.state.set_moving();
    }

    /// Starts the process that continues a task that was given up.
    pub(super) async fn continue_elsewhere(&mut self, moved: TaskMove, run: &RunId) {
        let given_up = match moved.0.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let started = match given_up {
            Ok(()) => detach::resume(run, self.session.directory()).await,
            Err(error) => Err(error),
        };
        match started {
            Ok(()) => self.state.notify(
                Style::Dim,
                &format!(
                    "the task continues in the background: `fusee attach {run}` watches it, /runs lists it, /resume {run} continues the conversation when it has ended"
                ),
            ),
            Err(error) => self.state.notify(
                Style::Bad,
                &format!("the task could not continue in the background: {}\n/resume {run} continues it here", error.trim_end()),
            ),
        }
    }
}
