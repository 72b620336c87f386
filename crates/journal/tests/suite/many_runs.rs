//! Many runs share one file, one writer and one process.

use std::sync::Arc;

use fusee_journal::{Branch, DurableRun, EventRecord, Journal, RunStatus, SqliteRun, StepKind};
use serde_json::json;

use crate::kit::*;

const RUNS: usize = 500;
const TURNS: usize = 4;

async fn one(journal: Journal, name: String) -> Vec<Arc<EventRecord>> {
    let engine = SqliteRun::begin(&journal, &run(&name), &name).await.expect("a new run");
    let mut events = engine.events();
    let reading = tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Some(event) = events.next().await.expect("readable") {
            seen.push(event);
        }
        seen
    });
    let main = Branch::main();
    for turn in 0..TURNS {
        engine.emit(&main, message(format!("{name} turn {turn}")));
        engine.publish_delta(&main, piece("a"));
        ask(&engine, "q", gives(format!("{name} {turn}"))).await.expect("asked");
        tokio::task::yield_now().await;
        let shell = call(StepKind::Tool, "shell", json!({ "turn": turn }));
        done(engine.once(shell, intends(turn), gives(format!("{name} {turn}"))).await.expect("runs"));
        engine.emit(&main, message(format!("{name} result {turn}")));
    }
    engine.finish(RunStatus::Completed).await.expect("ended");
    reading.await.expect("it ends with the run")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_runs_at_once_lose_nothing_and_keep_their_order() {
    let place = Place::new();
    let journal = place.open();
    let running: Vec<_> = (0..RUNS).map(|n| tokio::spawn(one(journal.clone(), format!("run-{n}")))).collect();
    for (n, running) in running.into_iter().enumerate() {
        let seen = running.await.expect("it ends");
        let name = format!("run-{n}");
        let expected: Vec<_> = (0..TURNS)
            .flat_map(|turn| [format!("{name} turn {turn}"), format!("{name} result {turn}")])
            .collect();
        assert_eq!(texts(seen.iter().map(AsRef::as_ref)), expected, "live");
        assert_eq!(texts(&journaled(&journal, &name)), expected, "from the journal");
        assert!(seen.windows(2).all(|pair| pair[0].seq < pair[1].seq), "numbers rise");
        let steps = journal.steps(&run(&name)).expect("steps");
        let results: Vec<_> = steps.iter().map(|step| step.result.clone().expect("a result")).collect();
        let expected: Vec<_> = (0..TURNS)
            .flat_map(|turn| [json!(format!("{name} {turn}")), json!(format!("{name} {turn}"))])
            .collect();
        assert_eq!(results, expected);
    }
    assert!(journal.check().expect("a check").is_empty());
    assert_eq!(journal.runs().expect("runs").len(), RUNS);
}

#[test]
fn the_log_stays_bounded_while_many_processes_write() {
    let place = Place::new();
    drop(place.open());
    let largest = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (place, largest) = (&place, &largest);
            scope.spawn(move || {
                // Every handle has connections of its own, like another process.
                let journal = place.open();
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
                runtime.block_on(async {
                    for n in 0..8 {
                        let engine = begin(&journal, &format!("r-{thread}-{n}")).await;
                        for step in 0..20 {
                            let text = format!("{thread} {n} {step} ").repeat(10_000);
                            let tool = call(StepKind::Tool, "t", json!({ "step": step }));
                            engine.record_step(tool, gives(text)).await.expect("runs");
                            engine.flush().await.expect("committed");
                        }
                        engine.finish(RunStatus::Completed).await.expect("ended");
                        let size = std::fs::metadata(place.wal()).map_or(0, |file| file.len());
                        largest.fetch_max(size, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            });
        }
    });
    let largest = largest.into_inner() >> 20;
    assert!(largest < 48, "a log of {largest} MB for about 100 MB of data");
}
