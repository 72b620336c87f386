//! Spans of a timeline: what a run spent its time on, to scale. Their number is bounded: in a long run, short neighbours
//! of one kind are merged, first the shortest.

use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of spans of a timeline.
pub(crate) const MOST_SPANS: usize = 2_000;

/// Spans are not merged over more milliseconds than this, which is longer than any run: what is left are more lanes
/// than spans.
const WIDEST_MS: i64 = 1 << 40;

/// What time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpanKind {
    /// From a request to the first piece of the reply; to its end if that was not measured.
    Model,
    /// From the first piece of a reply to its end.
    Output,
    /// A tool call.
    Tool,
    /// The delay before a request is sent again.
    Retry,
    /// Waiting for the user.
    User,
    /// The conversation was shortened.
    Compaction,
    /// A stage of a flow.
    Stage,
    /// A hook of the user or the project.
    Hook,
    /// A connection that a command asked for.
    Network,
}

/// A part of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Span {
    /// Index of the lane.
    pub(crate) lane: usize,
    /// What the time was spent on.
    pub(crate) kind: SpanKind,
    /// Start, in milliseconds since the run started.
    pub(crate) start: i64,
    /// End, in milliseconds since the run started.
    pub(crate) end: i64,
    /// Number of the event that shows it.
    pub(crate) seq: u64,
    /// Tool, stage or turn.
    pub(crate) label: String,
    /// Whether it ended with an error.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) failed: bool,
    /// How many spans were merged into this one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) count: u32,
}

/// Spans in the order in which they ended.
#[derive(Debug, Default)]
pub(crate) struct SpanList {
    spans: Vec<Span>,
    /// Neighbours within this many milliseconds are merged.
    resolution: i64,
}

impl SpanList {
    /// Adds a span; merges neighbours if there are too many.
    pub(crate) fn push(&mut self, span: Span) {
        self.spans.push(span);
        if self.spans.len() <= MOST_SPANS {
            return;
        }
        self.merge();
        // Leaves room, so that not every span that follows is merged on its own.
        while self.spans.len() > MOST_SPANS / 4 * 3 && self.resolution < WIDEST_MS {
            self.resolution = (self.resolution * 2).max(1);
            self.merge();
        }
    }

    /// Divides the newest span of a model's request into waiting and output.
    pub(crate) fn divide(&mut self, lane: usize, wait: i64) {
        let is_request = |span: &&mut Span| span.lane == lane && span.kind == SpanKind::Model;
        let Some(request) = self.spans.iter_mut().rev().find(is_request) else { return };
        let (middle, end) = (request.start.saturating_add(wait), request.end);
        // A span that was merged with others cannot be divided.
        if request.count > 1 || request.failed || middle >= end {
            return;
        }
        request.end = middle;
        let output = Span { kind: SpanKind::Output, start: middle, end, ..request.clone() };
        self.push(output);
    }

    /// All spans.
    pub(crate) fn all(&self) -> &[Span] {
        &self.spans
    }

    fn merge(&mut self) {
        let mut merged: Vec<Span> = Vec::with_capacity(self.spans.len());
        // The newest span of each lane, kind and outcome, so that interleaved ones merge as well.
        let mut newest: Vec<((usize, SpanKind, bool), usize)> = Vec::new();
        for span in self.spans.drain(..) {
            let key = (span.lane, span.kind, span.failed);
            let last = newest.iter_mut().find(|(other, _)| *other == key);
            let fits = |other: &Span| span.end - other.start <= self.resolution;
            match last {
                Some((_, at)) if merged.get(*at).is_some_and(fits) => {
                    if let Some(other) = merged.get_mut(*at) {
                        other.end = other.end.max(span.end);
                        other.count += span.count;
                    }
                }
                Some((_, at)) => {
                    *at = merged.len();
                    merged.push(span);
                }
                None => {
                    newest.push((key, merged.len()));
                    merged.push(span);
                }
            }
        }
        self.spans = merged;
    }
}

fn one() -> u32 {
    1
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

#[cfg(test)]
mod tests;
