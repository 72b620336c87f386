//! The handle, its writer thread and its event streams end when they should, wherever they are dropped.

use std::time::Duration;

use fusee_journal::{Branch, DurableRun, Journal, RunStatus, StepKind};
use serde_json::json;

use crate::kit::*;

#[tokio::test]
async fn the_last_handle_may_be_dropped_inside_a_task() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    engine.emit(&Branch::main(), message("last words"));
    let _ = poll_once(&mut engine.flush());
    drop(journal);
    // This is the runtime's only thread: a writer that needed it in order to end would never end.
    drop(engine);
    let journal = place.open();
    assert_eq!(texts(&journaled(&journal, "r")), ["last words"], "what was handed over is committed");
}

#[test]
fn a_handle_outlives_its_runtime() {
    let place = Place::new();
    let journal = place.open();
    for name in ["one", "two"] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            begin(&journal, name).await.finish(RunStatus::Completed).await.expect("ended");
        });
    }
    assert_eq!(journal.runs().expect("runs").len(), 2);
}

#[tokio::test]
async fn a_stream_ends_when_its_run_is_dropped_unfinished() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let mut events = engine.events();
    engine.emit(&Branch::main(), message("committed"));
    let _ = poll_once(&mut engine.flush());
    engine.emit(&Branch::main(), message("never committed"));
    drop(engine);
    let mut seen = Vec::new();
    let reading = async {
        while let Some(event) = events.next().await.expect("readable") {
            seen.push(event);
        }
    };
    tokio::time::timeout(Duration::from_secs(5), reading).await.expect("it ends");
    assert_eq!(texts(seen.iter().map(AsRef::as_ref)), ["committed"]);
}

#[tokio::test]
async fn an_abandoned_run_tells_its_readers_and_can_be_resumed() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let mut events = engine.events();
    engine.emit(&Branch::main(), message("one"));
    engine.flush().await.expect("committed");
    engine.abandon(&Branch::main(), warning("the disk is full"));
    let mut seen = Vec::new();
    while let Some(event) = events.next().await.expect("readable") {
        seen.push(event);
    }
    assert_eq!(texts(seen.iter().map(AsRef::as_ref)), ["one", "the disk is full"]);
    assert_eq!(texts(&journaled(&journal, "r")), ["one"]);
    let again = resume(&journal, "r");
    again.finish(RunStatus::Completed).await.expect("ended");
}

#[tokio::test]
async fn a_handle_opened_to_read_refuses_to_write() {
    let place = Place::new();
    begin(&place.open(), "r").await.finish(RunStatus::Completed).await.expect("ended");
    let journal = Journal::open_to_read(&place.path(), clock()).expect("readable");
    let error = journal.collect(0).await.expect_err("only to read");
    assert_eq!(
        error.to_string(),
        format!(
            "cannot write the journal {}: it was opened read-only; make its directory writable or \
             use another one",
            place.path().display()
        )
    );
}

#[test]
fn a_journal_that_is_not_there_is_not_made_by_looking() {
    let place = Place::new();
    let error = Journal::open_to_read(&place.path(), clock()).err().expect("there is none").to_string();
    assert!(error.starts_with(&format!("cannot open the journal {}: ", place.path().display())), "{error}");
    assert!(!place.path().exists());
}

#[test]
fn many_may_make_the_journal_at_once() {
    for _ in 0..10 {
        let place = Place::new();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let place = &place;
                scope.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .expect("a runtime");
                    runtime.block_on(async {
                        let engine = begin(&place.open(), &format!("r{n}")).await;
                        let step = call(StepKind::Tool, "t", json!(n));
                        engine.record_step(step, gives(n)).await.expect("runs");
                        engine.flush().await.expect("committed");
                    });
                });
            }
        });
        assert_eq!(place.open().runs().expect("runs").len(), 8);
    }
}

#[tokio::test]
async fn the_log_stays_small_however_long_a_run_is_and_whoever_reads_it() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let mut reader = engine.events();
    let other = Journal::open_to_read(&place.path(), clock()).expect("readable");
    for n in 0..4000 {
        engine.emit(&Branch::main(), message(format!("{n} {}", "x".repeat(400))));
        engine.flush().await.expect("committed");
        if n % 100 == 0 {
            reader.next().await.expect("readable").expect("an event");
            other.events(&run("r"), 0, u64::MAX, 10).expect("readable");
        }
    }
    let size = std::fs::metadata(place.wal()).expect("a log").len();
    assert!(size < 8 << 20, "{size} bytes");
}
