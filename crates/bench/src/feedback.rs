//! Test output as given to a model for its next try: without times, addresses and absolute paths, so that it is
//! reproducible, and of bounded length.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

/// Characters kept from the start and from the end of a long output.
const HEAD: usize = 2000;
const TAIL: usize = 6000;

/// Patterns that vary between identical test runs, and their replacements.
static VOLATILE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        // Escape sequences.
        (r"\x1b\[[0-9;?]*[A-Za-z]", ""),
        // Date and time, alone or together.
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"\b\d\d:\d\d:\d\d[.,]\d+\b", "<time>"),
        // TAP and node: duration_ms 1.234
        (r"\bduration_ms:? \d+(?:\.\d+)?", "duration_ms <time>"),
        // 0.003s, 1.2 seconds, 15ms
        (r"\b\d+(?:\.\d+)?(?:e-\d+)? ?(?:seconds?|secs?|ms|µs|us|ns|s)\b", "<time>"),
        (r"\(cached\)", "<time>"),
        // Addresses of objects, ids of threads and processes.
        (r"\b0x[0-9a-fA-F]{6,16}\b", "0x…"),
        (r"\bgoroutine \d+\b", "goroutine N"),
        (r"(?i)\b(thread|pid|process)([ =:#']+)\d+\b", "$1${2}N"),
        (r"thread '([^']*)' \(\d+\)", "thread '$1'"),
    ];
    patterns.into_iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
});

/// An absolute path of at least two parts, up to its last slash.
static ABSOLUTE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(^|[\s"'`(\[<=,:])(?:file://)?/(?:[\w.@+~-]+/)+"#).ok());

/// Prepares the output of tests that ran in `directory`.
pub fn normalise(output: &str, directory: &Path) -> String {
    let mut text = output.replace("\r\n", "\n");
    let directory = directory.to_string_lossy();
    if directory.len() > 1 {
        text = text.replace(&format!("{directory}/"), "").replace(directory.as_ref(), ".");
    }
    for (pattern, with) in VOLATILE.iter() {
        text = pattern.replace_all(&text, *with).into_owned();
    }
    if let Some(absolute) = ABSOLUTE.as_ref() {
        text = absolute.replace_all(&text, "$1").into_owned();
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    shorten(lines.join("\n").trim_matches('\n'))
}

fn shorten(text: &str) -> String {
    let count = text.chars().count();
    if count <= HEAD + TAIL {
        return text.to_owned();
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(HEAD)], &text[at(count - TAIL)..]);
    format!("{head}\n[… {} characters left out …]\n{tail}", count - HEAD - TAIL)
}

#[cfg(test)]
mod tests;
