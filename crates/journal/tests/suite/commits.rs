//! When and what is committed: everything before it takes effect, and with as few commits as that requires.

use std::time::Duration;

use fusee_journal::{Branch, DurableRun, RunStatus, SqliteRun, StepKind};
use serde_json::Value;

use crate::kit::*;

/// Number of commits in the WAL: the frames that record the database size after a commit.
fn commits(place: &Place) -> usize {
    let wal = std::fs::read(place.wal()).expect("a write-ahead log");
    let page = u32::from_be_bytes(wal[8..12].try_into().expect("four bytes")) as usize;
    let ours = |frame: &&[u8]| frame.len() == page + 24 && frame[8..16] == wal[16..24];
    wal[32..].chunks(page + 24).take_while(ours).filter(|frame| frame[4..8] != [0; 4]).count()
}

async fn command(engine: &SqliteRun) {
    let shell = call(StepKind::Tool, "shell", Value::from("make"));
    done(engine.once(shell, intends("make"), gives("made")).await.expect("it runs"));
}

#[tokio::test]
async fn a_turn_with_a_command_costs_two_commits() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let main = Branch::main();
    ask(&engine, "first", gives("run make")).await.expect("asked");
    for _ in 0..3 {
        let before = commits(&place);
        engine.emit(&main, message("run make"));
        command(&engine).await;
        engine.emit(&main, message("made"));
        assert_eq!(commits(&place) - before, 1, "the reply with the intent of its call");
        ask(&engine, "next", gives("run make")).await.expect("asked");
        assert_eq!(commits(&place) - before, 2, "then the result");
    }
}

#[tokio::test]
async fn a_turn_that_only_looks_costs_one_commit() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    ask(&engine, "first", gives("look")).await.expect("asked");
    let before = commits(&place);
    for _ in 0..5 {
        engine
            .record_step(call(StepKind::Tool, "read_file", Value::Null), gives("text"))
            .await
            .expect("it runs");
    }
    ask(&engine, "next", gives("done")).await.expect("asked");
    assert_eq!(commits(&place) - before, 1);
}

#[tokio::test]
async fn opening_commits_nothing() {
    let place = Place::new();
    let made = place.open();
    assert_eq!(std::fs::read(place.wal()).unwrap_or_default(), Vec::<u8>::new(), "a new file");
    drop(begin(&made, "r").await);
    drop(made);
    let before = commits(&place);
    drop(place.open());
    assert_eq!(commits(&place), before);
}

#[tokio::test]
async fn nothing_to_commit_costs_nothing() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let before = commits(&place);
    for _ in 0..3 {
        engine.flush().await.expect("nothing to do");
    }
    assert_eq!(commits(&place), before);
}

#[tokio::test]
async fn a_model_is_not_asked_before_what_led_to_it_is_committed_by_whomever() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    engine.emit(&Branch::main(), message("what led to it"));
    let held = place.hold_writers();
    // One branch is committing everything pending when another makes a request.
    let mut committing = engine.flush();
    assert!(poll_once(&mut committing).is_pending());
    let asked = Counter::default();
    let mut asking = Box::pin(ask(&engine, "q", asked.gives("a")));
    let early = tokio::time::timeout(Duration::from_millis(100), &mut asking).await;
    assert!(early.is_err() && asked.count() == 0, "the model was asked before the commit");
    drop(held);
    asking.await.expect("asked");
    committing.await.expect("committed");
}

#[tokio::test]
async fn giving_up_on_a_commit_loses_nothing() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let held = place.hold_writers();
    // More than fits into the writer's queue.
    for n in 0..600 {
        engine.emit(&Branch::main(), message(n.to_string()));
        let _ = poll_once(&mut engine.flush());
    }
    drop(held);
    engine.finish(RunStatus::Completed).await.expect("ended");
    let expected: Vec<_> = (0..600).map(|n| n.to_string()).collect();
    assert_eq!(texts(&journaled(&journal, "r")), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_a_run_that_commit_at_once_keep_their_order() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let parts: Vec<_> = (0..8)
        .map(|part| {
            let engine = std::sync::Arc::clone(&engine);
            tokio::spawn(async move {
                let branch = Branch::main().child(part);
                for n in 0..60 {
                    engine.emit(&branch, message(format!("{n}")));
                    let shell = call_on(&branch, StepKind::Tool, "shell", Value::Null);
                    done(engine.once(shell, intends(n), gives(n)).await.expect("it runs"));
                }
            })
        })
        .collect();
    for part in parts {
        part.await.expect("it ends");
    }
    engine.finish(RunStatus::Completed).await.expect("ended");
    let events = journaled(&journal, "r");
    for part in 0..8 {
        let branch = Branch::main().child(part);
        let own: Vec<_> = events.iter().filter(|event| event.task == branch).collect();
        assert_eq!(texts(own), (0..60).map(|n| n.to_string()).collect::<Vec<_>>());
    }
    let steps = journal.steps(&run("r")).expect("steps");
    assert_eq!(steps.len(), 480);
    assert!(steps.iter().all(|step| step.result == Some(step.key.n.into())), "a result was lost");
}

/// Makes the database reject one event.
fn refuse_boom(place: &Place) {
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.body LIKE '%boom%' \
                  BEGIN SELECT RAISE(ABORT, 'refused'); END";
    place.sql().execute_batch(refuse).expect("a trigger");
}

#[tokio::test]
async fn after_a_failed_commit_a_run_goes_no_further_and_leaves_no_hole() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    ask(&engine, "one", gives(1)).await.expect("asked");
    engine.flush().await.expect("committed");
    refuse_boom(&place);
    engine.emit(&Branch::main(), message("boom"));
    let stop = ask(&engine, "two", never()).await.expect_err("it cannot be written");
    let output = format!("the journal {} failed: refused", place.path().display());
    assert_eq!(stop.to_string(), output);
    place.sql().execute_batch("DROP TRIGGER refuse").expect("dropped");
    // The failed step is not in the journal, so no later one may be.
    assert_eq!(ask(&engine, "three", never()).await.expect_err("stopped").to_string(), output);
    assert_eq!(engine.flush().await.expect_err("stopped").to_string(), output);
    assert_eq!(engine.finish(RunStatus::Completed).await.expect_err("stopped").to_string(), output);
    drop(engine);
    let engine = resume(&journal, "r");
    assert_eq!(ask(&engine, "one", never()).await.expect("recorded"), 1);
    assert_eq!(ask(&engine, "two", gives(2)).await.expect("asked"), 2);
    engine.finish(RunStatus::Completed).await.expect("ended");
}

#[tokio::test]
async fn one_runs_failed_commit_is_no_other_runs() {
    let place = Place::new();
    let journal = place.open();
    let (first, bad, good) =
        (begin(&journal, "first").await, begin(&journal, "bad").await, begin(&journal, "good").await);
    refuse_boom(&place);
    let held = place.hold_writers();
    let main = Branch::main();
    // The writer is blocked on the first; the others queue up behind it.
    first.emit(&main, message("first"));
    let mut committing = first.flush();
    assert!(poll_once(&mut committing).is_pending());
    tokio::time::sleep(Duration::from_millis(50)).await;
    bad.emit(&main, message("boom"));
    good.emit(&main, message("good"));
    let release = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(held);
    };
    let (_, first, bad, good) = tokio::join!(release, committing, bad.flush(), good.flush());
    first.expect("committed");
    good.expect("committed");
    bad.expect_err("refused");
    assert_eq!(texts(&journaled(&journal, "good")), ["good"]);
}
