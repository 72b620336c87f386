//! Esc esc and `/rewind` in the terminal. [`super::super::session`] goes back.

use fusee::engine::rewind::RewindParts;

use super::TerminalLoop;
use crate::chat::commands::TurnTarget;
use crate::ui::line::Style;

impl TerminalLoop<'_, '_> {
    /// Shows the turns to choose from, or what going back to one would change.
    pub(super) fn show_rewind(&mut self, target: Option<&TurnTarget>) {
        let now = self.now();
        match target {
            Some(target) => match self.session.describe_rewind(target) {
                Ok(rows) => self.state.ask_rewind(target.clone(), rows, now),
                Err(failure) => self.failed(&failure),
            },
            None => match self.session.turn_entries() {
                Ok(entries) if entries.is_empty() => {
                    self.state.notify(Style::Dim, "nothing to go back to: this conversation is new");
                }
                Ok(entries) => self.state.choose_turn(entries),
                Err(failure) => self.failed(&failure),
            },
        }
    }

    /// Goes back to a turn.
    pub(super) async fn rewind(&mut self, target: &TurnTarget, parts: RewindParts) {
        match Box::pin(self.session.rewind(target, parts)).await {
            Ok((rows, message)) => {
                self.state.print(rows);
                if let Some(message) = message {
                    self.state.set_input(&message);
                }
            }
            Err(failure) => self.failed(&failure),
        }
        self.show_status();
    }
}
