//! What only the binary takes from the world by itself: the time, new names, chance. All else is handed these.

use std::hash::{BuildHasher, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use fusee_engine::journal::{Clock, RunId};

use crate::failure::Failure;

/// The clock of this machine.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "this is the seam that all others are handed")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// A name for a new run; names sort by time.
#[expect(clippy::disallowed_methods, reason = "this is the seam that all others are handed")]
pub(crate) fn new_run_id() -> Result<RunId, Failure> {
    uuid::Uuid::now_v7().to_string().parse().map_err(Failure::failed)
}

/// Chance, from -1 to 1. The keys of the standard hasher are random, which is all that spreading retries needs.
pub(crate) fn jitter() -> f64 {
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (random as f64 / u64::MAX as f64).mul_add(2.0, -1.0)
}

/// A time stamp for machines: RFC 3339, UTC, milliseconds.
pub(crate) fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|time| format!("{time:.3}")).unwrap_or_default()
}

/// A time for people, by the clock on their wall.
pub(crate) fn local(ms: i64) -> String {
    let zoned = |time: jiff::Timestamp| time.to_zoned(jiff::tz::TimeZone::system());
    jiff::Timestamp::from_millisecond(ms)
        .map(|time| zoned(time).strftime("%Y-%m-%d %H:%M").to_string())
        .unwrap_or_default()
}
