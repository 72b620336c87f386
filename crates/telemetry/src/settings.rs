//! Settings of the export, by the standard variables of OpenTelemetry. Their values are passed in.

use std::time::Duration;

use crate::id::TraceContext;

/// Where and how to export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// URL for traces.
    pub traces: String,
    /// URL for metrics; `None` if they are not exported.
    pub metrics: Option<String>,
    /// Headers of every request, including credentials.
    pub headers: Vec<(String, String)>,
    /// Names and values of the resource.
    pub resource: Vec<(String, String)>,
    /// Maximum duration of one export.
    pub timeout: Duration,
    /// Whether the content of messages is exported.
    pub content: bool,
    /// The trace that this process belongs to.
    pub context: Option<TraceContext>,
}

impl TelemetrySettings {
    /// Reads the settings; `None` if no endpoint is set or the export is turned off.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| {
            variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        let base = set("OTEL_EXPORTER_OTLP_ENDPOINT");
        let base = base.as_deref().map(|base| base.trim_end_matches('/'));
        let below = |path: &str| base.map(|base| format!("{base}/{path}"));
        let is_none = |name: &str| set(name).is_some_and(|value| value == "none");
        let traces = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| below("v1/traces"))?;
        if is_none("OTEL_TRACES_EXPORTER") {
            return None;
        }
        let metrics = set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT").or_else(|| below("v1/metrics"));
        let timeout = set("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|ms| ms.parse().ok()).unwrap_or(10_000);
        let mut resource = vec![
            ("service.name".to_owned(), set("OTEL_SERVICE_NAME").unwrap_or_else(|| "fusee".to_owned())),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ];
        for (name, value) in pairs(&set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default()) {
            if !resource.iter().any(|(known, _)| *known == name) {
                resource.push((name, value));
            }
        }
        let capture = set("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT").unwrap_or_default();
        let capture = capture.to_ascii_uppercase();
        Some(Self {
            traces,
            metrics: metrics.filter(|_| !is_none("OTEL_METRICS_EXPORTER")),
            headers: pairs(&set("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default()),
            resource,
            timeout: Duration::from_millis(timeout),
            content: ["SPAN_ONLY", "SPAN_AND_EVENT", "TRUE"].contains(&capture.as_str()),
            context: set("TRACEPARENT").as_deref().and_then(TraceContext::parse),
        })
    }
}

/// `name=value` pairs separated by commas; values may be percent-encoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        Some((name.trim().to_owned(), decoded(value.trim())))
    };
    text.split(',').filter_map(pair).filter(|(name, _)| !name.is_empty()).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let code = more.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<TelemetrySettings> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        TelemetrySettings::read(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn nothing_is_exported_unless_an_endpoint_is_set() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
        let off = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_SDK_DISABLED", "true")];
        assert_eq!(read(&off), None);
    }

    #[test]
    fn the_standard_variables_are_read() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20abc, x=1"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=a,service.name=ignored"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "span_only"),
        ])
        .unwrap();
        assert_eq!(settings.traces, "http://c:4318/v1/traces");
        assert_eq!(settings.metrics.as_deref(), Some("http://c:4318/v1/metrics"));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(settings.headers, [pair("Authorization", "Basic abc"), pair("x", "1")]);
        let version = pair("service.version", env!("CARGO_PKG_VERSION"));
        assert_eq!(settings.resource, [pair("service.name", "mine"), version, pair("team", "a")]);
        assert!(settings.content);
    }
}
