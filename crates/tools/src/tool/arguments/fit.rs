//! Checks a value against a tool's schema: renames aliases, converts where only one reading is possible, and
//! collects every mismatch.
//!
//! It supports the keywords that tools use (type, properties, required, additionalProperties, items, enum,
//! bounds, anyOf) and interprets the schema directly, so there is nothing to compile and a tool that is never
//! called costs nothing. Unknown keywords are ignored here; the tool checks them itself.

use serde_json::{Map, Value};

use crate::suggestions;
use crate::tool::ToolDefinition;

/// Returns the value with canonical parameter names and converted types, or all problems.
pub(super) fn fit(value: Value, definition: &ToolDefinition) -> Result<Value, Vec<String>> {
    let schema = &definition.parameters;
    let mut object = match unwrapped(value, schema) {
        Value::Object(object) => object,
        // The only required parameter, sent without its enclosing object.
        other => match sole_required(schema) {
            Some(name) if !other.is_null() => Map::from_iter([(name.to_owned(), other)]),
            _ => return Err(vec![format!("they must be one JSON object, not {}", kind(&other))]),
        },
    };
    let mut problems = Vec::new();
    rename(&mut object, definition, &mut problems);
    let mut value = Value::Object(object);
    check(&mut value, schema, "", &mut problems);
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

/// Removes an extra layer some models add around the arguments: a JSON string, or a key of the call format.
fn unwrapped(mut value: Value, schema: &Value) -> Value {
    if let Value::String(text) = &value
        && let Ok(inner @ Value::Object(_)) = serde_json::from_str(text)
    {
        value = inner;
    }
    if let Value::Object(object) = &mut value
        && object.len() == 1
    {
        for key in ["arguments", "parameters"] {
            if property(schema, key).is_none()
                && let Some(inner @ Value::Object(_)) = object.get_mut(key)
            {
                return inner.take();
            }
        }
    }
    value
}

fn sole_required(schema: &Value) -> Option<&str> {
    match schema.get("required")?.as_array()?.as_slice() {
        [only] => only.as_str(),
        _ => None,
    }
}

fn rename(object: &mut Map<String, Value>, definition: &ToolDefinition, problems: &mut Vec<String>) {
    for (alias, name) in definition.parameter_aliases {
        let Some(mut value) = object.shift_remove(*alias) else { continue };
        if alias.ends_with("_ms") && !name.ends_with("_ms") {
            value = match number(&value).and_then(|ms| serde_json::Number::from_f64(ms / 1000.0)) {
                Some(seconds) => Value::Number(seconds),
                None if value.is_null() => Value::Null,
                None => {
                    problems.push(format!("`{alias}` must be a number, not {}", kind(&value)));
                    continue;
                }
            };
        }
        match object.get(*name) {
            None => {
                object.insert((*name).to_owned(), value);
            }
            Some(given) if *given == value || value.is_null() => {}
            Some(_) => {
                problems.push(format!("`{alias}` and `{name}` are the same parameter; give `{name}` only"))
            }
        }
    }
}

fn check(value: &mut Value, schema: &Value, place: &str, problems: &mut Vec<String>) {
    if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        return check_any(value, choices, place, problems);
    }
    let types = types(schema);
    if !types.is_empty() && !types.iter().any(|name| is(value, name)) {
        match types.iter().find_map(|name| convert(value, name, schema)) {
            Some(converted) => *value = converted,
            None => {
                problems.push(format!(
                    "{} must be {}, not {}",
                    named(place),
                    types.join(" or "),
                    kind(value)
                ));
                return;
            }
        }
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        check_choice(value, allowed, place, problems);
    }
    check_bounds(value, schema, place, problems);
    match value {
        Value::Object(object) => check_object(object, schema, place, problems),
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for (position, item) in items.iter_mut().enumerate() {
                    check(item, item_schema, &format!("{place}[{position}]"), problems);
                }
            }
        }
        _ => {}
    }
}

fn check_any(value: &mut Value, choices: &[Value], place: &str, problems: &mut Vec<String>) {
    let mut fewest: Option<Vec<String>> = None;
    for choice in choices {
        let (mut attempt, mut complaints) = (value.clone(), Vec::new());
        check(&mut attempt, choice, place, &mut complaints);
        if complaints.is_empty() {
            *value = attempt;
            return;
        }
        if fewest.as_ref().is_none_or(|known| complaints.len() < known.len()) {
            fewest = Some(complaints);
        }
    }
    problems.extend(fewest.unwrap_or_default());
}

fn check_object(object: &mut Map<String, Value>, schema: &Value, place: &str, problems: &mut Vec<String>) {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    // Many models send every parameter, with null for those they do not set.
    object.retain(|name, value| {
        !(value.is_null() && !required.contains(&name.as_str()) && !accepts_null(schema, name))
    });
    for name in &required {
        if !object.contains_key(*name) {
            let wanted = property(schema, name).map(|schema| types(schema).join(" or ")).unwrap_or_default();
            problems.push(format!("{} is missing ({wanted}, required)", named(&inside(place, name))));
        }
    }
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let known = schema.get("properties").and_then(Value::as_object);
    for (name, value) in object.iter_mut() {
        match known.and_then(|properties| properties.get(name)) {
            Some(schema) => check(value, schema, &inside(place, name), problems),
            None if closed => {
                let near =
                    suggestions::names(name, known.into_iter().flat_map(Map::keys).map(String::as_str), 2);
                let hint = match near.as_slice() {
                    [] => String::new(),
                    near => format!(": did you mean `{}`?", near.join("` or `")),
                };
                problems.push(format!("unknown parameter {}{hint}", named(&inside(place, name))));
            }
            None => {}
        }
    }
}

fn check_choice(value: &mut Value, allowed: &[Value], place: &str, problems: &mut Vec<String>) {
    if allowed.contains(value) {
        return;
    }
    let mut folded = allowed.iter().filter(|choice| match (choice.as_str(), value.as_str()) {
        (Some(choice), Some(given)) => choice.eq_ignore_ascii_case(given.trim()),
        _ => false,
    });
    if let (Some(only), None) = (folded.next(), folded.next()) {
        *value = only.clone();
        return;
    }
    let choices: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    problems.push(format!("{} must be one of {}, not {value}", named(place), choices.join(", ")));
}

fn check_bounds(value: &Value, schema: &Value, place: &str, problems: &mut Vec<String>) {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let (measure, low, high, unit) = match value {
        Value::Number(number) => (number.as_f64(), bound("minimum"), bound("maximum"), ""),
        Value::String(text) => {
            (Some(text.chars().count() as f64), bound("minLength"), bound("maxLength"), " characters")
        }
        Value::Array(items) => (Some(items.len() as f64), bound("minItems"), bound("maxItems"), " items"),
        _ => return,
    };
    let Some(measure) = measure else { return };
    if let Some(low) = low.filter(|low| measure < *low) {
        problems.push(format!("{} must be at least {low}{unit}, not {measure}", named(place)));
    }
    if let Some(high) = high.filter(|high| measure > *high) {
        problems.push(format!("{} must be at most {high}{unit}, not {measure}", named(place)));
    }
}

/// Converts the value to the wanted type if there is only one way to do so.
fn convert(value: &Value, wanted: &str, schema: &Value) -> Option<Value> {
    match (wanted, value) {
        ("integer", _) => number(value)
            .filter(|number| number.fract() == 0.0 && number.abs() < 9e15)
            .map(|number| Value::from(number as i64)),
        ("number", Value::String(_)) => number(value).map(Value::from),
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("string", Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
        ("array", Value::String(text)) if text.trim_start().starts_with('[') => {
            serde_json::from_str(text).ok().filter(Value::is_array)
        }
        // A single item where a list of such items is expected.
        ("array", item) => {
            let item_types = types(schema.get("items")?);
            item_types.iter().any(|name| is(item, name)).then(|| Value::Array(vec![item.clone()]))
        }
        ("object", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => {
            let text = text.trim();
            let digits =
                text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.'));
            if digits {
                text.parse().ok().filter(|number: &f64| number.is_finite())
            } else {
                number_word(text)
            }
        }
        _ => None,
    }
}

/// Parses English number words: `seven`, `twenty-five`, `two hundred`, `one thousand`.
fn number_word(text: &str) -> Option<f64> {
    const UNITS: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let lower = text.to_ascii_lowercase();
    let mut words: Vec<&str> = lower.split([' ', '-']).filter(|word| !word.is_empty()).collect();
    let mut scale = 1;
    while let Some(factor) = match words.last() {
        Some(&"hundred") => Some(100),
        Some(&"thousand") => Some(1000),
        _ => None,
    } {
        scale *= factor;
        words.pop();
    }
    let unit = |word: &str| UNITS.iter().position(|name| *name == word);
    let ten = |word: &str| TENS.iter().position(|name| *name == word).map(|at| (at + 2) * 10);
    let base = match words.as_slice() {
        [word] => unit(word).or_else(|| ten(word))?,
        [first, second] => ten(first)? + unit(second).filter(|unit| (1..10).contains(unit))?,
        _ => return None,
    };
    Some((base * scale) as f64)
}

/// One-line signature of the parameters: `{ path: string, offset?: integer }`.
pub(super) fn signature(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|map| !map.is_empty())
    else {
        return "{}".to_owned();
    };
    let parameters: Vec<String> = properties
        .iter()
        .map(|(name, schema)| {
            let optional =
                !required.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)));
            let mark = if optional { "?" } else { "" };
            format!("{name}{mark}: {}", type_words(schema))
        })
        .collect();
    format!("{{ {} }}", parameters.join(", "))
}

fn type_words(schema: &Value) -> String {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return choices.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    }
    match types(schema).as_slice() {
        [] => "any".to_owned(),
        ["array"] => {
            schema.get("items").map_or_else(|| "[]".to_owned(), |items| format!("[{}]", type_words(items)))
        }
        ["object"] if schema.get("properties").is_some() => signature(schema),
        names => names.join(" | "),
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is(value: &Value, type_name: &str) -> bool {
    match type_name {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.chars().count() <= 40 => format!("the string {value}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn accepts_null(schema: &Value, name: &str) -> bool {
    property(schema, name).is_some_and(|schema| {
        let types = types(schema);
        types.is_empty() || types.contains(&"null")
    })
}

fn inside(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn named(place: &str) -> String {
    if place.is_empty() { "the whole".to_owned() } else { format!("`{place}`") }
}
