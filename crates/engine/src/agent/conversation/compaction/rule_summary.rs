//! Second tier of compaction: replaces old turns with a rule-based summary, one line per turn. A later
//! compaction parses these lines and continues the list, so summaries are never nested.

mod files;
mod line;

use fusee_model::Message;

use super::turns::{CallExchange, ReplyTurn};
use files::Mentions;
use line::{BETWEEN, SHORTENED, SummaryLine};

const HEADING: &str = "[Earlier turns, summarised to save context. What was read there is no longer shown: read \
                       again what you need.]";

const BULLET: &str = "- ";

/// Whether a user message is a summary made by [`SummaryLines::render`].
pub(crate) fn is_summary(text: &str) -> bool {
    text.starts_with(HEADING)
}

/// Formats free text as a summary of about `bytes` bytes; `None` if there is no text. Lines are marked like
/// rule-based ones, so that a later compaction can continue the list.
pub(crate) fn in_words(text: &str, bytes: usize) -> Option<String> {
    let mut summary = HEADING.to_owned();
    let mut room = bytes;
    for line in text.lines() {
        let mut line = line.trim().trim_start_matches(['-', '*', '•', '#']).trim();
        while line.len() > room {
            line = line.char_indices().next_back().map_or("", |(at, _)| &line[..at]);
        }
        if !line.is_empty() {
            room = room.saturating_sub(line.len() + BULLET.len() + 1);
            summary.push('\n');
            summary.push_str(BULLET);
            summary.push_str(line);
        }
    }
    (summary.len() > HEADING.len()).then_some(summary)
}

/// Summary lines of the old turns, oldest first. A compaction tries several cuts, so cumulative totals are
/// computed once, when a line is added.
#[derive(Default)]
pub(super) struct SummaryLines {
    lines: Vec<SummaryLine>,
    /// For each line, the totals up to and including it.
    totals: Vec<Totals>,
    read: Mentions,
    changed: Mentions,
    /// For each turn, the number of lines up to and including it.
    upto: Vec<usize>,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    bytes: usize,
    turns: u32,
    /// Number of distinct files.
    read: u32,
    changed: u32,
}

impl SummaryLines {
    /// Adds the lines of one turn, for those of its messages that `untold` accepts. `exchanges` are the
    /// turn's own.
    pub(super) fn notify(
        &mut self,
        messages: &[Message],
        turn: &ReplyTurn,
        exchanges: &[CallExchange<'_>],
        untold: impl Fn(usize) -> bool,
    ) {
        for at in turn.messages.clone().filter(|at| untold(*at)) {
            match &messages[at] {
                Message::User { text, .. } if is_summary(text) => {
                    text.lines().filter_map(SummaryLine::read_back).for_each(|line| self.push(line));
                }
                Message::User { text, .. } => self.push(SummaryLine::of_user(text)),
                Message::Assistant { text, .. } => {
                    if let Some(line) = SummaryLine::of_reply(text, exchanges) {
                        self.push(line);
                    }
                }
                Message::Tool { .. } => {}
            }
        }
        self.upto.push(self.lines.len());
    }

    fn push(&mut self, mut line: SummaryLine) {
        let Totals { bytes, turns, .. } = self.totals.last().copied().unwrap_or_default();
        self.totals.push(Totals {
            bytes: bytes + length(&line),
            turns: turns.saturating_add(line.turns),
            read: self.read.add(self.lines.len(), std::mem::take(&mut line.read)),
            changed: self.changed.add(self.lines.len(), std::mem::take(&mut line.changed)),
        });
        self.lines.push(line);
    }

    /// Renders the summary of the first `turns` turns in about `bytes` bytes; `None` if there is nothing to
    /// summarise. Keeps the newest lines, and of the others only the file names.
    pub(super) fn render(&self, turns: usize, bytes: usize) -> Option<String> {
        let lines = &self.lines[..turns.checked_sub(1).map_or(0, |last| self.upto[last])];
        let all = self.totals[lines.len().checked_sub(1)?].bytes;
        let mut room = bytes.saturating_sub(HEADING.len());
        let mut first = 0;
        let mut shortened = None;
        if all > room {
            let share = room / 4;
            room -= share;
            first = lines.len();
            while first > 0 && length(&lines[first - 1]) <= room {
                first -= 1;
                room -= length(&lines[first]);
            }
            shortened = self.shorten(first, share);
        }
        let mut text = String::with_capacity(HEADING.len() + all.min(bytes));
        text.push_str(HEADING);
        let kept = lines[first..].iter().map(|line| line.text.as_str());
        for line in shortened.as_deref().into_iter().chain(kept) {
            text.push('\n');
            text.push_str(BULLET);
            text.push_str(line);
        }
        Some(text)
    }

    /// Condenses the first `lines` lines into one.
    fn shorten(&self, lines: usize, bytes: usize) -> Option<String> {
        let totals = self.totals[lines.checked_sub(1)?];
        let mut text = format!("{}{SHORTENED}", totals.turns);
        let mut room = bytes.saturating_sub(text.len());
        for (verb, mentions, count) in
            [("changed ", &self.changed, totals.changed), ("read ", &self.read, totals.read)]
        {
            let Some(listed) = files::list(mentions.newest_first(lines), count, room) else { continue };
            room = room.saturating_sub(listed.len());
            text.push_str(BETWEEN);
            text.push_str(verb);
            text.push_str(&listed);
        }
        Some(text)
    }
}

fn length(line: &SummaryLine) -> usize {
    BULLET.len() + line.text.len() + 1
}
