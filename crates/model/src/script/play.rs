//! Plays the reply of a line like a server: after its delay, in small fragments, and possibly cut off.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::line::ScriptLine;
use crate::{ErrorKind, ModelError, Reply, ReplyDelta};

/// Approximate size of a stream fragment in bytes.
const PIECE: usize = 24;

/// Plays `line` into `sink`.
pub(crate) async fn play(
    line: &ScriptLine,
    sink: &mut (dyn FnMut(ReplyDelta<'_>) + Send),
    cancel: &CancellationToken,
) -> Result<Reply, ModelError> {
    let cancelled = || ModelError { source_line: Some(line.number), ..ModelError::cancelled() };
    if line.delay_ms > 0 {
        let delay = tokio::time::sleep(Duration::from_millis(line.delay_ms));
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled()),
            () = delay => {}
        }
    } else if cancel.is_cancelled() {
        return Err(cancelled());
    }
    let reply = &line.reply;
    let reasoning = reply.reasoning.as_ref().map_or("", |reasoning| &reasoning.text);
    if line.error.is_none() || !reply.text.is_empty() || !reasoning.is_empty() {
        sink(ReplyDelta::Started);
    }
    pieces(reasoning).for_each(|piece| sink(ReplyDelta::Reasoning(piece)));
    if let Some(characters) = line.cut_after {
        let end = reply.text.char_indices().nth(characters).map_or(reply.text.len(), |(at, _)| at);
        pieces(&reply.text[..end]).for_each(|piece| sink(ReplyDelta::Text(piece)));
        let error = ModelError::new(ErrorKind::Cut, "the reply ended prematurely");
        return Err(ModelError { source_line: Some(line.number), ..error });
    }
    pieces(&reply.text).for_each(|piece| sink(ReplyDelta::Text(piece)));
    if let Some(error) = &line.error {
        return Err(error.clone());
    }
    for (index, call) in reply.tool_calls.iter().enumerate() {
        sink(ReplyDelta::ToolCall { index, name: &call.name });
        pieces(&call.arguments).for_each(|fragment| sink(ReplyDelta::ToolArguments { index, fragment }));
    }
    Ok(reply.clone())
}

/// Splits `text` into fragments of about [`PIECE`] bytes, after white space if possible.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .char_indices()
            .map(|(at, c)| (at + c.len_utf8(), c))
            .find(|(end, c)| (*end >= PIECE && c.is_whitespace()) || *end >= 2 * PIECE)
            .map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}
