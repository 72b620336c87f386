//! JSON objects whose fields know their position, so that an error in a script or cassette can be reported
//! with its location and a suggested name.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::excerpt;

/// A problem in a line, at a byte offset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

impl FieldError {
    pub(crate) fn new(offset: usize, message: impl Into<String>) -> Self {
        FieldError { offset, message: message.into() }
    }
}

#[derive(Debug)]
pub(crate) struct SpannedField<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) value: &'a str,
    pub(crate) value_at: usize,
}

/// Parses the fields of the object `text`, which starts at offset `base` of its line. Unknown and duplicate
/// names are reported; the other fields are still read, so that all problems are reported at once.
pub(crate) fn fields<'a>(
    text: &'a str,
    base: usize,
    allowed: &[&str],
    faults: &mut Vec<FieldError>,
) -> Vec<SpannedField<'a>> {
    if !text.trim_start().starts_with('{') {
        faults.push(FieldError::new(base, format!("expected an object, found {}", kind_of(text))));
        return Vec::new();
    }
    let pairs = match serde_json::from_str::<Pairs<'a>>(text) {
        Ok(Pairs(pairs)) => pairs,
        Err(error) => {
            // serde_json counts columns from 1 and points after the unexpected byte.
            faults.push(FieldError::new(base + error.column().saturating_sub(1), bare_message(&error)));
            return Vec::new();
        }
    };
    let mut found: Vec<SpannedField<'a>> = Vec::with_capacity(pairs.len());
    let mut end_of_previous = 0;
    for (key, value) in pairs {
        let value = value.get();
        let value_start = value.as_ptr() as usize - text.as_ptr() as usize;
        let key_start = text[end_of_previous..value_start].find('"').unwrap_or(0) + end_of_previous;
        end_of_previous = value_start + value.len();
        let key_at = base + key_start;
        if !allowed.contains(&key.as_ref()) {
            faults.push(FieldError::new(key_at, unknown(&key, allowed)));
        } else if found.iter().any(|field| field.key == key) {
            faults.push(FieldError::new(key_at, format!("duplicate field `{key}`")));
        } else {
            found.push(SpannedField { key, value, value_at: base + value_start });
        }
    }
    found
}

/// The elements of the list `text`, each with its offset.
pub(crate) fn elements<'a>(
    text: &'a str,
    base: usize,
    faults: &mut Vec<FieldError>,
) -> Vec<(&'a str, usize)> {
    match serde_json::from_str::<Vec<&'a RawValue>>(text) {
        Ok(list) => list
            .into_iter()
            .map(|raw| (raw.get(), base + (raw.get().as_ptr() as usize - text.as_ptr() as usize)))
            .collect(),
        Err(_) => {
            faults.push(FieldError::new(base, format!("expected a list, found {}", kind_of(text))));
            Vec::new()
        }
    }
}

impl<'a> SpannedField<'a> {
    /// Parses the value as `T`, or reports what was `expected`.
    pub(crate) fn read<T: Deserialize<'a>>(&self, expected: &str, faults: &mut Vec<FieldError>) -> Option<T> {
        serde_json::from_str(self.value)
            .map_err(|_| {
                let message = format!("`{}` must be {expected}, not {}", self.key, kind_of(self.value));
                faults.push(FieldError::new(self.value_at, message));
            })
            .ok()
    }
}

/// Describes the type of a JSON text.
pub(crate) fn kind_of(text: &str) -> Cow<'static, str> {
    match text.trim_start().bytes().next() {
        Some(b'{') => "an object".into(),
        Some(b'[') => "a list".into(),
        Some(b'"') => "a string".into(),
        _ => excerpt(text, 20).into(),
    }
}

fn unknown(key: &str, allowed: &[&str]) -> String {
    let nearest = allowed
        .iter()
        .map(|name| (strsim::damerau_levenshtein(key, name), name))
        .filter(|(distance, name)| *distance <= name.len() / 3 + 1 || name.starts_with(key))
        .min_by_key(|(distance, _)| *distance);
    let hint = nearest.map(|(_, name)| format!("; did you mean `{name}`?")).unwrap_or_default();
    let names: Vec<_> = allowed.iter().map(|name| format!("`{name}`")).collect();
    format!("unknown field `{key}`{hint} (allowed: {})", names.join(", "))
}

fn bare_message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let bare = message.split(" at line ").next().unwrap_or(&message);
    format!("not valid JSON: {bare}")
}

struct Pairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                #[derive(Deserialize)]
                struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut pairs = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    pairs.push((key, value));
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
