//! Text with placeholders: `$name`, `${name}`, and `$$` for a dollar sign. Substitution is a single pass, so
//! a `$` inside a value has no effect.

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
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            plain.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(escaped) = after.strip_prefix('$') {
                plain.push('$');
                rest = escaped;
                continue;
            }
            let (name, following) = placeholder(after).ok_or_else(|| {
                let line = text.len() - rest.len() + at;
                let line = text[..line].matches('\n').count() + 1;
                let shown: String = after.chars().take(10).collect();
                format!("`${shown}` on line {line} is not a valid placeholder: write `$name`, `${{name}}`, or `$$` for a dollar sign")
            })?;
            if !plain.is_empty() {
                parts.push(PlaceholderPart::Text(std::mem::take(&mut plain)));
            }
            parts.push(PlaceholderPart::Name(name.to_owned()));
            rest = following;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(PlaceholderPart::Text(plain));
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

/// Splits off the name after a dollar sign.
fn placeholder(after: &str) -> Option<(&str, &str)> {
    let braced = after.strip_prefix('{');
    let text = braced.unwrap_or(after);
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (name, following) = text.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match braced {
        Some(_) => Some((name, following.strip_prefix('}')?)),
        None => Some((name, following)),
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
