//! Splits a command line into simple commands and words, as far as that is possible without running it.
//!
//! Approval rules match these commands. Anything only a shell can evaluate (variables, substitutions, loops,
//! redirections to files) is not guessed: a line that uses it is not `whole`, and no rule allows it. This is
//! not a security boundary; the sandbox confines what runs.

/// The commands of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// Each recognised command, as words.
    pub(crate) commands: Vec<Vec<String>>,
    /// Whether `commands` is everything the line does.
    pub(crate) whole: bool,
}

/// Shell keywords, which do not start a simple command.
const KEYWORDS: [&str; 19] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "function",
    "select", "time", "coproc", "{", "}", "!",
];

/// Redirections that write no file.
const HARMLESS: [&str; 7] =
    ["2>&1", ">/dev/null", "1>/dev/null", "2>/dev/null", "&>/dev/null", "</dev/null", "1>&2"];

impl CommandLine {
    pub(crate) fn read(text: &str) -> Self {
        let mut reading =
            WordReader { line: Self { whole: true, ..Self::default() }, ..WordReader::default() };
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            rest = reading.next(next, rest);
        }
        reading.end_command();
        let mut line = reading.line;
        for command in &line.commands {
            let first = command.first().map(String::as_str).unwrap_or_default();
            line.whole &= !KEYWORDS.contains(&first) && !is_assignment(first);
        }
        line
    }
}

#[derive(Default)]
struct WordReader {
    line: CommandLine,
    command: Vec<String>,
    /// The current word; `Some("")` if it is an empty quoted word.
    word: Option<String>,
}

impl WordReader {
    /// Consumes the start of `rest` and returns the remainder.
    fn next<'t>(&mut self, next: char, rest: &'t str) -> &'t str {
        if self.word.is_none()
            && let Some(harmless) = HARMLESS.iter().find(|known| stands_alone(rest, known))
        {
            return &rest[harmless.len()..];
        }
        let after = &rest[next.len_utf8()..];
        match next {
            ' ' | '\t' | '\r' => self.end_word(),
            '\n' | ';' | '|' | '&' => self.end_command(),
            '\'' => return self.quoted(after),
            '"' => return self.quoted_twice(after),
            '\\' => {
                let Some(escaped) = after.chars().next() else {
                    self.line.whole = false;
                    return after;
                };
                // An escaped newline continues the line.
                if escaped != '\n' {
                    self.word.get_or_insert_default().push(escaped);
                }
                return &after[escaped.len_utf8()..];
            }
            '$' | '`' | '(' | ')' | '<' | '>' => {
                self.line.whole = false;
                self.end_word();
            }
            '#' if self.word.is_none() => {
                return after.find('\n').map_or("", |at| &after[at..]);
            }
            other => self.word.get_or_insert_default().push(other),
        }
        after
    }

    fn quoted<'t>(&mut self, rest: &'t str) -> &'t str {
        match rest.split_once('\'') {
            Some((inside, after)) => {
                self.word.get_or_insert_default().push_str(inside);
                after
            }
            None => self.unended(),
        }
    }

    fn quoted_twice<'t>(&mut self, rest: &'t str) -> &'t str {
        let word = self.word.get_or_insert_default();
        let mut escaped = false;
        for (at, c) in rest.char_indices() {
            match c {
                _ if escaped => {
                    // Before any other character, a backslash is literal.
                    if !matches!(c, '"' | '\\' | '$' | '`' | '\n') {
                        word.push('\\');
                    }
                    word.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => return &rest[at + 1..],
                '$' | '`' => {
                    self.line.whole = false;
                    word.push(c);
                }
                _ => word.push(c),
            }
        }
        self.unended()
    }

    fn unended(&mut self) -> &'static str {
        self.line.whole = false;
        ""
    }

    fn end_word(&mut self) {
        self.command.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.command.is_empty() {
            self.line.commands.push(std::mem::take(&mut self.command));
        }
    }
}

fn stands_alone(rest: &str, word: &str) -> bool {
    rest.strip_prefix(word).is_some_and(|after| {
        after.chars().next().is_none_or(|c| c.is_whitespace() || matches!(c, ';' | '|' | '&'))
    })
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name).unwrap_or_default();
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
