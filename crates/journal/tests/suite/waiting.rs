//! External answers: sent before or during the wait, or by another process; and the timeout without one.

use std::time::{Duration, Instant};

use fusee_journal::{Branch, DurableRun, RunAborted, SqliteRun};
use serde_json::{Value, json};

use crate::kit::*;

const LONG: Duration = Duration::from_secs(20);

async fn wait(engine: &SqliteRun, name: &str, limit: Duration) -> Result<Option<Value>, RunAborted> {
    engine.wait(&Branch::main(), name, limit).await
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
async fn an_answer_of_null_is_an_answer() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    engine.signal("a", Value::Null);
    assert_eq!(wait(&engine, "a", LONG).await.expect("answered"), Some(Value::Null));
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
    assert_eq!(error.to_string(), "run `r` not found; list runs with `fusee runs`");
}
