//! Checks a request's inputs against a template's declarations: applies defaults, converts command-line words
//! to values, and reports all missing, unknown and mistyped inputs at once.

use fusee_text::suggest;
use serde_json::{Map, Value};

use super::{InputType, Template, TemplateInput};

/// Why given inputs do not fit the declared ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputProblem {
    /// A required input is missing.
    Missing {
        /// Name of the input.
        name: String,
        /// Declared type.
        kind: InputType,
    },
    /// The input is not declared.
    Unknown {
        /// Name as given.
        name: String,
        /// Similar names, or all declared names.
        help: String,
    },
    /// The value has the wrong type.
    WrongType {
        /// Name of the input.
        name: String,
        /// Declared type.
        kind: InputType,
        /// The given value.
        value: String,
    },
}

impl std::fmt::Display for InputProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { name, kind } => write!(f, "`{name}` ({}) is missing", kind.as_str()),
            Self::Unknown { name, help } => write!(f, "`{name}` is not an input; {help}"),
            Self::WrongType { name, kind, value } => {
                write!(f, "`{name}` takes a value of type {}, not `{value}`", kind.as_str())
            }
        }
    }
}

/// Returns the inputs with defaults applied, or all problems.
pub fn bind(
    template: &Template,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<InputProblem>> {
    let mut problems: Vec<InputProblem> = Vec::new();
    let mut bound = Map::new();
    for input in &template.inputs {
        match given.get(&input.name).filter(|value| !value.is_null()).or(input.default.as_ref()) {
            None => problems.push(InputProblem::Missing { name: input.name.clone(), kind: input.kind }),
            Some(value) => match fitting(input, value) {
                Some(value) => {
                    bound.insert(input.name.clone(), value);
                }
                None => problems.push(InputProblem::WrongType {
                    name: input.name.clone(),
                    kind: input.kind,
                    value: value.to_string().chars().take(60).collect(),
                }),
            },
        }
    }
    for name in given.keys().filter(|name| template.input(name).is_none()) {
        problems.push(InputProblem::Unknown { name: name.clone(), help: known(template, name) });
    }
    if problems.is_empty() { Ok(bound) } else { Err(problems) }
}

/// Converts a value for an input. A text input accepts any value, because every value can be rendered as
/// text; text is never parsed as data here.
fn fitting(input: &TemplateInput, value: &Value) -> Option<Value> {
    match input.kind {
        kind if kind.accepts(value) => Some(value.clone()),
        InputType::String => Some(value.clone()),
        _ => None,
    }
}

fn known(template: &Template, name: &str) -> String {
    let names = || template.inputs.iter().map(|input| input.name.as_str());
    match suggest::did_you_mean(name, names()) {
        Some(near) => near,
        None if template.inputs.is_empty() => format!("`{}` takes no inputs", template.name),
        None => format!("`{}` takes {}", template.name, names().collect::<Vec<_>>().join(", ")),
    }
}

/// Converts a command-line word to a value: text as is, any other type as JSON. A word that is not valid JSON
/// stays text, and [`bind`] reports it.
pub fn typed(kind: InputType, word: &str) -> Value {
    match kind {
        InputType::String => Value::String(word.to_owned()),
        _ => serde_json::from_str(word).unwrap_or_else(|_| Value::String(word.to_owned())),
    }
}
