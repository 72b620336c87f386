//! Reference page of templates, generated from the schema table.

use super::schema::{ElementContent, ElementRule, Occurs, TASK, ValueKind};

/// Returns the page below its heading, as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "A template is an XML file with one task for a model. Its elements can be in any order. `fusee check FILE` reports \
         every mistake with its position; `schema/task-template-1.0.xsd` provides the same checks in editors.\n",
    );
    section(&TASK, &mut Vec::new(), &mut text);
    text
}

fn section(rule: &'static ElementRule, path: &mut Vec<&'static str>, text: &mut String) {
    path.push(rule.name);
    text.push_str(&format!("\n## `{}`\n\n{}", path.join("/"), rule.about));
    let content = match rule.content {
        ElementContent::Text => " It contains text.".to_owned(),
        ElementContent::Note | ElementContent::Elements(_) => String::new(),
        ElementContent::SomeElements(_) => " It must not be empty.".to_owned(),
        ElementContent::Mixed(_) => " It contains text and elements.".to_owned(),
        ElementContent::Value(kind) => format!(" It contains {}.", expects(kind)),
    };
    text.push_str(&content);
    text.push('\n');
    if !rule.attributes.is_empty() {
        text.push_str("\n| attribute | | |\n|---|---|---|\n");
        for attribute in rule.attributes {
            let mark = if attribute.required { "" } else { "?" };
            let (name, kind) = (attribute.name, expects(attribute.kind));
            text.push_str(&format!("| `{name}{mark}` | {kind} | {} |\n", attribute.about));
        }
    }
    let simple = |child: &ElementRule| child.attributes.is_empty() && child.children().is_empty();
    let children = rule.children();
    if !children.is_empty() {
        text.push_str("\n| element | | |\n|---|---|---|\n");
        for child in children {
            let often = match child.occurs {
                Occurs::Required => "once",
                Occurs::Optional => "at most once",
                Occurs::Many => "any number",
            };
            let about = match child.content {
                ElementContent::Value(kind) => format!("{} Value: {}.", child.about, expects(kind)),
                _ => child.about.to_owned(),
            };
            text.push_str(&format!("| `{}` | {often} | {about} |\n", child.name));
        }
    }
    for child in children.iter().filter(|child| !simple(child)) {
        if !path.contains(&child.name) {
            section(child, path, text);
        }
    }
    path.pop();
}

fn expects(kind: ValueKind) -> String {
    kind.expects().replace('|', "\\|")
}
