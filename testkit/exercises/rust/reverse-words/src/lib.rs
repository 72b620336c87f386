/// Reverses the letters of every word.
pub fn reverse_words(text: &str) -> String {
    let mut result = Vec::new();
    for word in text.split_whitespace() {
        let mut reversed = String::new();
        for i in (0..word.len()).rev() {
            reversed.push_str(&word[i..i + 1]);
        }
        result.push(reversed);
    }
    result.join(" ")
}

/// Puts the words in the opposite order.
pub fn reverse_order(text: &str) -> String {
    text.chars().rev().collect()
}
