//! Templates: atomic tasks written in XML, checked before any token is spent.
//!
//! The table in `schema.rs` defines what a template may contain; the checker ([`Template::read`]), the
//! XSD ([`xsd()`]) and
//! the reference page are derived from it. [`TemplateRegistry`] finds templates by name, subtype or
//! description;
//! [`crate::task_system`] runs them.

mod build;
mod builtin;
mod check;
mod inputs;
mod load;
pub mod output;
mod reference;
mod registry;
mod render;
pub(crate) mod schema;
mod settings;
mod shell_quoting;
mod similarity;
mod to_xml;
mod xsd;

use fusee_text::xml::{self, XmlDocument};
use fusee_text::{Diagnostic, Diagnostics, Source, Span};
use fusee_tools::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use builtin::{SKELETON, shipped};
pub use fusee_lang::{OutputFormat, OutputKind};
pub use inputs::{InputProblem, bind, typed};
pub use load::{LoadedTemplates, TemplateFolder, load};
pub use reference::reference;
pub use registry::{
    DuplicateName, RegisteredTemplate, RejectedTemplate, TemplateLayer, TemplateNotFound, TemplateRegistry,
};
pub use render::fill;
pub(crate) use render::shown;
pub use settings::{AccumulationFormat, ContextOverrides, FreshContext, InheritContext, LimitOverrides};
pub use similarity::{MatchOptions, TemplateMatch};
pub(crate) use similarity::{stem, words};
pub use xsd::xsd;

#[cfg(test)]
mod tests;

/// Subtype of a template that names none.
pub const STANDARD: &str = "standard";

/// One task for a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// Unique name within its layer.
    pub name: String,
    /// Subtype, which determines the default context settings.
    pub subtype: Option<String>,
    /// Whether it is the default if several templates have its subtype.
    pub is_default: bool,
    /// Description in words; requests are matched against it.
    pub description: String,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// System prompt, if not the default one.
    pub system: Option<String>,
    /// Declared inputs, which `{{name}}` can refer to.
    pub inputs: Vec<TemplateInput>,
    /// Prompt sections.
    pub sections: Vec<SectionText>,
    /// Required format of the answer.
    pub output_format: Option<OutputFormat>,
    /// Context settings.
    pub context_management: ContextOverrides,
    /// Files that are always included.
    pub file_paths: Option<FilePaths>,
    /// Inputs that are used for the file search, or not; all are used if absent.
    pub context_relevance: Option<Vec<(String, bool)>>,
    /// Provider of the model.
    pub provider: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Criteria for a good answer.
    pub criteria: Option<String>,
    /// Allowed tools; all if absent.
    pub allowed_tools: Option<Vec<String>>,
    /// Names of tools that the task may not call.
    pub blocked_tools: Vec<String>,
    /// Limits of the task.
    pub limits: LimitOverrides,
    /// Name of the flow.
    pub flow: Option<String>,
    /// Passes the model's XML answer on verbatim.
    pub manual_xml: bool,
    /// Does not repair a malformed answer.
    pub disable_reparsing: bool,
}

/// A declared input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TemplateInput {
    /// Name of the input.
    pub name: String,
    /// Type of the input.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// Default value; without one the input is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Purpose of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Which values a declared input accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputType {
    /// A text value.
    #[default]
    String,
    /// A numeric value.
    Number,
    /// True or false.
    Boolean,
    /// A JSON array.
    Array,
    /// A JSON object.
    Object,
}

/// A prompt section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionText {
    /// Key that opens the section.
    pub key: String,
    /// Heading of the section.
    pub title: String,
    /// Whether it is initially closed.
    pub closed: bool,
    /// Text shown while it is closed.
    pub summary: Option<String>,
    /// Text of the section.
    pub body: String,
    /// Nested sections.
    pub sections: Vec<SectionText>,
}

/// Source of a task's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePaths {
    /// A fixed list of paths.
    Literal(Vec<String>),
    /// Paths printed by a command, one per line.
    Command(String),
    /// Files found by a search with these words.
    Description(String),
    /// Files found by this query instead of the task's own.
    ContextDescription(String),
}

/// Source text of a template with its file name, as journaled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateText {
    /// File it was read from, or a placeholder if there is none.
    pub file: String,
    /// The XML text.
    pub text: String,
}

impl TemplateText {
    /// Returns the hash of the text.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self.text.as_bytes())
    }
}

impl Template {
    /// Parses the bytes of a template file. Reports all problems; returns a template if none of them is an
    /// error.
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

    /// Parses the text of a template. Reports all problems; returns a template if none of them is an error.
    pub fn read(source: &Source) -> (Option<Self>, Diagnostics) {
        let (document, mut problems): (XmlDocument, Diagnostics) = xml::read(source);
        let whole = !problems.has_errors();
        check::check(source, &document, whole, &mut problems);
        if problems.has_errors() {
            // Schema violations are already reported; the semantic checks add the rest.
            if whole {
                build::check_meaning(source, &document, &mut problems);
            }
            return (None, problems);
        }
        let template = build::make(source, &document, &mut problems);
        (template.filter(|_| !problems.has_errors()), problems)
    }

    /// Creates the template of a task described in words; braces in them are literal.
    pub(crate) fn of_words(words: String) -> Self {
        let literal = words.replace("{{", "{{{{");
        Self { description: literal.clone(), instructions: Some(literal), ..Self::default() }
    }

    /// Returns the subtype, or the default one.
    pub fn subtype(&self) -> &str {
        self.subtype.as_deref().unwrap_or(STANDARD)
    }

    /// Returns the input of this name.
    pub fn input(&self, name: &str) -> Option<&TemplateInput> {
        self.inputs.iter().find(|input| input.name == name)
    }
}

impl InputType {
    /// Returns the name used in XML.
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

    /// Whether a value has this type.
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
