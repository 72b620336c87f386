//! Holds back the fragments of a text from the first sign of a call, so that the user sees only the answer
//! and not the inside of a call. Held-back text that is not a call is passed on when the reply is complete.

use super::{harmony, tagged};

/// Possible beginnings of a call, each at the start of a line.
const SIGNS: &[&str] =
    &[tagged::CALL, tagged::FUNCTION, harmony::CHANNEL, "<|start|>", "```json", "```tool", "{", "["];

/// The text received so far.
#[derive(Debug, Default)]
pub(crate) struct Holdback {
    text: String,
    /// Number of bytes passed on.
    given: usize,
}

impl Holdback {
    /// Adds a fragment and passes on what is certainly text.
    pub(crate) fn take(&mut self, piece: &str, give: &mut dyn FnMut(&str)) {
        self.text.push_str(piece);
        let certain = self.given + certain_prefix(&self.text[self.given..], self.at_line_start());
        if certain > self.given {
            give(&self.text[self.given..certain]);
            self.given = certain;
        }
    }

    /// Passes on the held-back rest of `text`, the text of the complete reply. If a call was extracted from
    /// the middle, the rest is not repeated.
    pub(crate) fn release(self, text: &str, give: &mut dyn FnMut(&str)) {
        let given = &self.text[..self.given];
        let rest = text.strip_prefix(given).or_else(|| text.strip_prefix(given.trim_start()));
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            give(rest);
        }
    }

    fn at_line_start(&self) -> bool {
        self.text[..self.given].trim_end_matches([' ', '\t']).is_empty()
            || self.text[..self.given].trim_end_matches([' ', '\t']).ends_with('\n')
    }
}

/// Length of the prefix of `text` that cannot be part of a call.
fn certain_prefix(text: &str, mut at_line_start: bool) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at_line_start {
            let start = line.trim_start();
            let is_sign = |sign: &&&str| start.starts_with(**sign) || sign.starts_with(start);
            if SIGNS.iter().any(|sign| is_sign(&sign)) && !(start.is_empty() && line.ends_with('\n')) {
                return at;
            }
        }
        at += line.len();
        at_line_start = line.ends_with('\n');
    }
    at
}
