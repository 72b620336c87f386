//! List functions. The ones that call functions (`map`, `sort` and so on) are in [`super::control`].

use super::{Run, builtins, compare, int_of, list_of, type_error};
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::{List, Value};

const SIZE: usize = size_of::<Value>();

builtins! {
    "(list a …)" at_least(0) "A list of the values." => Run::Pure(|fuel, args| new_list(fuel, args.iter()));
    "(cons a list)" exactly(2) "The list with a prepended."
        => Run::Pure(|fuel, args| {
            let [head, tail] = args else { return Ok(Value::Nil) };
            let tail = list_of("cons", tail)?;
            fuel.allocate(64)?;
            Ok(Value::List(List::cons(head.clone(), tail.clone())))
        });
    "(first list)" exactly(1) "The first item; raises if the list is empty."
        => Run::Pure(|_, args| item("first", args, 0));
    "(second list)" exactly(1) "The second item." => Run::Pure(|_, args| item("second", args, 1));
    "(last list)" exactly(1) "The last item."
        => Run::Pure(|fuel, args| {
            let list = list_of("last", args.first().unwrap_or(&Value::Nil))?;
            fuel.visit(list.len())?;
            item("last", args, list.len().saturating_sub(1))
        });
    "(rest list)" exactly(1) "The list without its first item."
        => Run::Pure(|fuel, args| {
            let list = list_of("rest", args.first().unwrap_or(&Value::Nil))?;
            fuel.allocate(48)?;
            list.rest()
                .map(Value::List)
                .ok_or_else(|| UnlocatedError::new("out-of-range", "`rest` of an empty list"))
        });
    "(nth list i)" exactly(2) "The item at index i, from 0; raises if out of range." => Run::Pure(nth);
    "(length a)" exactly(1) "Number of items of a list, entries of a map or characters of a string."
        => Run::Pure(length);
    "(empty? a)" exactly(1) "Whether a list, map or string is empty."
        => Run::Pure(|fuel, args| Ok(Value::Bool(length(fuel, args)? == Value::Int(0))));
    "(append list …)" at_least(0) "Concatenates lists." => Run::Pure(append);
    "(reverse list)" exactly(1) "The list in reverse order."
        => Run::Pure(|fuel, args| {
            let list = list_of("reverse", args.first().unwrap_or(&Value::Nil))?;
            fuel.items(list.len(), SIZE)?;
            let mut items: Vec<Value> = list.iter().cloned().collect();
            items.reverse();
            Ok(Value::list(items))
        });
    "(range from to step)" between(1, 3)
        "The integers from from up to but excluding to; with one argument, starting at 0."
        => Run::Pure(range);
    "(zip list …)" at_least(1) "Lists of the first items, the second items, …; as long as the shortest list."
        => Run::Pure(zip);
    "(take list n)" exactly(2) "The first n items, or all if there are fewer."
        => Run::Pure(|fuel, args| {
            let (list, count) = counted("take", args)?;
            new_list(fuel, list.iter().take(count))
        });
    "(drop list n)" exactly(2) "The list without its first n items."
        => Run::Pure(|fuel, args| {
            let (list, count) = counted("drop", args)?;
            fuel.visit(count.min(list.len()))?;
            new_list(fuel, list.iter_from(count.min(list.len())))
        });
    "(member? a list)" exactly(2) "Whether a is an item of the list."
        => Run::Pure(|fuel, args| {
            let [value, list] = args else { return Ok(Value::Nil) };
            for item in list_of("member?", list)? {
                if compare::equal(fuel, value, item)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        });
    "(flatten list)" exactly(1) "Replaces items that are lists by their items, one level deep."
        => Run::Pure(flatten);
}

fn new_list<'v>(fuel: &mut Fuel, items: impl Iterator<Item = &'v Value>) -> Result<Value, UnlocatedError> {
    let (count, _) = items.size_hint();
    fuel.items(count, SIZE)?;
    Ok(Value::List(items.cloned().collect()))
}

fn item(name: &str, args: &[Value], index: usize) -> Result<Value, UnlocatedError> {
    let list = list_of(name, args.first().unwrap_or(&Value::Nil))?;
    list.get(index)
        .cloned()
        .ok_or_else(|| UnlocatedError::new("out-of-range", format!("`{name}` of {}", sized(list))))
}

fn sized(list: &List) -> String {
    match list.len() {
        0 => "an empty list".to_owned(),
        1 => "a list of 1 item".to_owned(),
        length => format!("a list of {length} items"),
    }
}

fn nth(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let [list, index] = args else { return Ok(Value::Nil) };
    let list = list_of("nth", list)?;
    let index = int_of("nth", index)?;
    let found = usize::try_from(index).ok().filter(|index| *index < list.len());
    let Some(found) = found else {
        return Err(UnlocatedError::new(
            "out-of-range",
            format!("`nth`: index {index} is out of range for {}", sized(list)),
        ));
    };
    fuel.visit(found)?;
    Ok(list.get(found).cloned().unwrap_or_default())
}

fn length(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let count = match args.first().unwrap_or(&Value::Nil) {
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Text(text) => {
            fuel.spend((text.len() / 256) as u64)?;
            text.chars().count()
        }
        other => return Err(type_error("length", "a list, a map or a string", other)),
    };
    Ok(Value::Int(count as i64))
}

fn append(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let mut count = 0;
    for list in args {
        count += list_of("append", list)?.len();
    }
    fuel.items(count, SIZE)?;
    let mut items = Vec::with_capacity(count);
    for list in args {
        items.extend(list_of("append", list)?.iter().cloned());
    }
    Ok(Value::list(items))
}

fn range(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let bound = |index: usize| args.get(index).map(|value| int_of("range", value)).transpose();
    let (from, to) = match (bound(0)?, bound(1)?) {
        (Some(from), Some(to)) => (from, to),
        (Some(to), None) => (0, to),
        _ => (0, 0),
    };
    let step = bound(2)?.unwrap_or(1);
    if step == 0 {
        return Err(UnlocatedError::new("bad-argument", "`range` needs a step other than 0"));
    }
    let distance =
        if step > 0 { i128::from(to) - i128::from(from) } else { i128::from(from) - i128::from(to) };
    let stride = i128::from(step).abs();
    let count = usize::try_from(((distance + stride - 1) / stride).max(0)).unwrap_or(usize::MAX);
    fuel.items(count, SIZE)?;
    let item = |index: usize| Value::Int(from + step * index as i64);
    Ok(Value::list((0..count).map(item).collect::<Vec<_>>()))
}

fn zip(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let mut shortest = usize::MAX;
    for list in args {
        shortest = shortest.min(list_of("zip", list)?.len());
    }
    fuel.items(shortest, 64 + SIZE * args.len())?;
    fuel.visit(shortest.saturating_mul(args.len()))?;
    let mut rows: Vec<Vec<Value>> = (0..shortest).map(|_| Vec::with_capacity(args.len())).collect();
    for list in args {
        for (row, value) in rows.iter_mut().zip(list_of("zip", list)?) {
            row.push(value.clone());
        }
    }
    Ok(Value::list(rows.into_iter().map(Value::list).collect::<Vec<_>>()))
}

fn counted<'v>(name: &str, args: &'v [Value]) -> Result<(&'v List, usize), UnlocatedError> {
    let list = list_of(name, args.first().unwrap_or(&Value::Nil))?;
    let count = int_of(name, args.get(1).unwrap_or(&Value::Nil))?;
    let count = usize::try_from(count).map_err(|_| {
        UnlocatedError::new("out-of-range", format!("`{name}` needs a count of 0 or more, not {count}"))
    })?;
    Ok((list, count))
}

fn flatten(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let list = list_of("flatten", args.first().unwrap_or(&Value::Nil))?;
    let length = |item: &Value| if let Value::List(inner) = item { inner.len() } else { 1 };
    fuel.visit(list.len())?;
    let count = list.iter().map(length).sum();
    fuel.items(count, SIZE)?;
    let mut items = Vec::with_capacity(count);
    for item in list {
        match item {
            Value::List(inner) => items.extend(inner.iter().cloned()),
            other => items.push(other.clone()),
        }
    }
    Ok(Value::list(items))
}
