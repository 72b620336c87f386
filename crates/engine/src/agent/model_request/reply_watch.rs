//! Watches a reply as it is streamed, and stops it when nothing more is to be gained: it repeats itself, does not come
//! to an end, or has every file that the answer of a small model is about (`flow/complete_answer.rs`).

use fusee_model::{
    CancellationToken, Conversation as Messages, ErrorKind, RepetitionDetector, Reply, ReplyDelta as Piece,
    StopReason, Usage,
};

use super::attempt::AttemptResult;
use crate::agent::conversation::Conversation;
use crate::agent::conversation::known_files::KnownFiles;
use crate::agent::execution::Execution;
use crate::agent::flow::CompleteAnswer;

/// Bytes that any answer may have: about 2 500 tokens.
const SHORT_ANSWER: usize = 8 << 10;

/// Maximum bytes of one of several answers. A model that writes more than twice what it was shown does not come to
/// an end, and another answer is worth more than the rest of this one.
fn longest_answer(shown: &Messages) -> usize {
    let shown: usize = shown.messages().iter().map(|message| message.text().len()).sum();
    shown.saturating_mul(2).max(SHORT_ANSWER)
}

/// The rules of one reply, and what was seen of it.
pub(crate) struct ReplyWatch {
    stop: CancellationToken,
    /// Whether the arguments of calls are watched too. A large model may have to write a repetitive file.
    arguments: bool,
    text: String,
    detectors: [RepetitionDetector; 3],
    /// Maximum bytes of text, if bounded.
    longest: Option<usize>,
    /// What ends the answer, if that is known.
    complete: Option<CompleteAnswer>,
    /// Length of the text that completed the answer.
    completed_at: Option<usize>,
    /// Length of the text that repeated the files as they were.
    repeated_at: Option<usize>,
    /// Why the reply is stopped, and the length of the text worth keeping.
    stopped: Option<(StopReason, usize)>,
    /// Our own count, for a reply that is stopped before the server reports its usage.
    usage: Usage,
}

impl ReplyWatch {
    /// Watches the next reply of a task.
    pub(crate) fn new(run: &Execution<'_>, conversation: &Conversation<'_>, files: &KnownFiles) -> Self {
        let task = run.task;
        let is_sample = task.rules.sample.is_some();
        let request = task.rules.request.as_ref().unwrap_or(&task.request);
        let complete = (is_sample && task.rules.verify.is_some())
            .then(|| {
                let format = task.rules.edit_format;
                CompleteAnswer::new(request, format, &files.targets, &files.target_texts)
            })
            .flatten();
        Self {
            stop: run.cancel().child_token(),
            arguments: run.session().model.dialect().traits.small,
            text: String::new(),
            detectors: Default::default(),
            longest: is_sample.then(|| longest_answer(conversation.history.request())),
            complete,
            completed_at: None,
            repeated_at: None,
            stopped: None,
            usage: Usage { input_tokens: conversation.tokens(), ..Usage::default() },
        }
    }

    /// Cancelled when the reply is to be stopped.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Takes in a piece of the reply.
    pub(crate) fn see(&mut self, piece: &Piece<'_>) {
        let [text, reasoning, arguments] = &mut self.detectors;
        let repeated = match piece {
            Piece::Text(part) => {
                self.text.push_str(part);
                let repeats = text.push(part).map(|repetition| repetition.keep);
                repeats.or_else(|| self.longest.filter(|longest| self.text.len() > *longest))
            }
            Piece::Reasoning(part) => reasoning.push(part).map(|_| self.text.len()),
            Piece::ToolArguments { fragment, .. } if self.arguments => {
                arguments.push(fragment).map(|_| self.text.len())
            }
            _ => None,
        };
        if !matches!(piece, Piece::Waiting { .. } | Piece::Started) {
            // Servers of small models send a piece for each token.
            self.usage.output_tokens += 1;
        }
        if self.stopped.is_some() {
            return;
        }
        self.stopped = match repeated {
            Some(keep) => Some((StopReason::Length, keep)),
            None => self.complete_until(piece).map(|keep| (StopReason::End, keep)),
        };
        if self.stopped.is_some() {
            self.stop.cancel();
        }
    }

    /// The length of the complete answer, once the model goes on after it. A reply that ends there reports its usage.
    fn complete_until(&mut self, piece: &Piece<'_>) -> Option<usize> {
        let Piece::Text(part) = piece else { return None };
        if self.completed_at.is_none() && part.contains('\n') {
            let complete = self.complete.as_ref()?;
            let end = self.text.rfind('\n')? + 1;
            let text = &self.text[..end];
            if complete.is_in(text) {
                self.completed_at = Some(end);
            } else if complete.is_repeated_in(text) {
                self.repeated_at = Some(end);
            } else if let Some(at) = self.repeated_at
                && complete.goes_on_with_tests(&text[at..])
            {
                return Some(at);
            }
        }
        self.completed_at.filter(|end| !self.text[*end..].trim().is_empty())
    }

    /// The part of the reply worth keeping, if it was stopped.
    pub(crate) fn stopped_reply(self, result: &AttemptResult) -> Option<Reply> {
        let cancelled =
            matches!(result, AttemptResult::Error { error, .. } if error.kind == ErrorKind::Cancelled);
        let (stop, keep) = self.stopped.filter(|_| cancelled)?;
        let mut text = self.text;
        let end = (0..=keep.min(text.len())).rev().find(|end| text.is_char_boundary(*end))?;
        text.truncate(end);
        if stop == StopReason::End {
            text.truncate(text.trim_end().len());
        }
        Some(Reply { text, stop, usage: Some(self.usage), ..Reply::default() })
    }
}
