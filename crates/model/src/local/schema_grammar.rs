//! Converts a JSON Schema to a grammar (GBNF) that constrains a reply, following the rules of llama.cpp's
//! server. Keywords a grammar cannot express (`pattern`, `minimum`, `format`) are ignored; the caller
//! validates the answer anyway. `sampling` applies the grammar.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Counts above this become unbounded: llama.cpp expands counts into rules and refuses to create too many.
const MAX_COUNTED: u64 = 1_000;
/// Maximum nesting of schemas; deeper ones accept any JSON.
const MAX_DEPTH: usize = 64;

/// White space between tokens. Bounded, because a small model may otherwise write it forever.
const SPACE: &str = r#"| " " | "\n"{1,2} [ \t]{0,20}"#;

/// Basic rules: name, definition, and the rules they depend on.
const BASICS: &[(&str, &str, &[&str])] = &[
    ("boolean", r#"("true" | "false") space"#, &[]),
    ("decimal-part", "[0-9]{1,16}", &[]),
    ("integral-part", "[0] | [1-9] [0-9]{0,15}", &[]),
    (
        "number",
        r#"("-"? integral-part) ("." decimal-part)? ([eE] [-+]? integral-part)? space"#,
        &["integral-part", "decimal-part"],
    ),
    ("integer", r#"("-"? integral-part) space"#, &["integral-part"]),
    (
        "value",
        "object | array | string | number | boolean | null",
        &["object", "array", "string", "number", "boolean", "null"],
    ),
    (
        "object",
        r#""{" space ( string ":" space value ("," space string ":" space value)* )? "}" space"#,
        &["string", "value"],
    ),
    ("array", r#""[" space ( value ("," space value)* )? "]" space"#, &["value"]),
    ("char", r#"[^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4})"#, &[]),
    ("string", r#""\"" char* "\"" space"#, &["char"]),
    ("null", r#""null" space"#, &[]),
];

/// The grammar of the JSON texts that match this schema.
pub(super) fn grammar(schema: &Value) -> String {
    let mut rules = Rules { whole: schema, named: BTreeMap::new(), refs: BTreeMap::new(), depth: 0 };
    rules.named.insert("space".to_owned(), SPACE.to_owned());
    let root = rules.rule(schema, "root");
    rules.named.insert("root".to_owned(), root);
    rules.named.iter().fold(String::new(), |mut text, (name, rule)| {
        let _ = writeln!(text, "{name} ::= {rule}");
        text
    })
}

struct Rules<'s> {
    whole: &'s Value,
    named: BTreeMap<String, String>,
    /// Rules of referenced schemas, which may be recursive.
    refs: BTreeMap<String, String>,
    depth: usize,
}

impl<'s> Rules<'s> {
    /// The expression for this schema; auxiliary rules get names that start with `name`.
    fn rule(&mut self, schema: &'s Value, name: &str) -> String {
        let Some(fields) = schema.as_object().filter(|_| self.depth < MAX_DEPTH) else {
            return self.basic("value");
        };
        self.depth += 1;
        let rule = self.of_fields(fields, name);
        self.depth -= 1;
        rule
    }

    fn of_fields(&mut self, fields: &'s Map<String, Value>, name: &str) -> String {
        if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
            return self.reference(target);
        }
        if let Some(Value::Array(choices)) = fields.get("anyOf").or_else(|| fields.get("oneOf")) {
            return self.one_of(choices, name);
        }
        if let Some(value) = fields.get("const") {
            return format!("{} space", literal(&value.to_string()));
        }
        if let Some(Value::Array(values)) = fields.get("enum") {
            let values: Vec<String> = values.iter().map(|value| literal(&value.to_string())).collect();
            return format!("({}) space", values.join(" | "));
        }
        if let Some(Value::Array(parts)) = fields.get("allOf") {
            return self.all_of(fields, parts, name);
        }
        match fields.get("type") {
            Some(Value::Array(kinds)) => {
                let of_kind = |(at, kind): (usize, &Value)| {
                    self.of_kind(kind.as_str(), fields, &format!("{name}-{at}"))
                };
                let kinds: Vec<String> = kinds.iter().enumerate().map(of_kind).collect();
                format!("({})", kinds.join(" | "))
            }
            kind => self.of_kind(kind.and_then(Value::as_str), fields, name),
        }
    }

    fn of_kind(&mut self, kind: Option<&str>, fields: &'s Map<String, Value>, name: &str) -> String {
        let has = |key: &str| fields.contains_key(key);
        match kind {
            Some("object") => self.object(fields, name),
            None if has("properties") => self.object(fields, name),
            Some("array") => self.array(fields, name),
            None if has("items") || has("prefixItems") => self.array(fields, name),
            Some("string") => self.string(fields),
            Some(kind @ ("integer" | "number" | "boolean" | "null")) => self.basic(kind),
            _ => self.basic("value"),
        }
    }

    fn one_of(&mut self, choices: &'s [Value], name: &str) -> String {
        let rule = |(at, choice): (usize, &'s Value)| {
            let name = format!("{name}-{at}");
            let rule = self.rule(choice, &name);
            self.name(name, rule)
        };
        let rules: Vec<String> = choices.iter().enumerate().map(rule).collect();
        if rules.is_empty() { self.basic("value") } else { format!("({})", rules.join(" | ")) }
    }

    /// Merges objects into one with the properties of all; for anything else, the first schema counts.
    fn all_of(&mut self, fields: &'s Map<String, Value>, parts: &'s [Value], name: &str) -> String {
        let target = |part: &Value| part.get("$ref").and_then(Value::as_str).and_then(|at| self.look_up(at));
        let parts: Vec<&'s Map<String, Value>> = parts
            .iter()
            .map(|part| target(part).unwrap_or(part))
            .filter_map(Value::as_object)
            .chain(std::iter::once(fields))
            .collect();
        if !parts.iter().any(|part| part.contains_key("properties")) {
            return match parts.first() {
                Some(first) if !first.contains_key("allOf") => self.of_fields(first, name),
                _ => self.basic("value"),
            };
        }
        let properties: Vec<(&'s String, &'s Value)> = parts
            .iter()
            .filter_map(|part| part.get("properties").and_then(Value::as_object))
            .flatten()
            .collect();
        let required: Vec<&'s str> = parts.iter().flat_map(|part| required(part)).collect();
        self.members(&properties, &required, None, name)
    }

    fn object(&mut self, fields: &'s Map<String, Value>, name: &str) -> String {
        let properties: Vec<(&'s String, &'s Value)> =
            fields.get("properties").and_then(Value::as_object).into_iter().flatten().collect();
        let others = match fields.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(schema @ Value::Object(_)) => Some(schema),
            Some(_) => Some(&Value::Null),
            None => properties.is_empty().then_some(&Value::Null),
        };
        self.members(&properties, &required(fields), others, name)
    }

    /// Required members in order, then any of the optional ones in order.
    fn members(
        &mut self,
        properties: &[(&'s String, &'s Value)],
        required: &[&str],
        others: Option<&'s Value>,
        name: &str,
    ) -> String {
        let (mut must, mut may) = (Vec::new(), Vec::new());
        for (at, (key, schema)) in properties.iter().enumerate() {
            let part = format!("{name}-{}{at}", rule_name(key));
            let value = self.rule(schema, &part);
            let value = self.name(part.clone(), value);
            let key_text = literal(&Value::from(key.as_str()).to_string());
            let member = self.name(format!("{part}-kv"), format!("{key_text} space \":\" space {value}"));
            if required.contains(&key.as_str()) { must.push(member) } else { may.push(member) }
        }
        if let Some(schema) = others {
            let value = self.rule(schema, &format!("{name}-other"));
            let key = self.basic("string");
            let member = self.name(format!("{name}-other-kv"), format!("{key} \":\" space {value}"));
            may.push(format!("{member} (\",\" space {member})*"));
        }
        let must = must.join(" \",\" space ");
        let any = if may.is_empty() { None } else { Some(self.any_of(&may, name)) };
        let inside = match (must.is_empty(), any) {
            (_, None) => must,
            (true, Some(any)) => format!("({any})?"),
            (false, Some(any)) => format!("{must} (\",\" space ({any}))?"),
        };
        format!("\"{{\" space {inside} \"}}\" space")
    }

    /// At least one of these members, in order.
    fn any_of(&mut self, members: &[String], name: &str) -> String {
        let mut rest: Option<String> = None;
        let mut choices: Vec<String> = Vec::new();
        for (at, member) in members.iter().enumerate().rev() {
            let from_here = match &rest {
                None => member.clone(),
                Some(rest) => format!("{member} (\",\" space ({rest}))?"),
            };
            choices.insert(0, from_here);
            rest = Some(self.name(format!("{name}-from{at}"), choices.join(" | ")));
        }
        rest.unwrap_or_default()
    }

    fn array(&mut self, fields: &'s Map<String, Value>, name: &str) -> String {
        let listed =
            fields.get("prefixItems").or_else(|| fields.get("items").filter(|items| items.is_array()));
        if let Some(Value::Array(items)) = listed {
            let item = |(at, item): (usize, &'s Value)| self.rule(item, &format!("{name}-{at}"));
            let items: Vec<String> = items.iter().enumerate().map(item).collect();
            return format!("\"[\" space {} \"]\" space", items.join(" \",\" space "));
        }
        let item = self.rule(fields.get("items").unwrap_or(&Value::Null), &format!("{name}-item"));
        let item = self.name(format!("{name}-item"), item);
        let least = count(fields, "minItems").unwrap_or_default().min(MAX_COUNTED);
        let most = count(fields, "maxItems").filter(|most| *most <= MAX_COUNTED);
        let fewest = least.saturating_sub(1);
        let more = match most {
            Some(0) => return "\"[\" space \"]\" space".to_owned(),
            Some(most) => format!("(\",\" space {item}){{{fewest},{}}}", most.max(least) - 1),
            None => format!("(\",\" space {item}){{{fewest},}}"),
        };
        match least {
            0 => format!("\"[\" space ({item} {more})? \"]\" space"),
            _ => format!("\"[\" space {item} {more} \"]\" space"),
        }
    }

    fn string(&mut self, fields: &Map<String, Value>) -> String {
        let least = count(fields, "minLength").unwrap_or_default().min(MAX_COUNTED);
        let most = count(fields, "maxLength").filter(|most| *most <= MAX_COUNTED);
        let times = match (least, most) {
            (0, None) => return self.basic("string"),
            (least, None) => format!("{{{least},}}"),
            (least, Some(most)) => format!("{{{least},{}}}", most.max(least)),
        };
        let one = self.basic("char");
        format!("\"\\\"\" {one}{times} \"\\\"\" space")
    }

    fn reference(&mut self, target: &str) -> String {
        if let Some(rule) = self.refs.get(target) {
            return rule.clone();
        }
        let Some(schema) = self.look_up(target) else { return self.basic("value") };
        let name =
            format!("ref{}-{}", self.refs.len(), rule_name(target.rsplit('/').next().unwrap_or_default()));
        // Registered before it is built, because it may refer to itself.
        self.refs.insert(target.to_owned(), name.clone());
        let rule = self.rule(schema, &name);
        self.named.insert(name.clone(), rule);
        name
    }

    fn look_up(&self, target: &str) -> Option<&'s Value> {
        self.whole.pointer(target.strip_prefix('#')?)
    }

    /// Adds one of the basic rules and its dependencies; returns its name.
    fn basic(&mut self, name: &str) -> String {
        let known = BASICS.iter().find(|(known, ..)| *known == name);
        if let Some((_, rule, needs)) = known
            && !self.named.contains_key(name)
        {
            self.named.insert(name.to_owned(), (*rule).to_owned());
            for need in *needs {
                self.basic(need);
            }
        }
        name.to_owned()
    }

    /// Adds a named rule, unless the expression is just the name of another rule.
    fn name(&mut self, name: String, rule: String) -> String {
        if self.named.contains_key(&rule) {
            return rule;
        }
        self.named.insert(name.clone(), rule);
        name
    }
}

fn required(fields: &Map<String, Value>) -> Vec<&str> {
    fields.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn count(fields: &Map<String, Value>, key: &str) -> Option<u64> {
    fields.get(key).and_then(Value::as_u64)
}

/// Quotes a text as a grammar literal.
fn literal(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Reduces a name to the characters allowed in rule names.
fn rule_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}

#[cfg(test)]
mod tests;
