//! Estimates corrected by reported counts, and exact counts.

use super::*;

#[test]
fn an_estimate_without_a_report() {
    let estimator = Estimator::default();
    assert_eq!(estimator.count(0), 0);
    assert_eq!(estimator.count(1), 1);
    assert_eq!(estimator.count(3_600), 1_000);
}

#[test]
fn the_first_report_counts_whole_and_later_ones_by_half() {
    let mut estimator = Estimator::default();
    estimator.correct(1_000, 1_500);
    assert_eq!(estimator.count(3_600), 1_500);
    estimator.correct(1_500, 3_000);
    assert_eq!(estimator.count(3_600), 2_250);
}

#[test]
fn steady_reports_are_met() {
    let mut estimator = Estimator::default();
    estimator.correct(1_000, 4_000);
    for _ in 0..20 {
        estimator.correct(estimator.count(36_000), 8_000);
    }
    assert_eq!(estimator.count(36_000), 8_000);
}

#[test]
fn odd_reports_are_bounded_or_ignored() {
    let mut estimator = Estimator::default();
    estimator.correct(1_000, 1_000_000);
    assert_eq!(estimator.count(3_600), 4_000);
    let mut estimator = Estimator::default();
    estimator.correct(1_000_000, 100);
    assert_eq!(estimator.count(3_600), 250);
    let mut estimator = Estimator::default();
    estimator.correct(1_000, 0);
    estimator.correct(0, 1_000);
    estimator.correct(10, 60);
    assert_eq!(estimator, Estimator::default());
}

#[test]
fn exact_counts_are_those_of_o200k() {
    // The counts of OpenAI's own tokenizer.
    assert_eq!(exact_count(""), Some(0));
    assert_eq!(exact_count("hello world"), Some(2));
    assert_eq!(exact_count("tiktoken is great!"), Some(6));
    assert_eq!(exact_count("お誕生日おめでとう"), Some(8));
    assert_eq!(exact_count("<|endoftext|>"), Some(7), "text of a file is never a special token");
}
