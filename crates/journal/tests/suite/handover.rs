//! A run that changes hands between processes: parked by one, resumed and watched by others.

use std::sync::Arc;
use std::time::Duration;

use fusee_journal::{Branch, DurableRun, EventTail, RunAborted, RunStatus, StepBody, StepKind};
use serde_json::json;
use tokio::sync::Notify;

use crate::kit::*;

#[tokio::test]
async fn a_parked_run_finishes_what_must_not_repeat_and_starts_nothing_more() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let go = Arc::new(Notify::new());
    let (working, gate) = (Arc::clone(&engine), Arc::clone(&go));
    let program = tokio::spawn(async move {
        let body: StepBody<'_> = Box::new(move || {
            Box::pin(async move {
                gate.notified().await;
                json!("ran")
            })
        });
        let tool = call(StepKind::Tool, "shell", json!(null));
        working.once(tool.clone(), intends("first"), body).await.expect("it ends");
        working.once(tool, intends("second"), never()).await
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut parking = Box::pin(engine.park());
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut parking).await.is_err(), "it waits");
    assert!(journal.is_active(&run("r")));
    go.notify_one();
    parking.await.expect("parked");
    assert!(!journal.is_active(&run("r")), "the lock is free");
    program.abort();
    // Nothing that is left here can write to the run any more.
    assert!(matches!(engine.flush().await, Err(RunAborted::HandedOver)));
    let steps = journal.steps(&run("r")).expect("read");
    let results: Vec<_> = steps.iter().map(|step| step.result.clone()).collect();
    assert_eq!(results, [Some(json!("ran"))]);
    let resumed = resume(&place.open(), "r");
    let again = resumed.once(call(StepKind::Tool, "shell", json!(null)), intends("first"), never()).await;
    assert_eq!(done(again.expect("recorded")).value, json!("ran"));
}

#[tokio::test]
async fn a_watcher_sees_the_events_of_another_handle_and_the_end_of_its_process() {
    let place = Place::new();
    let (journal, other) = (place.open(), place.open());
    let engine = begin(&journal, "r").await;
    let mut tail = EventTail::new(other.clone(), run("r"), 0);
    engine.emit(&Branch::main(), message("one"));
    engine.flush().await.expect("committed");
    let first = tail.next().await.expect("read").expect("an event");
    assert_eq!(texts([&*first]), ["one"]);
    // A reader that gives up waiting more often than the file is looked at still gets the next one.
    engine.emit(&Branch::main(), message("two"));
    engine.flush().await.expect("committed");
    let mut second = None;
    for _ in 0..100 {
        if let Ok(event) = tokio::time::timeout(Duration::from_millis(20), tail.next()).await {
            second = event.expect("read");
            break;
        }
    }
    assert_eq!(texts([&*second.expect("an event")]), ["two"]);
    // The process ends without ending the run.
    drop(engine);
    assert!(tail.next().await.expect("read").is_none());
    let resumed = resume(&journal, "r");
    let mut tail = EventTail::new(other, run("r"), 2);
    // The resumed program says again what is recorded.
    ["one", "two", "three"].iter().for_each(|text| resumed.emit(&Branch::main(), message(*text)));
    resumed.finish(RunStatus::Completed).await.expect("ended");
    let third = tail.next().await.expect("read").expect("an event");
    assert_eq!(texts([&*third]), ["three"]);
    assert!(tail.next().await.expect("read").is_none());
}

#[tokio::test]
async fn those_who_look_do_not_mistake_each_other_for_a_worker() {
    let place = Place::new();
    let journal = place.open();
    // As a killed process leaves it: a lock file that nobody holds.
    std::fs::create_dir_all(place.directory().join("locks")).expect("a folder");
    std::fs::write(place.directory().join("locks/r.lock"), "1").expect("a file");
    let looking = |_| {
        let journal = journal.clone();
        std::thread::spawn(move || (0..2_000).filter(|_| journal.is_active(&run("r"))).count())
    };
    let lookers: Vec<_> = (0..8).map(looking).collect();
    let mistaken: usize = lookers.into_iter().map(|looker| looker.join().expect("looked")).sum();
    assert_eq!(mistaken, 0);
    // Whoever takes the lock while others look gets it.
    let lookers: Vec<_> = (0..2).map(looking).collect();
    drop(begin(&journal, "r").await);
    for _ in 0..50 {
        drop(resume(&journal, "r"));
    }
    lookers.into_iter().for_each(|looker| drop(looker.join()));
    let worker = resume(&journal, "r");
    assert!(journal.is_active(&run("r")));
    drop(worker);
    assert!(!journal.is_active(&run("r")));
}
