//! Separates reasoning, which a model writes between tags before its answer, from the answer. Servers do this
//! themselves.

pub(super) const OPEN: &str = "<think>";
pub(super) const CLOSE: &str = "</think>";

/// A fragment of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReasoningPart<'a> {
    Thought(&'a str),
    Said(&'a str),
}

/// Splits a reply into reasoning and answer as it arrives.
pub(super) struct ReasoningSplitter {
    place: Place,
    /// Text that may still turn out to be part of a tag.
    held: String,
}

#[derive(Clone, Copy)]
enum Place {
    /// Only white space or a prefix of the opening tag so far.
    Beginning,
    Inside,
    /// Reasoning has ended; white space before the answer belongs to neither.
    Between,
    Answer,
}

impl ReasoningSplitter {
    /// `opened` is true if the template already wrote the opening tag.
    pub(super) fn new(opened: bool) -> ReasoningSplitter {
        ReasoningSplitter {
            place: if opened { Place::Inside } else { Place::Beginning },
            held: String::new(),
        }
    }

    pub(super) fn take(&mut self, piece: &str, sink: &mut dyn FnMut(ReasoningPart<'_>)) {
        self.held.push_str(piece);
        loop {
            match self.place {
                Place::Beginning => {
                    let begun = self.held.trim_start();
                    if let Some(rest) = begun.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.place = Place::Inside;
                    } else if OPEN.starts_with(begun) {
                        return;
                    } else {
                        self.place = Place::Answer;
                    }
                }
                Place::Inside => {
                    if let Some((thought, rest)) = self.held.split_once(CLOSE) {
                        report_part(thought, ReasoningPart::Thought, sink);
                        self.held = rest.to_owned();
                        self.place = Place::Between;
                    } else {
                        let sure = self.held.len() - partial_close_len(&self.held);
                        report_part(&self.held[..sure], ReasoningPart::Thought, sink);
                        self.held.drain(..sure);
                        return;
                    }
                }
                Place::Between => {
                    self.held = self.held.trim_start().to_owned();
                    if self.held.is_empty() {
                        return;
                    }
                    self.place = Place::Answer;
                }
                Place::Answer => {
                    report_part(&std::mem::take(&mut self.held), ReasoningPart::Said, sink);
                    return;
                }
            }
        }
    }

    /// Flushes the remaining text at the end of the reply.
    pub(super) fn end(self, sink: &mut dyn FnMut(ReasoningPart<'_>)) {
        match self.place {
            Place::Inside => report_part(&self.held, ReasoningPart::Thought, sink),
            Place::Beginning | Place::Between | Place::Answer => {
                report_part(&self.held, ReasoningPart::Said, sink)
            }
        }
    }
}

fn report_part<'a>(
    text: &'a str,
    part: fn(&'a str) -> ReasoningPart<'a>,
    sink: &mut dyn FnMut(ReasoningPart<'_>),
) {
    if !text.is_empty() {
        sink(part(text));
    }
}

/// Number of bytes at the end of a text that may be the start of the closing tag.
fn partial_close_len(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|length| text.ends_with(&CLOSE[..*length])).unwrap_or_default()
}

#[cfg(test)]
mod tests;
