//! Text with placeholders: `$name`, `${name}`, and `$$` for a dollar sign. Substitution is a single pass, so
//! a `$` inside a value has no effect.

use fusee_text::placeholder::{PlaceholderSyntax, TextPart, parse};

/// White space as trimmed in prompts: Unicode's, and the four separators U+001C to U+001F.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Trims white space at both ends.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceholderText {
    parts: Vec<PlaceholderPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PlaceholderPart {
    Text(String),
    Name(String),
}

impl PlaceholderText {
    /// Dedents, trims and parses a text. The error names the offending dollar sign.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = dedent(text);
        let text = trim(&text);
        let mut parts = Vec::new();
        for part in parse(text, PlaceholderSyntax::Dollar) {
            parts.push(match part {
                TextPart::Text(plain) => PlaceholderPart::Text(plain.to_owned()),
                TextPart::Name(placeholder) => PlaceholderPart::Name(placeholder.name.to_owned()),
                TextPart::Malformed { at, .. } => {
                    let line = text[..at].matches('\n').count() + 1;
                    let shown: String = text[at..].chars().take(11).collect();
                    return Err(format!("`{shown}` on line {line} is not a valid placeholder: write `$name`, `${{name}}`, or `$$` for a dollar sign"));
                }
            });
        }
        Ok(Self { parts })
    }

    /// Creates a template without placeholders.
    pub(crate) fn literal(text: &str) -> Self {
        let text = trim(text);
        Self {
            parts: if text.is_empty() { Vec::new() } else { vec![PlaceholderPart::Text(text.to_owned())] },
        }
    }

    /// Returns the names of the placeholders.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            PlaceholderPart::Name(name) => Some(name.as_str()),
            PlaceholderPart::Text(_) => None,
        })
    }

    /// Substitutes the values and trims the result. The error is the name of a placeholder without a value.
    pub(crate) fn fill(&self, value: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                PlaceholderPart::Text(plain) => text.push_str(plain),
                PlaceholderPart::Name(name) => text.push_str(&value(name).ok_or_else(|| name.clone())?),
            }
        }
        Ok(trim(&text).to_owned())
    }
}

/// Removes the common leading white space of all non-blank lines; blank lines become empty.
fn dedent(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut margin: Option<&str> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let lead = &line[..indent(line)];
        margin = Some(match margin {
            None => lead,
            Some(margin) => {
                let same = margin.bytes().zip(lead.bytes()).take_while(|(one, other)| one == other).count();
                &margin[..same]
            }
        });
    }
    let margin = margin.unwrap_or_default().len();
    let line = |line: &str| if line.trim().is_empty() { String::new() } else { line[margin..].to_owned() };
    text.split('\n').map(|one| line(one.strip_suffix('\r').unwrap_or(one))).collect::<Vec<_>>().join("\n")
}
