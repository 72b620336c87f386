//! Markup that starts with `<`: tags, comments, CDATA sections, processing instructions, and rejected DTDs.

use super::super::tree::{XmlAttribute, XmlElement};
use super::{Reader, is_legal, is_space};
use crate::Span;

/// Maximum number of attributes per element; beyond it, an error is reported and the rest of the tag is
/// skipped.
const MAX_ATTRIBUTES: usize = 256;

impl<'s> Reader<'s> {
    /// Reads one piece of markup. The remaining text starts with `<`.
    pub(super) fn mark(&mut self) {
        let rest = self.rest();
        if rest.starts_with("<!--") {
            self.comment();
        } else if rest.starts_with("<![CDATA[") {
            self.cdata();
        } else if rest.starts_with("<!") {
            self.doctype();
        } else if rest.starts_with("<?") {
            self.instruction();
        } else if rest.starts_with("</") {
            self.end_tag();
        } else if rest[1..].starts_with(begins_name) {
            self.start_tag();
        } else {
            let message = "`<` does not start a tag here".to_owned();
            let help = "write `&lt;` for a literal `<`, or put the text into `<![CDATA[ … ]]>`".to_owned();
            self.report("xml-text", Span::new(self.at, self.at + 1), message, Some(help));
            let place = Span::new(self.at, self.at + 1);
            self.at += 1;
            self.add_text("<".to_owned(), place);
        }
    }

    /// Skips past `close`, or reports an error and skips to the end of the text; returns the span in between.
    fn up_to(&mut self, skip: usize, close: &str, what: &str) -> Span {
        let start = self.at + skip;
        match self.text.get(start..).and_then(|rest| rest.find(close)) {
            Some(length) => {
                self.at = start + length + close.len();
                Span::new(start, start + length)
            }
            None => {
                let message = format!("{what} is never closed");
                let help = format!("close it with `{close}`");
                self.report("xml-unclosed", Span::new(self.at, start), message, Some(help));
                self.at = self.text.len();
                Span::new(start, self.text.len())
            }
        }
    }

    fn comment(&mut self) {
        let inside = self.up_to(4, "-->", "this comment");
        let text = &self.text[inside.range()];
        if let Some(at) = text.find("--").or_else(|| text.ends_with('-').then(|| text.len() - 1)) {
            let at = inside.start() + at;
            let message = "`--` is not allowed in a comment".to_owned();
            self.report("xml-comment", Span::new(at, (at + 2).min(self.text.len())), message, None);
        }
        self.check_characters(inside);
    }

    fn cdata(&mut self) {
        let start = self.at;
        let inside = self.up_to(9, "]]>", "this CDATA section");
        self.check_characters(inside);
        if self.open.is_empty() && self.skipped == 0 {
            let message = "text outside the root element".to_owned();
            return self.report("xml-text-outside", Span::new(start, self.at), message, None);
        }
        let text = self.text[inside.range()].replace("\r\n", "\n").replace('\r', "\n");
        self.add_text(text, inside);
    }

    fn check_characters(&mut self, span: Span) {
        let text = &self.text[span.range()];
        for (at, c) in text.char_indices().filter(|(_, c)| !is_legal(*c)) {
            let place = Span::new(span.start() + at, span.start() + at + c.len_utf8());
            let message = format!("character U+{:04X} is not allowed in XML", u32::from(c));
            self.report("xml-character", place, message, None);
        }
    }

    /// Rejects `<!DOCTYPE …>` and other `<!` declarations and skips them, including bracketed parts.
    fn doctype(&mut self) {
        let start = self.at;
        let (mut depth, mut quote) = (0_u32, None);
        let mut end = self.text.len();
        for (at, c) in self.rest().char_indices() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, '[' | '<') => depth += 1,
                (None, ']') => depth = depth.saturating_sub(1),
                (None, '>') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        end = start + at + 1;
                        break;
                    }
                }
                _ => {}
            }
        }
        self.at = end;
        let first_line = self.text[start..end].lines().next().unwrap_or_default().len();
        let message = "DTDs and entity declarations are not allowed".to_owned();
        let help = "remove the declaration".to_owned();
        self.report("xml-dtd", Span::new(start, start + first_line), message, Some(help));
    }

    fn instruction(&mut self) {
        let start = self.at;
        let inside = self.up_to(2, "?>", "this processing instruction");
        let text = &self.text[inside.range()];
        let target = text.split(is_space).next().unwrap_or_default();
        if target.eq_ignore_ascii_case("xml") && start > 0 {
            let message = "the declaration `<?xml … ?>` is only allowed at the start of the file".to_owned();
            self.report("xml-declaration", Span::new(start, self.at), message, None);
        } else if target == "xml" && !text.contains("version") {
            let message = "the declaration `<?xml … ?>` has no version".to_owned();
            let help = "write `<?xml version=\"1.0\" encoding=\"UTF-8\"?>`".to_owned();
            self.report("xml-declaration", Span::new(start, self.at), message, Some(help));
        } else if !target.starts_with(begins_name) {
            let message = "a processing instruction needs a name".to_owned();
            self.report("xml-instruction", Span::new(start, self.at), message, None);
        }
    }

    fn end_tag(&mut self) {
        let start = self.at;
        self.at += 2;
        let name = self.name();
        self.spaces();
        if self.rest().starts_with('>') {
            self.at += 1;
        } else {
            let message = format!("`</{name}` is missing its `>`");
            self.report("xml-tag", Span::new(start, self.at), message, None);
            let skipped = self.rest().find(['<', '>']).unwrap_or(self.rest().len());
            self.at += skipped;
            if self.rest().starts_with('>') {
                self.at += 1;
            }
        }
        self.end(name, Span::new(start, self.at));
    }

    fn start_tag(&mut self) {
        let start = self.at;
        self.at += 1;
        let name_start = self.at;
        let name = self.name().to_owned();
        let name_span = Span::new(name_start, self.at);
        let mut attributes: Vec<XmlAttribute> = Vec::new();
        let closed = loop {
            let spaced = self.spaces();
            let rest = self.rest();
            if rest.starts_with('>') {
                self.at += 1;
                break false;
            }
            if rest.starts_with("/>") {
                self.at += 2;
                break true;
            }
            if rest.is_empty() || rest.starts_with('<') || attributes.len() >= MAX_ATTRIBUTES {
                let message = match attributes.len() >= MAX_ATTRIBUTES {
                    true => {
                        format!("`<{name}` has more than {MAX_ATTRIBUTES} attributes; the rest is ignored")
                    }
                    false => format!("the tag `<{name}` is missing its `>`"),
                };
                self.report("xml-tag", Span::new(start, self.at), message, None);
                if attributes.len() >= MAX_ATTRIBUTES {
                    let end = rest.find('>').unwrap_or(rest.len());
                    self.at += (end + 1).min(rest.len());
                    break rest[..end].ends_with('/');
                }
                break false;
            }
            if !rest.starts_with(begins_name) {
                self.stray(start);
                continue;
            }
            if !spaced {
                let message = "missing space before this attribute".to_owned();
                self.report("xml-attribute", Span::new(self.at, self.at + 1), message, None);
            }
            if let Some(attribute) = self.attribute() {
                self.add_attribute(&mut attributes, attribute);
            }
        };
        let tag_span = Span::new(start, self.at);
        self.begin(XmlElement { name, name_span, tag_span, attributes, content: Vec::new() }, closed);
    }

    /// Reports an unexpected token in a tag and skips to where the next attribute can start.
    fn stray(&mut self, start: usize) {
        let rest = self.rest();
        let length = rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| is_space(*c) || matches!(c, '>' | '<' | '/'))
            .map_or(rest.len(), |(at, _)| at);
        let shown: String = rest[..length].chars().take(20).collect();
        let message = format!("unexpected `{}` in a tag", shown.escape_default());
        self.report("xml-tag", Span::new(self.at, self.at + length), message, None);
        debug_assert!(self.at + length > start, "the reader must advance");
        self.at += length;
    }

    fn add_attribute(&mut self, attributes: &mut Vec<XmlAttribute>, attribute: XmlAttribute) {
        if attributes.iter().any(|other| other.name == attribute.name) {
            let message = format!("duplicate attribute `{}`", attribute.name);
            self.report("xml-duplicate-attribute", attribute.name_span, message, None);
        } else {
            attributes.push(attribute);
        }
    }

    fn attribute(&mut self) -> Option<XmlAttribute> {
        let name_start = self.at;
        let name = self.name().to_owned();
        let name_span = Span::new(name_start, self.at);
        let before = self.at;
        self.spaces();
        if !self.rest().starts_with('=') {
            self.at = before;
            let help = format!("write `{name}=\"…\"`");
            let message = format!("the attribute `{name}` has no value");
            self.report("xml-attribute", name_span, message, Some(help));
            return None;
        }
        self.at += 1;
        self.spaces();
        let quote = self.rest().chars().next().filter(|c| matches!(c, '"' | '\''));
        let Some(quote) = quote else {
            let length = self.rest().find(|c: char| is_space(c) || matches!(c, '>' | '<')).unwrap_or(0);
            let span = Span::new(self.at, self.at + length);
            self.at += length;
            let message = format!("the value of `{name}` is not quoted");
            self.report("xml-attribute", span, message, Some(format!("write `{name}=\"…\"`")));
            let value = self.text[span.range()].to_owned();
            return Some(XmlAttribute { name, name_span, value, value_span: span });
        };
        self.at += 1;
        let start = self.at;
        let end = self.rest().find(quote).map(|length| start + length);
        // `<` is not allowed in a value, so a quote after one belongs to another tag.
        let limit = self.rest().find('<').map(|length| start + length);
        let (end, found) = match (end, limit) {
            (Some(end), None) => (end, true),
            (Some(end), Some(limit)) if end < limit => (end, true),
            (_, limit) => (limit.unwrap_or(self.text.len()), false),
        };
        let value_span = Span::new(start, end);
        self.at = end + usize::from(found);
        if !found {
            let message = format!("the value of `{name}` has no closing quote, or contains a `<`");
            let help = "write `&lt;` for a literal `<`".to_owned();
            self.report("xml-attribute", Span::new(name_start, start), message, Some(help));
        }
        let value = self.resolved(start, end).replace(['\n', '\t'], " ");
        Some(XmlAttribute { name, name_span, value, value_span })
    }

    fn name(&mut self) -> &'s str {
        let rest = self.rest();
        let length = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
        let name = &self.text[self.at..self.at + length];
        self.at += length;
        name
    }

    /// Skips white space; returns whether there was any.
    fn spaces(&mut self) -> bool {
        let rest = self.rest();
        let length = rest.len() - rest.trim_start_matches(is_space).len();
        self.at += length;
        length > 0
    }
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | ':')
}

fn continues_name(c: char) -> bool {
    begins_name(c) || c.is_numeric() || matches!(c, '-' | '.' | '\u{B7}')
}
