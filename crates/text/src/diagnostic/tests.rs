//! Order and capacity of the list, and the JSON representation.

use super::*;

fn source() -> Source {
    Source::new("w.fusee", "(foo)\n(bär x)\n")
}

#[test]
fn the_json_shape_is_the_documented_one() {
    let source = source();
    let error = Diagnostic::error("unbound-name", &source, Span::new(12, 13), "`x` is not bound")
        .help("did you mean `y`?");
    assert_eq!(
        serde_json::to_string(&error).unwrap(),
        r#"{"code":"unbound-name","severity":"error","message":"`x` is not bound","file":"w.fusee","line":2,"column":6,"end_line":2,"end_column":7,"help":"did you mean `y`?"}"#
    );
    let warning = Diagnostic::warning("shadows", &source, Span::new(0, 5), "w");
    assert_eq!(
        serde_json::to_string(&warning).unwrap(),
        r#"{"code":"shadows","severity":"warning","message":"w","file":"w.fusee","line":1,"column":1,"end_line":1,"end_column":6}"#
    );
}

#[test]
fn problems_come_out_in_order_of_file_and_position() {
    let (a, b) = (Source::new("a", "xxxx"), Source::new("b", "xxxx"));
    let list: Diagnostics = [
        Diagnostic::warning("four", &b, Span::new(0, 1), ""),
        Diagnostic::error("three", &a, Span::new(2, 3), ""),
        Diagnostic::error("two", &a, Span::new(1, 3), ""),
        Diagnostic::error("one", &a, Span::new(0, 3), ""),
    ]
    .into_iter()
    .collect();
    assert!(list.has_errors());
    let codes: Vec<_> = list.into_sorted().iter().map(|d| d.code).collect();
    assert_eq!(codes, ["one", "two", "three", "four"]);
}

#[test]
fn past_the_capacity_problems_are_counted_and_an_omitted_error_still_counts() {
    let source = source();
    let mut list = Diagnostics::new();
    for _ in 0..Diagnostics::CAPACITY {
        list.push(Diagnostic::warning("w", &source, Span::new(0, 1), ""));
    }
    assert!(!list.has_errors());
    list.push(Diagnostic::error("e", &source, Span::new(1, 2), ""));
    list.push(Diagnostic::error("e", &source, Span::new(1, 2), ""));
    assert!(list.has_errors());
    assert_eq!(list.len(), Diagnostics::CAPACITY + 2);
    let sorted = list.into_sorted();
    let last = sorted.last().unwrap();
    assert_eq!(
        (sorted.len(), last.code, last.severity),
        (Diagnostics::CAPACITY + 1, "too-many-problems", Severity::Error)
    );
    assert_eq!(last.message, "2 more problems are not shown");
}
