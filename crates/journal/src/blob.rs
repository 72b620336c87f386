//! Content stored once. Long strings in a row are replaced by their hash and stand once in the file, however
//! many steps, events and runs hold them.

use std::collections::HashMap;

use serde_json::Value;

/// Shorter strings are cheaper in place.
const FOLD_FROM: usize = 512;

/// Marks a folded string; a real object with this key alone is wrapped so that it cannot be mistaken for one.
const KEY: &str = "$blob";

/// The address of some content.
pub(crate) type Hash = [u8; 32];

/// A long string taken out of a value.
pub(crate) struct Blob {
    pub(crate) hash: Hash,
    pub(crate) text: String,
}

/// The hash of some text.
pub(crate) fn hash(text: &str) -> Hash {
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// Writes a value as JSON with its long strings taken out.
pub(crate) fn write(value: &Value, out: &mut String, blobs: &mut Vec<Blob>) {
    match value {
        Value::String(text) if text.len() >= FOLD_FROM => {
            let hash = hash(text);
            out.push_str("{\"$blob\":\"");
            out.push_str(&hex(&hash));
            out.push_str("\"}");
            blobs.push(Blob { hash, text: text.clone() });
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(item, out, blobs);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let escape = fields.len() == 1 && fields.contains_key(KEY);
            if escape {
                out.push_str("{\"$blob\":");
            }
            out.push('{');
            for (n, (key, item)) in fields.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(item, out, blobs);
            }
            out.push('}');
            if escape {
                out.push('}');
            }
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// Puts them back. The error names a hash that is missing.
pub(crate) fn unfold(value: Value, find: &mut dyn FnMut(&str) -> Option<String>) -> Result<Value, String> {
    match value {
        Value::Array(items) => items.into_iter().map(|item| unfold(item, find)).collect(),
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key(KEY) => {
            match fields.remove(KEY) {
                Some(Value::String(hex)) => find(&hex).map(Value::String).ok_or(hex),
                Some(Value::Object(inner)) => {
                    let inner: Result<serde_json::Map<_, _>, String> =
                        inner.into_iter().map(|(key, value)| Ok((key, unfold(value, find)?))).collect();
                    Ok(Value::Object(inner?))
                }
                other => Ok(other.unwrap_or_default()),
            }
        }
        Value::Object(fields) => {
            let fields: Result<serde_json::Map<_, _>, String> =
                fields.into_iter().map(|(key, value)| Ok((key, unfold(value, find)?))).collect();
            Ok(Value::Object(fields?))
        }
        plain => Ok(plain),
    }
}

/// A hash as text.
pub(crate) fn hex(hash: &Hash) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}

/// A small cache, so that reading a run back fetches shared content once.
pub(crate) type Cache = HashMap<String, String>;

#[cfg(test)]
mod tests;
