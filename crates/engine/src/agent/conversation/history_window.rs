//! The history window: which part of a conversation a request contains. The full conversation is always
//! stored. If the settings ask for less, a second conversation is kept next to it and sent instead. It grows
//! with the full one and is rebuilt only when its window moves.

use fusee_model::{Conversation, Dialect, Message, TemporaryTail, ToolSpec};

use crate::agent::flow::{HistoryMode, HistorySettings};

/// A conversation and, if configured, the part of it that is sent.
pub(crate) struct HistoryWindow {
    whole: Conversation,
    part: Option<WindowPart>,
}

struct WindowPart {
    settings: HistorySettings,
    sent: Conversation,
    /// Number of messages of the full conversation already taken over.
    taken: usize,
    /// The first message of the window.
    from: usize,
    /// Tool results before this message of the full conversation are truncated.
    cut_before: usize,
    /// How often the window moved or older results were truncated since [`HistoryWindow::moved`] was last called.
    moves: u32,
}

impl HistoryWindow {
    pub(crate) fn new(
        dialect: Dialect,
        system: String,
        tools: Vec<ToolSpec>,
        settings: HistorySettings,
    ) -> Self {
        let tail = settings.mode == HistoryMode::Tail && settings.max_messages > 0;
        let part =
            (tail || settings.strip_thinking || settings.tool_truncate_chars > 0).then(|| WindowPart {
                settings,
                sent: Conversation::new(dialect, system.clone(), tools.clone()),
                taken: 0,
                from: 0,
                cut_before: 0,
                moves: 0,
            });
        Self { whole: Conversation::new(dialect, system, tools), part }
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.whole.push(message);
        if let Some(part) = &mut self.part {
            part.follow(&self.whole);
        }
    }

    /// The whole conversation, whatever the window leaves out.
    pub(crate) fn messages(&self) -> &[Message] {
        self.whole.messages()
    }

    pub(crate) fn system(&self) -> &str {
        self.whole.system()
    }

    pub(crate) fn tools(&self) -> &[ToolSpec] {
        self.whole.tools()
    }

    /// Replaces all messages after a compaction.
    pub(crate) fn rewrite(&mut self, messages: Vec<Message>) {
        self.whole.rewrite(messages);
        if let Some(part) = &mut self.part {
            (part.from, part.cut_before) = (0, 0);
            part.rebuild(&self.whole);
            part.follow(&self.whole);
        }
    }

    /// Replaces the system prompt and the tools.
    pub(crate) fn set_frame(&mut self, system: String, tools: Vec<ToolSpec>) {
        if let Some(part) = &mut self.part {
            part.sent.set_frame(system.clone(), tools.clone());
        }
        self.whole.set_frame(system, tools);
    }

    /// The conversation to send.
    pub(crate) fn request(&self) -> &Conversation {
        self.part.as_ref().map_or(&self.whole, |part| &part.sent)
    }

    /// Appends temporary text after the last message to be sent, until [`Self::take_back`].
    pub(crate) fn with_temporary_tail(&mut self, words: &str) -> TemporaryTail {
        self.sent().with_temporary_tail(words)
    }

    /// Removes the temporary text.
    pub(crate) fn take_back(&mut self, lent: TemporaryTail) {
        self.sent().take_back(lent);
    }

    fn sent(&mut self) -> &mut Conversation {
        self.part.as_mut().map_or(&mut self.whole, |part| &mut part.sent)
    }

    /// Encoded bytes of the conversation to send.
    pub(crate) fn encoded_len(&self) -> usize {
        self.request().encoded_len()
    }

    /// How often already sent content changed since the last call.
    pub(crate) fn moved(&mut self) -> u32 {
        self.part.as_mut().map_or(0, |part| std::mem::take(&mut part.moves))
    }
}

impl WindowPart {
    /// Takes over new messages, and moves the window if needed.
    fn follow(&mut self, whole: &Conversation) {
        let messages = whole.messages();
        for message in &messages[self.taken.min(messages.len())..] {
            self.sent.push(self.shaped(message, self.taken));
            self.taken += 1;
        }
        let window = self.window(messages);
        let cut = self.results_to_cut(messages);
        if window != self.from || cut != self.cut_before {
            (self.from, self.cut_before) = (window, cut);
            self.moves += 1;
            self.rebuild(whole);
        }
    }

    fn rebuild(&mut self, whole: &Conversation) {
        let messages = whole.messages();
        let first = (self.from > 0 && self.settings.keep_first).then(|| messages.first()).flatten();
        let rest = messages.iter().enumerate().skip(self.from);
        let shown = first.map(|message| (0, message)).into_iter().chain(rest);
        let shown = shown.map(|(at, message)| self.shaped(message, at)).collect();
        self.sent.rewrite(shown);
        self.taken = messages.len();
    }

    /// Start of the window. It moves by half its size at a time, to the start of a call with its results, and
    /// only when a reply is due, so that no call is separated from its results.
    fn window(&self, messages: &[Message]) -> usize {
        let most = self.settings.max_messages as usize;
        if self.settings.mode != HistoryMode::Tail || most == 0 || messages.len() - self.from <= most {
            return self.from;
        }
        let wanted = messages.len() - (most / 2).max(1);
        let is_start = |at: &usize| !matches!(messages[*at], Message::Tool { .. });
        let later = (wanted..messages.len()).find(is_start);
        let start = later.or_else(|| (self.from..wanted).rev().find(is_start));
        start.unwrap_or(self.from).max(self.from)
    }

    /// End of the truncated results; the newest ones are kept in full. With none kept, each result is
    /// truncated when it is first sent, and already sent content never changes.
    fn results_to_cut(&self, messages: &[Message]) -> usize {
        let keep = self.settings.tool_truncate_keep_last as usize;
        if self.settings.tool_truncate_chars == 0 || keep == 0 {
            return self.cut_before;
        }
        let results =
            messages.iter().enumerate().rev().filter(|(_, message)| matches!(message, Message::Tool { .. }));
        let most = self.settings.tool_truncate_chars as usize;
        let oldest_whole = results.map(|(at, _)| at).nth(keep - 1).unwrap_or(0);
        // Do not rebuild for results that are short anyway.
        let newly = self.cut_before..oldest_whole.max(self.cut_before);
        let shortens = messages.get(newly).into_iter().flatten().any(
            |message| matches!(message, Message::Tool { content, .. } if content.chars().nth(most).is_some()),
        );
        if shortens { oldest_whole } else { self.cut_before }
    }

    fn shaped(&self, message: &Message, at: usize) -> Message {
        let most = self.settings.tool_truncate_chars as usize;
        let cuts = most > 0 && (self.settings.tool_truncate_keep_last == 0 || at < self.cut_before);
        match message {
            Message::Assistant { text, tool_calls, .. } if self.settings.strip_thinking => {
                Message::Assistant { text: text.clone(), reasoning: None, tool_calls: tool_calls.clone() }
            }
            Message::Tool { call_id, name, content, ok, images } if cuts => Message::Tool {
                call_id: call_id.clone(),
                name: name.clone(),
                content: shortened(content, most),
                ok: *ok,
                images: images.clone(),
            },
            other => other.clone(),
        }
    }
}

fn shortened(content: &str, most: usize) -> String {
    match content.char_indices().nth(most) {
        None => content.to_owned(),
        Some((end, _)) => {
            let left = content[end..].chars().count();
            format!("{}\n[{left} more characters are left out here]", &content[..end])
        }
    }
}

#[cfg(test)]
mod tests;
