//! Types and values of configuration keys, and parsing them from TOML, JSON, a variable or a flag.

use std::collections::BTreeMap;
use std::fmt;

use fusee::engine::model::connection::provider::{self, UrlError};
use fusee::engine::text::suggest;
use fusee::engine::tools::host_proxy::HostRules;
use fusee::engine::tools::tool::computer::DisplayNumber;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::spanned_tree::{Entry, Leaf, Node, parse_json};
use super::stages;

/// The type of a key's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Non-empty text.
    Text,
    /// An http or https base URL.
    Url,
    /// A local X11 display.
    Display,
    /// A non-negative integer within bounds.
    Whole { least: u64, most: u64 },
    /// A number within bounds.
    Number { least: f64, most: f64 },
    /// One of a fixed set of words.
    Word(&'static [&'static str]),
    /// A list of paths that begin with `/` or `~/`.
    Paths,
    /// A boolean value.
    Switch,
    /// An integer within bounds that may be negative.
    Signed { least: i64, most: i64 },
    /// A list of host names, which may begin with `*.`.
    Hosts,
    /// A list of names.
    Names,
    /// A table of strings.
    Texts,
    /// The stages of a flow.
    Stages,
}

/// A value that matches the type of its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<String>),
    Whole(u64),
    Number(f64),
    Switch(bool),
    Signed(i64),
    Names(Vec<String>),
    Texts(BTreeMap<String, String>),
    Stages(serde_json::Value),
}

/// A type error: the message, and a hint if there is one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypeMismatch {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Kind {
    /// Converts a value from a file.
    pub(crate) fn read(self, node: &Node) -> Result<Value, TypeMismatch> {
        match (self, &node.value) {
            (Self::Text | Self::Url | Self::Display | Self::Word(_), Leaf::Text(text)) => {
                self.read_text(text)
            }
            (Self::Paths, Leaf::Text(text)) => paths([text.as_str()]),
            (Self::Paths, Leaf::List(items)) => {
                let text = |item: &Node| match &item.value {
                    Leaf::Text(text) => Some(text.clone()),
                    _ => None,
                };
                match items.iter().map(text).collect::<Option<Vec<String>>>() {
                    Some(texts) => paths(texts.iter().map(String::as_str)),
                    None => Err(self.type_mismatch("a list of other values")),
                }
            }
            (Self::Switch, Leaf::Switch(on)) => Ok(Value::Switch(*on)),
            (Self::Hosts, Leaf::List(items)) => {
                let host = |item: &Node| match &item.value {
                    Leaf::Text(text) if HostRules::check(text).is_ok() => Ok(text.clone()),
                    _ => Err(self.type_mismatch(&format!("{} in the list", item.shown()))),
                };
                items.iter().map(host).collect::<Result<_, _>>().map(Value::Names)
            }
            (Self::Names, Leaf::List(items)) => {
                let name = |item: &Node| match &item.value {
                    Leaf::Text(text) if !text.trim().is_empty() => Ok(text.clone()),
                    _ => Err(self.type_mismatch(&format!("{} in the list", item.shown()))),
                };
                items.iter().map(name).collect::<Result<_, _>>().map(Value::Names)
            }
            (Self::Texts, Leaf::Table(entries)) => {
                let text = |entry: &Entry| match &entry.node.value {
                    Leaf::Text(text) => Ok((entry.name.clone(), text.clone())),
                    _ => Err(self.type_mismatch(&format!("{} for `{}`", entry.node.shown(), entry.name))),
                };
                entries.iter().map(text).collect::<Result<_, _>>().map(Value::Texts)
            }
            (Self::Stages, _) => stages::read(node).map_err(|complaints| {
                let first = complaints.into_iter().next();
                first.map_or_else(
                    || self.type_mismatch(&node.shown()),
                    |first| TypeMismatch { message: first.message, help: first.help },
                )
            }),
            (_, Leaf::Whole { number: Some(number), shown }) => {
                self.read_number(*number as f64, Some(*number), shown)
            }
            (_, Leaf::Number { number, shown }) => self.read_number(*number, None, shown),
            _ => Err(self.type_mismatch(&node.shown())),
        }
    }

    /// Parses a value from a flag or variable.
    pub(crate) fn read_text(self, text: &str) -> Result<Value, TypeMismatch> {
        let quoted = || format!("{text:?}");
        match self {
            Self::Text if text.trim().is_empty() => Err(self.type_mismatch(&quoted())),
            Self::Text => Ok(Value::Text(text.to_owned())),
            Self::Url => url(text).map(Value::Text),
            Self::Display => match text.parse::<DisplayNumber>() {
                Ok(display) => Ok(Value::Text(display.to_string())),
                Err(message) => Err(TypeMismatch { message, help: None }),
            },
            Self::Paths => paths(text.split(':').filter(|path| !path.is_empty())),
            Self::Whole { .. } | Self::Signed { .. } => match text.trim().parse::<i128>() {
                Ok(number) => self.read_number(number as f64, Some(number), text),
                Err(_) => Err(self.type_mismatch(&quoted())),
            },
            Self::Switch => switch(text).map(Value::Switch).ok_or_else(|| self.type_mismatch(&quoted())),
            Self::Names | Self::Hosts if text.trim_start().starts_with('[') => self.read_json(text),
            Self::Hosts => {
                let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
                let names: Vec<String> = names.map(str::to_owned).collect();
                match names.iter().find(|name| HostRules::check(name).is_err()) {
                    Some(name) => Err(self.type_mismatch(&format!("{name:?}"))),
                    None => Ok(Value::Names(names)),
                }
            }
            Self::Names => {
                let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
                Ok(Value::Names(names.map(str::to_owned).collect()))
            }
            Self::Texts => self.read_json(text),
            Self::Stages => stages::read_text(text),
            Self::Number { .. } => match text.trim().parse::<f64>() {
                Ok(number) => self.read_number(number, None, text),
                Err(_) => Err(self.type_mismatch(&quoted())),
            },
            Self::Word(words) if words.contains(&text) => Ok(Value::Text(text.to_owned())),
            Self::Word(words) => {
                let mut misfit = self.type_mismatch(&quoted());
                misfit.help = suggest::did_you_mean(text, words.iter().copied());
                Err(misfit)
            }
        }
    }

    fn read_json(self, text: &str) -> Result<Value, TypeMismatch> {
        let node =
            parse_json(text).map_err(|(_, words)| self.type_mismatch(&format!("{text:?} ({words})")))?;
        self.read(&node)
    }

    fn read_number(self, number: f64, whole: Option<i128>, shown: &str) -> Result<Value, TypeMismatch> {
        match (self, whole) {
            (Self::Whole { least, most }, Some(whole)) => match u64::try_from(whole) {
                Ok(whole) if (least..=most).contains(&whole) => Ok(Value::Whole(whole)),
                _ => Err(self.type_mismatch(shown)),
            },
            (Self::Signed { least, most }, Some(whole)) => match i64::try_from(whole) {
                Ok(whole) if (least..=most).contains(&whole) => Ok(Value::Signed(whole)),
                _ => Err(self.type_mismatch(shown)),
            },
            (Self::Number { least, most }, _) if (least..=most).contains(&number) => {
                Ok(Value::Number(number))
            }
            _ => Err(self.type_mismatch(shown)),
        }
    }

    fn type_mismatch(self, shown: &str) -> TypeMismatch {
        TypeMismatch { message: format!("expected {self}, found {shown}"), help: None }
    }

    /// The type as JSON Schema.
    pub(crate) fn schema(self) -> serde_json::Value {
        match self {
            Self::Text => json!({ "type": "string", "minLength": 1 }),
            Self::Url => json!({ "type": "string", "pattern": "^https?://" }),
            Self::Display => json!({ "type": "string", "pattern": "^:[0-9]+(\\.0)?$" }),
            Self::Whole { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Number { least, most } => json!({ "type": "number", "minimum": least, "maximum": most }),
            Self::Word(words) => json!({ "type": "string", "enum": words }),
            Self::Paths => json!({ "type": "array", "items": { "type": "string", "pattern": "^(/|~/)" } }),
            Self::Switch => json!({ "type": "boolean" }),
            Self::Signed { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Hosts => {
                let host = r"^(\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|[0-9A-Fa-f:.]+)$";
                json!({ "type": "array", "items": { "type": "string", "pattern": host } })
            }
            Self::Names => json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
            Self::Texts => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            Self::Stages => super::schema::stages(),
        }
    }
}

/// Description of the type, for errors and the reference page.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Url => f.write_str("a URL that begins with http:// or https://"),
            Self::Display => f.write_str("a local display, such as `:99`"),
            Self::Whole { least, most } if *most >= u64::from(u32::MAX) => {
                write!(f, "an integer of at least {least}")
            }
            Self::Whole { least, most } => write!(f, "an integer from {least} to {most}"),
            Self::Number { least, most } => write!(f, "a number from {least} to {most}"),
            Self::Word(words) => f.write_str(&words.join(" or ")),
            Self::Paths => f.write_str("a list of paths that begin with / or ~/"),
            Self::Switch => f.write_str("true or false"),
            Self::Signed { least, most } => write!(f, "an integer from {least} to {most}"),
            Self::Hosts => f.write_str("a list of host names such as crates.io or *.pypi.org"),
            Self::Names => f.write_str("a list of names"),
            Self::Texts => f.write_str("a table of strings"),
            Self::Stages => f.write_str("a list of stages"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(items) => f.write_str(&items.join(":")),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Switch(on) => write!(f, "{on}"),
            Self::Signed(number) => write!(f, "{number}"),
            Self::Names(names) => f.write_str(&names.join(", ")),
            Self::Texts(texts) => f.write_str(&json!(texts).to_string()),
            Self::Stages(stages) => {
                let ids = stages.as_array().into_iter().flatten().filter_map(|stage| stage["id"].as_str());
                f.write_str(&ids.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        match value {
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.clone().into(),
            Value::Whole(number) => (*number).into(),
            Value::Number(number) => (*number).into(),
            Value::Switch(on) => (*on).into(),
            Value::Signed(number) => (*number).into(),
            Value::Names(names) => names.clone().into(),
            Value::Texts(texts) => json!(texts),
            Value::Stages(stages) => stages.clone(),
        }
    }
}

fn paths<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Value, TypeMismatch> {
    let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
    match texts.iter().find(|text| !text.starts_with('/') && !text.starts_with("~/")) {
        Some(relative) => Err(Kind::Paths.type_mismatch(&format!("{relative:?}"))),
        None => Ok(Value::List(texts)),
    }
}

/// Parses a boolean as used in environment variables.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Validates a base URL. It is displayed and journaled, so it must not contain credentials.
pub(crate) fn url(text: &str) -> Result<String, TypeMismatch> {
    provider::check_url(text).map_err(|error| TypeMismatch {
        help: (error == UrlError::Credentials).then(|| {
            "put the key in a variable and name it in api_key_env of a [models.NAME] entry".to_owned()
        }),
        message: error.to_string(),
    })
}

/// The value of an engine type with this name. Words in the configuration and on the command line are the ones
/// the type has in the journal.
pub(crate) fn word<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(text.into()).ok()
}
