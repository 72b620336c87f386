//! Tests of both syntaxes: every part has its position, and parts and text determine each other.

use proptest::prelude::*;

use super::{Placeholder, PlaceholderSyntax, TextPart, parse};

fn brief(text: &str, syntax: PlaceholderSyntax) -> Vec<String> {
    let parts = parse(text, syntax).into_iter().map(|part| match part {
        TextPart::Text(text) => format!("text {text}"),
        TextPart::Name(name) => format!("{} {}", name.at, name.path()),
        TextPart::Malformed { at, text } => format!("{at} malformed {text}"),
    });
    parts.collect()
}

#[test]
fn braces_hold_names_with_fields() {
    let cases: [(&str, &[&str]); 13] = [
        ("", &[]),
        ("a {{ b }}{{c.0.d}}", &["text a ", "2 b", "9 c.0.d"]),
        ("{{größe}}{{a-b_1}}", &["0 größe", "11 a-b_1"]),
        ("{{{{a}}", &["text {{", "text a}}"]),
        ("{{{a}}}", &["text {", "1 a", "text }"]),
        ("{{ f(x) }}", &["0 malformed {{ f(x) }}"]),
        ("é{{a b}} {{c}}", &["text é", "2 malformed {{a b}}", "text  ", "10 c"]),
        ("{{a..b}}{{a.}}", &["0 malformed {{a..b}}", "8 malformed {{a.}}"]),
        ("{{{ f(x) }}}", &["text {{{ f(x) }}}"]),
        ("{{1}} {{}} {{'a'}} {{", &["text {{1}} {{}} {{'a'}} {{"]),
        ("{{a\nb}}", &["text {{a\nb}}"]),
        ("{{ x {{a}}", &["text {{ x ", "5 a"]),
        ("{ {a} }", &["text { {a} }"]),
    ];
    for (text, expected) in cases {
        assert_eq!(brief(text, PlaceholderSyntax::Braces), expected, "{text}");
    }
    let long = format!("{{{{{}}}}}", "a".repeat(2000));
    assert_eq!(brief(&long, PlaceholderSyntax::Braces), [format!("text {long}")]);
}

#[test]
fn a_dollar_sign_begins_a_name_or_is_doubled() {
    let cases: [(&str, &[&str]); 6] = [
        ("$a ${b}c $$d", &["0 a", "text  ", "3 b", "text c ", "text $", "text d"]),
        ("$", &["0 malformed $"]),
        ("a $ 5", &["text a ", "2 malformed $", "text  5"]),
        ("${a", &["0 malformed $", "text {a"]),
        ("$1", &["0 malformed $", "text 1"]),
        ("$é", &["0 malformed $", "text é"]),
    ];
    for (text, expected) in cases {
        assert_eq!(brief(text, PlaceholderSyntax::Dollar), expected, "{text}");
    }
}

/// Writes parts so that reading them again yields the same ones.
fn written(parts: &[TextPart<'_>], syntax: PlaceholderSyntax) -> String {
    let one = |part: &TextPart<'_>| match (part, syntax) {
        (TextPart::Text(text), PlaceholderSyntax::Braces) => text.replace("{{", "{{{{"),
        (TextPart::Text(text), PlaceholderSyntax::Dollar) => text.replace('$', "$$"),
        (TextPart::Name(name), PlaceholderSyntax::Braces) => format!("{{{{{}}}}}", name.path()),
        (TextPart::Name(name), PlaceholderSyntax::Dollar) => format!("${{{}}}", name.path()),
        (TextPart::Malformed { text, .. }, _) => (*text).to_owned(),
    };
    parts.iter().map(one).collect()
}

proptest! {
    /// Any text is read, the positions lie where the parts are, and nothing is lost.
    #[test]
    fn parts_cover_the_text(
        text in "([{}$ .a-cé\n]|\\{\\{|\\}\\}|\\{\\{a\\}\\}|\\$a){0,30}",
        dollar in any::<bool>(),
    ) {
        let syntax = if dollar { PlaceholderSyntax::Dollar } else { PlaceholderSyntax::Braces };
        let (parts, mut from) = (parse(&text, syntax), 0);
        for part in &parts {
            match part {
                TextPart::Text(plain) => {
                    prop_assert!(text[from..].starts_with(plain));
                    from += plain.len();
                    let escape = if dollar { "$" } else { "{{" };
                    if plain == &escape && text[from..].starts_with(escape) {
                        from += escape.len();
                    }
                }
                TextPart::Malformed { at, text: wrong } => {
                    prop_assert_eq!(*at, from);
                    prop_assert!(text[from..].starts_with(wrong));
                    from += wrong.len();
                }
                TextPart::Name(Placeholder { at, name, .. }) => {
                    prop_assert_eq!(*at, from);
                    let begins = if dollar { text[from..].find(name) } else { text[from + 2..].find(name) };
                    prop_assert!(begins.is_some());
                    let end = if dollar && !text[from..].starts_with("${") {
                        1 + name.len()
                    } else {
                        text[from..].find('}').unwrap_or(0) + if dollar { 1 } else { 2 }
                    };
                    from += end;
                }
            }
        }
        prop_assert_eq!(from, text.len());
    }

    /// Values, names and escapes survive being written and read.
    #[test]
    fn names_are_found_between_any_texts(
        texts in prop::collection::vec("[a-z .{]{0,6}", 1..5),
        name in "[a-z_][a-z0-9_]{0,5}",
        dollar in any::<bool>(),
    ) {
        let syntax = if dollar { PlaceholderSyntax::Dollar } else { PlaceholderSyntax::Braces };
        // A single brace before `{{` belongs to it.
        let texts: Vec<String> = texts.iter().map(|text| text.trim_end_matches('{').to_owned()).collect();
        let placeholder = TextPart::Name(Placeholder { at: 0, name: &name, fields: Vec::new() });
        let mut parts = Vec::new();
        for text in &texts {
            parts.extend([TextPart::Text(text), placeholder.clone()]);
        }
        let text = written(&parts, syntax);
        let (mut filled, mut found) = (String::new(), 0);
        for part in parse(&text, syntax) {
            match part {
                TextPart::Text(text) => filled.push_str(text),
                TextPart::Name(read) => {
                    prop_assert_eq!(read.name, name.as_str());
                    found += 1;
                }
                TextPart::Malformed { text, .. } => prop_assert!(false, "{}", text),
            }
        }
        prop_assert_eq!(found, texts.len());
        prop_assert_eq!(filled, texts.concat());
    }
}
