//! Order of the attempts, and the choice among candidates.

use super::*;

fn sampling() -> Sampling {
    Sampling { samples: 3, repairs: 2, temperature: 0.7, escalate: None }
}

fn score(passed: u32, failed: u32) -> Score {
    Score::new(Some(&TestReport { passed, failed, ..TestReport::default() }))
}

fn files(text: &str) -> CandidateTexts {
    CandidateTexts::from([("a.py".to_owned(), text.to_owned())])
}

fn failed(text: &str, score: Score) -> SampleResult {
    SampleResult {
        verdict: Verdict::Failed,
        files: Some(files(text)),
        score: Some(score),
        failure: Some(format!("failure {text}")),
        ..SampleResult::default()
    }
}

fn unverified(text: &str) -> SampleResult {
    SampleResult { verdict: Verdict::Unverified, files: Some(files(text)), ..SampleResult::default() }
}

fn samples(count: u32, temperature: Option<f64>) -> NextAttempt {
    NextAttempt::Samples { count, temperature }
}

#[test]
fn the_first_answer_is_repaired_and_then_the_best_of_the_others() {
    let mut candidates = Candidates::new(sampling());
    assert_eq!(candidates.next(1), samples(1, None));
    candidates.add(1, failed("1", score(1, 3)));
    let repair = candidates.next(1);
    assert_eq!(repair, NextAttempt::Repair { failure: "failure 1".to_owned() });
    assert_eq!(candidates.rules(&repair).repaired.map(|repaired| repaired.n), Some(1));
    // No progress: other answers.
    candidates.add(2, failed("2", score(1, 3)));
    assert_eq!(candidates.next(1), samples(1, Some(0.7)));
    candidates.add(3, failed("3", score(3, 1)));
    assert_eq!(candidates.next(1), samples(1, Some(0.7)));
    candidates.add(4, failed("4", score(2, 2)));
    let repair = candidates.next(1);
    assert_eq!(repair, NextAttempt::Repair { failure: "failure 3".to_owned() });
    assert_eq!(candidates.rules(&repair).repaired.map(|repaired| repaired.n), Some(3));
    candidates.add(5, failed("5", score(4, 0)));
    assert_eq!(candidates.next(1), NextAttempt::Repair { failure: "failure 5".to_owned() });
    candidates.add(6, failed("6", score(4, 0)));
    assert_eq!(candidates.next(1), NextAttempt::Stop);
    assert_eq!(candidates.winner().map(|(winner, _)| winner.n), Some(5));
}

#[test]
fn an_answer_is_not_repaired_again_if_no_other_is_better() {
    let mut candidates = Candidates::new(Sampling { samples: 2, ..sampling() });
    candidates.next(1);
    candidates.add(1, failed("1", score(3, 1)));
    assert!(matches!(candidates.next(1), NextAttempt::Repair { .. }));
    candidates.add(2, failed("2", score(0, 4)));
    assert_eq!(candidates.next(1), samples(1, Some(0.7)));
    candidates.add(3, failed("3", score(2, 2)));
    assert_eq!(candidates.next(1), NextAttempt::Stop);
    assert_eq!(candidates.winner().map(|(winner, _)| winner.n), Some(1));
}

#[test]
fn tests_that_cannot_be_loaded_are_worse_than_any_that_fail() {
    let failure =
        |name: &str| fusee_text::test_report::TestFailure { name: name.to_owned(), ..Default::default() };
    let loading = ["leap_test (unittest.loader._FailedTest.leap_test)", "tests/test_leap.py"];
    for name in loading {
        let report = TestReport { failed: 1, failures: vec![failure(name)], ..TestReport::default() };
        assert!(score(0, 5) > Score::new(Some(&report)), "{name}");
    }
    let report = TestReport {
        failed: 1,
        failures: vec![failure("test_one (leap_test.One)")],
        ..TestReport::default()
    };
    assert!(Score::new(Some(&report)) > score(0, 5));
}

#[test]
fn all_samples_but_the_first_run_at_once_where_the_server_can() {
    let mut candidates = Candidates::new(Sampling { samples: 6, ..sampling() });
    assert_eq!(candidates.next(4), samples(1, None));
    assert_eq!(candidates.next(4), samples(4, Some(0.7)));
    assert_eq!(candidates.next(4), samples(1, Some(0.7)));
    assert_eq!(candidates.next(4), NextAttempt::Stop);
}

#[test]
fn an_answer_without_progress_or_files_ends_the_repairs() {
    for result in [SampleResult::default(), failed("1", score(1, 3))] {
        let mut candidates = Candidates::new(Sampling { samples: 1, ..sampling() });
        candidates.next(1);
        candidates.add(1, failed("1", score(1, 3)));
        assert!(matches!(candidates.next(1), NextAttempt::Repair { .. }));
        candidates.add(2, result);
        assert_eq!(candidates.next(1), NextAttempt::Stop);
    }
}

#[test]
fn a_larger_model_gets_one_attempt_at_the_end() {
    let escalate = Some("large".to_owned());
    let mut candidates = Candidates::new(Sampling { samples: 1, repairs: 0, escalate, ..sampling() });
    candidates.next(1);
    candidates.add(1, failed("1", score(1, 3)));
    let failure = Some("failure 1".to_owned());
    assert_eq!(candidates.next(1), NextAttempt::Escalate { model: "large".to_owned(), failure });
    candidates.add(2, failed("2", score(2, 2)));
    assert_eq!(candidates.next(1), NextAttempt::Stop);
}

#[test]
fn answers_vote_if_nothing_verifies_them() {
    let mut candidates = Candidates::new(sampling());
    candidates.next(1);
    candidates.add(1, unverified("x = 1\n"));
    assert_eq!(candidates.next(1), samples(1, Some(0.7)));
    candidates.add(2, unverified("x = 2\n"));
    assert_eq!(candidates.next(1), samples(1, Some(0.7)));
    candidates.add(3, unverified("x = 2  \n\n"));
    assert_eq!(candidates.next(1), NextAttempt::Stop);
    let (winner, why) = candidates.winner().unwrap();
    assert_eq!((winner.n, why), (2, "two answers agree"));
}

#[test]
fn the_model_chooses_if_no_two_answers_agree() {
    let mut candidates = Candidates::new(sampling());
    for n in 1..=3 {
        candidates.next(1);
        candidates.add(n, unverified(&format!("x = {n}\n")));
    }
    assert_eq!(candidates.next(1), NextAttempt::Choose);
    candidates.choose(Some(3));
    assert_eq!(candidates.next(1), NextAttempt::Stop);
    assert_eq!(candidates.winner().map(|(winner, why)| (winner.n, why)), Some((3, "the model chose it")));
}

#[test]
fn tests_that_ran_are_better_than_none() {
    assert!(score(0, 5) > Score::new(None));
    assert!(score(3, 2) > score(2, 3) && score(2, 1) > score(2, 3));
}

#[test]
fn an_answer_that_fails_after_another_passed_does_not_replace_it() {
    let mut candidates = Candidates::new(sampling());
    candidates.add(1, failed("1", score(0, 2)));
    candidates.add(2, SampleResult { verdict: Verdict::Passed, ..failed("2", score(2, 0)) });
    candidates.add(3, failed("3", score(1, 1)));
    assert_eq!(candidates.winner().map(|(winner, why)| (winner.n, why)), Some((2, "it passes")));
}
