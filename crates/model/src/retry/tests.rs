//! The retry policy and the two forms of `Retry-After`.

use super::*;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn five_tries_with_doubling_waits() {
    let policy = RetryPolicy::default();
    let waits: Vec<_> = (1..=6).map(|attempt| policy.delay(attempt, None, 0.0)).collect();
    let ms = |ms| Some(Duration::from_millis(ms));
    assert_eq!(waits, [ms(200), ms(400), ms(800), ms(1600), None, None]);
}

#[test]
fn jitter_moves_a_wait_by_ten_percent_at_most() {
    let policy = RetryPolicy { max_retries: 1, backoff_ms: 1_000, cap_ms: 30_000 };
    assert_eq!(policy.delay(1, None, 1.0), Some(Duration::from_millis(1_100)));
    assert_eq!(policy.delay(1, None, -1.0), Some(Duration::from_millis(900)));
    assert_eq!(policy.delay(1, None, -50.0), Some(Duration::from_millis(900)));
    assert_eq!(policy.delay(1, None, f64::NAN), Some(Duration::from_millis(1_000)));
}

#[test]
fn our_own_wait_is_capped_and_never_overflows() {
    let policy = RetryPolicy { max_retries: u32::MAX, backoff_ms: 200, cap_ms: 30_000 };
    assert_eq!(policy.delay(9, None, 0.0), Some(Duration::from_secs(30)));
    assert_eq!(policy.delay(u32::MAX, None, 0.0), Some(Duration::from_secs(30)));
}

#[test]
fn a_wait_the_server_asked_for_is_never_cut_short() {
    let policy = RetryPolicy::default();
    for jitter in [-1.0, 0.0, 1.0] {
        let wait = policy.delay(1, Some(60_000), jitter).unwrap();
        assert!(wait >= Duration::from_secs(60) && wait < Duration::from_millis(60_200), "{wait:?}");
    }
    assert_eq!(policy.delay(5, Some(1_000), 0.0), None, "the tries are counted all the same");
}

#[test]
fn zero_retries_turn_it_off() {
    assert_eq!(RetryPolicy { max_retries: 0, ..RetryPolicy::default() }.delay(1, None, 0.0), None);
}

#[test]
fn retry_after_in_seconds() {
    assert_eq!(retry_after_ms(" 7 ", at(0)), Some(7_000));
    assert_eq!(retry_after_ms("0.25", at(0)), Some(250));
    assert_eq!(retry_after_ms("-1", at(0)), None);
    assert_eq!(retry_after_ms("NaN", at(0)), None);
    assert_eq!(retry_after_ms("inf", at(0)), None);
    assert_eq!(retry_after_ms("soon", at(0)), None);
    assert_eq!(retry_after_ms("", at(0)), None);
}

#[test]
fn retry_after_as_a_date_in_all_three_forms() {
    // 784111777 is the standard's own example.
    for date in
        ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
    {
        assert_eq!(retry_after_ms(date, at(784_111_770)), Some(7_000), "{date}");
        assert_eq!(retry_after_ms(date, at(784_111_790)), Some(0), "{date}, when it is past");
    }
}
