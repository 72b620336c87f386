//! Reads the words and operators of a shell script. Where shells differ, the result is not `plain`.

/// What a script consists of.
#[derive(Debug, Default)]
pub(super) struct Lexed {
    pub(super) tokens: Vec<Token>,
    /// Scripts inside of it: command substitutions.
    pub(super) inner: Vec<String>,
    /// The contents of its here-documents.
    pub(super) documents: Vec<String>,
    /// Whether all words are plain and every shell reads the script alike.
    pub(super) plain: bool,
    /// Whether it is uncertain where a script inside of it ends.
    pub(super) uncertain: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// Anything that ends a simple command.
    Operator,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Whether the text is what the shell makes of the word.
    pub(super) fixed: bool,
    /// Whether any of it is quoted.
    quoted: bool,
}

impl Word {
    /// Whether it is this keyword. A quoted word is none.
    pub(super) fn is_bare(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

/// Redirections that write no file and that every shell reads alike.
const HARMLESS: [&str; 6] = ["2>&1", ">/dev/null", "1>/dev/null", "2>/dev/null", "</dev/null", "1>&2"];

pub(super) struct Lexer {
    characters: Vec<char>,
    at: usize,
    word: Option<Word>,
    /// Whether the next word is the target of a redirection.
    target: bool,
    /// Delimiters of the here-documents that follow this line, and whether leading tabs are removed.
    awaited: Vec<(String, bool)>,
    /// Whether the next word is such a delimiter, and the same.
    delimiter: Option<bool>,
    lexed: Lexed,
}

impl Lexer {
    pub(super) fn read(text: &str) -> Lexed {
        let mut lexer = Self {
            characters: text.chars().collect(),
            at: 0,
            word: None,
            target: false,
            awaited: Vec::new(),
            delimiter: None,
            lexed: Lexed { plain: true, ..Lexed::default() },
        };
        while let Some(next) = lexer.next() {
            lexer.take(next);
        }
        lexer.end_command();
        lexer.lexed.plain &= lexer.awaited.is_empty();
        lexer.lexed
    }

    fn next(&mut self) -> Option<char> {
        let next = self.characters.get(self.at).copied();
        self.at += 1;
        next
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn take(&mut self, next: char) {
        match next {
            ' ' | '\t' => self.end_word(),
            '\n' => {
                self.end_command();
                self.take_documents();
            }
            ';' | '|' | '&' | '(' | ')' => self.operator(next),
            '<' | '>' => self.redirection(next),
            _ if self.word.is_none() && self.take_harmless() => {}
            '#' if self.word.is_none() => {
                while self.peek().is_some_and(|next| next != '\n') {
                    self.at += 1;
                }
            }
            '\'' => self.quoted(),
            '"' => self.double_quoted(),
            '\\' => match self.next() {
                // An escaped newline continues the line.
                Some('\n') => {}
                Some(escaped) => {
                    let word = self.word();
                    word.text.push(escaped);
                    word.quoted = true;
                }
                None => self.lexed.plain = false,
            },
            '$' | '`' => self.expansion(next),
            // The name of a program, as `[` is too.
            '[' if self.word.is_none() && self.ends_here() => self.word().text.push(next),
            ']' if !self.word.as_ref().is_some_and(|word| word.text.contains('[')) => {
                self.word().text.push(next);
            }
            '*' | '?' | '[' | ']' | '{' | '}' => {
                // The shell may replace the word, and shells differ in braces. A lone brace is a keyword.
                let alone = matches!(next, '{' | '}') && self.word.is_none() && self.ends_here();
                self.lexed.plain = false;
                let word = self.word();
                word.fixed &= alone || next == '[';
                word.text.push(next);
            }
            other => {
                // Terminals and shells disagree about control characters.
                self.lexed.plain &= !other.is_control();
                self.word().text.push(other);
            }
        }
    }

    fn ends_here(&self) -> bool {
        self.peek().is_none_or(|next| next.is_whitespace() || matches!(next, ';' | '&' | '|' | ')'))
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert(Word { fixed: true, ..Word::default() })
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if let Some(strip) = self.delimiter.take() {
            self.awaited.push((word.text, strip));
        } else if !std::mem::take(&mut self.target) {
            self.lexed.tokens.push(Token::Word(word));
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.target = false;
        self.lexed.tokens.push(Token::Operator);
    }

    fn operator(&mut self, next: char) {
        self.end_command();
        let doubled = self.peek() == Some(next);
        self.lexed.plain &= match next {
            '&' | '|' => {
                self.at += usize::from(doubled);
                // `&>` and `|&` are operators in some shells only.
                !matches!(self.peek(), Some('&' | '|' | '>' | '<' | ';'))
            }
            ';' => !matches!(self.peek(), Some(';' | '&' | '|')),
            _ => false,
        };
    }

    /// A redirection that leads nowhere, standing alone.
    fn take_harmless(&mut self) -> bool {
        self.at -= 1;
        let rest = &self.characters[self.at..];
        let stands = |known: &&&str| {
            let length = known.len();
            rest.len() >= length
                && known.chars().eq(rest[..length].iter().copied())
                && rest.get(length).is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '|' | '&'))
        };
        let found = HARMLESS.iter().find(stands).map_or(0, |known| known.len());
        self.at += found.max(1);
        found > 0
    }

    fn redirection(&mut self, next: char) {
        // A number directly before it belongs to it.
        let number = self.word.as_ref().is_some_and(|word| {
            !word.quoted && !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_digit())
        });
        if number {
            self.word = None;
        } else {
            self.end_word();
        }
        if !number && self.take_harmless() {
            return;
        }
        self.lexed.plain = false;
        if self.peek() == Some('(') {
            // A process substitution, in some shells.
            self.at += 1;
            return self.substitution();
        }
        let document = next == '<' && self.peek() == Some('<');
        while self.peek().is_some_and(|next| matches!(next, '<' | '>' | '&' | '|')) {
            self.at += 1;
        }
        if document {
            let strip = self.peek() == Some('-');
            self.at += usize::from(strip);
            self.delimiter = Some(strip);
        } else {
            self.target = true;
        }
    }

    fn take_documents(&mut self) {
        for (delimiter, strip) in std::mem::take(&mut self.awaited) {
            let mut document = String::new();
            loop {
                let line: String = self.characters[self.at.min(self.characters.len())..]
                    .iter()
                    .take_while(|c| **c != '\n')
                    .collect();
                self.at += line.chars().count() + 1;
                let shown = if strip { line.trim_start_matches('\t') } else { &line };
                if shown == delimiter {
                    break;
                }
                document.push_str(shown);
                document.push('\n');
                // Without a delimiter, the rest of the script belongs to it.
                if self.at > self.characters.len() {
                    break;
                }
            }
            // Substitutions in it are run as well, unless the delimiter was quoted; assume they are.
            self.substitutions_in(&document);
            self.lexed.documents.push(document);
        }
    }

    fn quoted(&mut self) {
        self.word().quoted = true;
        loop {
            match self.next() {
                Some('\'') => return,
                Some(inside) => {
                    self.lexed.plain &= !inside.is_control();
                    self.word().text.push(inside);
                }
                None => return self.lexed.plain = false,
            }
        }
    }

    fn double_quoted(&mut self) {
        self.word().quoted = true;
        loop {
            match self.next() {
                Some('"') => return,
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(escaped) => {
                        // Before any other character, a backslash is literal.
                        if !matches!(escaped, '"' | '\\' | '$' | '`') {
                            self.word().text.push('\\');
                        }
                        self.word().text.push(escaped);
                    }
                    None => return self.lexed.plain = false,
                },
                Some(next @ ('$' | '`')) => self.expansion(next),
                Some(inside) => {
                    self.lexed.plain &= !inside.is_control();
                    self.word().text.push(inside);
                }
                None => return self.lexed.plain = false,
            }
        }
    }

    /// Something that only the shell can evaluate.
    fn expansion(&mut self, next: char) {
        self.lexed.plain = false;
        let word = self.word();
        word.fixed = false;
        // Keeps the word from being taken for another one where it is read again.
        word.text.push(next);
        match (next, self.peek()) {
            ('`', _) => {
                let mut script = String::new();
                while let Some(inside) = self.next() {
                    match inside {
                        '`' => break,
                        '\\' => script.extend(self.next()),
                        _ => script.push(inside),
                    }
                }
                self.lexed.inner.push(script);
            }
            (_, Some('(')) => {
                self.at += 1;
                self.substitution();
            }
            (_, Some('{')) => {
                self.at += 1;
                let inside = self.until_closed('{', '}');
                self.substitutions_in(&inside);
            }
            // A variable: its name becomes part of the word, which is not fixed anyway.
            _ => {}
        }
    }

    /// A script in parentheses, of which the first one is consumed.
    fn substitution(&mut self) {
        let script = self.until_closed('(', ')');
        // A parenthesis after a pattern, in a comment or in a here-document does not close it.
        let is_word = |word: &str| script.split(|c: char| !c.is_alphanumeric()).any(|other| other == word);
        self.lexed.uncertain |= script.contains('#') || script.contains("<<") || is_word("case");
        self.lexed.inner.push(script);
    }

    /// Adds the scripts that are substituted in a text that is not a script itself.
    fn substitutions_in(&mut self, text: &str) {
        // Read as if it was in double quotes, where nothing but substitutions has a meaning.
        let quoted: String = text.chars().filter(|c| *c != '"').collect();
        if quoted.contains(['$', '`']) {
            let read = Lexer::read(&format!("\"{quoted}\""));
            self.lexed.inner.extend(read.inner);
            self.lexed.uncertain |= read.uncertain;
        }
    }

    /// The text up to the closing character, which is consumed. Quotes are respected.
    fn until_closed(&mut self, open: char, close: char) -> String {
        let (mut text, mut depth, mut quote) = (String::new(), 1, None);
        while let Some(next) = self.next() {
            match (quote, next) {
                (None, '\\') | (Some('"'), '\\') => {
                    text.push(next);
                    text.extend(self.next());
                    continue;
                }
                (None, '\'' | '"') => quote = Some(next),
                (Some(mark), _) if mark == next => quote = None,
                (None, _) if next == open => depth += 1,
                (None, _) if next == close => {
                    depth -= 1;
                    if depth == 0 {
                        return text;
                    }
                }
                _ => {}
            }
            text.push(next);
        }
        text
    }
}
