//! Keeps the pieces of a text back from the first sign of a call on: what a person sees under way is then the answer and
//! not the inside of a call. What turns out to be text is given when the reply is whole.

use super::{harmony, tagged};

/// The signs, each at the beginning of a line.
const SIGNS: &[&str] =
    &[tagged::CALL, tagged::FUNCTION, harmony::CHANNEL, "<|start|>", "```json", "```tool", "{", "["];

/// A text as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    text: String,
    /// How much of it was given on.
    given: usize,
}

impl Holding {
    /// Takes the next piece and gives on what is certainly text.
    pub(crate) fn take(&mut self, piece: &str, give: &mut dyn FnMut(&str)) {
        self.text.push_str(piece);
        let certain = self.given + certain(&self.text[self.given..], self.at_line_start());
        if certain > self.given {
            give(&self.text[self.given..certain]);
            self.given = certain;
        }
    }

    /// The reply is whole and its text is `text`: gives on what of it was kept back. Where a call was lifted out of the
    /// middle, the rest is not repeated.
    pub(crate) fn settle(self, text: &str, give: &mut dyn FnMut(&str)) {
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

/// How much of `text` can be no call.
fn certain(text: &str, mut at_line_start: bool) -> usize {
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
