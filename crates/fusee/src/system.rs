//! Sources of nondeterminism, for programs that bring none of their own: time, ids, randomness. The crates below
//! receive them as arguments.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::{SystemTime, UNIX_EPOCH};

use fusee_engine::journal::{Clock, RunId};

/// The operating system's clock, for embedders without their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// A new run id (UUID v7): ids sort by time, and two of the same millisecond differ.
#[expect(clippy::disallowed_methods, reason = "the only place that makes ids")]
pub fn new_run_id() -> Result<RunId, String> {
    uuid::Uuid::now_v7().to_string().parse()
}

/// Random number from -1 to 1, from the random keys of the standard hasher; good enough to spread retries.
pub fn jitter() -> f64 {
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (random as f64 / u64::MAX as f64).mul_add(2.0, -1.0)
}
