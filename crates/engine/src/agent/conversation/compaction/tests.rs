//! Small conversations before and after a compaction, with the helpers to build and render them.

mod prune;
mod rule_summary;

use std::fmt::Write;

use fusee_model::{Image, Message, ToolCall};

use super::validity::check_conversation;
use super::{Compacted, CompactionRetention, compact};

const GOAL_ONLY: CompactionRetention =
    CompactionRetention { first_user_messages: 1, recent_tokens: 0, request: None };

/// Counts one token per byte, so that sizes in these tests are easy to verify.
fn bytes(message: &Message) -> u64 {
    let size = match message {
        Message::User { text, .. } => text.len(),
        Message::Tool { content, images, .. } => content.len() + images.len() * Image::TEXT_BYTES,
        Message::Assistant { text, tool_calls, .. } => {
            text.len() + tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
        }
    };
    size as u64
}

fn total(messages: &[Message]) -> u64 {
    messages.iter().map(bytes).sum()
}

/// Builds a conversation step by step with increasing ids.
#[derive(Clone, Default)]
struct Talk {
    messages: Vec<Message>,
    calls: usize,
}

impl Talk {
    fn about(goal: &str) -> Self {
        Talk::default().user(goal)
    }

    fn user(mut self, text: &str) -> Self {
        self.messages.push(Message::user(text.to_owned()));
        self
    }

    fn says(mut self, text: &str) -> Self {
        self.messages.push(Message::Assistant {
            text: text.to_owned(),
            reasoning: None,
            tool_calls: Vec::new(),
        });
        self
    }

    /// Adds a call to the last reply if that has no result yet, otherwise to a new one.
    fn calls(mut self, name: &str, arguments: &str) -> Self {
        let call = ToolCall {
            id: format!("c{}", self.calls),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        self.calls += 1;
        if !matches!(self.messages.last(), Some(Message::Assistant { .. })) {
            self = self.says("");
        }
        if let Some(Message::Assistant { tool_calls, .. }) = self.messages.last_mut() {
            tool_calls.push(call);
        }
        self
    }

    /// Adds the results of the last reply's calls.
    fn gets(mut self, results: &[&str]) -> Self {
        let Some(Message::Assistant { tool_calls, .. }) = self.messages.last() else {
            panic!("results without calls")
        };
        let answers: Vec<Message> = tool_calls
            .iter()
            .zip(results)
            .map(|(call, content)| Message::Tool {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: (*content).to_owned(),
                ok: !content.starts_with("ERROR"),
                images: vec![],
            })
            .collect();
        self.messages.extend(answers);
        self
    }

    /// Adds an image to the last result.
    fn shows(mut self, data: &str) -> Self {
        if let Some(Message::Tool { images, .. }) = self.messages.last_mut() {
            images.push(Image { media_type: "image/png".to_owned(), data: data.into() });
        }
        self
    }

    fn to(&self, target: u64, keep: CompactionRetention) -> Option<Compacted> {
        let compacted = compact(&self.messages, &keep, target, &bytes)?;
        assert_eq!(check_conversation(&compacted.messages), Ok(()));
        assert_eq!(compacted.tokens_before, total(&self.messages));
        assert_eq!(compacted.tokens_after, total(&compacted.messages));
        Some(compacted)
    }

    fn compacted(&self, target: u64) -> Compacted {
        self.to(target, GOAL_ONLY).expect("it gets smaller")
    }
}

/// Renders a conversation as text; long runs of one letter are abbreviated.
fn shown(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let _ = match message {
            Message::User { text: said, .. } => writeln!(text, "user: {}", brief(said)),
            Message::Assistant { text: said, tool_calls, reasoning } => {
                let thought = if reasoning.is_some() { " (thought)" } else { "" };
                let _ = writeln!(text, "{}", format!("model:{thought} {}", brief(said)).trim_end());
                tool_calls.iter().try_for_each(|call| {
                    writeln!(text, "  call {} {} {}", call.id, call.name, brief(&call.arguments))
                })
            }
            Message::Tool { call_id, content, ok, images, .. } => {
                let failed = if *ok { "" } else { " failed" };
                let pictures: String =
                    images.iter().map(|image| format!(" <image {}>", image.data)).collect();
                writeln!(text, "  result {call_id}{failed} {}{pictures}", brief(content))
            }
        };
    }
    text
}

fn brief(text: &str) -> String {
    let mut out = String::new();
    let letters: Vec<char> = text.chars().collect();
    for run in letters.chunk_by(|a, b| a == b) {
        match run {
            [letter, ..] if run.len() > 20 => {
                let _ = write!(out, "<{} {letter}>", run.len());
            }
            _ => out.extend(run),
        }
    }
    out.replace('\n', "\n    ")
}

fn outcome(compacted: &Compacted) -> String {
    let Compacted { messages, items_removed, tokens_before, tokens_after, .. } = compacted;
    format!("{items_removed} removed, {tokens_before} -> {tokens_after}\n{}", shown(messages))
}

fn read(talk: Talk, path: &str, text: &str) -> Talk {
    talk.calls("read_file", &format!(r#"{{"path":"{path}"}}"#)).gets(&[text])
}
