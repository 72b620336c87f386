//! A template with its placeholders filled: one pass over every text that may hold some.

use serde_json::{Map, Value};

use super::placeholder::fill;
use super::{FilePaths, SectionText, Template};

impl Template {
    /// The same template with every placeholder filled from these inputs, or all names that have no value.
    pub fn filled(&self, inputs: &Map<String, Value>) -> Result<Self, Vec<String>> {
        let mut missing = Vec::new();
        let mut text = |text: &str| fill(text, inputs, &mut missing);
        let mut maybe = |given: &Option<String>| given.as_deref().map(&mut text);
        let filled = Self {
            instructions: maybe(&self.instructions),
            system: maybe(&self.system),
            criteria: maybe(&self.criteria),
            description: text(&self.description),
            sections: self.sections.iter().map(|section| filled_section(section, &mut text)).collect(),
            file_paths: self.file_paths.as_ref().map(|paths| match paths {
                FilePaths::Literal(paths) => {
                    FilePaths::Literal(paths.iter().map(|path| text(path)).collect())
                }
                FilePaths::Command(command) => FilePaths::Command(text(command)),
                FilePaths::Description(words) => FilePaths::Description(text(words)),
                FilePaths::ContextDescription(words) => FilePaths::ContextDescription(text(words)),
            }),
            ..self.clone()
        };
        if missing.is_empty() { Ok(filled) } else { Err(missing) }
    }
}

fn filled_section(section: &SectionText, text: &mut dyn FnMut(&str) -> String) -> SectionText {
    SectionText {
        key: section.key.clone(),
        title: text(&section.title),
        closed: section.closed,
        summary: section.summary.as_deref().map(&mut *text),
        body: text(&section.body),
        sections: section.sections.iter().map(|inner| filled_section(inner, text)).collect(),
    }
}
