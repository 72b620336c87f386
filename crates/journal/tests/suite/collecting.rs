//! Garbage collection: ended runs are removed, open ones stay, and content goes with the last run that refers
//! to it.

use fusee_journal::{Branch, DurableRun, GcReport, Journal, JournalOptions, RunStatus, SqliteRun, StepKind};
use serde_json::json;

use crate::kit::*;

/// Text that occurs nowhere else.
fn noise(name: &str, n: usize) -> String {
    let seed = blake3::hash(format!("{name} {n}").as_bytes());
    seed.to_hex().repeat(300)
}

async fn record(journal: &Journal, name: &str, own: usize, shared: &str) -> std::sync::Arc<SqliteRun> {
    let engine = begin(journal, name).await;
    for n in 0..own {
        let text = noise(name, n);
        engine
            .record_step(call(StepKind::Tool, "t", json!([text, shared])), gives(shared))
            .await
            .expect("runs");
        engine.emit(&Branch::main(), message(shared));
    }
    engine.flush().await.expect("committed");
    engine
}

fn count(place: &Place, table: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    place.sql().query_row(&sql, [], |row| row.get(0)).expect("a count")
}

fn names(journal: &Journal) -> Vec<String> {
    journal.runs().expect("runs").into_iter().map(|row| row.id.to_string()).collect()
}

#[tokio::test]
async fn ended_runs_go_and_open_ones_stay_whole() {
    let place = Place::new();
    let journal = place.open();
    let shared = noise("shared", 0);
    for name in ["a", "b", "c"] {
        record(&journal, name, 20, &shared).await.finish(RunStatus::Completed).await.expect("ended");
    }
    let open = record(&journal, "open", 20, &shared).await;
    let kept = (journal.steps(&run("open")).expect("steps").len(), journaled(&journal, "open"));
    let size = || std::fs::metadata(place.path()).expect("a file").len();

    let GcReport { runs, before, after } = journal.collect(1).await.expect("collected");
    assert_eq!(runs, 2);
    assert!(after < before * 2 / 3, "{before} to {after}");
    assert_eq!(names(&journal), ["open", "c"]);
    assert_eq!(size(), after, "the file holds no free pages");
    assert!(std::fs::metadata(place.wal()).expect("a log").len() == 0, "nor does the log");

    assert_eq!(journal.collect(0).await.expect("collected").runs, 1);
    assert_eq!(names(&journal), ["open"]);
    assert_eq!((journal.steps(&run("open")).expect("steps").len(), journaled(&journal, "open")), kept);
    assert_eq!(count(&place, "blobs"), 21, "20 of its own and the shared one");
    assert_eq!(count(&place, "refs"), 21);

    open.finish(RunStatus::Cancelled).await.expect("it goes on");
    journal.collect(0).await.expect("collected");
    for table in ["runs", "steps", "events", "blobs", "refs", "signals"] {
        assert_eq!(count(&place, table), 0, "{table}");
    }
    assert!(size() < 100_000, "{} bytes", size());
    assert!(journal.check().expect("a check").is_empty());
}

#[tokio::test]
async fn a_file_over_its_limit_makes_room_when_a_run_begins() {
    let place = Place::new();
    let journal = place.open_with(JournalOptions { max_bytes: 2 << 20, ..JournalOptions::default() });
    let _open = record(&journal, "open", 10, "").await;
    for n in 0..20 {
        record(&journal, &format!("run-{n:02}"), 20, "")
            .await
            .finish(RunStatus::Failed)
            .await
            .expect("ended");
    }
    let size = std::fs::metadata(place.path()).expect("a file").len();
    assert!(size < 3 << 20, "{size} bytes");
    let left = names(&journal);
    assert_eq!(left.first().map(String::as_str), Some("run-19"), "the newest is there");
    assert_eq!(left.last().map(String::as_str), Some("open"), "what is open stays");
    assert!((2..=5).contains(&left.len()), "{left:?}");
    assert!(
        left.is_sorted_by(|one, other| one == "open" || other == "open" || one > other),
        "the oldest go first: {left:?}"
    );
}

#[tokio::test]
async fn a_file_of_open_runs_over_the_limit_takes_new_ones() {
    let place = Place::new();
    let journal = place.open_with(JournalOptions { max_bytes: 100_000, ..JournalOptions::default() });
    let _open = record(&journal, "open", 20, "").await;
    record(&journal, "more", 1, "").await.finish(RunStatus::Completed).await.expect("ended");
    assert_eq!(names(&journal), ["more", "open"]);
}

#[tokio::test]
async fn a_run_that_was_removed_while_it_was_looked_at_cannot_be_written_to() {
    let place = Place::new();
    let journal = place.open();
    record(&journal, "r", 2, "").await.finish(RunStatus::Completed).await.expect("ended");
    let engine = resume(&journal, "r");
    assert_eq!(journal.collect(0).await.expect("collected").runs, 1);
    engine.emit(&Branch::main(), message("too late"));
    engine.note(&Branch::main(), message("too late"));
    engine.flush().await.expect_err("the run is gone");
    assert_eq!(count(&place, "events"), 0);
    // Its row id is not reused, so none of its data can turn up in another run.
    let next = begin(&journal, "next").await;
    next.finish(RunStatus::Completed).await.expect("ended");
    assert_eq!(journaled(&journal, "next"), []);
}

#[tokio::test]
async fn another_handle_goes_on_while_one_collects() {
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    for n in 0..30 {
        let done = record(&one, &format!("r{n}"), 5, "").await;
        done.finish(RunStatus::Completed).await.expect("ended");
    }
    let working = async {
        let engine = begin(&other, "working").await;
        for n in 0..200 {
            engine.emit(&Branch::main(), message(n.to_string()));
            engine.flush().await.expect("committed");
        }
    };
    let (collected, ()) = tokio::join!(one.collect(0), working);
    assert!(collected.expect("collected").runs >= 30);
    assert_eq!(texts(&journaled(&one, "working")), (0..200).map(|n| n.to_string()).collect::<Vec<_>>());
}
