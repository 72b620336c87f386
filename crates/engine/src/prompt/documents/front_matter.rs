//! Front matter of a Markdown file: lines of YAML between two lines of dashes, of which single fields are used.

/// Front matter at the top of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FrontMatter<'a> {
    /// The fields, and the body after them.
    Fields { fields: &'a str, body: &'a str },
    /// Opened but never closed.
    Open,
    /// No front matter.
    Nothing,
}

impl<'a> FrontMatter<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let Some(inside) = text.strip_prefix("---\n") else { return Self::Nothing };
        let mut at = 0;
        for line in inside.split_inclusive('\n') {
            if line.trim_end() == "---" {
                return Self::Fields { fields: &inside[..at], body: &inside[at + line.len()..] };
            }
            at += line.len();
        }
        Self::Open
    }
}

/// Splits a text into the lines of its front matter, which may be none, and its body.
pub fn split(text: &str) -> (&str, &str) {
    match FrontMatter::parse(text) {
        FrontMatter::Fields { fields, body } => (fields, body),
        FrontMatter::Open | FrontMatter::Nothing => ("", text),
    }
}

/// Returns a field: `name: words`, optionally quoted or continued on indented lines.
pub fn field(fields: &str, name: &str) -> Option<String> {
    let mut lines = fields.lines();
    let first = lines.find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?.trim();
    // `>` and `|` only mean that the value follows on the next lines.
    let first = if [">", "|", ">-", "|-", ">+", "|+"].contains(&first) { "" } else { first };
    let below = lines.take_while(|line| line.starts_with([' ', '\t']) || line.trim().is_empty());
    let words = std::iter::once(first).chain(below.map(str::trim)).collect::<Vec<_>>().join(" ");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.trim_matches(['"', '\'']).trim();
    (!words.is_empty()).then(|| words.to_owned())
}
