//! Comparisons and type predicates.

use std::cmp::Ordering;

use super::{Arity, Builtin, pure, text_of, type_error};
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::{self, Value, ValueOrder};

pub(super) const TABLE: &[Builtin] = &[
    pure("=", Arity::at_least(1), "(= a b …)", "Whether all values are equal; 1 equals 1.0.", all_equal),
    pure("eq?", Arity::exactly(2), "(eq? a b)", "Same as `=` for two values.", all_equal),
    pure("equal?", Arity::exactly(2), "(equal? a b)", "Same as `=` for two values.", all_equal),
    pure("<", Arity::at_least(1), "(< a b …)", "Whether each value is less than the next.", |_, args| {
        ordered("<", args, Ordering::is_lt)
    }),
    pure(
        ">",
        Arity::at_least(1),
        "(> a b …)",
        "Whether each value is greater than the next.",
        |_, args| ordered(">", args, Ordering::is_gt),
    ),
    pure(
        "<=",
        Arity::at_least(1),
        "(<= a b …)",
        "Whether no value is greater than the next.",
        |_, args| ordered("<=", args, Ordering::is_le),
    ),
    pure(">=", Arity::at_least(1), "(>= a b …)", "Whether no value is less than the next.", |_, args| {
        ordered(">=", args, Ordering::is_ge)
    }),
    pure("string=?", Arity::exactly(2), "(string=? a b)", "Whether two strings are equal.", |_, args| {
        match args {
            [one, two] => Ok(Value::Bool(text_of("string=?", one)? == text_of("string=?", two)?)),
            _ => Ok(Value::Nil),
        }
    }),
    pure("not", Arity::exactly(1), "(not a)", "Whether a is false or nil.", |_, args| {
        is(args, |a| !a.is_true())
    }),
    pure("nil?", Arity::exactly(1), "(nil? a)", "Whether a is nil.", |_, args| {
        is(args, |a| matches!(a, Value::Nil))
    }),
    pure("null?", Arity::exactly(1), "(null? a)", "Whether a is nil or the empty list.", |_, args| {
        is(args, |a| matches!(a, Value::Nil) || matches!(a, Value::List(list) if list.is_empty()))
    }),
    pure("boolean?", Arity::exactly(1), "(boolean? a)", "Whether a is true or false.", |_, args| {
        is(args, |a| matches!(a, Value::Bool(_)))
    }),
    pure("number?", Arity::exactly(1), "(number? a)", "Whether a is a number.", |_, args| {
        is(args, |a| matches!(a, Value::Int(_) | Value::Float(_)))
    }),
    pure("integer?", Arity::exactly(1), "(integer? a)", "Whether a is an integer.", |_, args| {
        is(args, |a| matches!(a, Value::Int(_)))
    }),
    pure("string?", Arity::exactly(1), "(string? a)", "Whether a is a string.", |_, args| {
        is(args, |a| matches!(a, Value::Text(_)))
    }),
    pure("symbol?", Arity::exactly(1), "(symbol? a)", "Whether a is a symbol.", |_, args| {
        is(args, |a| matches!(a, Value::Symbol(_)))
    }),
    pure("list?", Arity::exactly(1), "(list? a)", "Whether a is a list.", |_, args| {
        is(args, |a| matches!(a, Value::List(_)))
    }),
    pure("map?", Arity::exactly(1), "(map? a)", "Whether a is a map.", |_, args| {
        is(args, |a| matches!(a, Value::Map(_)))
    }),
    pure("function?", Arity::exactly(1), "(function? a)", "Whether a can be called.", |_, args| {
        is(args, |a| matches!(a, Value::Function(_) | Value::Builtin(_)))
    }),
    pure(
        "result?",
        Arity::exactly(1),
        "(result? a)",
        "Whether a is the result of a task or tool.",
        |_, args| is(args, |a| matches!(a, Value::Result(_))),
    ),
    pure("error?", Arity::exactly(1), "(error? a)", "Whether a is a caught error.", |_, args| {
        is(args, |a| matches!(a, Value::Error(_)))
    }),
];

/// Number of pairs of values compared per step.
const PAIRS_A_STEP: u64 = 4;

/// Whether two values are equal; charges steps for the compared pairs.
pub(crate) fn equal(meter: &mut Fuel, one: &Value, two: &Value) -> Result<bool, UnlocatedError> {
    let affordable = (meter.left + meter.reserve).saturating_mul(PAIRS_A_STEP).saturating_add(PAIRS_A_STEP);
    let mut budget = affordable;
    let equal = value::equal(one, two, &mut budget).ok_or_else(UnlocatedError::out_of_steps)?;
    meter.spend((affordable - budget) / PAIRS_A_STEP)?;
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

fn all_equal(meter: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    for pair in args.windows(2) {
        if let [one, two] = pair
            && !equal(meter, one, two)?
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
