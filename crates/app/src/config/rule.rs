//! `[[rules]]`: what is decided about commands by how they begin, with examples that are tried when the file is read.

use fusee_engine::approval::rules::{Decision, Rule};
use fusee_engine::text::{Span, near};
use serde_json::json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with some rules, and where.
type Problems = Vec<(Span, String)>;

const FIELDS: [&str; 4] = ["command", "then", "examples", "not_examples"];
const DECISIONS: [(&str, Decision); 3] =
    [("allow", Decision::Allow), ("ask", Decision::Ask), ("deny", Decision::Deny)];

/// Reads a list of rules; everything that is wrong is told.
pub(super) fn read_all(value: &Spanned<DeValue<'_>>) -> Result<Vec<Rule>, Problems> {
    let DeValue::Array(entries) = value.get_ref() else {
        return Err(vec![(value.span().into(), "`rules` is a list of tables: [[rules]]".to_owned())]);
    };
    let (mut rules, mut problems) = (Vec::new(), Problems::new());
    for entry in entries.iter() {
        match entry.get_ref() {
            DeValue::Table(fields) => match read(fields, entry.span().into()) {
                Ok(rule) => rules.push(rule),
                Err(wrong) => problems.extend(wrong),
            },
            _ => {
                problems.push((entry.span().into(), "a rule is a table: command, then, examples".to_owned()))
            }
        }
    }
    if problems.is_empty() { Ok(rules) } else { Err(problems) }
}

fn read(fields: &DeTable<'_>, at: Span) -> Result<Rule, Problems> {
    let mut problems = Problems::new();
    for (name, _) in fields.iter().filter(|(name, _)| !FIELDS.contains(&name.get_ref().as_ref())) {
        let hint =
            near::did_you_mean(name.get_ref(), FIELDS).map(|hint| format!("; {hint}")).unwrap_or_default();
        problems.push((name.span().into(), format!("a rule has no `{}`{hint}", name.get_ref())));
    }
    let text = |name: &str| fields.get(name).and_then(|value| value.get_ref().as_str());
    let then = text("then").and_then(|word| DECISIONS.iter().find(|(known, _)| *known == word));
    let Some((_, then)) = then else {
        problems.push((at, "`then` of a rule is \"allow\", \"ask\" or \"deny\"".to_owned()));
        return Err(problems);
    };
    let Some(rule) = text("command").and_then(|command| Rule::of_prefix(command, *then)) else {
        let message = "`command` of a rule is the beginning of one plain command, such as \"git status\"";
        problems.push((at, message.to_owned()));
        return Err(problems);
    };
    for (name, should) in [("examples", true), ("not_examples", false)] {
        for (span, line) in lines(fields, name, &mut problems) {
            if rule.matches(&line) != should {
                let does =
                    if should { "is not about its example" } else { "is about what it says it is not" };
                problems.push((span, format!("the rule {does} `{line}`")));
            }
        }
    }
    if problems.is_empty() { Ok(rule) } else { Err(problems) }
}

fn lines(fields: &DeTable<'_>, name: &str, problems: &mut Problems) -> Vec<(Span, String)> {
    let Some(value) = fields.get(name) else { return Vec::new() };
    let items = match value.get_ref() {
        DeValue::Array(items) => items
            .iter()
            .map(|item| item.get_ref().as_str().map(|line| (item.span().into(), line.to_owned())))
            .collect::<Option<Vec<_>>>(),
        _ => None,
    };
    items.unwrap_or_else(|| {
        problems.push((value.span().into(), format!("`{name}` of a rule is a list of command lines")));
        Vec::new()
    })
}

/// For editors.
pub(super) fn schema() -> serde_json::Value {
    let lines = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "array",
        "description": "What is decided about commands by how they begin. In a project only after `fusee trust`.",
        "items": {
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "The first words of a command." },
                "then": { "enum": DECISIONS.map(|(word, _)| word) },
                "examples": lines,
                "not_examples": lines,
            },
            "required": ["command", "then"],
            "additionalProperties": false,
        },
    })
}
