//! Functions that call functions, raise errors, or yield effects.

use super::{Run, builtins, list_of, text, text_of, type_error};
use crate::effect::EffectKind;
use crate::fuel::Fuel;
use crate::machine::{HigherOrderCall, ItemAction, NativeStart};
use crate::runtime_error::UnlocatedError;
use crate::value::{Text, Value, brief};

/// Maximum bytes of a raised non-string value shown in the error message.
const LONGEST_MESSAGE: usize = 1000;

builtins! {
    "(map f list)" exactly(2) "Applies f to each item and returns the list of results."
        => Run::Native(|fuel, args| each(fuel, "map", ItemAction::Map, args));
    "(filter f list)" exactly(2) "The items for which f is true."
        => Run::Native(|fuel, args| each(fuel, "filter", ItemAction::Filter, args));
    "(for-each f list)" exactly(2) "Calls f with each item in order and returns nil."
        => Run::Native(|fuel, args| each(fuel, "for-each", ItemAction::Only, args));
    "(any? f list)" exactly(2) "Whether f is true for any item; stops at the first one."
        => Run::Native(|fuel, args| each(fuel, "any?", ItemAction::Any, args));
    "(all? f list)" exactly(2) "Whether f is true for every item; stops at the first where it is not."
        => Run::Native(|fuel, args| each(fuel, "all?", ItemAction::All, args));
    "(reduce f init list)" exactly(3)
        "Folds the list: f of init and the first item, f of that and the second item, …"
        => Run::Native(|fuel, args| {
            let [function, init, list] = args else { return Ok(NativeStart::Value(Value::Nil)) };
            let items = packed(fuel, "reduce", list)?;
            Ok(NativeStart::Native(HigherOrderCall::reduce(
                callable("reduce", function)?,
                init.clone(),
                items,
            )))
        });
    "(sort list less?)" between(1, 2)
        "Sorts the list, stably; numbers or strings, unless less? defines the order."
        => Run::Native(sort);
    "(pmap f list :limit n)" between(2, 3)
        "Like map, but concurrent, at most n items at a time; results keep their order, the first failure cancels the rest."
        => Run::FanOut;
    "(raise value message)" between(1, 2)
        "Raises an error with a message or any value, or raises a caught error again."
        => Run::Pure(|fuel, args| Err(raised(fuel, args)?));
    "(stop v)" exactly(1) "The list (stop v), with which a controller ends the loop with value v."
        => Run::Pure(|fuel, args| tagged(fuel, "stop", args));
    "(continue x)" exactly(1)
        "The list (continue x), with which a controller starts another round with input x."
        => Run::Pure(|fuel, args| tagged(fuel, "continue", args));
    "(ask-user question)" exactly(1) "Asks the user and returns the answer."
        => Run::Effect(|_, args| {
            let question = text_of("ask-user", args.first().unwrap_or(&Value::Nil))?;
            Ok(EffectKind::AskUser { question: question.to_string() })
        });
    "(log-message a …)" at_least(1) "Logs the values separated by spaces and returns nil."
        => Run::Effect(|fuel, args| {
            let mut message = String::new();
            for (index, value) in args.iter().enumerate() {
                let shown = match value {
                    // A failed result can be logged, to make debugging possible.
                    Value::Result(result) => result.content.to_string(),
                    other => text::shown(fuel, other)?,
                };
                fuel.allocate(shown.len() + 1)?;
                message.push_str(if index > 0 { " " } else { "" });
                message.push_str(&shown);
            }
            Ok(EffectKind::Log { message })
        });
}

/// Checks that a value can be called.
pub(crate) fn callable(name: &str, value: &Value) -> Result<Value, UnlocatedError> {
    match value {
        Value::Function(_) | Value::Builtin(_) => Ok(value.clone()),
        other => Err(type_error(name, "a function", other)),
    }
}

/// A list with constant-time access by index.
pub(crate) fn packed(
    fuel: &mut Fuel,
    name: &str,
    list: &Value,
) -> Result<crate::value::List, UnlocatedError> {
    let list = list_of(name, list)?;
    fuel.items(list.len(), size_of::<Value>())?;
    Ok(list.packed())
}

fn each(
    fuel: &mut Fuel,
    name: &'static str,
    each: ItemAction,
    args: &[Value],
) -> Result<NativeStart, UnlocatedError> {
    let [function, list] = args else { return Ok(NativeStart::Value(Value::Nil)) };
    let items = packed(fuel, name, list)?;
    Ok(NativeStart::Native(HigherOrderCall::each(name, each, callable(name, function)?, items)))
}

fn sort(fuel: &mut Fuel, args: &[Value]) -> Result<NativeStart, UnlocatedError> {
    let list = list_of("sort", args.first().unwrap_or(&Value::Nil))?;
    fuel.items(list.len().saturating_mul(2), size_of::<Value>())?;
    let mut items: Vec<Value> = list.iter().cloned().collect();
    if let Some(less) = args.get(1) {
        return Ok(NativeStart::Native(HigherOrderCall::sort(callable("sort", less)?, items)));
    }
    fuel.visit(items.len().saturating_mul(items.len().max(2).ilog2() as usize))?;
    for item in &items {
        // Comparing with the first item finds a mixed list in one pass.
        let first = items.first().unwrap_or(item);
        if matches!(crate::value::compare(item, first), crate::value::ValueOrder::None) {
            let message = format!(
                "`sort` needs only numbers or only strings, not {} and {}",
                brief(first),
                brief(item)
            );
            return Err(UnlocatedError::new("wrong-type", message));
        }
    }
    items.sort_by(|one, two| match crate::value::compare(one, two) {
        crate::value::ValueOrder::Is(order) => order,
        crate::value::ValueOrder::None => std::cmp::Ordering::Equal,
    });
    Ok(NativeStart::Value(Value::list(items)))
}

fn tagged(fuel: &mut Fuel, tag: &str, args: &[Value]) -> Result<Value, UnlocatedError> {
    fuel.items(2, size_of::<Value>())?;
    Ok(Value::list([Value::symbol(tag), args.first().cloned().unwrap_or_default()]))
}

fn raised(fuel: &mut Fuel, args: &[Value]) -> Result<UnlocatedError, UnlocatedError> {
    let value = args.first().unwrap_or(&Value::Nil);
    let message = args.get(1).map(|message| text::shown(fuel, message)).transpose()?;
    match (value, message) {
        (Value::Error(fault), None) => Ok(UnlocatedError::from(Box::new(fault.catchable_copy()))),
        (Value::Result(result), None) if !result.is_ok() => {
            Ok(UnlocatedError::from(Box::new(result.fault())))
        }
        (Value::Map(map), None) if matches!(map.get("message"), Some(Value::Text(_))) => {
            let field = |name| match map.get(name) {
                Some(Value::Text(text) | Value::Symbol(text)) => Some(text.clone()),
                _ => None,
            };
            let message = field("message").map_or_else(String::new, |text| text.to_string());
            let kind = field("type").unwrap_or_else(|| Text::from("TASK_FAILURE"));
            Ok(UnlocatedError::raised(kind, field("reason"), message, value.clone()))
        }
        (value, message) => {
            let reason = match (value, &message) {
                (Value::Symbol(tag) | Value::Text(tag), Some(_)) => tag.clone(),
                (Value::Symbol(tag), None) => tag.clone(),
                _ => Text::from("unexpected_error"),
            };
            let kept =
                if matches!(value, Value::Text(_)) && message.is_none() { Value::Nil } else { value.clone() };
            let message = match message {
                Some(message) => message,
                // A long value is kept in full next to the message, not in it.
                None if !matches!(value, Value::Text(_)) => value.display(LONGEST_MESSAGE),
                None => text::shown(fuel, value)?,
            };
            Ok(UnlocatedError::raised(Text::from("TASK_FAILURE"), Some(reason), message, kept))
        }
    }
}
