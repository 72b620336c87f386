//! Merging of spans.

use super::*;

fn tool(start: i64, end: i64) -> Span {
    let label = "shell".to_owned();
    Span { lane: 0, kind: SpanKind::Tool, start, end, seq: 1, label, failed: false, count: 1 }
}

#[test]
fn a_long_run_has_a_bounded_number_of_spans_that_cover_the_same_time() {
    let mut list = SpanList::default();
    for n in 0..100_000_i64 {
        list.push(tool(n * 10, n * 10 + 9));
        list.push(Span { kind: SpanKind::Model, ..tool(n * 10, n * 10 + 1) });
    }
    let spans = list.all();
    assert!(spans.len() <= MOST_SPANS && spans.len() > MOST_SPANS / 4, "{}", spans.len());
    let tools = || spans.iter().filter(|span| span.kind == SpanKind::Tool);
    assert_eq!(tools().map(|span| span.count).sum::<u32>(), 100_000);
    assert_eq!(tools().map(|span| span.end).max(), Some(999_999));
    assert_eq!(tools().map(|span| span.start).min(), Some(0));
}

#[test]
fn a_failure_is_not_merged_into_its_neighbours() {
    let mut list = SpanList::default();
    for n in 0..5_000_i64 {
        list.push(Span { failed: n == 2_500, ..tool(n, n + 1) });
    }
    let failed: Vec<_> = list.all().iter().filter(|span| span.failed).map(|span| span.count).collect();
    assert_eq!(failed, [1]);
}

#[test]
fn a_request_is_divided_into_waiting_and_output() {
    let mut list = SpanList::default();
    list.push(Span { kind: SpanKind::Model, ..tool(100, 400) });
    list.push(tool(400, 500));
    list.divide(1, 50);
    list.divide(0, 250);
    // Not a second time: what is left is the waiting.
    list.divide(0, 250);
    let spans: Vec<_> = list.all().iter().map(|span| (span.kind, span.start, span.end)).collect();
    assert_eq!(
        spans,
        [(SpanKind::Model, 100, 350), (SpanKind::Tool, 400, 500), (SpanKind::Output, 350, 400)]
    );
}
