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
        if character == '#' {
            while rest.next_if(|(_, next)| *next != '\n').is_some() {}
        } else if character.is_ascii_digit() {
            let mut number = character.to_string();
            while let Some((_, digit)) = rest.next_if(|(_, next)| next.is_ascii_digit()) {
                number.push(digit);
            }
            found.push(Token::Number(number.parse().map_err(|_| at)?));
        } else if character.is_alphabetic() || character == '_' {
            let mut name = character.to_string();
            while let Some((_, next)) = rest.next_if(|(_, next)| next.is_alphanumeric() || *next == '_') {
                name.push(next);
            }
            found.push(Token::Name(name));
        } else if character == '"' {
            let mut content = String::new();
            loop {
                match rest.next().ok_or(at)?.1 {
                    '"' => break,
                    '\\' => content.push(rest.next().ok_or(at)?.1),
                    other => content.push(other),
                }
            }
            found.push(Token::Text(content));
        } else if "+-*/()".contains(character) {
            found.push(Token::Symbol(character.to_string()));
        } else if "<>=".contains(character) {
            let mut symbol = character.to_string();
            if rest.next_if(|(_, next)| *next == '=').is_some() {
                symbol.push('=');
            }
            found.push(Token::Symbol(symbol));
        } else {
            return Err(at);
        }
    }
    Ok(found)
}
