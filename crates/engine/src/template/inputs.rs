//! A request's inputs held against what a template declares: defaults filled in, words of a command line turned into
//! values, and everything that is missing, unknown or of the wrong type told at once.

use fusee_text::near;
use serde_json::{Map, Value};

use super::{Input, InputType, Template};

/// One thing wrong with the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputProblem {
    /// It must be given.
    Missing {
        /// The input.
        name: String,
        /// What it takes.
        kind: InputType,
    },
    /// It is not declared.
    Unknown {
        /// As it was given.
        name: String,
        /// Names that were probably meant, and all there are.
        help: String,
    },
    /// It is of another type.
    WrongType {
        /// The input.
        name: String,
        /// What it takes.
        kind: InputType,
        /// What was given.
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

/// The inputs with defaults, or everything that is wrong with them.
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

/// A value as the input takes it. Text is taken for everything that can be shown, because a caller that has data
/// and a template that wants words do not contradict each other; a word is never taken for data here.
fn fitting(input: &Input, value: &Value) -> Option<Value> {
    match input.kind {
        kind if kind.accepts(value) => Some(value.clone()),
        InputType::String => Some(value.clone()),
        _ => None,
    }
}

fn known(template: &Template, name: &str) -> String {
    let names = || template.inputs.iter().map(|input| input.name.as_str());
    match near::did_you_mean(name, names()) {
        Some(near) => near,
        None if template.inputs.is_empty() => format!("`{}` takes none", template.name),
        None => format!("`{}` takes {}", template.name, names().collect::<Vec<_>>().join(", ")),
    }
}

/// The value that a word of a command line stands for: text as it is, anything else as JSON. A word that is not of the
/// type stays text, and [`bind`] says so.
pub fn typed(kind: InputType, word: &str) -> Value {
    match kind {
        InputType::String => Value::String(word.to_owned()),
        _ => serde_json::from_str(word).unwrap_or_else(|_| Value::String(word.to_owned())),
    }
}
