//! Showing diagnostics: for people at a terminal ([`terminal`]) and for editors ([`json`]).
//!
//! The excerpt of the source that people see is prepared in `excerpt`; annotate-snippets draws it.

mod excerpt;
mod harmless;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::{Diagnostic, Severity, Source};
use excerpt::Excerpt;

pub use harmless::harmless;

#[cfg(test)]
mod tests;

/// Whether the terminal gets colours. The caller knows what is at the other end; this crate does not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text alone.
    Never,
    /// ANSI styles.
    Always,
}

/// Every diagnostic with its source line and a caret, and a last line that counts them.
///
/// `source_of` finds a source by the file name in the diagnostic; where it finds none, the place is named without an
/// excerpt. Control characters of the source are shown as pictures, long lines and long spans are cut.
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
    // Strings and numbers alone cannot fail to serialize; an empty array is the honest rest.
    serde_json::to_string(diagnostics).unwrap_or_else(|_| "[]".to_owned())
}

fn one(diagnostic: &Diagnostic, source: Option<&Source>, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let file = harmless(&diagnostic.file).into_owned();
    let excerpt = source.map(|source| Excerpt::around(source, diagnostic));
    let title = level.primary_title(harmless(&diagnostic.message)).id(diagnostic.code);
    let mut group = match &excerpt {
        None => {
            let place = Origin::path(file).line(diagnostic.start.line).char_column(diagnostic.start.column);
            title.element(place)
        }
        Some(excerpt) => {
            let caret = AnnotationKind::Primary.span(excerpt.marked.clone());
            let snippet = Snippet::source(excerpt.text.as_str())
                .line_start(excerpt.first_line)
                .fold(false)
                .annotation(caret);
            // The drawn heading counts columns in the excerpt, which is wrong once its line lost its beginning.
            match excerpt.cut {
                false => title.element(snippet.path(file)),
                true => {
                    let place = format!("at {file}:{}", diagnostic.start);
                    title.element(snippet).element(Level::NOTE.message(place))
                }
            }
        }
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(harmless(help)));
    }
    renderer.render(&[group])
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
