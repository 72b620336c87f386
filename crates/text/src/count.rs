//! Numbers with their nouns, for messages.

/// A number with its noun, which takes an `s` in the plural: `1 file`, `2 files`.
#[must_use]
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
