//! Functions on results and errors.

use super::{Arity, Builtin, json, map, pure, type_error};
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::Value;

pub(super) const TABLE: &[Builtin] = &[
    pure(
        "ok?",
        Arity::exactly(1),
        "(ok? r)",
        "Whether a result did not fail; false for an error and for an exhausted loop.",
        |_, args| Ok(Value::Bool(args.first().is_some_and(is_ok))),
    ),
    pure(
        "content",
        Arity::exactly(1),
        "(content r)",
        "The text of a result; raises if it failed.",
        |_, args| match args.first().unwrap_or(&Value::Nil) {
            Value::Result(result) => Ok(Value::Text(result.content()?.clone())),
            Value::Text(text) => Ok(Value::Text(text.clone())),
            other => Err(type_error("content", "a result", other)),
        },
    ),
    pure(
        "parsed",
        Arity::exactly(1),
        "(parsed r)",
        "The data of a result, else its text parsed as JSON; raises if it failed.",
        parsed,
    ),
    pure(
        "error-reason",
        Arity::exactly(1),
        "(error-reason r)",
        "The reason of a failed result or an error, else its type; nil for anything else.",
        |_, args| error_field(args.first().unwrap_or(&Value::Nil), &["reason", "type"]),
    ),
    pure(
        "error-message",
        Arity::exactly(1),
        "(error-message r)",
        "The message of a failed result or an error.",
        |_, args| error_field(args.first().unwrap_or(&Value::Nil), &["message"]),
    ),
    pure(
        "exit-code",
        Arity::exactly(1),
        "(exit-code r)",
        "The exit code of a command's result, or nil.",
        |_, args| {
            let result = args.first().unwrap_or(&Value::Nil);
            for name in ["exit_code", "exitCode"] {
                if let Some(code) = map::field("exit-code", result, &Value::from(name))? {
                    return Ok(code);
                }
            }
            Ok(Value::Nil)
        },
    ),
];

/// Whether a value counts as success.
pub(crate) fn is_ok(value: &Value) -> bool {
    match value {
        Value::Result(result) => result.is_ok(),
        Value::Error(_) => false,
        Value::List(list) => !matches!(list.first(), Some(Value::Symbol(tag)) if &**tag == "exhausted"),
        _ => true,
    }
}

fn parsed(meter: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    match args.first().unwrap_or(&Value::Nil) {
        Value::Result(result) => match result.data()? {
            Some(data) => Ok(data.clone()),
            None => json::parse(meter, &result.content),
        },
        other => Err(type_error("parsed", "a result", other)),
    }
}

fn error_field(value: &Value, names: &[&str]) -> Result<Value, UnlocatedError> {
    let error = match value {
        Value::Error(fault) => fault.to_value(),
        Value::Result(result) if result.is_ok() => return Ok(Value::Nil),
        Value::Result(result) => result.note("error").cloned().unwrap_or_default(),
        _ => return Ok(Value::Nil),
    };
    let Value::Map(fields) = error else { return Ok(error) };
    Ok(names.iter().find_map(|name| fields.get(name)).cloned().unwrap_or_default())
}
