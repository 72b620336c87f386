//! Registered templates, found by name, by `type:subtype`, or by description. Nearer layers shadow
//! farther ones.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use fusee_text::{Diagnostics, Severity, Source, suggest};

use super::similarity::{MatchOptions, TemplateMatch, WordIndex};
use super::{Template, TemplateText};

/// Origin of a template, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TemplateLayer {
    /// Passed in by a program, or defined by a workflow.
    Value,
    /// From `.fusee/templates` of the project.
    Project,
    /// From the user's own folder.
    User,
    /// Built into fusee.
    BuiltIn,
}

impl TemplateLayer {
    /// Returns the name used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Project => "project",
            Self::User => "user",
            Self::BuiltIn => "built-in",
        }
    }
}

/// A valid template, with its source and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredTemplate {
    /// The parsed template.
    pub template: Template,
    /// Its source text.
    pub text: TemplateText,
    /// Layer it comes from.
    pub layer: TemplateLayer,
}

/// Error: two templates of the same name in one layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("duplicate template `{name}` in {first} and {second}; rename one of them")]
pub struct DuplicateName {
    /// The duplicate name.
    pub name: String,
    /// File that already has the name.
    pub first: String,
    /// File that also has it.
    pub second: String,
}

/// Error: a template built by a program is not valid.
#[derive(Debug)]
pub struct RejectedTemplate {
    /// The template as XML, which the problems refer to.
    pub source: Source,
    /// What is wrong with it.
    pub problems: Diagnostics,
}

impl std::error::Error for RejectedTemplate {}

impl fmt::Display for RejectedTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.problems.iter().filter(|problem| problem.severity == Severity::Error);
        let errors: Vec<&str> = errors.map(|problem| problem.message.as_str()).collect();
        write!(f, "invalid template: {}", errors.join("; "))
    }
}

/// Error: no template for an identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateNotFound {
    /// No template matches.
    Unknown {
        /// Identifier as given.
        identifier: String,
        /// Suggestion of a similar name.
        near: Option<String>,
    },
    /// Several templates match.
    Ambiguous {
        /// Identifier as given.
        identifier: String,
        /// Names of the templates, each with its file.
        names: Vec<(String, String)>,
    },
}

impl fmt::Display for TemplateNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { identifier, near: Some(near) } => {
                write!(f, "unknown template `{identifier}`; {near}")
            }
            Self::Unknown { identifier, near: None } => {
                write!(f, "unknown template `{identifier}`")
            }
            Self::Ambiguous { identifier, names } => {
                let named = names.iter().map(|(name, file)| format!("`{name}` ({file})"));
                let named = named.collect::<Vec<_>>().join(", ");
                write!(
                    f,
                    "`{identifier}` is the subtype of several templates: {named}; name one of them, or mark one as the \
                     default"
                )
            }
        }
    }
}

/// All registered templates.
#[derive(Clone, Debug, Default)]
pub struct TemplateRegistry {
    templates: HashMap<String, Arc<RegisteredTemplate>>,
    /// Names by `atomic:SUBTYPE`, in order of registration.
    subtypes: HashMap<String, Vec<String>>,
    shadowed: Vec<Arc<RegisteredTemplate>>,
    index: WordIndex,
}

impl TemplateRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a template that a program built, in the nearest layer. It is checked like one in a file, of which it
    /// could be the content; all problems are reported.
    pub fn register_template(&mut self, template: &Template) -> Result<(), RejectedTemplate> {
        let text = TemplateText { file: format!("<template {}>", template.name), text: template.to_xml() };
        let source = Source::new(text.file.as_str(), text.text.as_str());
        let (read, problems) = Template::read(&source);
        let Some(template) = read else { return Err(RejectedTemplate { source, problems }) };
        // Within this layer the last of two templates wins, so there is no duplicate.
        let _ = self.register(RegisteredTemplate { template, text, layer: TemplateLayer::Value });
        Ok(())
    }

    /// Registers a template that was read from its text. The nearer of two layers wins; a duplicate within a layer is
    /// an error and the first is kept.
    pub fn register(&mut self, new: RegisteredTemplate) -> Result<(), DuplicateName> {
        let name = new.template.name.clone();
        match self.templates.get(&name) {
            Some(known) if known.layer == new.layer && known.layer != TemplateLayer::Value => {
                return Err(DuplicateName { name, first: known.text.file.clone(), second: new.text.file });
            }
            Some(known) if known.layer < new.layer => {
                self.shadowed.push(Arc::new(new));
                return Ok(());
            }
            Some(known) => {
                let known = Arc::clone(known);
                self.forget(&known);
                self.shadowed.push(known);
            }
            None => {}
        }
        self.subtypes.entry(subtype_key(&new.template)).or_default().push(name.clone());
        self.index.add(&new.template);
        self.templates.insert(name, Arc::new(new));
        Ok(())
    }

    fn forget(&mut self, known: &RegisteredTemplate) {
        let name = &known.template.name;
        if let Some(names) = self.subtypes.get_mut(&subtype_key(&known.template)) {
            names.retain(|other| other != name);
        }
        self.index.remove(name);
        self.templates.remove(name);
    }

    /// Finds a template by name, else by `type:subtype`.
    pub fn find_template(&self, identifier: &str) -> Result<&Arc<RegisteredTemplate>, TemplateNotFound> {
        if let Some(found) = self.templates.get(identifier) {
            return Ok(found);
        }
        let names = self.subtypes.get(identifier).map(Vec::as_slice).unwrap_or_default();
        let is_default =
            |name: &&String| self.templates.get(*name).is_some_and(|known| known.template.is_default);
        let defaults: Vec<&String> = names.iter().filter(is_default).collect();
        let only = match (names, defaults.as_slice()) {
            ([only], _) => Some(only),
            (_, [only]) => Some(*only),
            _ => None,
        };
        match only.and_then(|name| self.templates.get(name)) {
            Some(found) => Ok(found),
            None if names.is_empty() => {
                let near = suggest::did_you_mean(identifier, self.templates.keys().map(String::as_str));
                Err(TemplateNotFound::Unknown { identifier: identifier.to_owned(), near })
            }
            None => {
                let known = names.iter().filter_map(|name| self.templates.get(name));
                let named = known.map(|known| (known.template.name.clone(), known.text.file.clone()));
                let mut names: Vec<(String, String)> = named.collect();
                names.sort_unstable();
                Err(TemplateNotFound::Ambiguous { identifier: identifier.to_owned(), names })
            }
        }
    }

    /// Returns the templates whose description matches, best first.
    pub fn find_matching_tasks(&self, words: &str, matching: &MatchOptions) -> Vec<TemplateMatch> {
        let scored = self.index.scored(words, matching);
        let found = scored.into_iter().filter_map(|(score, name)| {
            let registered = Arc::clone(self.templates.get(&name)?);
            Some(TemplateMatch { score, registered })
        });
        found.collect()
    }

    /// Returns all active templates, sorted by name.
    pub fn all(&self) -> Vec<&Arc<RegisteredTemplate>> {
        let mut all: Vec<&Arc<RegisteredTemplate>> = self.templates.values().collect();
        all.sort_unstable_by(|left, right| left.template.name.cmp(&right.template.name));
        all
    }

    /// Returns the templates that are shadowed by nearer ones.
    pub fn shadowed(&self) -> &[Arc<RegisteredTemplate>] {
        &self.shadowed
    }
}

fn subtype_key(template: &Template) -> String {
    format!("atomic:{}", template.subtype())
}
