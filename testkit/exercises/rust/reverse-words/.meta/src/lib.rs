/// Reverses the letters of every word.
pub fn reverse_words(text: &str) -> String {
    let words: Vec<String> = text.split(' ').map(|word| word.chars().rev().collect()).collect();
    words.join(" ")
}

/// Puts the words in the opposite order.
pub fn reverse_order(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().rev().collect();
    words.join(" ")
}
