//! Rendering diagnostics for terminals ([`terminal`]) and for editors ([`json`]).
//!
//! `excerpt` prepares the source excerpt shown in a terminal; annotate-snippets draws it.

mod excerpt;
mod sanitize;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::{Diagnostic, Severity, Source};
use excerpt::Excerpt;

pub use sanitize::sanitize;

#[cfg(test)]
mod tests;

/// Whether output is coloured. The caller knows whether it writes to a terminal; this crate does not check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI styles.
    Always,
}

/// Renders every diagnostic with its source line and a caret, followed by a line with the number of errors
/// and warnings.
///
/// `source_of` looks up a source by the file name in the diagnostic; if it returns `None`, the location is
/// shown without an excerpt. Control characters of the source are replaced by visible symbols; long lines and
/// long spans are truncated.
pub fn terminal<'s>(
    diagnostics: &[Diagnostic],
    source_of: impl Fn(&str) -> Option<&'s Source>,
    colour: Colour,
) -> String {
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    }
    .term_width(excerpt::WIDTH * 2);
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&one(diagnostic, source_of(&diagnostic.file), &renderer));
        out.push_str("\n\n");
    }
    out.push_str(&summary(diagnostics));
    out
}

/// The JSON array of `fusee check --format json`, in the order given.
pub fn json(diagnostics: &[Diagnostic]) -> String {
    // Serializing strings and numbers cannot fail; the fallback only avoids a panic.
    serde_json::to_string(diagnostics).unwrap_or_else(|_| "[]".to_owned())
}

fn one(diagnostic: &Diagnostic, source: Option<&Source>, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let file = sanitize(&diagnostic.file).into_owned();
    let excerpt = source.map(|source| Excerpt::new(source, diagnostic));
    let title = level.primary_title(sanitize(&diagnostic.message)).id(diagnostic.code);
    let place =
        || Origin::path(file.clone()).line(diagnostic.start.line).char_column(diagnostic.start.column);
    let mut group = match &excerpt {
        None => title.element(place()),
        Some(excerpt) => {
            let caret = AnnotationKind::Primary.span(excerpt.marked.clone());
            let snippet = Snippet::source(excerpt.text.as_str())
                .line_start(excerpt.first_line)
                .fold(false)
                .annotation(caret);
            // annotate-snippets counts columns in the excerpt, which is wrong once the start of the line was
            // cut off.
            match excerpt.cut {
                false => title.element(snippet.path(file)),
                true => title.element(place()).element(snippet),
            }
        }
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(sanitize(help)));
    }
    let drawn = renderer.render(&[group]);
    match excerpt {
        Some(excerpt) if excerpt.cut => without_second_origin(&drawn),
        _ => drawn,
    }
}

/// Removes the line `:::` that stands for the missing path of a cut excerpt. Lines of the source have a bar.
fn without_second_origin(drawn: &str) -> String {
    let is_origin = |line: &str| line.contains(":::") && !line.contains('|');
    let lines = drawn.lines().enumerate().filter(|(number, line)| *number == 0 || !is_origin(line));
    lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

fn summary(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    match (errors, diagnostics.len() - errors) {
        (0, 0) => String::new(),
        (errors, 0) => format!("{}\n", counted(errors, "error")),
        (0, warnings) => format!("{}\n", counted(warnings, "warning")),
        (errors, warnings) => format!("{}, {}\n", counted(errors, "error"), counted(warnings, "warning")),
    }
}
