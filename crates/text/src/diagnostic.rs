//! Problems in a text, as plain values. [`crate::render`] decides how they are displayed.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::{Position, Source, Span};

#[cfg(test)]
mod tests;

/// Severity of a diagnostic. Errors prevent a program from running; warnings do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The text cannot be used.
    Error,
    /// The text can be used but probably does not do what its author intended.
    Warning,
}

/// One problem at one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable identifier of the kind of problem, in kebab case.
    pub code: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// One-line description that quotes the offending name or value.
    pub message: String,
    /// Name of the source.
    pub file: Arc<str>,
    /// Byte range in the source.
    pub span: Span,
    /// Position of the first character.
    pub start: Position,
    /// Position after the last character.
    pub end: Position,
    /// How to fix it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span` of `source`.
    pub fn error(code: &'static str, source: &Source, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, source, span, message.into())
    }

    /// A warning at `span` of `source`.
    pub fn warning(code: &'static str, source: &Source, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, source, span, message.into())
    }

    /// An error about a file as a whole, such as one that could not be read; points at 1:1.
    pub fn file_error(code: &'static str, file: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            file: file.into(),
            span: Span::default(),
            start: Position::default(),
            end: Position::default(),
            help: None,
        }
    }

    /// Sets the help text.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the help text if `help` is `Some`.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    /// Sets the help text unless there already is one.
    #[must_use]
    pub fn or_help(mut self, help: &str) -> Self {
        self.help.get_or_insert_with(|| help.to_owned());
        self
    }

    fn new(code: &'static str, severity: Severity, source: &Source, span: Span, message: String) -> Self {
        let (start, end) = source.positions(span);
        Self { code, severity, message, file: source.name().clone(), span, start, end, help: None }
    }
}

/// The JSON representation for editors (`fusee check --format json`).
impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = 8 + usize::from(self.help.is_some());
        let mut object = serializer.serialize_struct("Diagnostic", fields)?;
        object.serialize_field("code", self.code)?;
        object.serialize_field("severity", &self.severity)?;
        object.serialize_field("message", &self.message)?;
        object.serialize_field("file", &*self.file)?;
        object.serialize_field("line", &self.start.line)?;
        object.serialize_field("column", &self.start.column)?;
        object.serialize_field("end_line", &self.end.line)?;
        object.serialize_field("end_column", &self.end.column)?;
        match &self.help {
            Some(help) => object.serialize_field("help", help)?,
            None => object.skip_field("help")?,
        }
        object.end()
    }
}

/// A bounded list of problems. Keeps the first [`Diagnostics::CAPACITY`] and counts the rest, so that a
/// hostile text cannot grow the list beyond its own size; a closing diagnostic states how many were omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    errors: usize,
    omitted: usize,
}

impl Diagnostics {
    /// Maximum number of problems kept.
    pub const CAPACITY: usize = 1000;

    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a problem.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        if self.kept.len() < Self::CAPACITY {
            self.kept.push(diagnostic);
        } else {
            self.omitted += 1;
        }
    }

    /// Whether any problem is an error, including omitted ones.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether no problem was found.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Number of problems found, including omitted ones.
    pub fn len(&self) -> usize {
        self.kept.len() + self.omitted
    }

    /// The kept problems in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.kept.iter()
    }

    /// All kept problems ordered by file and position, followed by one that states how many were omitted, if
    /// any.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        let by_place = |d: &Diagnostic| (d.file.clone(), d.span, d.severity);
        self.kept.sort_by_cached_key(by_place);
        if self.omitted > 0
            && let Some(last) = self.kept.last().cloned()
        {
            let severity = if self.has_errors() { Severity::Error } else { Severity::Warning };
            let message = format!("{} more problems are not shown", self.omitted);
            self.kept.push(Diagnostic { code: "too-many-problems", severity, message, help: None, ..last });
        }
        self.kept
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, more: I) {
        more.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(items: I) -> Self {
        let mut list = Self::new();
        list.extend(items);
        list
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    /// Same order as [`Diagnostics::into_sorted`].
    fn into_iter(self) -> Self::IntoIter {
        self.into_sorted().into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
