//! A run whose batches another system records first, and its copy in another journal.

use fusee_journal::{
    Branch, DurableRun, JournalError, JournalOptions, OnceOutcome, Relay, RunAborted, RunStatus, SqliteRun,
    StepKind,
};
use serde_json::Value;

use crate::kit::*;

fn relayed() -> (JournalOptions, tokio::sync::mpsc::Receiver<fusee_journal::OutgoingBatch>) {
    let (relay, batches) = Relay::new();
    (JournalOptions { relay: Some(relay), ..JournalOptions::default() }, batches)
}

#[tokio::test]
async fn nothing_happens_before_the_relay_has_recorded_it_and_the_copy_continues_the_run() {
    let (place, ran) = (Place::new(), Counter::default());
    let (options, mut batches) = relayed();
    let journal = place.open_with(options);
    let run = begin(&journal, "r").await;
    let long = "x".repeat(10_000);
    run.emit(&Branch::main(), warning(long.clone()));
    let effect = run.once(call(StepKind::Tool, "shell", Value::Null), intends("intent"), ran.gives("done"));
    let mut effect = std::pin::pin!(effect);
    let batch = tokio::select! {
        batch = batches.recv() => batch.expect("a batch"),
        _ = &mut effect => panic!("the effect did not wait"),
    };
    assert_eq!(ran.count(), 0);
    let first = batch.encode();
    journal.commit_relayed(batch).await.expect("committed");
    assert!(matches!(effect.await.expect("it runs"), OnceOutcome::Done(_)));
    assert_eq!(ran.count(), 1);

    // The copy has the intent without the result: another process must not run it again.
    let elsewhere = Place::new();
    let other = elsewhere.open();
    let copy = begin(&other, "r").await;
    let mut events = copy.events();
    assert_eq!(copy.apply(&first).await.expect("applied"), None);
    let event = events.next().await.expect("read").expect("one");
    assert_eq!((event.seq, &event.event), (1, &warning(long)));
    copy.close();
    assert!(events.next().await.expect("read").is_none());
    drop(copy);
    let taken_over = resume(&other, "r");
    let again = call(StepKind::Tool, "shell", Value::Null);
    let found = taken_over.once(again, intends("again"), ran.gives("twice")).await;
    assert!(matches!(found, Ok(OnceOutcome::Interrupted { intent, .. }) if intent == "intent"));
    assert_eq!(ran.count(), 1);
}

#[tokio::test]
async fn a_refused_batch_stops_the_run() {
    let (place, ran) = (Place::new(), Counter::default());
    let (options, mut batches) = relayed();
    let journal = place.open_with(options);
    let run = begin(&journal, "r").await;
    ask(&run, "q", ran.gives(1)).await.expect("nothing to record yet");
    let (flushed, ()) = tokio::join!(run.flush(), async {
        batches.recv().await.expect("a batch").refuse("another worker has the run");
    });
    let error = flushed.expect_err("refused");
    assert!(matches!(&error, RunAborted::Journal(JournalError::Relay { .. })), "{error}");
    assert!(error.to_string().contains("another worker has the run"));
    assert!(ask(&run, "q", ran.gives(2)).await.is_err());
    drop(batches);
    assert!(place.open().steps(&crate::kit::run("r")).expect("steps").is_empty());
}

#[tokio::test]
async fn the_final_status_arrives_in_the_copy() {
    let place = Place::new();
    let (options, mut batches) = relayed();
    let journal = place.open_with(options);
    let run = begin(&journal, "r").await;
    let (finished, entry) = tokio::join!(run.finish(RunStatus::Completed), async {
        let batch = batches.recv().await.expect("a batch");
        let entry = batch.encode();
        journal.commit_relayed(batch).await.expect("committed");
        entry
    });
    finished.expect("finished");
    let elsewhere = Place::new();
    let other = elsewhere.open();
    let copy: std::sync::Arc<SqliteRun> = begin(&other, "r").await;
    assert_eq!(copy.apply(&entry).await.expect("applied"), Some(RunStatus::Completed));
    assert_eq!(other.run("r").expect("a run").status, RunStatus::Completed);
}
