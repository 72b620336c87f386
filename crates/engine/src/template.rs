//! Templates: atomic tasks that people write in XML, checked before a token is spent.
//!
//! `schema.rs` is the table that says what a template may hold; the checker ([`Template::read`]), the XSD ([`xsd`]) and
//! the reference page come from it. [`Registry`] finds templates by name, subtype or words; running one is the business
//! of [`crate::task_system`].

mod check;
mod command;
mod filled;
mod inputs;
mod load;
mod make;
mod matching;
pub(crate) mod placeholder;
mod reference;
mod registry;
pub(crate) mod schema;
mod shipped;
mod xsd;

use fusee_text::xml::{self, Document};
use fusee_text::{Diagnostic, Diagnostics, Source, Span};
use fusee_tools::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task_system::{ContextOverrides, LimitOverrides};

pub use inputs::{InputProblem, bind, typed};
pub use load::{Folder, Loaded, load};
pub use matching::{Match, Matching};
pub(crate) use matching::{stem, words};
pub(crate) use placeholder::shown;
pub use reference::reference;
pub use registry::{Layer, NotFound, Registered, Registry, Twice};
pub use shipped::{SKELETON, shipped};
pub use xsd::xsd;

#[cfg(test)]
mod tests;

/// The subtype of a template that names none.
pub const STANDARD: &str = "standard";

/// One task for a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// What it is called by.
    pub name: String,
    /// Decides the defaults of the context.
    pub subtype: Option<String>,
    /// Whether it is meant by its subtype where several have it.
    pub is_default: bool,
    /// What it does, in words.
    pub description: String,
    /// What the model is asked.
    pub instructions: Option<String>,
    /// The system prompt, instead of the usual one.
    pub system: Option<String>,
    /// What `{{name}}` may name.
    pub inputs: Vec<Input>,
    /// Parts of the prompt with a heading.
    pub sections: Vec<SectionText>,
    /// What the answer must be.
    pub output_format: Option<OutputFormat>,
    /// What it says of its context.
    pub context_management: ContextOverrides,
    /// Files that are always shown.
    pub file_paths: Option<FilePaths>,
    /// Inputs that feed the search for files, or do not; all do where this is absent.
    pub context_relevance: Option<Vec<(String, bool)>>,
    /// Who has the model.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What a good answer is.
    pub criteria: Option<String>,
    /// The tools it has; all where this is absent.
    pub allowed_tools: Option<Vec<String>>,
    /// The tools it has not.
    pub blocked_tools: Vec<String>,
    /// How much it may use up.
    pub limits: LimitOverrides,
    /// The flow it goes by.
    pub flow: Option<String>,
    /// Hands the model's XML answer on word for word.
    pub manual_xml: bool,
    /// Leaves a malformed answer as it is.
    pub disable_reparsing: bool,
}

/// A declared input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// What it takes.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// What it is where a request does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What an input takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputType {
    /// Text.
    #[default]
    String,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
}

/// A part of the prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionText {
    /// What it is opened by.
    pub key: String,
    /// Its heading.
    pub title: String,
    /// Whether it is closed until opened.
    pub closed: bool,
    /// What is shown while it is.
    pub summary: Option<String>,
    /// Its text.
    pub body: String,
    /// Sections inside.
    pub sections: Vec<SectionText>,
}

/// What the answer must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFormat {
    /// Data or text.
    #[serde(rename = "type")]
    pub kind: OutputKind,
    /// One of the schema words, or the path of a JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// Data or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputKind {
    /// Data.
    Json,
    /// Text.
    Text,
}

/// Where the files of a task come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePaths {
    /// These.
    Literal(Vec<String>),
    /// What this command prints, one a line.
    Command(String),
    /// What is found by these words.
    Description(String),
    /// What is found by this query instead of the task's own.
    ContextDescription(String),
}

/// A template's text with its name: what is written down of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateText {
    /// The file it was read from, or a word where it has none.
    pub file: String,
    /// The text.
    pub text: String,
}

impl TemplateText {
    /// The hash of the text.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self.text.as_bytes())
    }
}

impl Template {
    /// Reads a template from bytes, as a file has them. All problems at once; a template is there if none is an error.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> (Option<Self>, Source, Diagnostics) {
        match xml::decode(bytes) {
            Ok(text) => {
                let source = Source::new(file, text.into_owned());
                let (template, problems) = Self::read(&source);
                (template, source, problems)
            }
            Err(problem) => {
                if let Some((text, at)) = xml::stops_being_text(bytes) {
                    let source = Source::new(file, text.into_owned());
                    let problem = Diagnostic::error("xml-encoding", &source, Span::at(at), problem);
                    return (None, source, std::iter::once(problem).collect());
                }
                let problems = Diagnostic::file_error("xml-encoding", file, problem);
                (None, Source::new(file, ""), std::iter::once(problems).collect())
            }
        }
    }

    /// Reads a template from text. All problems at once; a template is there if none is an error.
    pub fn read(source: &Source) -> (Option<Self>, Diagnostics) {
        let (document, mut problems): (Document, Diagnostics) = xml::read(source);
        let whole = !problems.has_errors();
        check::check(source, &document, whole, &mut problems);
        if problems.has_errors() {
            // What the table says is wrong would only be said again in other words.
            if whole {
                make::check_meaning(source, &document, &mut problems);
            }
            return (None, problems);
        }
        let template = make::make(source, &document, &mut problems);
        (template.filter(|_| !problems.has_errors()), problems)
    }

    /// Its subtype, or the one that it has without a word.
    pub fn subtype(&self) -> &str {
        self.subtype.as_deref().unwrap_or(STANDARD)
    }

    /// The input of this name.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }
}

impl InputType {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::String, Self::Number, Self::Boolean, Self::Array, Self::Object]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }

    /// Whether a value is of the type.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}
