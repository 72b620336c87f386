//! Streams the body of a call as it arrives: the same JSON fragments that a native tool call would produce,
//! line by line, so that a long file is seen growing. Concatenated they are the complete arguments of the
//! call, provided that the server enforces the grammar; otherwise the final reply decides.

use serde_json::{Map, Value};

use crate::ReplyDelta;
use crate::wire::stream::DeltaSink;

/// A body being received, up to the closing fence.
pub(super) struct BodyStream<'a> {
    header: &'a Map<String, Value>,
    field: &'a str,
    fence: &'a str,
    /// The prefilled beginning of the reply, which servers that do not stream echo.
    shown: &'a str,
    /// The incomplete last line.
    line: String,
    part: ReplyPart,
    began: bool,
    /// Body text reported so far.
    text: String,
}

/// The part of the reply being received.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplyPart {
    FirstLine,
    /// The echoed prefill, up to the opening fence.
    Echo,
    Block,
    Closed,
}

impl<'a> BodyStream<'a> {
    /// Starts a call with these other arguments. `None` if the model already gave the body there, in which
    /// case it is reported at the end.
    pub(super) fn new(
        header: &'a Map<String, Value>,
        field: &'a str,
        fence: &'a str,
        shown: &'a str,
    ) -> Option<Self> {
        (!header.contains_key(field)).then(|| Self {
            header,
            field,
            fence,
            shown,
            line: String::new(),
            part: ReplyPart::FirstLine,
            began: false,
            text: String::new(),
        })
    }

    /// Adds received text.
    pub(super) fn push(&mut self, text: &str, sink: &mut DeltaSink<'_>) {
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                self.report_line(sink);
            }
        }
    }

    /// Finishes the arguments and returns the complete body.
    pub(super) fn end(mut self, sink: &mut DeltaSink<'_>) -> String {
        self.report_line(sink);
        self.begin(sink);
        report_fragment("\"}", sink);
        self.text
    }

    fn report_line(&mut self, sink: &mut DeltaSink<'_>) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return;
        }
        let is_fence = line.starts_with(self.fence);
        self.part = match self.part {
            ReplyPart::FirstLine if line.trim_end() == self.shown => ReplyPart::Echo,
            ReplyPart::Echo if is_fence => {
                self.part = ReplyPart::Block;
                return;
            }
            ReplyPart::FirstLine | ReplyPart::Block if is_fence => ReplyPart::Closed,
            ReplyPart::FirstLine => ReplyPart::Block,
            part => part,
        };
        if self.part == ReplyPart::Block {
            self.begin(sink);
            self.text.push_str(&line);
            let quoted = Value::String(line).to_string();
            report_fragment(&quoted[1..quoted.len() - 1], sink);
        }
    }

    fn begin(&mut self, sink: &mut DeltaSink<'_>) {
        if !std::mem::replace(&mut self.began, true) {
            let mut arguments = self.header.clone();
            arguments.insert(self.field.to_owned(), Value::String(String::new()));
            let whole = Value::Object(arguments).to_string();
            // Without the closing quotation mark and brace.
            report_fragment(&whole[..whole.len() - 2], sink);
        }
    }
}

fn report_fragment(fragment: &str, sink: &mut DeltaSink<'_>) {
    sink(ReplyDelta::ToolArguments { index: 0, fragment });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The fragments reported for a body that arrives in these pieces.
    fn reported_fragments(header: &Value, pieces: &[&str]) -> Vec<String> {
        let mut fragments = Vec::new();
        let mut sink = |delta: ReplyDelta<'_>| match delta {
            ReplyDelta::ToolArguments { index: 0, fragment } => fragments.push(fragment.to_owned()),
            other => panic!("{other:?}"),
        };
        let mut stream =
            BodyStream::new(header.as_object().unwrap(), "content", "```", "{the header}").unwrap();
        pieces.iter().for_each(|piece| stream.push(piece, &mut sink));
        let body = stream.end(&mut sink);
        let mut whole = header.clone();
        whole["content"] = body.into();
        assert_eq!(fragments.concat(), whole.to_string());
        fragments
    }

    #[test]
    fn a_line_is_told_as_soon_as_it_is_whole() {
        let header = json!({"path": "a.py"});
        assert_eq!(
            reported_fragments(&header, &["def f", "():\n    ", "return \"x\"\n``", "`\n"]),
            [r#"{"path":"a.py","content":""#, r"def f():\n", r#"    return \"x\"\n"#, r#""}"#]
        );
        let echoed = ["{the head", "er}\n```python\ndef f():\n```\n"];
        assert_eq!(
            reported_fragments(&header, &echoed).concat(),
            r#"{"path":"a.py","content":"def f():\n"}"#
        );
        assert_eq!(reported_fragments(&json!({}), &["```\n"]), [r#"{"content":""#, r#""}"#]);
    }

    proptest! {
        #[test]
        fn the_pieces_together_are_the_call(
            lines in proptest::collection::vec("[ `<]{0,2}[^`\n]{0,12}", 0..8),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let stream = format!("{body}```\n");
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).filter(|at| stream.is_char_boundary(*at)).collect();
            at.extend([0, stream.len()]);
            at.sort_unstable();
            let pieces: Vec<&str> = at.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            let header = json!({"path": "ä.py", "all": true});
            let whole = json!({"path": "ä.py", "all": true, "content": body}).to_string();
            prop_assert_eq!(reported_fragments(&header, &pieces).concat(), whole);
        }
    }
}
