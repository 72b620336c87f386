//! Rule-based compaction: a pure function that shrinks a conversation, oldest part first, without a model.
//!
//! [`compact`] goes no further than its target needs. First, [`prune`] shortens results that are no longer
//! needed: reads whose text appears again later, plans that were replaced, then the middle of long outputs.
//! Next, [`rule_summary`] replaces entire turns with one line each. The goal, the current plan, opened sections
//! and the newest turns are kept verbatim, and a call is kept or removed together with its result. The turn
//! machine decides when to compact.

mod call_effect;
mod fit;
mod prune;
mod rule_summary;
mod turns;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
pub(crate) mod validity;

use std::ops::Range;

use fusee_model::Message;

pub(crate) use fit::fit;
pub(crate) use rule_summary::{in_words as summary_in_words, is_summary};

use prune::PriorContent;
use rule_summary::SummaryLines;
use turns::{CallExchange, ConversationOutline};

/// The parts to keep verbatim, besides the current plan and opened sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactionRetention<'a> {
    /// How many user messages, from the first, state the goal.
    pub(crate) first_user_messages: usize,
    /// The current request, which also states the goal when a conversation continues with a new request.
    pub(crate) request: Option<&'a str>,
    /// Token budget of the newest turns. The last finished turn and everything after it are kept regardless.
    pub(crate) recent_tokens: u64,
}

/// The result of a compaction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compacted {
    /// The remaining messages; a valid conversation if the input was one.
    pub(crate) messages: Vec<Message>,
    /// How many of the input messages were removed or shortened.
    pub(crate) items_removed: u32,
    /// Size of the input, as measured by the caller's counter.
    pub(crate) tokens_before: u64,
    /// Size of the result, as measured by the caller's counter.
    pub(crate) tokens_after: u64,
    /// The summary of the removed turns, if there is one.
    pub(crate) summary: Option<SummaryPlacement>,
}

/// Position and scope of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SummaryPlacement {
    /// Index of the summary in the remaining messages.
    pub(crate) at: usize,
    /// The input messages it summarises.
    pub(crate) turns: Range<usize>,
    /// Maximum size of the summary.
    pub(crate) bytes: usize,
}

/// Counts the tokens of a message.
pub(crate) type MessageCounter<'a> = &'a dyn Fn(&Message) -> u64;

/// Bounds of the summary size, which is otherwise an eighth of the target at four bytes a token. At the lower
/// bound it holds little more than its heading and a list of files.
const SUMMARY_BYTES: std::ops::RangeInclusive<u64> = 600..=12_000;

fn summary_bytes(target_tokens: u64) -> u64 {
    (target_tokens / 2).clamp(*SUMMARY_BYTES.start(), *SUMMARY_BYTES.end())
}

/// Compacts a conversation by the rules that tasks use, for programs that keep their own conversations. The
/// first message and the newest turns within `recent_tokens` are kept verbatim, and calls keep their results.
/// Four bytes count as a token. Returns `None` if the conversation already fits `target_tokens` or if less
/// than a tenth could be saved.
pub fn compact_by_rule(messages: &[Message], recent_tokens: u64, target_tokens: u64) -> Option<Vec<Message>> {
    let keep = CompactionRetention { first_user_messages: 1, request: None, recent_tokens };
    let count =
        |message: &Message| crate::agent::conversation::context_usage::size(message).div_ceil(4) as u64;
    compact(messages, &keep, target_tokens, &count).map(|compacted| compacted.messages)
}

/// Compacts a conversation to `target_tokens`, or as far as possible. Returns `None` if it already fits or if
/// less than a tenth could be saved, because a compaction invalidates the server's prefix cache.
///
/// `count` is called once for each message and once for each replacement.
pub(crate) fn compact(
    messages: &[Message],
    keep: &CompactionRetention<'_>,
    target_tokens: u64,
    count: MessageCounter<'_>,
) -> Option<Compacted> {
    let mut draft = CompactionDraft::new(messages, target_tokens, count);
    let tokens_before = draft.tokens;
    if draft.met() {
        return None;
    }
    let outline = ConversationOutline::new(messages, keep);
    let window = outline.window(&draft.costs, keep.recent_tokens);
    let prior = PriorContent::new(&outline);
    prune::prune(&mut draft, &outline, &prior, window);
    let cut = if draft.met() { RemovedTurns::none(&draft) } else { cut(&draft, &outline, &prior, window) };
    if cut.tokens.saturating_mul(10) > tokens_before.saturating_mul(9) {
        return None;
    }
    let tokens_after = cut.tokens;
    let summary = cut.turns.checked_sub(1).filter(|_| cut.summary.is_some()).map(|last| SummaryPlacement {
        at: outline.opening,
        turns: outline.opening..outline.turns[last].messages.end.max(outline.opening),
        bytes: usize::try_from(summary_bytes(target_tokens)).unwrap_or(usize::MAX),
    });
    let (messages, items_removed) = assemble(draft, &outline, cut);
    Some(Compacted { messages, items_removed, tokens_before, tokens_after, summary })
}

/// The conversation with some messages replaced by shorter ones and none removed.
struct CompactionDraft<'a> {
    messages: &'a [Message],
    replaced: Vec<Option<Message>>,
    costs: Vec<u64>,
    tokens: u64,
    target: u64,
    count: MessageCounter<'a>,
}

impl<'a> CompactionDraft<'a> {
    fn new(messages: &'a [Message], target: u64, count: MessageCounter<'a>) -> Self {
        let costs: Vec<u64> = messages.iter().map(count).collect();
        let tokens = costs.iter().sum();
        CompactionDraft { messages, replaced: vec![None; messages.len()], costs, tokens, target, count }
    }

    fn met(&self) -> bool {
        self.tokens <= self.target
    }

    /// The message at `at` in its current form.
    fn message(&self, at: usize) -> &Message {
        self.replaced[at].as_ref().unwrap_or(&self.messages[at])
    }

    fn replace(&mut self, at: usize, shorter: Message) {
        let cost = (self.count)(&shorter);
        if cost < self.costs[at] {
            self.tokens -= self.costs[at] - cost;
            self.costs[at] = cost;
            self.replaced[at] = Some(shorter);
        }
    }
}

/// How many of the oldest turns to remove, and their replacement.
struct RemovedTurns {
    turns: usize,
    summary: Option<Message>,
    tokens: u64,
    /// The parts of removed turns that are pinned.
    remains: Vec<KeptCalls>,
}

/// The part of a removed turn that is kept: a reply with only the pinned calls, and their results.
struct KeptCalls {
    turn: usize,
    reply: Message,
    results: Vec<usize>,
    /// Whether the reply is unchanged.
    whole: bool,
}

impl RemovedTurns {
    fn none(draft: &CompactionDraft<'_>) -> RemovedTurns {
        RemovedTurns { turns: 0, summary: None, tokens: draft.tokens, remains: Vec::new() }
    }
}

/// Finds the smallest number of turns to remove, oldest first. If removing all turns before the window is not
/// enough, returns the cut that makes the conversation smallest.
fn cut(
    draft: &CompactionDraft<'_>,
    outline: &ConversationOutline<'_>,
    prior: &PriorContent,
    window: usize,
) -> RemovedTurns {
    let remains = remains(draft, outline, prior, window);
    let without = tokens_without(draft, outline, &remains, window);
    let lines = notify(draft.messages, outline, window);
    let attempt = |turns: usize, bytes: u64| {
        let text = lines.render(turns, usize::try_from(bytes).unwrap_or(usize::MAX));
        let summary = text.map(Message::user);
        let tokens = without[turns] + summary.as_ref().map_or(0, draft.count);
        RemovedTurns { turns, summary, tokens, remains: Vec::new() }
    };
    let bytes = summary_bytes(draft.target);
    let mut best = attempt(window, bytes);
    if best.tokens > draft.target {
        let shortest = attempt(window, *SUMMARY_BYTES.start());
        for other in [shortest, RemovedTurns::none(draft)] {
            if other.tokens < best.tokens {
                best = other;
            }
        }
    } else {
        // Size decreases with the number of removed turns, except where a turn is shorter than its line;
        // `best` fits anyway.
        let mut too_few = 0;
        while best.turns - too_few > 1 {
            let middle = attempt(too_few + (best.turns - too_few) / 2, bytes);
            if middle.tokens <= draft.target { best = middle } else { too_few = middle.turns }
        }
    }
    best.remains = remains;
    best.remains.retain(|remains| remains.turn < best.turns);
    best
}

fn notify(messages: &[Message], outline: &ConversationOutline<'_>, window: usize) -> SummaryLines {
    let mut lines = SummaryLines::default();
    let mut exchanges = outline.exchanges.as_slice();
    for (index, turn) in outline.turns[..window].iter().enumerate() {
        let own = exchanges.iter().take_while(|exchange| exchange.turn == index).count();
        let (of_turn, rest) = exchanges.split_at(own);
        exchanges = rest;
        lines.notify(messages, turn, of_turn, |at| !outline.goal[at]);
    }
    lines
}

/// For each turn before the window that has pinned results, the part to keep.
fn remains(
    draft: &CompactionDraft<'_>,
    outline: &ConversationOutline<'_>,
    prior: &PriorContent,
    window: usize,
) -> Vec<KeptCalls> {
    let pinned = prior.pinned.iter().map(|index| &outline.exchanges[*index]);
    let pinned: Vec<_> = pinned.take_while(|exchange| exchange.turn < window).collect();
    let of_turn = |pinned: &[&CallExchange<'_>]| {
        let turn = pinned.first()?.turn;
        let at = outline.turns[turn].reply?;
        let reply = Message::Assistant {
            text: String::new(),
            reasoning: None,
            tool_calls: pinned.iter().map(|exchange| exchange.call.clone()).collect(),
        };
        let whole = reply == draft.messages[at];
        Some(KeptCalls { turn, reply, results: pinned.iter().map(|exchange| exchange.at).collect(), whole })
    };
    pinned.chunk_by(|a, b| a.turn == b.turn).filter_map(of_turn).collect()
}

/// Indexed by the number of removed turns: the tokens of everything else, without a summary.
fn tokens_without(
    draft: &CompactionDraft<'_>,
    outline: &ConversationOutline<'_>,
    remains: &[KeptCalls],
    window: usize,
) -> Vec<u64> {
    let mut remains = remains.iter().peekable();
    let mut tokens = draft.tokens;
    let mut without = vec![tokens];
    for (index, turn) in outline.turns[..window].iter().enumerate() {
        tokens -=
            turn.messages.clone().filter(|at| !outline.goal[*at]).map(|at| draft.costs[at]).sum::<u64>();
        if let Some(remains) = remains.next_if(|remains| remains.turn == index) {
            tokens += (draft.count)(&remains.reply);
            tokens += remains.results.iter().map(|at| draft.costs[*at]).sum::<u64>();
        }
        without.push(tokens);
    }
    without
}

/// Builds the remaining messages, and counts the input messages that were removed or shortened.
fn assemble(
    mut draft: CompactionDraft<'_>,
    outline: &ConversationOutline<'_>,
    cut: RemovedTurns,
) -> (Vec<Message>, u32) {
    let given = draft.messages;
    let mut left = Vec::with_capacity(given.len());
    let mut untouched = 0;
    left.extend_from_slice(&given[..outline.opening]);
    untouched += outline.opening;
    left.extend(cut.summary);
    let mut remains = cut.remains.into_iter().peekable();
    for (index, turn) in outline.turns.iter().enumerate() {
        if index >= cut.turns {
            for at in turn.messages.clone().filter(|at| *at >= outline.opening) {
                untouched += usize::from(draft.replaced[at].is_none());
                left.push(draft.replaced[at].take().unwrap_or_else(|| given[at].clone()));
            }
            continue;
        }
        for at in turn.messages.clone().filter(|at| *at >= outline.opening && outline.goal[*at]) {
            untouched += 1;
            left.push(given[at].clone());
        }
        if let Some(remains) = remains.next_if(|remains| remains.turn == index) {
            untouched += usize::from(remains.whole) + remains.results.len();
            left.push(remains.reply);
            left.extend(remains.results.into_iter().map(|at| given[at].clone()));
        }
    }
    let touched = given.len() - untouched;
    (left, u32::try_from(touched).unwrap_or(u32::MAX))
}
