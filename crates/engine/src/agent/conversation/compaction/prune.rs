//! First tier of compaction: shortens results that the model no longer needs. Messages keep their positions,
//! so calls and results need no matching here. [`super::rule_summary`] removes entire turns.

use std::collections::HashMap;

use fusee_model::Message;

use super::CompactionDraft;
use super::call_effect::{CallKind, ReadKey};
use super::turns::{CallExchange, ConversationOutline};
use crate::agent::tool_calls::read_cache::UNCHANGED;

/// Replaces a read whose text appears again later.
const READ_AGAIN: &str = "[Read again later in this conversation; the newer text stands there.]";

/// Replaces a plan that a later one superseded.
const REPLANNED: &str = "[Replaced by a later plan.]";

/// Replaces the images of a result.
const IMAGES_OMITTED: &str = "[Its images are left out to save context.]";

/// Bytes kept of a long result. The tail gets more because it shows the outcome.
pub(super) const HEAD: usize = 400;
pub(super) const TAIL: usize = 600;

/// Results up to this many bytes are not cut; it would save little.
pub(super) const WHOLE: usize = 1_600;

/// A shorter text may be a refusal to read again, so it does not supersede a longer one.
const MIN_TEXT: usize = 512;

/// Results before the window that need special treatment.
pub(super) struct PriorContent {
    /// Results kept verbatim even if their turn is removed, as indices into the exchanges: the current plan
    /// and the sections that were opened.
    pub pinned: Vec<usize>,
    /// Older reads whose text appears later, oldest first, as indices into the exchanges.
    repeated: Vec<usize>,
    /// Superseded plans, oldest first, as indices into the exchanges.
    replanned: Vec<usize>,
}

impl PriorContent {
    /// Scans from the end, so that the newest copy of everything comes first.
    pub(super) fn new(outline: &ConversationOutline<'_>) -> PriorContent {
        let mut prior = PriorContent { pinned: Vec::new(), repeated: Vec::new(), replanned: Vec::new() };
        let mut newest: HashMap<ReadKey, usize> = HashMap::new();
        let mut planned = false;
        for (index, exchange) in outline.exchanges.iter().enumerate().rev() {
            let kind = CallKind::from_tool(exchange.name);
            if kind == CallKind::Plan && exchange.ok {
                if planned { &mut prior.replanned } else { &mut prior.pinned }.push(index);
                planned = true;
            }
            if !kind.reads() || !exchange.ok || [READ_AGAIN, UNCHANGED].contains(&exchange.content) {
                continue;
            }
            let Some(key) = ReadKey::from_exchange(kind, exchange) else { continue };
            match newest.get(&key) {
                Some(newer) if supersedes(&outline.exchanges[*newer], exchange, kind) => {
                    prior.repeated.push(index);
                }
                Some(_) => {}
                None => {
                    newest.insert(key, index);
                    if kind == CallKind::ReadSection {
                        prior.pinned.push(index);
                    }
                }
            }
        }
        prior.pinned.reverse();
        prior.repeated.reverse();
        prior.replanned.reverse();
        prior
    }
}

/// Whether the newer of two reads of the same thing supersedes the older one.
fn supersedes(newer: &CallExchange<'_>, older: &CallExchange<'_>, kind: CallKind) -> bool {
    // The second of two equal calls in one reply only refers to the first.
    if newer.turn == older.turn || newer.images < older.images {
        return false;
    }
    match kind {
        // The files share one size limit: a file that grew may have truncated another.
        CallKind::ReadFiles => newer.content == older.content,
        _ => newer.content.len() >= MIN_TEXT.min(older.content.len()),
    }
}

/// Shortens results before the window until the draft meets the target: those with the least loss first, then
/// oldest first.
pub(super) fn prune(
    draft: &mut CompactionDraft<'_>,
    outline: &ConversationOutline<'_>,
    prior: &PriorContent,
    window: usize,
) {
    let needless = prior.repeated.iter().map(|index| (*index, READ_AGAIN));
    let replaced = prior.replanned.iter().map(|index| (*index, REPLANNED));
    for (index, note) in needless.chain(replaced) {
        let exchange = &outline.exchanges[index];
        if draft.met() {
            return;
        }
        if exchange.turn < window {
            draft.shorten(exchange.at, note.to_owned());
        }
    }
    let mut pinned = prior.pinned.iter().copied().peekable();
    for (index, exchange) in outline.exchanges.iter().enumerate() {
        if draft.met() || exchange.turn >= window {
            return;
        }
        let is_pinned = pinned.next_if_eq(&index).is_some();
        if is_pinned || CallKind::from_tool(exchange.name).reads() {
            continue;
        }
        let now = draft.message(exchange.at);
        if now.text().len() > WHOLE {
            draft.shorten(exchange.at, ends(exchange.content, HEAD, TAIL));
        } else if !now.images().is_empty() {
            draft.shorten(exchange.at, format!("{}\n{IMAGES_OMITTED}", exchange.content));
        }
    }
}

/// Keeps this many bytes of head and tail around a note, cut at line ends if there are any nearby.
pub(super) fn ends(text: &str, head: usize, tail: usize) -> String {
    let head = head_end(text, head);
    let tail = tail_start(text, tail).max(head);
    let cut = tail - head;
    let lines = text[head..tail].lines().count();
    let unit = if lines == 1 { "line" } else { "lines" };
    let newline = if text[..head].ends_with('\n') { "" } else { "\n" };
    format!(
        "{}{newline}[{cut} bytes in {lines} {unit} cut to save context]\n{}",
        &text[..head],
        &text[tail..]
    )
}

fn head_end(text: &str, bytes: usize) -> usize {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match text[..end].rfind('\n') {
        Some(newline) if newline >= bytes / 2 => newline + 1,
        _ => end,
    }
}

fn tail_start(text: &str, bytes: usize) -> usize {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    match text[start..].find('\n') {
        Some(newline) if newline < bytes / 2 => start + newline + 1,
        _ => start,
    }
}

impl CompactionDraft<'_> {
    /// Replaces the content of a result, if that makes it smaller.
    fn shorten(&mut self, at: usize, content: String) {
        let Message::Tool { call_id, name, ok, .. } = &self.messages[at] else { return };
        let (call_id, name, images) = (call_id.clone(), name.clone(), Vec::new());
        let shorter = Message::Tool { call_id, name, content, ok: *ok, images };
        self.replace(at, shorter);
    }
}
