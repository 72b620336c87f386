//! Fills in a template's placeholders: one pass over every text that may contain them.

use serde_json::{Map, Value};

use super::placeholder::fill;
use super::shell_quoting::fill_command;
use super::{FilePaths, SectionText, Template};

impl Template {
    /// Returns the template with every placeholder filled in from these inputs, or all problems.
    pub fn filled(&self, inputs: &Map<String, Value>) -> Result<Self, Vec<String>> {
        let (mut missing, mut wrong) = (Vec::new(), Vec::new());
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
                FilePaths::Command(command) => FilePaths::Command(fill_command(command, inputs, &mut wrong)),
                FilePaths::Description(words) => FilePaths::Description(text(words)),
                FilePaths::ContextDescription(words) => FilePaths::ContextDescription(text(words)),
            }),
            ..self.clone()
        };
        let missing = missing.iter().map(|name| format!("`{{{{{name}}}}}` has no value"));
        let told: Vec<String> = missing.collect();
        wrong.retain(|problem| !told.contains(problem));
        let told = [told, wrong].concat();
        if told.is_empty() { Ok(filled) } else { Err(told) }
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
