//! ctrl-r: searches the earlier messages, newest first, while the user types a part of one.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::input_history::InputHistory;

/// A search in progress.
#[derive(Debug, Default)]
pub(crate) struct HistorySearch {
    pub(crate) query: String,
    /// Number of further matches that were skipped with ctrl-r.
    skipped: usize,
    /// The message that matches.
    pub(crate) found: Option<String>,
}

/// What a key does to a search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SearchOutcome {
    /// The key was used; the search stays open.
    Open,
    /// The message found becomes the input.
    Accept(String),
    /// The input stays as it was.
    Cancel,
}

impl HistorySearch {
    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent, past: &InputHistory) -> SearchOutcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => {
                let older = past.search(&self.query, self.skipped + 1);
                if older.is_some() {
                    self.skipped += 1;
                }
            }
            KeyCode::Char('g' | 'c') if control => return SearchOutcome::Cancel,
            KeyCode::Esc => return SearchOutcome::Cancel,
            KeyCode::Enter | KeyCode::Tab | KeyCode::Left | KeyCode::Right => {
                return self.found.take().map_or(SearchOutcome::Cancel, SearchOutcome::Accept);
            }
            KeyCode::Backspace => {
                self.query.pop();
                self.skipped = 0;
            }
            KeyCode::Char(c) if !control => {
                self.query.push(c);
                self.skipped = 0;
            }
            _ => {}
        }
        self.found = match self.query.is_empty() {
            true => None,
            false => past.search(&self.query, self.skipped).map(str::to_owned),
        };
        SearchOutcome::Open
    }
}

#[cfg(test)]
mod tests;
