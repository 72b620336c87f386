//! Row checksums. SQLite detects structural damage but not damaged content: without checksums, a flipped bit
//! in a result would be read as a different result.

use blake3::Hasher;

use crate::StepKey;

/// Checksum of a step's request.
pub(crate) fn request_checksum(
    run: i64,
    key: &StepKey,
    kind: &str,
    callee: &str,
    args: &str,
    intent: Option<&str>,
) -> i64 {
    let mut sum = Checksum::new(run);
    sum.text(key.branch.as_str()).number(key.n.cast_signed()).text(kind).text(callee).text(args);
    if let Some(intent) = intent {
        sum.text(intent);
    }
    sum.end()
}

/// Checksum of a step's result.
pub(crate) fn done(run: i64, key: &StepKey, result: &str, at_ms: i64, duration_ms: u64) -> i64 {
    let mut sum = Checksum::new(run);
    sum.text(key.branch.as_str()).number(key.n.cast_signed()).text(result);
    sum.number(at_ms).number(duration_ms.cast_signed());
    sum.end()
}

/// Checksum of an event.
pub(crate) fn event(run: i64, seq: u64, task: &str, k: Option<u64>, ts_ms: i64, body: &str) -> i64 {
    let mut sum = Checksum::new(run);
    sum.number(seq.cast_signed()).text(task).number(k.map_or(-1, u64::cast_signed)).number(ts_ms).text(body);
    sum.end()
}

struct Checksum(Hasher);

impl Checksum {
    fn new(run: i64) -> Self {
        let mut sum = Self(Hasher::new());
        sum.number(run);
        sum
    }

    fn number(&mut self, number: i64) -> &mut Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    /// Hashes the length too, so that the boundary between two texts is unambiguous.
    fn text(&mut self, text: &str) -> &mut Self {
        self.0.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        self
    }

    fn end(&self) -> i64 {
        let mut eight = [0; 8];
        self.0.finalize_xof().fill(&mut eight);
        i64::from_le_bytes(eight)
    }
}
