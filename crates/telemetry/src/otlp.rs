//! OTLP requests: spans and metrics as the messages of opentelemetry-proto, by their field numbers.

use crate::attribute::{Attribute, AttributeValue};
use crate::metrics::{Histogram, MetricPoint};
use crate::protobuf::Message;
use crate::span::{SpanKind, TraceSpan};

/// Resource that everything belongs to, as names and values.
pub(crate) type Resource = Vec<(String, String)>;

const SCOPE: &str = "fusee";

/// An `ExportTraceServiceRequest`.
pub(crate) fn trace_request(resource: &Resource, spans: &[TraceSpan]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |message| write_resource(message, resource));
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, write_scope);
            for span in spans {
                scope_spans.message(2, |message| write_span(message, span));
            }
        });
    });
    request.into_bytes()
}

/// An `ExportMetricsServiceRequest`.
pub(crate) fn metrics_request(
    resource: &Resource,
    histograms: &[Histogram],
    start_ms: i64,
    end_ms: i64,
) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |resource_metrics| {
        resource_metrics.message(1, |message| write_resource(message, resource));
        resource_metrics.message(2, |scope_metrics| {
            scope_metrics.message(1, write_scope);
            for histogram in histograms.iter().filter(|histogram| !histogram.points.is_empty()) {
                scope_metrics.message(2, |metric| {
                    metric.bytes(1, histogram.name.as_bytes());
                    metric.bytes(3, histogram.unit.as_bytes());
                    metric.message(9, |data| {
                        for point in &histogram.points {
                            data.message(1, |message| {
                                write_point(message, point, &histogram.bounds, start_ms, end_ms);
                            });
                        }
                        // Cumulative: every export replaces the one before.
                        data.whole(2, 2);
                    });
                });
            }
        });
    });
    request.into_bytes()
}

fn write_point(message: &mut Message, point: &MetricPoint, bounds: &[f64], start_ms: i64, end_ms: i64) {
    message.fixed(2, nanoseconds(start_ms));
    message.fixed(3, nanoseconds(end_ms));
    message.fixed(4, point.count);
    message.number(5, point.sum);
    message.packed(6, point.buckets.iter().copied());
    message.packed(7, bounds.iter().map(|bound| bound.to_bits()));
    write_attributes(message, 9, &point.attributes);
}

fn write_resource(message: &mut Message, resource: &Resource) {
    for (name, value) in resource {
        message.message(1, |pair| write_pair(pair, name, &AttributeValue::Text(value.clone())));
    }
}

fn write_scope(message: &mut Message) {
    message.bytes(1, SCOPE.as_bytes());
    message.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
}

fn write_span(message: &mut Message, span: &TraceSpan) {
    message.bytes(1, &span.trace.0);
    message.bytes(2, &span.id.0);
    if let Some(parent) = &span.parent {
        message.bytes(4, &parent.0);
    }
    message.bytes(5, span.name.as_bytes());
    message.whole(
        6,
        match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        },
    );
    message.fixed(7, nanoseconds(span.start_ms));
    message.fixed(8, nanoseconds(span.end_ms));
    write_attributes(message, 9, &span.attributes);
    for (at_ms, name, attributes) in &span.events {
        message.message(11, |event| {
            event.fixed(1, nanoseconds(*at_ms));
            event.bytes(2, name.as_bytes());
            write_attributes(event, 3, attributes);
        });
    }
    if let Some(error) = &span.error {
        message.message(15, |status| {
            status.bytes(2, error.as_bytes());
            status.whole(3, 2);
        });
    }
}

fn write_attributes(message: &mut Message, field: u32, attributes: &[Attribute]) {
    for (name, value) in attributes {
        message.message(field, |pair| write_pair(pair, name, value));
    }
}

fn write_pair(message: &mut Message, name: &str, value: &AttributeValue) {
    message.bytes(1, name.as_bytes());
    message.message(2, |any| write_value(any, value));
}

fn write_value(any: &mut Message, value: &AttributeValue) {
    match value {
        AttributeValue::Text(text) => any.bytes(1, text.as_bytes()),
        AttributeValue::Flag(flag) => any.whole(2, u64::from(*flag)),
        AttributeValue::Whole(number) => any.whole(3, number.cast_unsigned()),
        AttributeValue::Number(number) => any.number(4, *number),
        AttributeValue::Texts(texts) => any.message(5, |list| {
            for text in texts {
                list.message(1, |any| any.bytes(1, text.as_bytes()));
            }
        }),
    }
}

fn nanoseconds(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default().saturating_mul(1_000_000)
}
