/// Returns the longest text with which all words begin.
pub fn common_start<'a>(words: &[&'a str]) -> &'a str {
    todo!()
}

/// Returns the shortest unambiguous start of each word.
pub fn abbreviations<'a>(words: &[&'a str]) -> Vec<&'a str> {
    todo!()
}
