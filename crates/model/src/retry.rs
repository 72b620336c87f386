//! The retry policy as a pure function: the caller owns the clock, the randomness and the journal.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// How often and after which delays a failed request is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Number of retries after the first attempt; 0 disables retrying.
    pub max_retries: u32,
    /// First delay in milliseconds; each further one is twice as long.
    pub backoff_ms: u64,
    /// Maximum of our own delay in milliseconds. A delay requested by the server may be longer.
    pub cap_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        // Five attempts in total.
        RetryPolicy { max_retries: 4, backoff_ms: 200, cap_ms: 30_000 }
    }
}

/// Longest delay that a server can ask for; a request that is to wait longer is given up.
pub(crate) const MAX_RETRY_AFTER_MS: u64 = 3_600_000;

impl RetryPolicy {
    /// Delay after the failed attempt number `attempt` (from 1), or `None` if that was the last or the server
    /// asks for more than an hour. `jitter` in
    /// [-1, 1] changes our own delay by up to 10 %; a delay requested by the server is only ever extended, so
    /// that we never retry too early.
    pub fn delay(&self, attempt: u32, retry_after_ms: Option<u64>, jitter: f64) -> Option<Duration> {
        if attempt > self.max_retries || retry_after_ms.is_some_and(|asked| asked > MAX_RETRY_AFTER_MS) {
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

/// Parses a `Retry-After` header: seconds (fractions accepted), or an HTTP date relative to `now`. A date in
/// the past means 0; an invalid header means `None`.
pub fn retry_after_ms(header: &str, now: SystemTime) -> Option<u64> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1_000.0) as u64);
    }
    let until = http_date(header)?;
    let now = jiff::Timestamp::try_from(now).ok()?;
    Some(u64::try_from(until.as_millisecond().saturating_sub(now.as_millisecond())).unwrap_or(0))
}

/// Parses the three formats of RFC 9110 5.6.7, two of which are obsolete but must be accepted.
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
