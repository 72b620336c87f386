//! The XML reader: one pass over the text with an explicit stack instead of recursion.
//!
//! `markup.rs` reads markup between `<` and `>`, `reference.rs` resolves references that start with `&`.

mod entities;
mod markup;

use super::tree::{ElementId, XmlContent, XmlDocument, XmlElement};
use crate::{Diagnostic, Diagnostics, Source, Span};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

/// Maximum text length in bytes; a longer text is rejected without being read.
pub const LARGEST: usize = 1 << 20;

/// Maximum nesting depth; deeper elements are reported and skipped.
const MAX_DEPTH: usize = 64;

/// Maximum number of elements; the first one beyond it is reported, and all further ones are skipped.
const MAX_ELEMENTS: usize = 20_000;

/// Reads `source`. If errors are reported, the document holds whatever could be read.
pub fn read(source: &Source) -> (XmlDocument, Diagnostics) {
    let mut reader = Reader::new(source);
    if source.text().len() > LARGEST {
        let length = source.text().len();
        // Callers stop reading a file at some size, so the actual size of a very large file is not known
        // here.
        let has = match length > 4 * LARGEST {
            true => "more than 4 MiB".to_owned(),
            false => format!("{length} bytes"),
        };
        let message = format!("the file is too large: {has}, at most {} MiB are allowed", LARGEST >> 20);
        reader.problems.push(Diagnostic::error("xml-too-large", source, Span::at(0), message));
        return (reader.document, reader.problems);
    }
    reader.whole();
    (reader.document, reader.problems)
}

pub(super) struct Reader<'s> {
    source: &'s Source,
    text: &'s str,
    at: usize,
    document: XmlDocument,
    /// Elements that are not closed yet, innermost last.
    open: Vec<ElementId>,
    /// Number of open elements that are skipped because they are too deep, too many or outside the root.
    skipped: usize,
    rooted: bool,
    full: bool,
    problems: Diagnostics,
}

impl<'s> Reader<'s> {
    fn new(source: &'s Source) -> Self {
        Self {
            source,
            text: source.text(),
            at: 0,
            document: XmlDocument::default(),
            open: Vec::new(),
            skipped: 0,
            rooted: false,
            full: false,
            problems: Diagnostics::new(),
        }
    }

    fn whole(&mut self) {
        while self.at < self.text.len() {
            if self.rest().starts_with('<') {
                self.mark();
            } else {
                self.characters();
            }
        }
        for id in std::mem::take(&mut self.open).into_iter().rev() {
            let element = self.document.element(id);
            let message = format!("`<{}>` is never closed", element.name);
            let help = format!("add `</{}>`", element.name);
            self.report("xml-unclosed", element.tag_span, message, Some(help));
        }
        if !self.rooted {
            let message = "the file contains no element".to_owned();
            self.report("xml-empty", Span::at(self.text.len()), message, None);
        }
    }

    fn rest(&self) -> &'s str {
        &self.text[self.at..]
    }

    fn report(&mut self, code: &'static str, span: Span, message: String, help: Option<String>) {
        self.problems.push(Diagnostic::error(code, self.source, span, message).maybe_help(help));
    }

    /// Reads text up to the next `<`.
    fn characters(&mut self) {
        let start = self.at;
        let end = self.rest().find('<').map_or(self.text.len(), |length| start + length);
        let raw = &self.text[start..end];
        self.at = end;
        if self.open.is_empty() && self.skipped == 0 {
            let outside = raw.trim_matches(is_space);
            if !outside.is_empty() {
                let first = start + raw.find(outside).unwrap_or(0);
                let message = "text outside the root element".to_owned();
                self.report("xml-text-outside", Span::new(first, first + outside.len()), message, None);
            }
            return;
        }
        if let Some(at) = raw.find("]]>") {
            let message = "`]]>` is not allowed in text; write `]]&gt;`".to_owned();
            self.report("xml-text", Span::new(start + at, start + at + 3), message, None);
        }
        let text = self.resolved(start, end);
        self.add_text(text, Span::new(start, end));
    }

    fn add_text(&mut self, more: String, place: Span) {
        if self.skipped > 0 || more.is_empty() {
            return;
        }
        let Some(parent) = self.open.last() else { return };
        let content = &mut self.document.elements[parent.0 as usize].content;
        match content.last_mut() {
            Some(XmlContent::Text { text, span }) => {
                text.push_str(&more);
                *span = span.to(place);
            }
            _ => content.push(XmlContent::Text { text: more, span: place }),
        }
    }

    /// Opens an element; a self-closing one is complete immediately.
    fn begin(&mut self, element: XmlElement, closed: bool) {
        let inside = !self.open.is_empty();
        if !inside && self.rooted {
            let message = format!("second root element `<{}>`; a file has exactly one", element.name);
            self.report("xml-second-root", element.tag_span, message, None);
        }
        if !self.keeps(&element) || (!inside && self.rooted) {
            self.skipped += usize::from(!closed);
            return;
        }
        self.rooted = true;
        let id = ElementId(u32::try_from(self.document.elements.len()).unwrap_or(u32::MAX));
        if let Some(parent) = self.open.last() {
            self.document.elements[parent.0 as usize].content.push(XmlContent::Element(id));
        }
        self.document.elements.push(element);
        if !closed {
            self.open.push(id);
        }
    }

    fn keeps(&mut self, element: &XmlElement) -> bool {
        if self.skipped > 0 {
            return false;
        }
        let (span, name) = (element.tag_span, &element.name);
        if self.open.len() >= MAX_DEPTH {
            let message = format!("`<{name}>` is nested deeper than {MAX_DEPTH} elements");
            self.report("xml-too-deep", span, message, None);
            return false;
        }
        if self.document.elements.len() >= MAX_ELEMENTS {
            if !self.full {
                let message = format!("more than {MAX_ELEMENTS} elements; ignored from `<{name}>` on");
                self.report("xml-too-many", span, message, None);
            }
            self.full = true;
            return false;
        }
        true
    }

    /// Handles an end tag.
    fn end(&mut self, name: &str, span: Span) {
        if self.skipped > 0 {
            // It does not matter which of the skipped elements it closes.
            self.skipped -= 1;
            return;
        }
        let place = self.open.iter().rposition(|id| self.document.element(*id).name == name);
        let Some(place) = place else {
            let open = self.open.last().map(|id| self.document.element(*id).name.clone());
            let help = open.map(|open| format!("the innermost open element is `<{open}>`"));
            self.report("xml-unopened", span, format!("`</{name}>` has no matching start tag"), help);
            return;
        };
        for id in self.open.split_off(place).into_iter().skip(1).rev() {
            let element = self.document.element(id);
            let message = format!("`<{}>` is not closed before `</{name}>`", element.name);
            let help = format!("add `</{}>`", element.name);
            self.report("xml-unclosed", element.tag_span, message, Some(help));
        }
    }
}

/// XML white space.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Whether XML allows this character.
pub(super) fn is_legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}
