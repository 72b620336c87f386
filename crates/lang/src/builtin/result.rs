//! Functions on results and errors.

use super::{Run, builtins, json, map, type_error};
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::Value;

builtins! {
    "(ok? r)" exactly(1) "Whether a result did not fail; false for an error and for an exhausted loop."
        => Run::Pure(|_, args| Ok(Value::Bool(args.first().is_some_and(is_ok))));
    "(content r)" exactly(1) "The text of a result; raises if it failed."
        => Run::Pure(|_, args| match args.first().unwrap_or(&Value::Nil) {
            Value::Result(result) => Ok(Value::Text(result.content()?.clone())),
            Value::Text(text) => Ok(Value::Text(text.clone())),
            other => Err(type_error("content", "a result", other)),
        });
    "(parsed r)" exactly(1) "The data of a result, else its text parsed as JSON; raises if it failed."
        => Run::Pure(parsed);
    "(error-reason r)" exactly(1)
        "The reason of a failed result or an error, else its type; nil for anything else."
        => Run::Pure(|_, args| error_field(args.first().unwrap_or(&Value::Nil), &["reason", "type"]));
    "(error-message r)" exactly(1) "The message of a failed result or an error."
        => Run::Pure(|_, args| error_field(args.first().unwrap_or(&Value::Nil), &["message"]));
    "(exit-code r)" exactly(1) "The exit code of a command's result, or nil."
        => Run::Pure(|_, args| {
            let result = args.first().unwrap_or(&Value::Nil);
            for name in ["exit_code", "exitCode"] {
                if let Some(code) = map::field("exit-code", result, &Value::from(name))? {
                    return Ok(code);
                }
            }
            Ok(Value::Nil)
        });
}

/// Whether a value counts as success.
pub(crate) fn is_ok(value: &Value) -> bool {
    match value {
        Value::Result(result) => result.is_ok(),
        Value::Error(_) => false,
        Value::List(list) => !matches!(list.first(), Some(Value::Symbol(tag)) if &**tag == "exhausted"),
        _ => true,
    }
}

fn parsed(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    match args.first().unwrap_or(&Value::Nil) {
        Value::Result(result) => match result.data()? {
            Some(data) => Ok(data.clone()),
            None => json::parse(fuel, &result.content),
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
