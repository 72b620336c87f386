//! Last tier of compaction, for a conversation that the server rejected: shortens even the newest results,
//! longest first, until the rest fits.

use fusee_model::Message;

use super::prune::{HEAD, TAIL, WHOLE, ends};
use super::{Compacted, MessageCounter};

/// Shortens the results of a conversation, which may have been compacted, to `limit_tokens` in total. Returns
/// the compaction, or `None` if there is nothing to shorten.
pub(crate) fn fit(
    messages: &[Message],
    compacted: Option<Compacted>,
    limit_tokens: u64,
    count: MessageCounter<'_>,
) -> Option<Compacted> {
    let unchanged = || {
        let tokens = messages.iter().map(count).sum();
        let messages = messages.to_vec();
        Compacted { messages, items_removed: 0, tokens_before: tokens, tokens_after: tokens, summary: None }
    };
    let mut fitted = compacted.unwrap_or_else(unchanged);
    let is_long =
        |at: &usize| matches!(&fitted.messages[*at], Message::Tool { content, .. } if content.len() > WHOLE);
    let mut longest: Vec<usize> = (0..fitted.messages.len()).filter(is_long).collect();
    longest.sort_by_key(|at| std::cmp::Reverse(fitted.messages[*at].text().len()));
    for at in longest {
        let excess = fitted.tokens_after.saturating_sub(limit_tokens);
        let tokens = count(&fitted.messages[at]);
        let Message::Tool { content, .. } = &mut fitted.messages[at] else { continue };
        if excess == 0 || tokens == 0 {
            break;
        }
        let kept_tokens = tokens.saturating_sub(excess);
        let kept = (content.len() as u128 * u128::from(kept_tokens) / u128::from(tokens)) as usize;
        let kept = kept.clamp(HEAD + TAIL, WHOLE.max(content.len() * 3 / 4));
        *content = ends(content, kept * 2 / 5, kept * 3 / 5);
        fitted.tokens_after = fitted.tokens_after - tokens + count(&fitted.messages[at]).min(tokens);
        fitted.items_removed += 1;
    }
    (fitted.items_removed > 0).then_some(fitted)
}
