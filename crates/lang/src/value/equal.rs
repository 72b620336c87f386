//! Equality and ordering of values.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Value;

/// Whether two values are equal: numbers by value (1 equals 1.0), strings, lists and maps by content,
/// functions by identity. Each compared pair costs one unit of `budget`; `None` if it runs out, since shared
/// structure can unfold to far more pairs than there are values.
pub(crate) fn equal(one: &Value, two: &Value, budget: &mut u64) -> Option<bool> {
    let mut pending: Vec<(&Value, &Value)> = vec![(one, two)];
    while let Some((one, two)) = pending.pop() {
        *budget = budget.checked_sub(1)?;
        let same = match (one, two) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(one), Value::Bool(two)) => one == two,
            (Value::Int(one), Value::Int(two)) => one == two,
            (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
                numbers(one, two) == Some(Ordering::Equal)
            }
            (Value::Text(one), Value::Text(two)) | (Value::Symbol(one), Value::Symbol(two)) => {
                one.shares_storage(two) || one == two
            }
            (Value::List(one), Value::List(two)) => {
                let same_length = one.len() == two.len();
                if same_length && !one.shares_storage(two) {
                    pending.extend(one.iter().zip(two));
                }
                same_length
            }
            (Value::Map(one), Value::Map(two)) => {
                let mut same_keys = one.len() == two.len();
                if same_keys && !one.shares_storage(two) {
                    for (key, value) in one {
                        match two.get(key) {
                            Some(other) => pending.push((value, other)),
                            None => same_keys = false,
                        }
                    }
                }
                same_keys
            }
            (Value::Function(one), Value::Function(two)) => Arc::ptr_eq(one, two),
            (Value::Builtin(one), Value::Builtin(two)) => std::ptr::eq(*one, *two),
            (Value::Result(one), Value::Result(two)) => {
                pending.push((&one.notes, &two.notes));
                pending.push((&one.parsed, &two.parsed));
                one.status == two.status && one.content == two.content
            }
            (Value::Error(one), Value::Error(two)) => Arc::ptr_eq(one, two),
            _ => false,
        };
        if !same {
            return Some(false);
        }
    }
    Some(true)
}

/// Ordering of two values, if the language defines one.
pub(crate) enum ValueOrder {
    /// Both are numbers, both strings, or both symbols.
    Is(Ordering),
    /// The values are of kinds that have no ordering.
    None,
}

/// Compares two numbers, two strings or two symbols.
pub(crate) fn compare(one: &Value, two: &Value) -> ValueOrder {
    match (one, two) {
        (Value::Text(one), Value::Text(two)) | (Value::Symbol(one), Value::Symbol(two)) => {
            ValueOrder::Is(one.as_bytes().cmp(two.as_bytes()))
        }
        _ => numbers(one, two).map_or(ValueOrder::None, ValueOrder::Is),
    }
}

/// Compares two numbers exactly, even if the integer has more digits than a float can represent.
fn numbers(one: &Value, two: &Value) -> Option<Ordering> {
    match (one, two) {
        (Value::Int(one), Value::Int(two)) => Some(one.cmp(two)),
        (Value::Float(one), Value::Float(two)) => one.partial_cmp(two),
        (Value::Int(one), Value::Float(two)) => Some(int_to_float(*one, *two)),
        (Value::Float(one), Value::Int(two)) => Some(int_to_float(*two, *one).reverse()),
        _ => None,
    }
}

fn int_to_float(int: i64, float: f64) -> Ordering {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if float >= LIMIT {
        return Ordering::Less;
    }
    if float < -LIMIT {
        return Ordering::Greater;
    }
    // Within the range of i64 the truncation is exact.
    let whole = float.trunc();
    int.cmp(&(whole as i64)).then(0.0_f64.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal))
}
