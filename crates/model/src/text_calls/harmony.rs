//! The channels of gpt-oss, passed through by servers that do not parse them:
//! `<|channel|>analysis<|message|>…<|end|>`, `<|channel|>commentary to=functions.NAME
//! …<|message|>{…}<|call|>`, `<|channel|>final<|message|>…`.

use super::{TextCall, TextCalls, bare_name};

pub(super) const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const ENDS: &[&str] = &["<|end|>", "<|call|>", "<|return|>", "<|start|>", CHANNEL];

pub(super) fn find(text: &str) -> Option<TextCalls> {
    // They start the reply, with or without the role before them.
    let begins = text.trim_start().strip_prefix("<|start|>assistant").unwrap_or(text.trim_start());
    if !begins.starts_with(CHANNEL) {
        return None;
    }
    let mut found = TextCalls::default();
    let mut rest = begins;
    while let Some(at) = rest.find(CHANNEL) {
        rest = &rest[at + CHANNEL.len()..];
        let Some((header, after)) = rest.split_once(MESSAGE) else { break };
        let end = ENDS.iter().filter_map(|end| after.find(end)).min().unwrap_or(after.len());
        let (content, tail) = after.split_at(end);
        found.take(header, content);
        rest = tail;
    }
    found.text = found.text.trim().to_owned();
    Some(found)
}

impl TextCalls {
    fn take(&mut self, header: &str, content: &str) {
        let target = header.split_whitespace().find_map(|word| word.strip_prefix("to="));
        if let Some(name) = target {
            // A recipient may be followed by a marker.
            let name = bare_name(name.split("<|").next().unwrap_or(name));
            self.calls.push(TextCall { name: name.to_owned(), arguments: content.trim().to_owned() });
            return;
        }
        let into =
            if header.trim_start().starts_with("final") { &mut self.text } else { &mut self.reasoning };
        if !into.is_empty() {
            into.push('\n');
        }
        into.push_str(content.trim());
    }
}
