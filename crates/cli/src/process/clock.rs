//! Timestamps as text, for machines and for people.

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
