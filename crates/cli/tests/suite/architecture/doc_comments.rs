//! Doc comments say more than the name of their item.

use std::collections::BTreeSet;

use super::{assert_none, read, rust_files};

/// Words that add nothing to a name.
const FILLERS: &[&str] = &[
    "a", "an", "by", "creates", "for", "how", "in", "is", "it", "its", "new", "of", "returns", "self",
    "that", "the", "this", "to", "what", "whether", "with",
];

#[test]
fn no_doc_comment_only_repeats_the_name_of_its_item() {
    let repeating: Vec<String> = rust_files()
        .iter()
        .flat_map(|file| {
            repeating_comments(&read(file)).map(move |at| format!("{file}:{at}")).collect::<Vec<_>>()
        })
        .collect();
    assert_none("doc comments that only repeat a name", &repeating);
}

#[test]
fn a_repeated_name_is_found_and_a_description_is_not() {
    let lines = |text: &str| repeating_comments(text).collect::<Vec<_>>();
    assert_eq!(lines("/// The port.\npub port: u16,\n"), [1]);
    assert_eq!(lines("/// How a job ended.\n#[derive(Debug)]\npub enum JobEnd {\n"), [1]);
    assert_eq!(lines("/// TCP port of the server.\npub port: u16,\n"), [0; 0]);
    assert_eq!(lines("/// The port.\n///\n/// Zero lets the system choose.\npub port: u16,\n"), [0; 0]);
}

/// Lines (from 1) of one-line doc comments whose words all occur in the name of their item.
fn repeating_comments(text: &str) -> impl Iterator<Item = usize> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let repeats = move |at: &usize| {
        let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
        let Some(comment) = lines[*at].strip_prefix("/// ") else { return false };
        if at.checked_sub(1).is_some_and(is_doc) || is_doc(at + 1) {
            return false;
        }
        let Some(item) = lines[at + 1..].iter().find(|line| !line.starts_with("#[")) else { return false };
        let name = words(item_name(item));
        !name.is_empty() && words(comment).is_subset(&name)
    };
    (0..text.lines().count()).filter(repeats).map(|at| at + 1).collect::<Vec<_>>().into_iter()
}

/// The identifier that a line declares: the last word before its parameters, type or body.
fn item_name(line: &str) -> &str {
    let end = line.find(['(', ':', '{', '<', ',', '=', ';']).unwrap_or(line.len());
    // Visibility such as `pub(crate)` has a bracket of its own.
    let declaration = line.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")).map(|(_, rest)| rest);
    match declaration {
        Some(rest) => item_name(rest),
        None => line[..end].split_whitespace().next_back().unwrap_or_default(),
    }
}

/// The stems of the words of a name or sentence, without fillers.
fn words(text: &str) -> BTreeSet<String> {
    let mut spaced = String::new();
    for letter in text.chars() {
        if letter.is_uppercase() || !letter.is_alphanumeric() {
            spaced.push(' ');
        }
        spaced.extend(letter.to_lowercase().filter(|letter| letter.is_alphanumeric()));
    }
    let stem = |word: &str| {
        let endings = ["ies", "es", "ed", "ing", "s"];
        endings.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).to_owned()
    };
    spaced.split_whitespace().filter(|word| !FILLERS.contains(word)).map(stem).collect()
}
