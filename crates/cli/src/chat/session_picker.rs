//! Lists from which the user chooses with the arrow keys and enter: the conversations in this directory (`/sessions`), and
//! the turns of this conversation (`/rewind`, esc esc).

use crossterm::event::{KeyCode, KeyEvent};

/// Entries that are visible at once.
const VISIBLE: usize = 10;

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PickerSubject {
    /// A conversation to continue.
    Conversation,
    /// A turn to go back to.
    Turn,
}

/// A conversation that can be continued, or a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PickerEntry {
    /// The newest run of the conversation, or the run of the turn.
    pub(crate) run: String,
    /// Number of completed turns to go back to.
    pub(crate) turn: u32,
    /// Its row in the list.
    pub(crate) text: String,
}

/// The list and the chosen entry.
#[derive(Debug)]
pub(crate) struct SessionPicker {
    pub(crate) subject: PickerSubject,
    pub(crate) entries: Vec<PickerEntry>,
    pub(crate) selected: usize,
}

/// What a key does to the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PickerOutcome {
    /// It stays open.
    Open,
    /// This entry is chosen.
    Accept(PickerEntry),
    /// Nothing is chosen.
    Cancel,
}

impl SessionPicker {
    /// A list whose first entry is chosen.
    pub(crate) fn new(subject: PickerSubject, entries: Vec<PickerEntry>) -> Self {
        Self { subject, entries, selected: 0 }
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> PickerOutcome {
        let last = self.entries.len().saturating_sub(1);
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(VISIBLE),
            KeyCode::PageDown => self.selected = (self.selected + VISIBLE).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Enter => {
                let chosen = self.entries.get(self.selected);
                return chosen.map_or(PickerOutcome::Cancel, |entry| PickerOutcome::Accept(entry.clone()));
            }
            KeyCode::Esc | KeyCode::Char('q') => return PickerOutcome::Cancel,
            _ => {}
        }
        PickerOutcome::Open
    }

    /// The visible entries: those around the chosen one.
    pub(crate) fn window(&self) -> std::ops::Range<usize> {
        let first = self.selected.saturating_sub(VISIBLE - 1);
        first..self.entries.len().min(first + VISIBLE)
    }
}
