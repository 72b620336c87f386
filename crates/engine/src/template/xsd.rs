//! `schema/task-template-1.0.xsd`, made from the table, for editors and for others who check templates.
//!
//! XSD 1.0 cannot count elements in any order beside unknown ones, so every element is declared globally and
//! admitted by a lax wildcard; how often one stands is said by keys. What it cannot say at all is in its annotation.

use std::collections::BTreeMap;

use super::schema::{AttributeRule, Content, ElementRule, Kind, Occurs, TASK};

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- Made by `cargo xtask docs` from crates/engine/src/template/schema.rs; do not edit. -->
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" version="1.0">
  <xs:annotation>
    <xs:documentation>
      Task templates of fusee, version 1.0. Unknown elements and attributes are admitted; `fusee check` warns of them.
      Beyond what this schema can say, `fusee check` wants: the outermost element to be `task`; `instructions` or a
      `section`; `inputs`, `context_management`, `file_paths`, `context_relevance` at most once; every placeholder
      declared, well formed, and in a command outside of its quotes; defaults of the declared type; `params` and `inputs`
      in agreement, no name twice; in `inputs`, `file_paths` and `context_relevance` an element that is known there, in
      `file_paths` the one of its `source`; no `schema` of text; `fresh_context` and what is inherited in agreement.
    </xs:documentation>
  </xs:annotation>
"#;

/// The whole schema.
pub fn xsd() -> String {
    let mut elements: BTreeMap<&'static str, Vec<&'static ElementRule>> = BTreeMap::new();
    gather(&TASK, &mut elements);
    let mut kinds: Vec<Kind> = Vec::new();
    let mut body = String::new();
    for rules in elements.values() {
        body.push_str(&element(rules, &mut kinds));
    }
    let mut text = HEAD.to_owned();
    for kind in kinds {
        text.push_str(&simple_type(kind));
    }
    text.push_str(&body);
    text.push_str("</xs:schema>\n");
    text
}

fn gather(rule: &'static ElementRule, elements: &mut BTreeMap<&'static str, Vec<&'static ElementRule>>) {
    let known = elements.entry(rule.name).or_default();
    if known.iter().any(|other| std::ptr::eq(*other, rule)) {
        return;
    }
    known.push(rule);
    rule.children().iter().for_each(|child| gather(child, elements));
}

/// One global element for all rules of its name.
fn element(rules: &[&'static ElementRule], kinds: &mut Vec<Kind>) -> String {
    let Some(first) = rules.first() else { return String::new() };
    let attributes: String = attributes(rules, kinds);
    let about = rules.iter().map(|rule| rule.about).collect::<Vec<_>>().join(" Elsewhere: ");
    let mut text = format!(
        "  <xs:element name=\"{}\">\n    <xs:annotation><xs:documentation>{}</xs:documentation></xs:annotation>\n",
        first.name,
        escaped(&about)
    );
    match first.content {
        Content::Elements(_) | Content::SomeElements(_) | Content::Mixed(_) => {
            let least = u8::from(matches!(first.content, Content::SomeElements(_)));
            let mixed = if matches!(first.content, Content::Mixed(_)) { " mixed=\"true\"" } else { "" };
            text.push_str(&format!(
                "    <xs:complexType{mixed}>\n      <xs:sequence>\n        <xs:any minOccurs=\"{least}\" maxOccurs=\"unbounded\" \
                 processContents=\"lax\"/>\n      </xs:sequence>\n{attributes}      <xs:anyAttribute processContents=\"lax\"/>\n    \
                 </xs:complexType>\n{}",
                counts(first)
            ));
        }
        content => {
            let kind = match content {
                Content::Value(kind) => kind,
                Content::Text => Kind::Word,
                _ => Kind::Any,
            };
            text.push_str(&format!(
                "    <xs:complexType>\n      <xs:simpleContent>\n        <xs:extension base=\"{}\">\n{attributes}      \
                 <xs:anyAttribute processContents=\"lax\"/>\n        </xs:extension>\n      </xs:simpleContent>\n    </xs:complexType>\n",
                type_name(kind, kinds)
            ));
        }
    }
    text.push_str("  </xs:element>\n");
    text
}

/// An attribute is required where all rules of the element say so.
fn attributes(rules: &[&'static ElementRule], kinds: &mut Vec<Kind>) -> String {
    let mut seen: Vec<&AttributeRule> = Vec::new();
    for attribute in rules.iter().flat_map(|rule| rule.attributes) {
        if !seen.iter().any(|other| other.name == attribute.name) {
            seen.push(attribute);
        }
    }
    let line = |attribute: &AttributeRule, kinds: &mut Vec<Kind>| {
        let everywhere = rules
            .iter()
            .all(|rule| rule.attribute(attribute.name).is_some_and(|attribute| attribute.required));
        let use_ = if everywhere { " use=\"required\"" } else { "" };
        format!(
            "      <xs:attribute name=\"{}\" type=\"{}\"{use_}>\n        \
             <xs:annotation><xs:documentation>{}</xs:documentation></xs:annotation>\n      </xs:attribute>\n",
            attribute.name,
            type_name(attribute.kind, kinds),
            escaped(attribute.about)
        )
    };
    seen.into_iter().map(|attribute| line(attribute, kinds)).collect()
}

/// A field that selects two nodes is an error in any key, and one that selects none in a key that is required.
fn counts(rule: &ElementRule) -> String {
    let simple = |child: &&&ElementRule| child.children().is_empty();
    let once = rule.children().iter().filter(simple).filter(|child| child.occurs != Occurs::Many);
    once.map(|child| {
        let (tag, word) = match child.occurs {
            Occurs::Required => ("key", "one"),
            Occurs::Optional | Occurs::Many => ("unique", "at-most-one"),
        };
        let (parent, child) = (rule.name, child.name);
        format!(
            "    <xs:{tag} name=\"{parent}-has-{word}-{child}\">\n      <xs:selector xpath=\".\"/>\n      \
             <xs:field xpath=\"{child}\"/>\n    </xs:{tag}>\n"
        )
    })
    .collect()
}

/// The name of a type, which is noted to be written down.
fn type_name(kind: Kind, kinds: &mut Vec<Kind>) -> String {
    if !matches!(kind, Kind::Any | Kind::Bool) && !kinds.contains(&kind) {
        kinds.push(kind);
    }
    name_of(kind)
}

fn name_of(kind: Kind) -> String {
    match kind {
        Kind::Any => "xs:string".to_owned(),
        Kind::Bool => "xs:boolean".to_owned(),
        Kind::Word => "text".to_owned(),
        Kind::OneOf(words) => format!("one-of-{}", words.join("-")),
        Kind::Name => "name".to_owned(),
        Kind::InputName => "input-name".to_owned(),
        Kind::InputNames => "input-names".to_owned(),
        Kind::SectionKey => "section-key".to_owned(),
        Kind::Whole(most) => format!("whole-up-to-{most}"),
        Kind::Fraction => "fraction".to_owned(),
    }
}

fn simple_type(kind: Kind) -> String {
    let (base, facets) = match kind {
        Kind::Any | Kind::Bool => return String::new(),
        Kind::Word => ("xs:token", "<xs:minLength value=\"1\"/>".to_owned()),
        Kind::OneOf(words) => {
            let facets = words.iter().map(|word| format!("<xs:enumeration value=\"{word}\"/>"));
            ("xs:token", facets.collect())
        }
        Kind::Name => ("xs:token", pattern("[A-Za-z_][A-Za-z0-9_.:\\-]{0,127}")),
        Kind::InputName => ("xs:token", pattern("[A-Za-z_][A-Za-z0-9_\\-]{0,63}")),
        Kind::InputNames => {
            ("xs:token", pattern("([A-Za-z_][A-Za-z0-9_\\-]{0,63}( ?, ?[A-Za-z_][A-Za-z0-9_\\-]{0,63})*)?"))
        }
        Kind::SectionKey => ("xs:token", pattern("[A-Za-z0-9][A-Za-z0-9_\\-]{0,63}")),
        Kind::Whole(most) => ("xs:positiveInteger", format!("<xs:maxInclusive value=\"{most}\"/>")),
        Kind::Fraction => {
            ("xs:decimal", "<xs:minExclusive value=\"0\"/><xs:maxInclusive value=\"1\"/>".to_owned())
        }
    };
    let name = name_of(kind);
    format!(
        "  <xs:simpleType name=\"{name}\">\n    <xs:restriction base=\"{base}\">{facets}</xs:restriction>\n  </xs:simpleType>\n"
    )
}

fn pattern(pattern: &str) -> String {
    format!("<xs:pattern value=\"{pattern}\"/>")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
