//! `[[rules]]`: approval decisions by command prefix, with examples that are checked when the file is read.

use fusee::engine::approval::rules::{ApprovalRule, RuleDecision};
use fusee::engine::text::{Span, suggest};
use serde_json::json;

use super::spanned_tree::{Entry, Leaf, Node};

/// Errors with their positions.
type Problems = Vec<(Span, String)>;

const FIELDS: [&str; 4] = ["command", "then", "examples", "not_examples"];
const DECISIONS: [(&str, RuleDecision); 3] =
    [("allow", RuleDecision::Allow), ("ask", RuleDecision::Ask), ("deny", RuleDecision::Deny)];

/// Reads a list of rules; returns all errors at once.
pub(super) fn read_all(value: &Node) -> Result<Vec<ApprovalRule>, Problems> {
    let Leaf::List(entries) = &value.value else {
        return Err(vec![(value.span, "`rules` must be a list of tables: [[rules]]".to_owned())]);
    };
    let (mut rules, mut problems) = (Vec::new(), Problems::new());
    for entry in entries {
        match &entry.value {
            Leaf::Table(fields) => match read(fields, entry.span) {
                Ok(rule) => rules.push(rule),
                Err(wrong) => problems.extend(wrong),
            },
            _ => {
                problems.push((entry.span, "a rule must be a table with command, then, examples".to_owned()))
            }
        }
    }
    if problems.is_empty() { Ok(rules) } else { Err(problems) }
}

fn read(fields: &[Entry], at: Span) -> Result<ApprovalRule, Problems> {
    let mut problems = Problems::new();
    for Entry { name, at, .. } in fields.iter().filter(|entry| !FIELDS.contains(&entry.name.as_str())) {
        let hint = suggest::did_you_mean(name, FIELDS).map(|hint| format!("; {hint}")).unwrap_or_default();
        problems.push((*at, format!("unknown key `{name}` in a rule{hint}")));
    }
    let text = |name: &str| match field(fields, name).map(|node| &node.value) {
        Some(Leaf::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let then = text("then").and_then(|word| DECISIONS.iter().find(|(known, _)| *known == word));
    let Some((_, then)) = then else {
        problems.push((at, "`then` of a rule must be \"allow\", \"ask\" or \"deny\"".to_owned()));
        return Err(problems);
    };
    let Some(rule) = text("command").and_then(|command| ApprovalRule::of_prefix(command, *then)) else {
        let message =
            "`command` of a rule must be the beginning of one plain command, such as \"git status\"";
        problems.push((at, message.to_owned()));
        return Err(problems);
    };
    for (name, should) in [("examples", true), ("not_examples", false)] {
        for (span, line) in lines(fields, name, &mut problems) {
            if rule.matches(&line) != should {
                let does = if should { "does not match its example" } else { "matches its counterexample" };
                problems.push((span, format!("the rule {does} `{line}`")));
            }
        }
    }
    if problems.is_empty() { Ok(rule) } else { Err(problems) }
}

fn field<'a>(fields: &'a [Entry], name: &str) -> Option<&'a Node> {
    fields.iter().find(|entry| entry.name == name).map(|entry| &entry.node)
}

fn lines(fields: &[Entry], name: &str, problems: &mut Problems) -> Vec<(Span, String)> {
    let Some(value) = field(fields, name) else { return Vec::new() };
    let line = |item: &Node| match &item.value {
        Leaf::Text(line) => Some((item.span, line.clone())),
        _ => None,
    };
    let items = match &value.value {
        Leaf::List(items) => items.iter().map(line).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    items.unwrap_or_else(|| {
        problems.push((value.span, format!("`{name}` of a rule must be a list of command lines")));
        Vec::new()
    })
}

/// The JSON Schema of the `rules` list.
pub(super) fn schema() -> serde_json::Value {
    let lines = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "array",
        "description": "Approval decisions by command prefix. In a project only after `fusee trust`.",
        "items": {
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "First words of the command." },
                "then": { "enum": DECISIONS.map(|(word, _)| word) },
                "examples": lines,
                "not_examples": lines,
            },
            "required": ["command", "then"],
            "additionalProperties": false,
        },
    })
}
