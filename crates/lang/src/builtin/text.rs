//! String functions. Where a string is expected, a symbol stands for its name and a result for its content.

use super::{Run, builtins, int_of, list_of, text_of};
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::{List, Value, show_within};

builtins! {
    "(string-append s …)" at_least(0) "Concatenates strings." => Run::Pure(append);
    "(string-join list sep)" between(1, 2) "Joins the strings of a list with sep." => Run::Pure(join);
    "(string-split s sep)" between(1, 2) "Splits s at sep; without sep, at white space." => Run::Pure(split);
    "(string-trim s)" exactly(1) "Removes leading and trailing white space."
        => Run::Pure(|fuel, args| changed(fuel, "string-trim", args, |text| text.trim().to_owned()));
    "(string-replace s from to)" exactly(3) "Replaces every occurrence of from with to."
        => Run::Pure(replace);
    "(string-contains? s part)" exactly(2) "Whether s contains part."
        => Run::Pure(|_, args| asked("string-contains?", args, |text, part| text.contains(part)));
    "(string-starts-with? s part)" exactly(2) "Whether s starts with part."
        => Run::Pure(|_, args| asked("string-starts-with?", args, |text, part| text.starts_with(part)));
    "(string-ends-with? s part)" exactly(2) "Whether s ends with part."
        => Run::Pure(|_, args| asked("string-ends-with?", args, |text, part| text.ends_with(part)));
    "(string-upper s)" exactly(1) "The string in upper case."
        => Run::Pure(|fuel, args| changed(fuel, "string-upper", args, str::to_uppercase));
    "(string-lower s)" exactly(1) "The string in lower case."
        => Run::Pure(|fuel, args| changed(fuel, "string-lower", args, str::to_lowercase));
    "(string-length s)" exactly(1) "Number of characters."
        => Run::Pure(|fuel, args| {
            let text = one("string-length", args)?;
            fuel.spend((text.len() / 256) as u64)?;
            Ok(Value::Int(text.chars().count() as i64))
        });
    "(substring s from to)" between(2, 3) "The characters from index from up to but excluding index to."
        => Run::Pure(substring);
    "(format \"{} and {}\" a b)" at_least(1) "Replaces each {} with the next value." => Run::Pure(format);
    "(to-string a)" exactly(1) "The printed form of the value."
        => Run::Pure(|fuel, args| {
            let shown = shown(fuel, args.first().unwrap_or(&Value::Nil))?;
            fuel.text(shown.len())?;
            Ok(Value::text(shown))
        });
    "(string->symbol s)" exactly(1) "The symbol with this name."
        => Run::Pure(|fuel, args| {
            let text = one("string->symbol", args)?;
            fuel.text(text.len())?;
            Ok(Value::symbol(text))
        });
}

/// The value as interpolated into text: strings unquoted, results as their content.
pub(crate) fn shown(fuel: &mut Fuel, value: &Value) -> Result<String, UnlocatedError> {
    if let Value::Result(result) = value {
        return Ok(result.content()?.to_string());
    }
    let most = fuel.limits.memory / 4;
    let shown = show_within(value, most).ok_or_else(|| {
        UnlocatedError::exhausted("memory", format!("the value takes more than {most} bytes as text"))
    })?;
    fuel.spend((shown.len() / 64) as u64)?;
    Ok(shown)
}

/// Message for a format string whose number of placeholders differs from the number of values.
pub(crate) fn places_and_values(places: usize, values: usize) -> String {
    let counted = |count: usize, noun: &str| fusee_text::count(count as u64, noun);
    format!("the format has {} but got {}", counted(places, "placeholder"), counted(values, "value"))
}

fn one<'v>(name: &str, args: &'v [Value]) -> Result<&'v str, UnlocatedError> {
    Ok(text_of(name, args.first().unwrap_or(&Value::Nil))?)
}

fn append(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    concatenate(fuel, "string-append", args.iter(), "")
}

fn join(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let list = list_of("string-join", args.first().unwrap_or(&Value::Nil))?;
    let separator = match args.get(1) {
        Some(separator) => text_of("string-join", separator)?,
        None => "",
    };
    concatenate(fuel, "string-join", list.iter(), separator)
}

fn concatenate<'v>(
    fuel: &mut Fuel,
    name: &str,
    parts: impl Iterator<Item = &'v Value> + Clone,
    separator: &str,
) -> Result<Value, UnlocatedError> {
    let mut length = 0;
    for part in parts.clone() {
        length += text_of(name, part)?.len() + separator.len();
    }
    fuel.text(length)?;
    let mut out = String::with_capacity(length);
    for (index, part) in parts.enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(text_of(name, part)?);
    }
    Ok(Value::text(out))
}

fn split(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let text = one("string-split", args)?;
    let separator = args.get(1).map(|separator| text_of("string-split", separator)).transpose()?;
    let parts: Vec<&str> = match separator.map(|separator| &**separator) {
        None => text.split_whitespace().collect(),
        Some("") => text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect(),
        Some(separator) => text.split(separator).collect(),
    };
    fuel.items(parts.len(), 80)?;
    fuel.text(text.len())?;
    Ok(Value::List(parts.into_iter().map(Value::from).collect::<List>()))
}

fn replace(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let [text, from, to] = args else { return Ok(Value::Nil) };
    let (text, from, to) =
        (text_of("string-replace", text)?, text_of("string-replace", from)?, text_of("string-replace", to)?);
    if from.is_empty() {
        return Err(UnlocatedError::new("bad-argument", "`string-replace` cannot replace an empty string"));
    }
    fuel.spend((text.len() / 64) as u64)?;
    let grown = text.matches(&**from).count().saturating_mul(to.len());
    fuel.text(text.len().saturating_add(grown))?;
    Ok(Value::text(text.replace(&**from, to)))
}

fn asked(name: &str, args: &[Value], holds: fn(&str, &str) -> bool) -> Result<Value, UnlocatedError> {
    let [text, part] = args else { return Ok(Value::Nil) };
    Ok(Value::Bool(holds(text_of(name, text)?, text_of(name, part)?)))
}

fn changed(
    fuel: &mut Fuel,
    name: &str,
    args: &[Value],
    change: fn(&str) -> String,
) -> Result<Value, UnlocatedError> {
    let text = one(name, args)?;
    // Changing the case of a letter gives at most three letters.
    fuel.text(text.len().saturating_mul(3))?;
    Ok(Value::text(change(text)))
}

fn substring(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let text = one("substring", args)?;
    fuel.text(text.len())?;
    let length = text.chars().count() as i64;
    let from = int_of("substring", args.get(1).unwrap_or(&Value::Nil))?;
    let to = args.get(2).map_or(Ok(length), |to| int_of("substring", to))?;
    if from < 0 || from > to || to > length {
        let message =
            format!("`substring` from {from} to {to} is out of range for a string of {length} characters");
        return Err(UnlocatedError::new("out-of-range", message));
    }
    let part: String = text.chars().skip(from as usize).take((to - from) as usize).collect();
    Ok(Value::text(part))
}

fn format(fuel: &mut Fuel, args: &[Value]) -> Result<Value, UnlocatedError> {
    let pattern = one("format", args)?;
    let values = args.get(1..).unwrap_or_default();
    let places = pattern.matches("{}").count();
    if places != values.len() {
        return Err(UnlocatedError::new("wrong-arity", places_and_values(places, values.len())));
    }
    fuel.text(pattern.len())?;
    let mut out = String::with_capacity(pattern.len());
    let mut values = values.iter();
    for (index, part) in pattern.split("{}").enumerate() {
        if index > 0
            && let Some(value) = values.next()
        {
            let shown = shown(fuel, value)?;
            fuel.allocate(shown.len())?;
            out.push_str(&shown);
        }
        out.push_str(part);
    }
    Ok(Value::text(out))
}
