//! When to try again, as a pure policy: the caller owns the clock, the dice and the journal.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// How often and how patiently a failed request is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Tries after the first one; 0 turns retrying off.
    pub max_retries: u32,
    /// The first wait; each further one is twice as long.
    pub backoff_ms: u64,
    /// No wait of our own is longer than this. A wait the server asked for may be.
    pub cap_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        // Five tries in all.
        RetryPolicy { max_retries: 4, backoff_ms: 200, cap_ms: 30_000 }
    }
}

impl RetryPolicy {
    /// How long to wait after the failed try number `attempt` (from 1), or `None` if that was the last.
    /// `jitter` in [-1, 1] moves our own wait by up to ten percent; a wait the server asked for is kept, and
    /// only lengthened, so that we never come too early.
    pub fn delay(&self, attempt: u32, retry_after_ms: Option<u64>, jitter: f64) -> Option<Duration> {
        if attempt > self.max_retries {
            return None;
        }
        let jitter = if jitter.is_nan() { 0.0 } else { jitter.clamp(-1.0, 1.0) };
        let doublings = attempt.saturating_sub(1).min(32);
        let backoff = self.backoff_ms.saturating_mul(1 << doublings).min(self.cap_ms);
        let millis = match retry_after_ms {
            Some(asked) => asked as f64 + backoff.min(1_000) as f64 * 0.1 * jitter.abs(),
            None => backoff as f64 * (1.0 + 0.1 * jitter),
        };
        Some(Duration::from_micros((millis * 1_000.0) as u64))
    }
}

/// Reads a `Retry-After` header: seconds (fractions accepted), or an HTTP date seen from `now`. A date in the past means
/// now; what cannot be read means nothing was asked.
pub fn retry_after_ms(header: &str, now: SystemTime) -> Option<u64> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1_000.0) as u64);
    }
    let until = http_date(header)?;
    let now = jiff::Timestamp::try_from(now).ok()?;
    Some(u64::try_from(until.as_millisecond().saturating_sub(now.as_millisecond())).unwrap_or(0))
}

/// The three forms of RFC 9110 5.6.7, two of them obsolete but to be accepted.
pub(crate) fn http_date(text: &str) -> Option<jiff::Timestamp> {
    if let Ok(stamp) = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text) {
        return Some(stamp);
    }
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"].into_iter().find_map(|form| {
        let civil = jiff::civil::DateTime::strptime(form, text).ok()?;
        civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })
}

#[cfg(test)]
mod tests;
