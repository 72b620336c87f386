//! Ids of traces and spans. They follow from the run, so that a resumed run continues its trace.

use std::fmt;

/// 16 bytes, as in the W3C trace context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

/// 8 bytes, as in the W3C trace context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// The trace that a run belongs to, and the span that started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Trace that new spans belong to.
    pub trace: TraceId,
    /// The span under which new ones appear; `None` at the root.
    pub parent: Option<SpanId>,
}

impl TraceContext {
    /// Reads a `traceparent`, as the W3C defines it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if version.len() != 2 || version == "ff" || flags.len() != 2 {
            return None;
        }
        let trace: [u8; 16] = bytes(trace)?;
        let span: [u8; 8] = bytes(span)?;
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self { trace: TraceId(trace), parent: Some(SpanId(span)) })
    }

    /// The trace of a run without a parent trace.
    #[must_use]
    pub fn of_run(run: &str) -> Self {
        Self { trace: TraceId(digest(&["trace", run])), parent: None }
    }

    /// The `traceparent` for what a span starts.
    #[must_use]
    pub fn header(&self, span: SpanId) -> String {
        format!("00-{}-{}-01", self.trace, span)
    }
}

impl SpanId {
    /// The id of a span of a run, by what identifies it there.
    #[must_use]
    pub fn derive(run: &str, parts: &[&str]) -> Self {
        let mut all = vec!["span", run];
        all.extend(parts);
        Self(digest(&all))
    }
}

fn digest<const N: usize>(parts: &[&str]) -> [u8; N] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut id = [0; N];
    hasher.finalize_xof().fill(&mut id);
    // Zero means that there is no id.
    id[0] |= 1;
    id
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    if hex.len() != 2 * N || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_and_written_and_a_wrong_one_is_not() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = TraceContext::parse(text).unwrap();
        assert_eq!(context.header(context.parent.unwrap()), text);
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c8031éc-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ids_differ_by_run_and_place() {
        assert_eq!(SpanId::derive("r", &["a", "b"]), SpanId::derive("r", &["a", "b"]));
        assert_ne!(SpanId::derive("r", &["a", "b"]), SpanId::derive("r", &["ab"]));
        assert_ne!(SpanId::derive("r", &["a"]), SpanId::derive("s", &["a"]));
    }
}
