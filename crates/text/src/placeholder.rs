//! Placeholders in texts: `{{name.field}}` in templates and workflows, `$name` in prompts.
//!
//! [`parse`] splits a text into parts with their positions. What a name refers to, and what happens to a
//! malformed placeholder, is decided by whoever fills the text in.

/// Maximum length of a placeholder in bytes between its braces.
const MAX_LENGTH: usize = 1024;

/// The valid forms of [`PlaceholderSyntax::Braces`], as help for a malformed placeholder.
pub const FORMS: &str = "a placeholder is `{{name}}` or `{{name.field}}`; `{{{{` is a literal `{{`";

/// How placeholders are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderSyntax {
    /// `{{name}}` and `{{name.field}}`; `{{{{` is a literal `{{`.
    Braces,
    /// `$name` and `${name}`; `$$` is a literal `$`.
    Dollar,
}

/// Literal text or a placeholder, in order of appearance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPart<'t> {
    /// Literal text. For an escape, the characters it stands for.
    Text(&'t str),
    /// A placeholder.
    Name(Placeholder<'t>),
    /// Looks like a placeholder but is none.
    Malformed {
        /// Byte offset in the text.
        at: usize,
        /// The whole of it, with braces; for [`PlaceholderSyntax::Dollar`], the dollar sign.
        text: &'t str,
    },
}

/// A reference to a value, or to a field within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder<'t> {
    /// Byte offset in the text.
    pub at: usize,
    /// Name of the value.
    pub name: &'t str,
    /// Path within the value.
    pub fields: Vec<&'t str>,
}

impl Placeholder<'_> {
    /// The name and the fields as written, without spaces: `name.field`.
    pub fn path(&self) -> String {
        let parts: Vec<&str> = std::iter::once(self.name).chain(self.fields.iter().copied()).collect();
        parts.join(".")
    }
}

/// Splits a text into its parts, in order. Every part but an escape covers its own bytes of the text.
pub fn parse(text: &str, syntax: PlaceholderSyntax) -> Vec<TextPart<'_>> {
    let mark = match syntax {
        PlaceholderSyntax::Braces => "{{",
        PlaceholderSyntax::Dollar => "$",
    };
    let (mut parts, mut plain, mut from) = (Vec::new(), 0, 0);
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(mark)).map(|found| from + found) {
        let read = match syntax {
            PlaceholderSyntax::Braces => braces(text, at),
            PlaceholderSyntax::Dollar => dollar(text, at),
        };
        match read {
            Some((part, end)) => {
                push_text(&mut parts, &text[plain..at]);
                parts.push(part);
                (plain, from) = (end, end);
            }
            // Advance by one, so that a brace before a placeholder is text.
            None => from = at + 1,
        }
    }
    push_text(&mut parts, &text[plain..]);
    parts
}

fn push_text<'t>(parts: &mut Vec<TextPart<'t>>, text: &'t str) {
    if !text.is_empty() {
        parts.push(TextPart::Text(text));
    }
}

/// Reads what begins with `{{`; `None` for braces that are ordinary text.
fn braces(text: &str, at: usize) -> Option<(TextPart<'_>, usize)> {
    let after = at + 2;
    if text[after..].starts_with("{{") {
        return Some((TextPart::Text(&text[at..after]), after + 2));
    }
    let near = &text.as_bytes()[after..];
    let near = &near[..near.len().min(MAX_LENGTH)];
    let end = after + near.windows(2).position(|pair| pair == b"}}")?;
    let inside = text[after..end].trim();
    let mut names = inside.split('.');
    let name = names.next().filter(|name| is_name(name));
    let fields: Vec<&str> = names.collect();
    let legal = |field: &&str| !field.is_empty() && !field.contains(['{', '}', ' ', '\n']);
    if let Some(name) = name.filter(|_| fields.iter().all(legal)) {
        return Some((TextPart::Name(Placeholder { at, name, fields }), end + 2));
    }
    // Other languages use double braces too: nested, tripled, or spanning lines.
    let like_a_name = inside.starts_with(starts_name) && !inside.contains(['{', '}', '\n']);
    let malformed = like_a_name && !text[..at].ends_with('{');
    malformed.then(|| (TextPart::Malformed { at, text: &text[at..end + 2] }, end + 2))
}

/// Reads what begins with `$`; a dollar sign always means something.
fn dollar(text: &str, at: usize) -> Option<(TextPart<'_>, usize)> {
    let after = &text[at + 1..];
    if after.starts_with('$') {
        return Some((TextPart::Text(&text[at..at + 1]), at + 2));
    }
    let braced = after.strip_prefix('{');
    let rest = braced.unwrap_or(after);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (name, following) = rest.split_at(end);
    let is_name = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    let following = if braced.is_some() { following.strip_prefix('}') } else { Some(following) };
    Some(match following.filter(|_| is_name) {
        Some(following) => {
            let placeholder = Placeholder { at, name, fields: Vec::new() };
            (TextPart::Name(placeholder), text.len() - following.len())
        }
        None => (TextPart::Malformed { at, text: &text[at..at + 1] }, at + 1),
    })
}

/// Whether `{{…}}` with this inside refers to a value.
fn is_name(name: &str) -> bool {
    name.starts_with(starts_name) && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

#[cfg(test)]
mod tests;
