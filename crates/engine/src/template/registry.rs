//! The templates that are there: found by name, by `type:subtype`, or by words. Nearer layers shadow farther ones.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use fusee_text::near;

use super::matching::{Index, Match, Matching};
use super::{Template, TemplateText};

/// Where a template comes from, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Handed in by a program, or defined by a workflow.
    Value,
    /// `.fusee/templates` of the project.
    Project,
    /// The user's own folder.
    User,
    /// Shipped with the product.
    BuiltIn,
}

impl Layer {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Project => "project",
            Self::User => "user",
            Self::BuiltIn => "built-in",
        }
    }
}

/// A template in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    /// The template.
    pub template: Template,
    /// Its text.
    pub text: TemplateText,
    /// Where it comes from.
    pub layer: Layer,
}

/// Two templates of one name in one layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the template `{name}` is there twice: in {first} and in {second}; rename one of them")]
pub struct Twice {
    /// The name.
    pub name: String,
    /// The file that has it.
    pub first: String,
    /// The file that has it too.
    pub second: String,
}

/// No template for an identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// There is none.
    Unknown {
        /// As it was given.
        identifier: String,
        /// What was probably meant.
        near: Option<String>,
    },
    /// There are several.
    Ambiguous {
        /// As it was given.
        identifier: String,
        /// Their names, each with its file.
        names: Vec<(String, String)>,
    },
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { identifier, near: Some(near) } => {
                write!(f, "there is no template `{identifier}`; {near}")
            }
            Self::Unknown { identifier, near: None } => {
                write!(f, "there is no template `{identifier}`; `fusee templates` lists what is there")
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

/// All templates.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    templates: HashMap<String, Arc<Registered>>,
    /// Names by `atomic:SUBTYPE`, in the order of registration.
    subtypes: HashMap<String, Vec<String>>,
    shadowed: Vec<Arc<Registered>>,
    index: Index,
}

impl Registry {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a template. Of two of one name the nearer stands; two in one layer are an error, and the first stands.
    pub fn register_template(&mut self, new: Registered) -> Result<(), Twice> {
        let name = new.template.name.clone();
        match self.templates.get(&name) {
            Some(known) if known.layer == new.layer && known.layer != Layer::Value => {
                return Err(Twice { name, first: known.text.file.clone(), second: new.text.file });
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

    fn forget(&mut self, known: &Registered) {
        let name = &known.template.name;
        if let Some(names) = self.subtypes.get_mut(&subtype_key(&known.template)) {
            names.retain(|other| other != name);
        }
        self.index.remove(name);
        self.templates.remove(name);
    }

    /// The template of this name, else the one of this `type:subtype`.
    pub fn find_template(&self, identifier: &str) -> Result<&Arc<Registered>, NotFound> {
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
                let near = near::did_you_mean(identifier, self.templates.keys().map(String::as_str));
                Err(NotFound::Unknown { identifier: identifier.to_owned(), near })
            }
            None => {
                let known = names.iter().filter_map(|name| self.templates.get(name));
                let named = known.map(|known| (known.template.name.clone(), known.text.file.clone()));
                let mut names: Vec<(String, String)> = named.collect();
                names.sort_unstable();
                Err(NotFound::Ambiguous { identifier: identifier.to_owned(), names })
            }
        }
    }

    /// The templates whose description fits these words, best first.
    pub fn find_matching_tasks(&self, words: &str, matching: &Matching) -> Vec<Match> {
        let scored = self.index.scored(words, matching);
        let found = scored.into_iter().filter_map(|(score, name)| {
            let registered = Arc::clone(self.templates.get(&name)?);
            Some(Match { score, registered })
        });
        found.collect()
    }

    /// All that can be found, in order of name.
    pub fn all(&self) -> Vec<&Arc<Registered>> {
        let mut all: Vec<&Arc<Registered>> = self.templates.values().collect();
        all.sort_unstable_by(|left, right| left.template.name.cmp(&right.template.name));
        all
    }

    /// Those that nearer ones stand in front of.
    pub fn shadowed(&self) -> &[Arc<Registered>] {
        &self.shadowed
    }
}

fn subtype_key(template: &Template) -> String {
    format!("atomic:{}", template.subtype())
}
