//! Splits a command line into simple commands and words, as far as that is possible without running it.
//!
//! Approval rules match these commands, in two ways. What is allowed must be understood completely: a line is
//! `whole` only if it is a list of plain words, joined by operators that every shell reads alike. What is
//! denied is looked for everywhere: in substitutions, behind assignments and keywords, and behind programs
//! that run others (`effective`). A line whose programs are only known to a shell that runs it is `opaque`.
//! `lexer` reads the words. This is not a security boundary; the sandbox confines what runs.

mod effective;
mod lexer;

use lexer::{Lexer, Token};

/// Maximum depth of commands inside of commands. Deeper ones make a line opaque.
const MAX_DEPTH: usize = 8;

/// A shell line, split into the programs it runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The commands of the line itself, as words.
    pub(crate) commands: Vec<Vec<String>>,
    /// Every command that the line runs in any position, as far as it can be told: those above, those inside
    /// of them, and those that programs among them run.
    pub(crate) effective: Vec<Vec<String>>,
    /// Whether `commands` is everything the line does.
    pub(crate) whole: bool,
    /// Whether the line runs something that cannot be told.
    pub(crate) opaque: bool,
}

/// Shell keywords that a command follows. `time` is treated as a program, which some shells have too.
const BEFORE_A_COMMAND: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "{", "!"];

/// Other shell keywords, which do not start a simple command.
const KEYWORDS: [&str; 10] = ["fi", "for", "done", "case", "esac", "function", "select", "coproc", "}", "in"];

impl CommandLine {
    pub(crate) fn read(text: &str) -> Self {
        let mut line = Self { whole: true, ..Self::default() };
        line.read_script(text, 0);
        line.whole &= !line.opaque;
        line
    }

    /// Reads a script; one that is inside of another makes the line not whole.
    fn read_script(&mut self, text: &str, depth: usize) {
        if depth > MAX_DEPTH {
            self.opaque = true;
            return;
        }
        self.whole &= depth == 0;
        let read = Lexer::read(text);
        self.whole &= read.plain;
        self.opaque |= read.uncertain;
        for command in read.tokens.split(|token| *token == Token::Operator) {
            let words = command.iter().filter_map(|token| match token {
                Token::Word(word) => Some(word),
                Token::Operator => None,
            });
            let mut words: Vec<&lexer::Word> = words.collect();
            // A name that `for` gives to words is not a command, and neither are the words.
            if words.first().is_some_and(|word| word.is_bare("for") || word.is_bare("select")) {
                self.whole = false;
                continue;
            }
            while let Some(first) = words.first() {
                if !is_keyword(first) && !is_assignment(&first.text) {
                    break;
                }
                self.whole = false;
                let first = words.remove(0);
                // A name stands before the body of these two.
                let has_name = first.is_bare("function")
                    || (first.is_bare("coproc") && words.get(1).is_some_and(|body| is_keyword(body)));
                if has_name && !words.is_empty() {
                    words.remove(0);
                }
            }
            let Some(program) = words.first() else { continue };
            self.whole &= !program.is_bare("time");
            self.opaque |= !program.fixed;
            let words: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
            self.add(words, &read.documents, depth);
        }
        for inner in &read.inner {
            self.read_script(inner, depth + 1);
        }
    }

    /// Adds a command, and the commands that its program runs.
    fn add(&mut self, words: Vec<String>, documents: &[String], depth: usize) {
        if depth == 0 {
            self.commands.push(words.clone());
        }
        let mut ahead = vec![words];
        // Every round removes at least one word, so this ends.
        while let Some(words) = ahead.pop() {
            self.opaque |= words.first().is_some_and(|program| program.contains(['$', '`', '*', '?', '{']));
            match effective::run_by(&words) {
                effective::RunBy::Nothing => {}
                effective::RunBy::Commands(inner) => ahead.extend(inner),
                effective::RunBy::Script(script) => self.read_script(&script, depth + 1),
                effective::RunBy::Input if documents.is_empty() => self.opaque = true,
                effective::RunBy::Input => {
                    documents.iter().for_each(|document| self.read_script(document, depth + 1));
                }
                effective::RunBy::Unknown => self.opaque = true,
            }
            self.effective.push(words);
        }
    }
}

fn is_keyword(word: &lexer::Word) -> bool {
    BEFORE_A_COMMAND.iter().chain(&KEYWORDS).any(|known| word.is_bare(known))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name.strip_suffix('+').unwrap_or(name));
    name.is_some_and(|name| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests;
