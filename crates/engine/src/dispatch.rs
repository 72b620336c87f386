//! What a line after `/task` means: a workflow, a template, a tool, or a wish in plain words.
//!
//! The same rules serve `fusee task` and a request that begins with `/task` or a parenthesis. A plain request is never
//! matched against templates: only who asks for a task gets one.

use std::sync::Arc;

use fusee_tools::Toolbox;
use serde_json::{Map, Value};

use crate::template::{Match, Matching, NotFound, Registered, Registry, typed};

#[cfg(test)]
mod tests;

/// The score from which a match may be the one that was meant.
const CLEAR: f64 = 0.5;

/// How far the next one must be behind it.
const AHEAD: f64 = 0.15;

/// What was meant.
#[derive(Debug)]
pub enum Meant {
    /// A workflow, as its text.
    Workflow,
    /// This template.
    Template(Arc<Registered>),
    /// This tool, by its own name.
    Tool(String),
    /// A subtype that several templates have: which ones.
    Ambiguous(String),
    /// No name that is known: words, with the templates that fit them, best first.
    Words(Vec<Match>),
}

/// The meaning of the first word, or of all of them where they are a sentence.
pub fn meant(first: &str, sentence: &str, registry: &Registry, tools: &Toolbox) -> Meant {
    if first.trim_start().starts_with(['(', ';', '\'']) {
        return Meant::Workflow;
    }
    match registry.find_template(first) {
        Ok(found) => return Meant::Template(Arc::clone(found)),
        Err(several @ NotFound::Ambiguous { .. }) => return Meant::Ambiguous(several.to_string()),
        Err(NotFound::Unknown { .. }) => {}
    }
    // In a sentence `write` and `read` are words, not the tools that some models call so.
    let alone = sentence.trim() == first || sentence.trim().is_empty();
    if let Some(tool) = tools.find(first).filter(|_| alone) {
        return Meant::Tool(tool.definition().name.to_string());
    }
    Meant::Words(registry.find_matching_tasks(sentence, &Matching::default()))
}

/// The one match that was clearly meant.
pub fn clear(matches: &[Match]) -> Option<&Arc<Registered>> {
    let (best, rest) = matches.split_first()?;
    let ahead = rest.first().is_none_or(|next| best.score - next.score >= AHEAD);
    (best.score >= CLEAR && ahead).then_some(&best.registered)
}

/// The words of a line, as a shell would split them: quotes hold together, a backslash takes the next character as it
/// is outside single quotes, and what begins with a bracket or a brace goes on to its end, so that JSON needs no quotes.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let (mut quote, mut depth, mut in_text) = (None, 0_usize, false);
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        if depth > 0 {
            // Inside JSON everything stands as it is.
            let text = word.get_or_insert_default();
            text.push(c);
            match c {
                '\\' if in_text => text.extend(characters.next()),
                '"' => in_text = !in_text,
                '[' | '{' if !in_text => depth += 1,
                ']' | '}' if !in_text => depth -= 1,
                _ => {}
            }
            continue;
        }
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '[' | '{') if word.as_deref().is_none_or(|word| word.ends_with('=')) => {
                depth = 1;
                word.get_or_insert_default().push(c);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() || depth > 0 {
        return Err("a quote or a bracket is never closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

/// `key=value` words as a template's inputs, and what is wrong with the others.
pub fn inputs(words: &[String], template: &crate::template::Template) -> (Map<String, Value>, Vec<String>) {
    let (mut inputs, mut problems) = (Map::new(), Vec::new());
    for word in words {
        match word.split_once('=') {
            None if template.input(word).is_some() => {
                problems.push(format!("`{word}` lacks its value: it is written {word}=VALUE"));
            }
            None => problems.push(format!("`{word}` is not an input: it is written KEY=VALUE")),
            Some(("", _)) => problems.push(format!("`{word}` lacks the name of an input before `=`")),
            Some((key, _)) if inputs.contains_key(key) => problems.push(format!("`{key}` is given twice")),
            Some((key, value)) => {
                let kind = template.input(key).map(|input| input.kind).unwrap_or_default();
                inputs.insert(key.to_owned(), typed(kind, value));
            }
        }
    }
    (inputs, problems)
}
