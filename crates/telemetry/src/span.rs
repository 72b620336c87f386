//! Finished spans.

use crate::attribute::Attribute;
use crate::id::{SpanId, TraceId};

/// The OTLP span kinds that Fusee uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside the process.
    Internal,
    /// A request to a server.
    Client,
}

/// A finished span.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// Trace that the span belongs to.
    pub trace: TraceId,
    /// Unique within the trace.
    pub id: SpanId,
    /// The span it belongs to.
    pub parent: Option<SpanId>,
    /// Operation and its object, as in `chat MODEL`.
    pub name: String,
    /// Client for model requests, internal for everything else.
    pub kind: SpanKind,
    /// Start in milliseconds since the Unix epoch.
    pub start_ms: i64,
    /// End in milliseconds since the Unix epoch.
    pub end_ms: i64,
    /// Attributes, in a fixed order.
    pub attributes: Vec<Attribute>,
    /// Span events: time, name, attributes.
    pub events: Vec<(i64, &'static str, Vec<Attribute>)>,
    /// Error message, if the operation failed.
    pub error: Option<String>,
}
