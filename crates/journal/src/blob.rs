//! Content-addressed storage of long strings. A long string in a row is replaced by its hash and stored once
//! per file, no matter how many steps, events and runs contain it.

use serde_json::{Map, Value};

/// Minimum length in bytes of a string that is moved to a blob; shorter ones are cheaper inline.
const FOLD_FROM: usize = 512;

/// Depth from which a nested value is stored as a blob of its own: `serde_json` reads back at most 128
/// levels.
const MAX_DEPTH: usize = 64;

/// Maximum number of blobs nested in blobs when reading back.
const NESTED: usize = 8;

/// Key of a reference: `{"$blob": "HASH"}` is a long string, `{"$blob": ["HASH"]}` a deep value. A real
/// object whose only key is this one is escaped as `{"$blob": {…}}`.
const KEY: &str = "$blob";

/// BLAKE3 hash that addresses a blob.
pub(crate) type Hash = [u8; 32];

pub(crate) fn hash(text: &str) -> Hash {
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// Lower-case hexadecimal form of a hash.
pub(crate) fn hex(hash: &Hash) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}

/// Serializes a value to JSON. `keep` stores each extracted text and returns its hash.
pub(crate) fn write(value: &Value, keep: &mut dyn FnMut(&str) -> Hash) -> String {
    let mut writer = Writer { out: String::new(), keep };
    writer.value(value, 0);
    writer.out
}

struct Writer<'a> {
    out: String,
    keep: &'a mut dyn FnMut(&str) -> Hash,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::String(text) if text.len() >= FOLD_FROM => self.reference(text, "\"", "\""),
            Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => {
                let text = write(value, self.keep);
                self.reference(&text, "[\"", "\"]");
            }
            Value::Array(items) => self.array(items, depth),
            Value::Object(fields) if fields.len() == 1 && fields.contains_key(KEY) => {
                self.out.push_str("{\"$blob\":");
                self.object(fields, depth + 1);
                self.out.push('}');
            }
            Value::Object(fields) => self.object(fields, depth),
            plain => self.plain(plain),
        }
    }

    fn array(&mut self, items: &[Value], depth: usize) {
        self.out.push('[');
        for (n, item) in items.iter().enumerate() {
            if n > 0 {
                self.out.push(',');
            }
            self.value(item, depth + 1);
        }
        self.out.push(']');
    }

    fn object(&mut self, fields: &Map<String, Value>, depth: usize) {
        self.out.push('{');
        for (n, (key, item)) in fields.iter().enumerate() {
            if n > 0 {
                self.out.push(',');
            }
            self.text(key);
            self.out.push(':');
            self.value(item, depth + 1);
        }
        self.out.push('}');
    }

    fn plain(&mut self, plain: &Value) {
        match plain {
            Value::String(text) => self.text(text),
            other => self.out.push_str(&other.to_string()),
        }
    }

    fn text(&mut self, text: &str) {
        if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
            self.out.push('"');
            self.out.push_str(text);
            self.out.push('"');
        } else {
            self.out.push_str(&Value::from(text).to_string());
        }
    }

    fn reference(&mut self, text: &str, before: &str, after: &str) {
        let hash = (self.keep)(text);
        self.out.push_str("{\"$blob\":");
        self.out.push_str(before);
        self.out.push_str(&hex(&hash));
        self.out.push_str(after);
        self.out.push('}');
    }
}

/// Why a value cannot be reassembled.
pub(crate) enum BlobError<E> {
    /// No blob has this hash.
    Missing(String),
    /// The reference was not written by [`write()`], or blobs are nested too deeply.
    Malformed,
    /// The lookup itself failed.
    Failed(E),
}

/// Replaces all blob references in a value by their content.
pub(crate) fn unfold<E>(
    value: Value,
    find: &mut dyn FnMut(&str) -> Result<Option<String>, E>,
) -> Result<Value, BlobError<E>> {
    unfold_within(value, find, NESTED)
}

fn unfold_within<E>(
    value: Value,
    find: &mut dyn FnMut(&str) -> Result<Option<String>, E>,
    nested: usize,
) -> Result<Value, BlobError<E>> {
    match value {
        Value::Array(items) => items.into_iter().map(|item| unfold_within(item, find, nested)).collect(),
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key(KEY) => {
            let mut content = |hash: String| match find(&hash) {
                Ok(Some(text)) => Ok(text),
                Ok(None) => Err(BlobError::Missing(hash)),
                Err(error) => Err(BlobError::Failed(error)),
            };
            match fields.remove(KEY) {
                Some(Value::String(hash)) => content(hash).map(Value::String),
                Some(Value::Object(inner)) => unfold_fields(inner, find, nested),
                Some(Value::Array(mut items)) => match (items.pop(), nested.checked_sub(1)) {
                    (Some(Value::String(hash)), Some(nested)) => {
                        let text = content(hash)?;
                        let inner = serde_json::from_str(&text).map_err(|_| BlobError::Malformed)?;
                        unfold_within(inner, find, nested)
                    }
                    _ => Err(BlobError::Malformed),
                },
                _ => Err(BlobError::Malformed),
            }
        }
        Value::Object(fields) => unfold_fields(fields, find, nested),
        plain => Ok(plain),
    }
}

fn unfold_fields<E>(
    fields: Map<String, Value>,
    find: &mut dyn FnMut(&str) -> Result<Option<String>, E>,
    nested: usize,
) -> Result<Value, BlobError<E>> {
    let unfolded = fields.into_iter().map(|(key, value)| Ok((key, unfold_within(value, find, nested)?)));
    unfolded.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

#[cfg(test)]
mod tests;
