//! Order of the attempts, and the choice among candidates.

use super::*;

const SAMPLING: Sampling = Sampling { samples: 3, repairs: 2, temperature: 0.7 };

fn score(passed: u32, failed: u32) -> Score {
    Score::new(Some(&TestReport { passed, failed, ..TestReport::default() }))
}

fn result(text: &str, score: Score) -> SampleResult {
    let files = CandidateFiles::from([("a.py".to_owned(), text.to_owned())]);
    let failure = Some(format!("failure {text}"));
    SampleResult { files: Some(files), score: Some(score), failure, ..SampleResult::default() }
}

#[test]
fn samples_come_first_and_repairs_of_the_best_follow() {
    let mut candidates = Candidates::new(SAMPLING);
    let first = candidates.next();
    assert_eq!(first, NextAttempt::Sample { temperature: None, afterwards: Afterwards::Original });
    assert!(candidates.add(1, result("1", score(1, 3))));
    let second = candidates.next();
    assert_eq!(second, NextAttempt::Sample { temperature: Some(0.7), afterwards: Afterwards::Original });
    assert!(candidates.add(2, result("2", score(3, 1))));
    let third = candidates.next();
    assert_eq!(third, NextAttempt::Sample { temperature: Some(0.7), afterwards: Afterwards::Best });
    assert!(!candidates.add(3, result("3", score(2, 2))));
    assert_eq!(candidates.best().map(|best| best.n), Some(2));
    assert_eq!(candidates.next(), NextAttempt::Repair { failure: "failure 2".to_owned() });
    assert_eq!(candidates.rules(&NextAttempt::Stop).tried.len(), 3);
}

#[test]
fn repairs_go_on_only_while_they_help() {
    for (second, expected) in [(score(2, 2), true), (score(1, 3), false)] {
        let mut candidates = Candidates::new(Sampling { samples: 1, ..SAMPLING });
        candidates.next();
        candidates.add(1, result("1", score(1, 3)));
        assert!(matches!(candidates.next(), NextAttempt::Repair { .. }));
        candidates.add(2, result("2", second));
        assert_eq!(matches!(candidates.next(), NextAttempt::Repair { .. }), expected);
    }
}

#[test]
fn an_answer_without_files_or_seen_before_is_no_candidate() {
    let mut candidates = Candidates::new(Sampling { samples: 2, ..SAMPLING });
    candidates.next();
    assert!(!candidates.add(1, SampleResult::default()));
    candidates.next();
    let again = SampleResult { duplicate: true, ..result("1", score(9, 0)) };
    assert!(!candidates.add(2, again));
    assert_eq!(candidates.next(), NextAttempt::Stop);
}

#[test]
fn tests_that_ran_count_more_than_none() {
    let none = Score::new(None);
    assert!(score(0, 5) > none && score(1, 4) > score(0, 5) && score(1, 3) > score(1, 4));
    assert_eq!((none.counts(), score(1, 4).counts()), (None, Some((1, 4))));
}
