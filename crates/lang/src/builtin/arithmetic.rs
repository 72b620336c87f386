//! Numbers. Integer arithmetic never wraps; a result that cannot be represented is an error, not infinity.

use super::{Run, builtins, text_of, type_error};
use crate::runtime_error::UnlocatedError;
use crate::value::{Value, brief};

builtins! {
    "(+ a …)" at_least(0) "The sum; 0 without arguments."
        => Run::Pure(|_, args| fold(args, Value::Int(0), add));
    "(- a b …)" at_least(1) "The difference; with one argument its negation."
        => Run::Pure(|_, args| match args {
            [one] => subtract(&Value::Int(0), one),
            [first, rest @ ..] => fold(rest, first.clone(), subtract),
            [] => Ok(Value::Nil),
        });
    "(* a …)" at_least(0) "The product; 1 without arguments."
        => Run::Pure(|_, args| fold(args, Value::Int(1), multiply));
    "(/ a b …)" at_least(1) "The quotient, an integer if exact; with one argument its reciprocal."
        => Run::Pure(|_, args| match args {
            [one] => divide(&Value::Int(1), one),
            [first, rest @ ..] => fold(rest, first.clone(), divide),
            [] => Ok(Value::Nil),
        });
    "(quotient a b)" exactly(2) "The integer quotient of a and b, rounded toward zero."
        => Run::Pure(|_, args| integers("quotient", args, i64::checked_div));
    "(remainder a b)" exactly(2) "The remainder of integer division, with the sign of a."
        => Run::Pure(|_, args| integers("remainder", args, i64::checked_rem));
    "(mod a b)" exactly(2) "The modulus, with the sign of b."
        => Run::Pure(|_, args| {
            integers("mod", args, |a, b| {
                a.checked_rem(b).map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
            })
        });
    "(abs a)" exactly(1) "The absolute value."
        => Run::Pure(|_, args| match args {
            [Value::Int(value)] => value.checked_abs().map(Value::Int).ok_or_else(|| overflow("abs", args)),
            [Value::Float(value)] => Ok(Value::Float(value.abs())),
            other => Err(not_a_number("abs", other)),
        });
    "(min a …)" at_least(1) "The smallest number." => Run::Pure(|_, args| extreme("min", args, less));
    "(max a …)" at_least(1) "The largest number."
        => Run::Pure(|_, args| extreme("max", args, |one, two| less(two, one)));
    "(floor a)" exactly(1) "The number rounded down to an integer."
        => Run::Pure(|_, args| whole("floor", args, f64::floor));
    "(ceil a)" exactly(1) "The number rounded up to an integer."
        => Run::Pure(|_, args| whole("ceil", args, f64::ceil));
    "(round a)" exactly(1) "The nearest integer; halves round away from zero."
        => Run::Pure(|_, args| whole("round", args, f64::round));
    "(string->number s)" exactly(1) "Parses a number; nil if the string is not one."
        => Run::Pure(|_, args| parse(args));
}

/// Adds two numbers.
pub(crate) fn add(one: &Value, two: &Value) -> Result<Value, UnlocatedError> {
    numbers("+", one, two, i64::checked_add, |a, b| a + b)
}

/// Subtracts two numbers.
pub(crate) fn subtract(one: &Value, two: &Value) -> Result<Value, UnlocatedError> {
    numbers("-", one, two, i64::checked_sub, |a, b| a - b)
}

/// Multiplies two numbers.
pub(crate) fn multiply(one: &Value, two: &Value) -> Result<Value, UnlocatedError> {
    numbers("*", one, two, i64::checked_mul, |a, b| a * b)
}

fn divide(one: &Value, two: &Value) -> Result<Value, UnlocatedError> {
    match (one, two) {
        (_, Value::Int(0)) => return Err(by_zero(one)),
        (_, Value::Float(zero)) if *zero == 0.0 => return Err(by_zero(one)),
        (Value::Int(a), Value::Int(b)) if a.checked_rem(*b) == Some(0) => return Ok(Value::Int(a / b)),
        _ => {}
    }
    match (as_float(one), as_float(two)) {
        (Some(a), Some(b)) => finite("/", a / b),
        (None, _) => Err(type_error("/", "numbers", one)),
        (_, None) => Err(type_error("/", "numbers", two)),
    }
}

fn numbers(
    name: &'static str,
    one: &Value,
    two: &Value,
    integers: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Result<Value, UnlocatedError> {
    if let (Value::Int(a), Value::Int(b)) = (one, two) {
        return integers(*a, *b).map(Value::Int).ok_or_else(|| overflow(name, &[one.clone(), two.clone()]));
    }
    match (as_float(one), as_float(two)) {
        (Some(a), Some(b)) => finite(name, floats(a, b)),
        (None, _) => Err(type_error(name, "numbers", one)),
        (_, None) => Err(type_error(name, "numbers", two)),
    }
}

fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

fn finite(name: &str, value: f64) -> Result<Value, UnlocatedError> {
    if value.is_finite() {
        Ok(Value::Float(value))
    } else {
        Err(UnlocatedError::new("overflow", format!("the result of `{name}` is too large")))
    }
}

fn fold(
    args: &[Value],
    first: Value,
    step: fn(&Value, &Value) -> Result<Value, UnlocatedError>,
) -> Result<Value, UnlocatedError> {
    args.iter().try_fold(first, |sum, next| step(&sum, next))
}

fn integers(
    name: &'static str,
    args: &[Value],
    step: fn(i64, i64) -> Option<i64>,
) -> Result<Value, UnlocatedError> {
    match args {
        [one, Value::Int(0)] => Err(by_zero(one)),
        [Value::Int(one), Value::Int(two)] => {
            step(*one, *two).map(Value::Int).ok_or_else(|| overflow(name, args))
        }
        [Value::Int(_), other] | [other, ..] => Err(type_error(name, "integers", other)),
        [] => Ok(Value::Nil),
    }
}

fn less(one: &Value, two: &Value) -> bool {
    matches!(crate::value::compare(one, two), crate::value::ValueOrder::Is(std::cmp::Ordering::Less))
}

fn extreme(
    name: &'static str,
    args: &[Value],
    better: fn(&Value, &Value) -> bool,
) -> Result<Value, UnlocatedError> {
    if args.iter().any(|value| as_float(value).is_none()) {
        return Err(not_a_number(name, args));
    }
    let best = args.iter().reduce(|best, next| if better(next, best) { next } else { best });
    Ok(best.cloned().unwrap_or_default())
}

fn whole(name: &'static str, args: &[Value], round: fn(f64) -> f64) -> Result<Value, UnlocatedError> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match args {
        [Value::Int(value)] => Ok(Value::Int(*value)),
        [Value::Float(value)] => {
            let rounded = round(*value);
            if (-LIMIT..LIMIT).contains(&rounded) {
                Ok(Value::Int(rounded as i64))
            } else {
                Err(overflow(name, args))
            }
        }
        other => Err(not_a_number(name, other)),
    }
}

fn parse(args: &[Value]) -> Result<Value, UnlocatedError> {
    let Some(value) = args.first() else { return Ok(Value::Nil) };
    let text = text_of("string->number", value)?.trim();
    if let Ok(int) = text.parse::<i64>() {
        return Ok(Value::Int(int));
    }
    let plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    let float = text.parse::<f64>().ok().filter(|float| plain && float.is_finite());
    Ok(float.map_or(Value::Nil, Value::Float))
}

fn not_a_number(name: &str, args: &[Value]) -> UnlocatedError {
    let culprit = args.iter().find(|value| as_float(value).is_none()).unwrap_or(&Value::Nil);
    type_error(name, "a number", culprit)
}

fn overflow(name: &str, args: &[Value]) -> UnlocatedError {
    let shown: Vec<String> = args.iter().map(brief).collect();
    UnlocatedError::new(
        "overflow",
        format!("the result of ({name} {}) does not fit in 64 bits", shown.join(" ")),
    )
}

fn by_zero(value: &Value) -> UnlocatedError {
    UnlocatedError::new("division-by-zero", format!("division of {} by zero", brief(value)))
}
