//! OpenTelemetry: runs as traces and metrics, sent over OTLP (HTTP, protobuf).
//!
//! A [`RunTrace`] turns the events of a run into spans with the names of the GenAI conventions; it needs nothing but
//! the events, so a run can be traced live or afterwards from its journal. The ids of spans follow from the run's id:
//! a resumed run continues its trace, and sending a span twice is harmless. An [`Exporter`] sends them; a collector
//! that is down costs a warning, never a run.

mod attribute;
mod exporter;
mod id;
mod metrics;
mod otlp;
mod protobuf;
mod settings;
mod span;
mod trace;

pub use attribute::{Attribute, AttributeValue};
pub use exporter::{ExportError, Exporter};
pub use id::{SpanId, TraceContext, TraceId};
pub use settings::TelemetrySettings;
pub use span::{SpanKind, TraceSpan};
pub use trace::{RunTrace, TracedRun};
