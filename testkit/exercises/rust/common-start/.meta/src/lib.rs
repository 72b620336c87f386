/// Returns the longest text with which all words begin.
pub fn common_start<'a>(words: &[&'a str]) -> &'a str {
    let Some(first) = words.first() else { return "" };
    let mut end = 0;
    for (at, letter) in first.char_indices() {
        let next = at + letter.len_utf8();
        if !words.iter().all(|word| word.starts_with(&first[..next])) {
            break;
        }
        end = next;
    }
    &first[..end]
}

/// Returns the shortest unambiguous start of each word.
pub fn abbreviations<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let others_start = |index: usize, start: &str| {
        words.iter().enumerate().any(|(other, word)| other != index && word.starts_with(start))
    };
    let shortest = |(index, word): (usize, &&'a str)| {
        let ends = word.char_indices().map(|(at, letter)| at + letter.len_utf8());
        let found = ends.map(|end| &word[..end]).find(|start| !others_start(index, start));
        found.unwrap_or(word)
    };
    words.iter().enumerate().map(shortest).collect()
}
