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
pub(crate) enum SearchEnd {
    /// The key was used; the search stays open.
    GoesOn,
    /// The message found becomes the input.
    Take(String),
    /// The input stays as it was.
    Abandon,
}

impl HistorySearch {
    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent, past: &InputHistory) -> SearchEnd {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => {
                let older = past.search(&self.query, self.skipped + 1);
                if older.is_some() {
                    self.skipped += 1;
                }
            }
            KeyCode::Char('g' | 'c') if control => return SearchEnd::Abandon,
            KeyCode::Esc => return SearchEnd::Abandon,
            KeyCode::Enter | KeyCode::Tab | KeyCode::Left | KeyCode::Right => {
                return self.found.take().map_or(SearchEnd::Abandon, SearchEnd::Take);
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
        SearchEnd::GoesOn
    }
}

#[cfg(test)]
mod tests;
