//! Finds the symbols a file defines: with its grammar if there is one (`treesitter.rs`), else line by line: a
//! keyword after its modifiers, then a name. The line scanner is right for most files of most languages, and
//! never slow.

/// Maximum number of symbols kept per file.
const MAX_SYMBOLS: usize = 200;
/// Longer lines are skipped: they are not hand-written definitions.
const MAX_LENGTH: usize = 400;

/// Words allowed before the keyword.
const MODIFIERS: &[&str] = &[
    "pub",
    "export",
    "default",
    "declare",
    "async",
    "static",
    "public",
    "private",
    "protected",
    "internal",
    "abstract",
    "final",
    "unsafe",
    "extern",
    "open",
    "override",
    "sealed",
    "data",
    "inline",
    "virtual",
    "partial",
    "readonly",
    "suspend",
    "local",
    "create",
    "or",
    "replace",
];

/// Words that are followed by the name they define.
const KEYWORDS: &[&str] = &[
    "fn",
    "struct",
    "enum",
    "trait",
    "mod",
    "type",
    "const",
    "union",
    "macro_rules!",
    "def",
    "class",
    "function",
    "interface",
    "namespace",
    "func",
    "record",
    "object",
    "module",
    "protocol",
    "extension",
    "table",
    "view",
    "defun",
    "define",
    "defatom",
    "let",
    "var",
    "val",
];

/// Keywords that count only at the beginning of a line.
const OUTERMOST: &[&str] = &["const", "let", "var", "val", "type"];

/// Returns the symbols of a text.
pub(super) fn find(text: &str, language: &str) -> Vec<String> {
    #[cfg(feature = "grammars")]
    if let Some(found) = super::treesitter::find(text, language) {
        return distinct(found);
    }
    by_line(text, language)
}

/// Removes duplicates and applies the limit.
#[cfg(feature = "grammars")]
fn distinct(found: Vec<&str>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let names = found.into_iter().filter_map(name).filter(|name| seen.insert(name.clone()));
    names.take(MAX_SYMBOLS).collect()
}

/// Returns the symbols of a text with the line scanner.
pub(super) fn by_line(text: &str, language: &str) -> Vec<String> {
    let mut symbols: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| line.len() <= MAX_LENGTH) {
        let found = match language {
            "markdown" => heading(line),
            "json" | "yaml" | "toml" | "xml" | "txt" => None,
            "c" | "cpp" => defined(line).or_else(|| c_function(line)),
            "shell" => shell_function(line).or_else(|| defined(line)),
            _ => defined(line),
        };
        if let Some(symbol) = found
            && !symbols.contains(&symbol)
        {
            symbols.push(symbol);
            if symbols.len() >= MAX_SYMBOLS {
                break;
            }
        }
    }
    symbols
}

fn defined(line: &str) -> Option<String> {
    let indented = line.starts_with([' ', '\t']);
    let line = line.trim_start().trim_start_matches('(');
    let mut rest = line;
    for _ in 0..6 {
        let word_end = rest.find(|c: char| c.is_whitespace() || c == '(').unwrap_or(rest.len());
        let word = &rest[..word_end];
        if KEYWORDS.contains(&word) {
            if indented && OUTERMOST.contains(&word) {
                return None;
            }
            // `const fn`, `enum class`: the last keyword decides.
            let after = rest[word_end..].trim_start();
            let next = after.split_whitespace().next().unwrap_or_default();
            if KEYWORDS.contains(&next) {
                rest = after;
                continue;
            }
            return name(receiver_skipped(after));
        }
        if !MODIFIERS.contains(&word) {
            return None;
        }
        // `pub(crate)` has its scope in parentheses.
        let after = rest[word_end..].trim_start();
        rest = match after.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
            Some((_, behind)) => behind.trim_start(),
            None => after,
        };
    }
    None
}

/// Skips the receiver of a Go method: `func (s *Server) Serve`.
fn receiver_skipped(text: &str) -> &str {
    match text.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
        Some((_, behind)) => behind.trim_start(),
        None => text,
    }
}

fn name(text: &str) -> Option<String> {
    let end =
        text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '-'))).unwrap_or(text.len());
    let name = text[..end].trim_end_matches('-');
    (name.len() > 1 && name.starts_with(|c: char| c.is_alphabetic() || c == '_')).then(|| name.to_owned())
}

fn heading(line: &str) -> Option<String> {
    let text = line.strip_prefix('#')?.trim_start_matches('#').trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Finds a C function such as `int main(void) {`: a name before a parenthesis, after a type, at the line
/// start.
fn c_function(line: &str) -> Option<String> {
    if line.starts_with([' ', '\t', '#', '/', '}', '{', '*']) || line.trim_end().ends_with(';') {
        return None;
    }
    let (before, _) = line.split_once('(')?;
    let start = before.trim_end().rfind(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    name(&before.trim_end()[start + 1..])
}

fn shell_function(line: &str) -> Option<String> {
    let (before, _) = line.trim_start().split_once("()")?;
    (!before.contains(' ')).then(|| name(before))?
}
