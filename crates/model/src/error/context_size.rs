//! The context size that a server states when it rejects an overlong conversation. To support a new wording,
//! add it here and a message to the tests.

use std::sync::LazyLock;

use regex::Regex;

/// Smaller numbers are not the size of a context.
const SMALLEST: u64 = 128;

/// The context size in tokens that a message states.
pub(super) fn stated(message: &str) -> Option<u64> {
    static SIZE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // Anthropic: "context limit: 188240 + 21333 > 200000", where the last number is the size.
        let number = r"(?:[0-9]+ \+ [0-9]+ > )?([0-9][0-9,_]*)";
        let before = [
            r"(?:context|prompt|model|sequence) (?:length|size|window|limit)(?: is| of|:)?(?: only)? \(?",
            r"n_ctx\W+",
            r"tokens allowed \(",
            r"token limit: ",
            r"limit(?: of| is|:)? ",
            r"must be <= ",
            r"must have less than ",
            r"cannot exceed ",
            r"should be \[1, ",
            r"[^-=]> ",
        ];
        let after = r"([0-9][0-9,_]*)(?: maximum context length|[ -]token context)";
        Regex::new(&format!("(?i)(?:{})(?:{number})|{after}", before.join("|"))).ok()
    });
    let sizes = SIZE.as_ref()?.captures_iter(message).filter_map(|found| {
        let digits = found.get(1).or_else(|| found.get(2))?.as_str();
        digits.replace([',', '_'], "").parse::<u64>().ok()
    });
    sizes.filter(|size| *size >= SMALLEST).min()
}
