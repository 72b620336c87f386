//! Comparisons and type predicates.

use std::cmp::Ordering;

use super::{Run, builtins, text_of, type_error};
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::{self, Value, ValueOrder};

builtins! {
    "(= a b …)" at_least(1) "Whether all values are equal; 1 equals 1.0." => Run::Pure(all_equal);
    "(eq? a b)" exactly(2) "Same as `=` for two values." => Run::Pure(all_equal);
    "(equal? a b)" exactly(2) "Same as `=` for two values." => Run::Pure(all_equal);
    "(< a b …)" at_least(1) "Whether each value is less than the next."
        => Run::Pure(|_, args| ordered("<", args, Ordering::is_lt));
    "(> a b …)" at_least(1) "Whether each value is greater than the next."
        => Run::Pure(|_, args| ordered(">", args, Ordering::is_gt));
    "(<= a b …)" at_least(1) "Whether no value is greater than the next."
        => Run::Pure(|_, args| ordered("<=", args, Ordering::is_le));
    "(>= a b …)" at_least(1) "Whether no value is less than the next."
        => Run::Pure(|_, args| ordered(">=", args, Ordering::is_ge));
    "(string=? a b)" exactly(2) "Whether two strings are equal."
        => Run::Pure(|_, args| {
            match args {
                [one, two] => Ok(Value::Bool(text_of("string=?", one)? == text_of("string=?", two)?)),
                _ => Ok(Value::Nil),
            }
        });
    "(not a)" exactly(1) "Whether a is false or nil." => Run::Pure(|_, args| is(args, |a| !a.is_true()));
    "(nil? a)" exactly(1) "Whether a is nil." => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Nil)));
    "(null? a)" exactly(1) "Whether a is nil or the empty list."
        => Run::Pure(|_, args| {
            is(args, |a| matches!(a, Value::Nil) || matches!(a, Value::List(list) if list.is_empty()))
        });
    "(boolean? a)" exactly(1) "Whether a is true or false."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Bool(_))));
    "(number? a)" exactly(1) "Whether a is a number."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Int(_) | Value::Float(_))));
    "(integer? a)" exactly(1) "Whether a is an integer."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Int(_))));
    "(string? a)" exactly(1) "Whether a is a string."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Text(_))));
    "(symbol? a)" exactly(1) "Whether a is a symbol."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Symbol(_))));
    "(list? a)" exactly(1) "Whether a is a list."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::List(_))));
    "(map? a)" exactly(1) "Whether a is a map."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Map(_))));
    "(function? a)" exactly(1) "Whether a can be called."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Function(_) | Value::Builtin(_))));
    "(result? a)" exactly(1) "Whether a is the result of a task or tool."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Result(_))));
    "(error? a)" exactly(1) "Whether a is a caught error."
        => Run::Pure(|_, args| is(args, |a| matches!(a, Value::Error(_))));
}

/// Number of pairs of values compared per step.
const PAIRS_PER_STEP: u64 = 4;

/// Whether two values are equal; charges steps for the compared pairs.
pub(crate) fn equal(fuel: &mut Fuel, one: &Value, two: &Value) -> Result<bool, UnlocatedError> {
    let affordable = (fuel.left + fuel.reserve).saturating_mul(PAIRS_PER_STEP).saturating_add(PAIRS_PER_STEP);
    let mut budget = affordable;
    let equal = value::equal(one, two, &mut budget).ok_or_else(UnlocatedError::out_of_steps)?;
    fuel.spend((affordable - budget) / PAIRS_PER_STEP)?;
    Ok(equal)
}

/// Whether two values are in the order that `holds` accepts.
pub(crate) fn ordered_pair(
    name: &str,
    one: &Value,
    two: &Value,
    holds: fn(Ordering) -> bool,
) -> Result<bool, UnlocatedError> {
    match value::compare(one, two) {
        ValueOrder::Is(order) => Ok(holds(order)),
        ValueOrder::None => {
            let has_order = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_) | Value::Text(_));
            let culprit = if has_order(one) { two } else { one };
            Err(type_error(name, "two numbers or two strings", culprit))
        }
    }
}

fn all_equal(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    for pair in args.windows(2) {
        if let [one, two] = pair
            && !equal(fuel, one, two)?
        {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn ordered(name: &'static str, args: &[Value], holds: fn(Ordering) -> bool) -> Result<Value, UnlocatedError> {
    if let [one] = args {
        ordered_pair(name, one, one, holds)?;
        return Ok(Value::Bool(true));
    }
    let mut all = true;
    for pair in args.windows(2) {
        if let [one, two] = pair {
            all &= ordered_pair(name, one, two, holds)?;
        }
    }
    Ok(Value::Bool(all))
}

fn is(args: &[Value], holds: fn(&Value) -> bool) -> Result<Value, UnlocatedError> {
    Ok(Value::Bool(args.first().is_some_and(holds)))
}
