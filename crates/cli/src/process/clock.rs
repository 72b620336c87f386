//! Sources of nondeterminism, used only by the binary and passed to everything else: time, ids, randomness.

use std::hash::{BuildHasher, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use fusee_engine::journal::{Clock, RunId};

use crate::process::error::CliError;

/// The system clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "the only place that may read the clock")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// A new run id (UUID v7); ids sort by time.
#[expect(clippy::disallowed_methods, reason = "the only place that may read the clock")]
pub(crate) fn new_run_id() -> Result<RunId, CliError> {
    uuid::Uuid::now_v7().to_string().parse().map_err(CliError::failed)
}

/// Random number from -1 to 1, from the random keys of the standard hasher; good enough to spread retries.
pub(crate) fn jitter() -> f64 {
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (random as f64 / u64::MAX as f64).mul_add(2.0, -1.0)
}

/// A timestamp for machines: RFC 3339, UTC, milliseconds.
pub(crate) fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|time| format!("{time:.3}")).unwrap_or_default()
}

/// A timestamp for display, in the local time zone.
pub(crate) fn local(ms: i64) -> String {
    let zoned = |time: jiff::Timestamp| time.to_zoned(jiff::tz::TimeZone::system());
    jiff::Timestamp::from_millisecond(ms)
        .map(|time| zoned(time).strftime("%Y-%m-%d %H:%M").to_string())
        .unwrap_or_default()
}
