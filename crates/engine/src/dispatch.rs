//! Resolves the text after `/task` to a workflow, a template, a tool, or a natural-language request.
//!
//! `fusee task` and requests that begin with `/task` or a parenthesis share these rules. A plain request is
//! never matched against templates; template matching happens only when a task was explicitly requested.

use std::sync::Arc;

use fusee_tools::Toolbox;
use serde_json::{Map, Value};

use crate::template::{
    MatchOptions, RegisteredTemplate, TemplateMatch, TemplateNotFound, TemplateRegistry, typed,
};

#[cfg(test)]
mod tests;

/// Minimum score for a match to be picked without asking.
const MIN_SCORE: f64 = 0.5;

/// Minimum lead over the runner-up for a match to be picked without asking.
const MIN_LEAD: f64 = 0.15;

/// Resolution of a task reference.
#[derive(Debug)]
pub enum TaskRef {
    /// Workflow source text.
    Workflow,
    /// A registered template.
    Template(Arc<RegisteredTemplate>),
    /// A tool, by its canonical name.
    Tool(String),
    /// A subtype shared by several templates; the message lists them.
    Ambiguous(String),
    /// No known name: a natural-language request with the matching templates, best first.
    Words(Vec<TemplateMatch>),
}

/// Decides what runs a task: resolves a reference against the registered templates and the tools.
#[derive(Clone, Copy)]
pub struct Dispatcher<'a> {
    /// The registered templates.
    pub registry: &'a TemplateRegistry,
    /// The tools that can be called directly.
    pub tools: &'a Toolbox,
}

impl Dispatcher<'_> {
    /// Resolves the first word, or the whole sentence if the first word is no known name.
    pub fn resolve(&self, first: &str, sentence: &str) -> TaskRef {
        if first.trim_start().starts_with(['(', ';', '\'']) {
            return TaskRef::Workflow;
        }
        match self.registry.find_template(first) {
            Ok(found) => return TaskRef::Template(Arc::clone(found)),
            Err(several @ TemplateNotFound::Ambiguous { .. }) => {
                return TaskRef::Ambiguous(several.to_string());
            }
            Err(TemplateNotFound::Unknown { .. }) => {}
        }
        // In a sentence, `write` and `read` are ordinary words, not the tool aliases that some models use.
        let alone = sentence.trim() == first || sentence.trim().is_empty();
        if let Some(tool) = self.tools.find(first).filter(|_| alone) {
            return TaskRef::Tool(tool.definition().name.to_string());
        }
        TaskRef::Words(self.registry.find_matching_tasks(sentence, &MatchOptions::default()))
    }
}

/// Returns the best match if its score is high enough and clearly ahead of the next.
pub fn clear(matches: &[TemplateMatch]) -> Option<&Arc<RegisteredTemplate>> {
    let (best, rest) = matches.split_first()?;
    let ahead = rest.first().is_none_or(|next| best.score - next.score >= MIN_LEAD);
    (best.score >= MIN_SCORE && ahead).then_some(&best.registered)
}

/// Splits a line into words like a shell: quotes group, a backslash escapes the next character outside single
/// quotes, and a word that begins with a bracket or brace extends to its closing one, so that JSON needs no
/// quotes.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let (mut quote, mut depth, mut in_text) = (None, 0_usize, false);
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        if depth > 0 {
            // Inside JSON everything is copied verbatim.
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
        return Err("unclosed quote or bracket".to_owned());
    }
    words.extend(word);
    Ok(words)
}

/// Parses `KEY=VALUE` words as template inputs; also returns a problem for each word that is not one.
pub fn inputs(words: &[String], template: &crate::template::Template) -> (Map<String, Value>, Vec<String>) {
    let (mut inputs, mut problems) = (Map::new(), Vec::new());
    for word in words {
        match word.split_once('=') {
            None if template.input(word).is_some() => {
                problems.push(format!("`{word}` has no value; write {word}=VALUE"));
            }
            None => problems.push(format!("`{word}` is not an input; write KEY=VALUE")),
            Some(("", _)) => problems.push(format!("`{word}` has no input name before `=`")),
            Some((key, _)) if inputs.contains_key(key) => problems.push(format!("`{key}` is given twice")),
            Some((key, value)) => {
                let kind = template.input(key).map(|input| input.kind).unwrap_or_default();
                inputs.insert(key.to_owned(), typed(kind, value));
            }
        }
    }
    (inputs, problems)
}
