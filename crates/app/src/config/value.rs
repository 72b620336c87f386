//! What a configuration key may hold, and reading it from TOML, from a variable or from a flag.

use std::fmt;

use fusee_engine::text::near;
use serde_json::json;
use toml::de::DeValue;

/// The sort of value a key takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Text that is not empty.
    Text,
    /// A base URL.
    Url,
    /// A whole number.
    Whole { least: u64, most: u64 },
    /// A number.
    Number { least: f64, most: f64 },
    /// One of these words.
    Word(&'static [&'static str]),
    /// Paths that begin with `/` or `~/`.
    Paths,
}

/// A value that fits its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<String>),
    Whole(u64),
    Number(f64),
}

/// Why a value does not fit: the complaint, and what would.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Kind {
    /// Reads what stands in a file.
    pub(crate) fn read_toml(self, value: &DeValue<'_>) -> Result<Value, Misfit> {
        match value {
            DeValue::String(text) => match self {
                Self::Text | Self::Url | Self::Word(_) => self.read_text(text),
                Self::Paths => paths([text.as_ref()]),
                Self::Whole { .. } | Self::Number { .. } => Err(self.misfit(&format!("{:?}", text.as_ref()))),
            },
            DeValue::Integer(whole) => {
                let digits = whole.as_str().replace('_', "");
                match i128::from_str_radix(&digits, whole.radix()) {
                    Ok(number) => {
                        self.read_number(number as f64, u64::try_from(number).ok(), &whole.to_string())
                    }
                    Err(_) => Err(self.misfit(&whole.to_string())),
                }
            }
            DeValue::Float(number) => match number.as_str().replace('_', "").parse::<f64>() {
                Ok(parsed) => self.read_number(parsed, None, number.as_str()),
                Err(_) => Err(self.misfit(number.as_str())),
            },
            DeValue::Boolean(word) => Err(self.misfit(&word.to_string())),
            DeValue::Datetime(time) => Err(self.misfit(&time.to_string())),
            DeValue::Array(items) if matches!(self, Self::Paths) => {
                let texts = items.iter().map(|item| item.get_ref().as_str());
                match texts.collect::<Option<Vec<&str>>>() {
                    Some(texts) => paths(texts),
                    None => Err(self.misfit("a list of something else")),
                }
            }
            DeValue::Array(_) => Err(self.misfit("a list")),
            DeValue::Table(_) => Err(self.misfit("a table")),
        }
    }

    /// Reads what was typed or stands in a variable.
    pub(crate) fn read_text(self, text: &str) -> Result<Value, Misfit> {
        let quoted = || format!("{text:?}");
        match self {
            Self::Text if text.trim().is_empty() => Err(self.misfit(&quoted())),
            Self::Text => Ok(Value::Text(text.to_owned())),
            Self::Url => url(text).map(Value::Text),
            Self::Paths => paths(text.split(':').filter(|path| !path.is_empty())),
            Self::Whole { .. } => match text.trim().parse::<u64>() {
                Ok(number) => self.read_number(number as f64, Some(number), text),
                Err(_) => Err(self.misfit(&quoted())),
            },
            Self::Number { .. } => match text.trim().parse::<f64>() {
                Ok(number) => self.read_number(number, None, text),
                Err(_) => Err(self.misfit(&quoted())),
            },
            Self::Word(words) if words.contains(&text) => Ok(Value::Text(text.to_owned())),
            Self::Word(words) => {
                let mut misfit = self.misfit(&quoted());
                misfit.help = near::did_you_mean(text, words.iter().copied());
                Err(misfit)
            }
        }
    }

    fn read_number(self, number: f64, whole: Option<u64>, shown: &str) -> Result<Value, Misfit> {
        match (self, whole) {
            (Self::Whole { least, most }, Some(whole)) if (least..=most).contains(&whole) => {
                Ok(Value::Whole(whole))
            }
            (Self::Number { least, most }, _) if (least..=most).contains(&number) => {
                Ok(Value::Number(number))
            }
            _ => Err(self.misfit(shown)),
        }
    }

    fn misfit(self, shown: &str) -> Misfit {
        Misfit { message: format!("expected {self}, found {shown}"), help: None }
    }

    /// The type in the JSON Schema.
    pub(crate) fn schema(self) -> serde_json::Value {
        match self {
            Self::Text => json!({ "type": "string", "minLength": 1 }),
            Self::Url => json!({ "type": "string", "pattern": "^https?://" }),
            Self::Whole { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Number { least, most } => json!({ "type": "number", "minimum": least, "maximum": most }),
            Self::Word(words) => json!({ "type": "string", "enum": words }),
            Self::Paths => json!({ "type": "array", "items": { "type": "string", "pattern": "^(/|~/)" } }),
        }
    }
}

/// In words, for complaints and the reference page.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Url => f.write_str("a URL that begins with http:// or https://"),
            Self::Whole { least, most } if *most >= u64::from(u32::MAX) => {
                write!(f, "a whole number from {least} on")
            }
            Self::Whole { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Number { least, most } => write!(f, "a number from {least} to {most}"),
            Self::Word(words) => f.write_str(&words.join(" or ")),
            Self::Paths => f.write_str("a list of paths that begin with / or ~/"),
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
        }
    }
}

fn paths<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Value, Misfit> {
    let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
    match texts.iter().find(|text| !text.starts_with('/') && !text.starts_with("~/")) {
        Some(relative) => Err(Kind::Paths.misfit(&format!("{relative:?}"))),
        None => Ok(Value::List(texts)),
    }
}

/// A base URL is shown, journaled and printed, so it may not hold a password.
pub(crate) fn url(text: &str) -> Result<String, Misfit> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest.filter(|rest| !rest.is_empty()) else {
        return Err(Kind::Url.misfit(&format!("{text:?}")));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(Misfit {
            message: "a URL with a user or password in it would end up in the journal".to_owned(),
            help: Some(
                "put the key into a variable and name it with api_key_env of a [models.NAME] entry"
                    .to_owned(),
            ),
        });
    }
    if authority.is_empty() {
        return Err(Kind::Url.misfit(&format!("{text:?}")));
    }
    Ok(text.trim_end_matches('/').to_owned())
}
