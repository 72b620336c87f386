//! Histograms of the GenAI conventions, computed from finished spans.

use crate::attribute::{
    AGENT_NAME, Attribute, AttributeValue, ERROR_TYPE, FIRST_CHUNK, INPUT_TOKENS, OPERATION, OUTPUT_TOKENS,
    PROVIDER, REQUEST_MODEL, SERVER_ADDRESS, SERVER_PORT, TOKEN_TYPE, TOOL_NAME, WORKFLOW_NAME,
};
use crate::span::TraceSpan;

/// Different sets of attributes of one histogram; further ones are not counted.
const MAX_POINTS: usize = 200;

/// A histogram with a point for each set of attributes.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) bounds: Vec<f64>,
    pub(crate) points: Vec<MetricPoint>,
}

/// The values of one set of attributes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricPoint {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) buckets: Vec<u64>,
}

impl Histogram {
    fn new(name: &'static str, unit: &'static str, bounds: Vec<f64>) -> Self {
        Self { name, unit, bounds, points: Vec::new() }
    }

    fn record(&mut self, value: f64, attributes: Vec<Attribute>) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        let at = match self.points.iter().position(|point| point.attributes == attributes) {
            Some(at) => at,
            None if self.points.len() >= MAX_POINTS => return,
            None => {
                let buckets = vec![0; self.bounds.len() + 1];
                self.points.push(MetricPoint { attributes, count: 0, sum: 0.0, buckets });
                self.points.len() - 1
            }
        };
        let point = &mut self.points[at];
        point.count += 1;
        point.sum += value;
        point.buckets[bucket] += 1;
    }
}

/// All metrics of a process.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    tokens: Histogram,
    operations: Histogram,
    first_chunks: Histogram,
    tools: Histogram,
    agents: Histogram,
    workflows: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        let doubling = |first: f64| (0..14).map(|n| first * f64::from(1 << n)).collect();
        Self {
            tokens: Histogram::new(
                "gen_ai.client.token.usage",
                "{token}",
                (0..14).map(|n| 4_f64.powi(n)).collect(),
            ),
            operations: Histogram::new("gen_ai.client.operation.duration", "s", doubling(0.01)),
            first_chunks: Histogram::new("gen_ai.client.operation.time_to_first_chunk", "s", doubling(0.01)),
            tools: Histogram::new("gen_ai.execute_tool.duration", "s", doubling(0.01)),
            agents: Histogram::new("gen_ai.invoke_agent.duration", "s", doubling(0.1)),
            workflows: Histogram::new(
                "gen_ai.invoke_workflow.duration",
                "s",
                vec![1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0],
            ),
        }
    }
}

impl Metrics {
    /// Counts a finished span.
    pub(crate) fn record(&mut self, span: &TraceSpan) {
        let seconds = (span.end_ms - span.start_ms).max(0) as f64 / 1000.0;
        let kept = |names: &[&str]| -> Vec<Attribute> {
            span.attributes.iter().filter(|(name, _)| names.contains(name)).cloned().collect()
        };
        match text(span, OPERATION) {
            Some("chat") => {
                let names = [OPERATION, PROVIDER, REQUEST_MODEL, SERVER_ADDRESS, SERVER_PORT, ERROR_TYPE];
                self.operations.record(seconds, kept(&names));
                if let Some(AttributeValue::Number(first)) = value(span, FIRST_CHUNK) {
                    self.first_chunks.record(*first, kept(&names));
                }
                for (name, kind) in [(INPUT_TOKENS, "input"), (OUTPUT_TOKENS, "output")] {
                    if let Some(AttributeValue::Whole(tokens)) = value(span, name) {
                        let mut attributes = kept(&names[..5]);
                        attributes.push((TOKEN_TYPE, kind.into()));
                        self.tokens.record(*tokens as f64, attributes);
                    }
                }
            }
            Some("execute_tool") => self.tools.record(seconds, kept(&[OPERATION, TOOL_NAME, ERROR_TYPE])),
            Some("invoke_agent") => self.agents.record(seconds, kept(&[OPERATION, AGENT_NAME, ERROR_TYPE])),
            Some("invoke_workflow") => {
                self.workflows.record(seconds, kept(&[OPERATION, WORKFLOW_NAME, ERROR_TYPE]));
            }
            _ => {}
        }
    }

    /// All histograms.
    pub(crate) fn histograms(&self) -> [Histogram; 6] {
        [&self.tokens, &self.operations, &self.first_chunks, &self.tools, &self.agents, &self.workflows]
            .map(Histogram::clone)
    }
}

fn value<'a>(span: &'a TraceSpan, name: &str) -> Option<&'a AttributeValue> {
    span.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn text<'a>(span: &'a TraceSpan, name: &str) -> Option<&'a str> {
    match value(span, name) {
        Some(AttributeValue::Text(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_the_bucket_whose_bound_they_do_not_exceed() {
        let mut histogram = Histogram::new("h", "s", vec![1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 3.0] {
            histogram.record(value, Vec::new());
        }
        let point = MetricPoint { attributes: Vec::new(), count: 4, sum: 6.0, buckets: vec![2, 1, 1] };
        assert_eq!(histogram.points, [point]);
    }
}
