/// A part of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Number(u64),
    Name(String),
    Text(String),
    Symbol(String),
}

/// Splits a text into tokens; the error is a byte position.
pub fn tokens(text: &str) -> Result<Vec<Token>, usize> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        if character.is_whitespace() {
            continue;
        }
        if character.is_ascii_digit() {
            let mut number = character.to_string();
            while let Some((_, digit)) = rest.next_if(|(_, next)| next.is_ascii_digit()) {
                number.push(digit);
            }
            found.push(Token::Number(number.parse().map_err(|_| at)?));
        } else if "+-*/()".contains(character) {
            found.push(Token::Symbol(character.to_string()));
        } else {
            return Err(at);
        }
    }
    Ok(found)
}
