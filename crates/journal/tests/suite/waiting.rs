//! External answers: sent before or during the wait, or by another process; and the timeout without one.

use std::time::{Duration, Instant};

use fusee_journal::{DurableRun, OpenWait, RunAborted, SqliteRun, StepKind};
use serde_json::{Value, json};

use crate::kit::*;

const LONG: Duration = Duration::from_secs(20);

/// Waits for an answer from outside, of any form.
async fn wait(engine: &SqliteRun, name: &str, limit: Duration) -> Result<Option<Value>, RunAborted> {
    let engine: &dyn DurableRun = engine;
    let ask = std::future::pending::<Option<Value>>();
    let request = call(StepKind::Wait, "question", json!(null));
    engine.wait(request, name.to_owned(), (limit, None), ask).await.map(|answer| answer.value)
}

/// Waits for a text, which this process can give too.
async fn wait_for_text(engine: &SqliteRun, ask: impl Future<Output = String> + Send) -> String {
    let engine: &dyn DurableRun = engine;
    let request = call(StepKind::Wait, "question", json!(null));
    let late = (LONG, "nobody".to_owned());
    engine.wait(request, "text".to_owned(), late, ask).await.expect("answered").value
}

#[tokio::test]
async fn an_answer_given_before_is_taken_at_once() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    engine.signal("approval", json!({"approved": true}));
    assert_eq!(wait(&engine, "approval", LONG).await.expect("answered"), Some(json!({"approved": true})));
}

#[tokio::test]
async fn an_answer_given_meanwhile_wakes_the_one_who_waits() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let started = Instant::now();
    let answer = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        engine.signal("other", json!("no"));
        engine.signal("approval", json!("yes"));
    };
    let (answered, ()) = tokio::join!(wait(&engine, "approval", LONG), answer);
    assert_eq!(answered.expect("answered"), Some(json!("yes")));
    assert!(started.elapsed() < Duration::from_millis(900), "{:?}", started.elapsed());
}

#[tokio::test]
async fn an_answer_left_by_another_handle_is_found() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let other = place.open();
    let answer = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        other.signal(&run("r"), "approval", &json!("yes")).await.expect("left");
    };
    let (answered, ()) = tokio::join!(wait(&engine, "approval", LONG), answer);
    assert_eq!(answered.expect("answered"), Some(json!("yes")));
}

#[tokio::test]
async fn an_answer_is_taken_by_one_wait_only() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let short = Duration::from_millis(20);
    engine.signal("input", json!(1));
    assert_eq!(wait(&engine, "input", short).await.expect("answered"), Some(json!(1)));
    assert_eq!(wait(&engine, "input", short).await.expect("nothing new"), None);
    // The same for answers stored in the file, both before and after the first is committed.
    for answer in [2, 2, 3] {
        journal.signal(&run("r"), "input", &json!(answer)).await.expect("left");
        assert_eq!(wait(&engine, "input", short).await.expect("answered"), Some(json!(answer)));
        assert_eq!(wait(&engine, "input", short).await.expect("nothing new"), None);
    }
    engine.flush().await.expect("committed");
    assert_eq!(wait(&engine, "input", short).await.expect("nothing new"), None);
}

#[tokio::test]
async fn an_answer_that_was_left_survives_a_crash_before_it_was_used() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    journal.signal(&run("r"), "approval", &json!("yes")).await.expect("left");
    // Consumed, but the process ends before anything is committed.
    assert_eq!(wait(&engine, "approval", LONG).await.expect("answered"), Some(json!("yes")));
    drop(engine);
    let engine = resume(&journal, "r");
    assert_eq!(wait(&engine, "approval", LONG).await.expect("answered"), Some(json!("yes")));
    engine.flush().await.expect("committed");
    drop(engine);
    let engine = resume(&journal, "r");
    assert_eq!(wait(&engine, "approval", Duration::ZERO).await.expect("recorded"), Some(json!("yes")));
    // Once consumed and committed it is gone: the next wait needs a new answer.
    assert_eq!(wait(&engine, "approval", Duration::ZERO).await.expect("over"), None);
}

#[tokio::test]
async fn a_newer_answer_replaces_one_that_nobody_took() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    for answer in ["no", "yes"] {
        engine.signal("a", json!(answer));
        journal.signal(&run("r"), "b", &json!(answer)).await.expect("left");
    }
    assert_eq!(wait(&engine, "a", LONG).await.expect("answered"), Some(json!("yes")));
    assert_eq!(wait(&engine, "b", LONG).await.expect("answered"), Some(json!("yes")));
}

#[tokio::test]
async fn time_that_is_over_is_recorded_too() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    assert_eq!(wait(&engine, "approval", Duration::from_millis(10)).await.expect("over"), None);
    engine.flush().await.expect("committed");
    drop(engine);
    let engine = resume(&journal, "r");
    engine.signal("approval", json!("too late"));
    assert_eq!(wait(&engine, "approval", LONG).await.expect("recorded"), None);
}

#[tokio::test]
async fn whoever_answers_first_answers_and_the_other_is_too_late() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let here = async { "from here".to_owned() };
    assert_eq!(wait_for_text(&engine, here).await, "from here");
    journal.signal(&run("r"), "text", &json!("from outside")).await.expect("left");
    let slow = async {
        tokio::time::sleep(LONG).await;
        "from here".to_owned()
    };
    assert_eq!(wait_for_text(&engine, slow).await, "from outside");
    // Two answers at once: the second must not answer the next question.
    let meanwhile = async {
        journal.signal(&run("r"), "text", &json!("too late")).await.expect("left");
        "from here".to_owned()
    };
    assert_eq!(wait_for_text(&engine, meanwhile).await, "from here");
    let short = Duration::from_millis(20);
    assert_eq!(wait(&engine, "text", short).await.expect("nothing new"), None);
}

#[tokio::test]
async fn an_answer_of_the_wrong_form_is_ignored() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    journal.signal(&run("r"), "text", &json!({"not": "a text"})).await.expect("left");
    engine.signal("text", json!(7));
    let later = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        "from here".to_owned()
    };
    assert_eq!(wait_for_text(&engine, later).await, "from here");
}

#[tokio::test]
async fn an_answer_that_is_recorded_is_not_asked_for_again() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    assert_eq!(wait_for_text(&engine, async { "first".to_owned() }).await, "first");
    engine.flush().await.expect("committed");
    drop(engine);
    let engine = resume(&journal, "r");
    assert_eq!(wait_for_text(&engine, async { panic!("it was answered") }).await, "first");
}

#[tokio::test]
async fn open_waits_are_listed_while_they_last() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let asked = async {
        let listed = engine.waiting();
        engine.signal("text", json!("yes"));
        std::future::pending::<()>().await;
        format!("{listed:?}")
    };
    assert_eq!(wait_for_text(&engine, asked).await, "yes");
    assert_eq!(engine.waiting(), Vec::<OpenWait>::new());
    let (wait, listed) = tokio::join!(wait(&engine, "a", LONG), async {
        let listed = engine.waiting();
        engine.signal("a", json!(1));
        listed
    });
    assert_eq!(wait.expect("answered"), Some(json!(1)));
    assert_eq!(listed, [OpenWait { callee: "question".to_owned(), signal: "a".to_owned() }]);
}

#[tokio::test]
async fn a_wait_without_end_can_be_asked_for() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    engine.signal("a", json!(1));
    assert_eq!(wait(&engine, "a", Duration::MAX).await.expect("answered"), Some(json!(1)));
}

#[tokio::test]
async fn an_answer_for_a_run_that_is_not_there_is_refused() {
    let place = Place::new();
    let journal = place.open();
    let error = journal.signal(&run("r"), "a", &json!(1)).await.expect_err("no such run");
    assert_eq!(error.to_string(), "run `r` not found");
}

#[tokio::test]
async fn of_two_answers_left_in_the_file_the_first_counts_and_the_second_is_told() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let (one, other) = (place.open(), place.open());
    let first = one.offer_signal(&run("r"), "approval", &json!("yes")).await.expect("left");
    assert_eq!(other.offer_signal(&run("r"), "approval", &json!("no")).await.expect("looked"), None);
    assert_eq!(wait(&engine, "approval", LONG).await.expect("answered"), Some(json!("yes")));
    engine.flush().await.expect("committed");
    // The answer was taken with the commit; one that comes later stays until it is taken back.
    assert!(!one.remove_signal(first.expect("stored")).await.expect("looked"));
    let late = other.offer_signal(&run("r"), "approval", &json!("no")).await.expect("left").expect("stored");
    assert_eq!(other.find_signal(&run("r"), "approval").expect("read"), Some((late, json!("no"))));
    assert!(other.remove_signal(late).await.expect("removed"));
    assert_eq!(other.find_signal(&run("r"), "approval").expect("read"), None);
}
