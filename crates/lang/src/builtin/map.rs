//! Maps, and field access on maps, results, errors and (by index) lists.

use super::{Run, builtins, key_of, list_of, type_error};
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::{Map, Text, Value};

const ENTRY: usize = size_of::<(u64, Text, Value)>() + 8;

builtins! {
    "(dict key value …)" at_least(0) "A map with these entries." => Run::Pure(dict);
    "(get map key)" between(2, 3)
        "The value of key, else nil or a third argument; also the item of a list by index."
        => Run::Pure(|_, args| {
            let [from, key, ..] = args else { return Ok(Value::Nil) };
            Ok(field("get", from, key)?.or_else(|| args.get(2).cloned()).unwrap_or_default())
        });
    "(get-in map keys)" exactly(2) "Follows a list of keys into nested values; nil if one is missing."
        => Run::Pure(get_in);
    "(get-field x name)" exactly(2) "The field of a map, result or error, or nil."
        => Run::Pure(|_, args| {
            let [from, key] = args else { return Ok(Value::Nil) };
            Ok(field("get-field", from, key)?.unwrap_or_default())
        });
    "(put map key value)" exactly(3) "The map with key set to value."
        => Run::Pure(|fuel, args| {
            let [map, key, value] = args else { return Ok(Value::Nil) };
            let map = map_of("put", map)?;
            let key = Text::from(key_of("put", key)?);
            fuel.items(map.len() + 1, ENTRY)?;
            Ok(Value::Map(map.clone().with(key, value.clone())))
        });
    "(remove map key)" exactly(2) "The map without key."
        => Run::Pure(|fuel, args| {
            let [map, key] = args else { return Ok(Value::Nil) };
            let (map, key) = (map_of("remove", map)?, key_of("remove", key)?);
            fuel.items(map.len(), ENTRY)?;
            let kept = map.iter().filter(|(name, _)| &***name != key);
            Ok(Value::Map(kept.map(|(name, value)| (name.clone(), value.clone())).collect()))
        });
    "(merge map …)" at_least(0) "Merges maps; later entries win." => Run::Pure(merge);
    "(has-key? map key)" exactly(2) "Whether the map has the key."
        => Run::Pure(|_, args| {
            let [map, key] = args else { return Ok(Value::Nil) };
            Ok(Value::Bool(map_of("has-key?", map)?.get(key_of("has-key?", key)?).is_some()))
        });
    "(keys map)" exactly(1) "The keys in order."
        => Run::Pure(|fuel, args| {
            let map = map_of("keys", args.first().unwrap_or(&Value::Nil))?;
            fuel.items(map.len(), 16)?;
            Ok(Value::List(map.iter().map(|(key, _)| Value::Text(key.clone())).collect()))
        });
    "(values map)" exactly(1) "The values in order."
        => Run::Pure(|fuel, args| {
            let map = map_of("values", args.first().unwrap_or(&Value::Nil))?;
            fuel.items(map.len(), 16)?;
            Ok(Value::List(map.iter().map(|(_, value)| value.clone()).collect()))
        });
}

/// Looks up a field of a map, result or error, or an item of a list; `None` if there is none of that name.
///
/// A result has `status`, `content`, `parsedContent` and `notes`; other names are looked up in its notes and
/// then in its data. This never requires the content, so it also works on a failed result.
pub(super) fn field(name: &str, from: &Value, key: &Value) -> Result<Option<Value>, UnlocatedError> {
    if let (Value::List(list), Value::Int(index)) = (from, key) {
        return Ok(usize::try_from(*index).ok().and_then(|index| list.get(index)).cloned());
    }
    let key = key_of(name, key)?;
    match from {
        Value::Map(_) | Value::Error(_) | Value::Result(_) | Value::Nil => Ok(field_of(from, key)),
        other => Err(type_error(name, "a map, a result or an error", other)),
    }
}

/// The field of this name; `None` if the value has no fields or not this one.
pub(crate) fn field_of(from: &Value, key: &str) -> Option<Value> {
    match from {
        Value::Map(map) => map.get(key).cloned(),
        Value::Error(fault) => match fault.to_value() {
            Value::Map(fields) => fields.get(key).cloned(),
            _ => None,
        },
        Value::Result(result) => match key {
            "status" => Some(Value::text(result.status.to_string())),
            "content" => Some(Value::Text(result.content.clone())),
            "parsedContent" | "parsed" => Some(result.parsed.clone()),
            "notes" => Some(result.notes.clone()),
            _ => match (result.note(key), &result.parsed) {
                (Some(note), _) => Some(note.clone()),
                (None, Value::Map(data)) => data.get(key).cloned(),
                _ => None,
            },
        },
        _ => None,
    }
}

fn map_of<'v>(name: &str, value: &'v Value) -> Result<&'v Map, UnlocatedError> {
    match value {
        Value::Map(map) => Ok(map),
        other => Err(type_error(name, "a map", other)),
    }
}

fn dict(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    if !args.len().is_multiple_of(2) {
        let message = format!("`dict` needs a value for every key, but got {} arguments", args.len());
        return Err(UnlocatedError::new("wrong-arity", message));
    }
    fuel.items(args.len() / 2, ENTRY)?;
    let mut entries = Vec::with_capacity(args.len() / 2);
    for pair in args.chunks_exact(2) {
        if let [key, value] = pair {
            let key = match key {
                Value::Text(key) => key.clone(),
                other => Text::from(key_of("dict", other)?),
            };
            entries.push((key, value.clone()));
        }
    }
    Ok(Value::Map(entries.into_iter().collect()))
}

fn get_in(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let [from, keys] = args else { return Ok(Value::Nil) };
    let keys = list_of("get-in", keys)?;
    fuel.visit(keys.len())?;
    let mut found = from.clone();
    for key in keys {
        match field("get-in", &found, key)? {
            Some(next) => found = next,
            None => return Ok(Value::Nil),
        }
    }
    Ok(found)
}

fn merge(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let mut count = 0;
    for map in args {
        count += map_of("merge", map)?.len();
    }
    fuel.items(count, ENTRY)?;
    let mut entries = Vec::with_capacity(count);
    for map in args {
        entries.extend(map_of("merge", map)?.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(Value::Map(entries.into_iter().collect()))
}
