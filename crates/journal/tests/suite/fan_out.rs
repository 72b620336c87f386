//! Parallel children: bounded, recorded in order, and not run again once their end is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fusee_journal::{
    Branch, ChildBody, ChildEnd, DurableRun, FanOutEnd, RunAborted, RunStatus, SqliteRun, StepKind,
    StepRequest, StepResult,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::kit::*;

/// Children that ask the model twice; `ends` selects how each of them ends.
#[derive(Default)]
struct Children {
    now: AtomicUsize,
    most: AtomicUsize,
    started: AtomicUsize,
    ended: AtomicUsize,
}

impl Children {
    fn bodies<'a>(&'a self, engine: &'a Arc<SqliteRun>, ends: &'a [&'a str]) -> Vec<ChildBody<'a>> {
        let body = |(n, end): (usize, &'a &'a str)| -> ChildBody<'a> {
            Box::new(move |stop| Box::pin(self.child(engine, n as u64, end, stop)))
        };
        ends.iter().enumerate().map(body).collect()
    }

    async fn child(
        &self,
        engine: &SqliteRun,
        n: u64,
        end: &str,
        stop: CancellationToken,
    ) -> Result<ChildEnd, RunAborted> {
        self.started.fetch_add(1, Ordering::SeqCst);
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let branch = Branch::main().child(n);
        engine.emit(&branch, message(format!("child {n}")));
        let ask = |q: &str| call_on(&branch, StepKind::Model, "m", json!([n, q]));
        engine.record_step(ask("one"), gives(n)).await?;
        if end == "waits" {
            stop.cancelled().await;
            return Ok(ChildEnd::Stopped(json!(1)));
        }
        // The later a child starts, the earlier it ends.
        tokio::time::sleep(Duration::from_millis(20_u64.saturating_sub(n))).await;
        let two = engine.record_step(ask("two"), gives(n * 10)).await?;
        self.now.fetch_sub(1, Ordering::SeqCst);
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(if end == "fails" { ChildEnd::Failed(two.value) } else { ChildEnd::Done(two.value) })
    }
}

fn request() -> StepRequest {
    call(StepKind::FanOut, "children", json!("some"))
}

async fn fan_out(
    engine: &Arc<SqliteRun>,
    children: &Children,
    ends: &[&str],
    limit: usize,
) -> Result<StepResult<FanOutEnd>, RunAborted> {
    let cancel = CancellationToken::new();
    engine.fan_out(request(), children.bodies(engine, ends), limit, &cancel).await
}

fn reports(reports: &[i64]) -> Vec<Value> {
    reports.iter().map(|report| json!(report)).collect()
}

#[tokio::test]
async fn what_an_ended_child_did_is_committed_while_the_others_work() {
    let file = Place::new();
    let journal = file.open();
    let engine = begin(&journal, "r").await;
    let shell = |n: u64| call_on(&Branch::main().child(n), StepKind::Tool, "shell", json!(n));
    let quick: ChildBody<'_> = Box::new(|_| {
        Box::pin(async {
            done(engine.once(shell(0), intends("quick"), gives("made")).await?);
            Ok(ChildEnd::Done(json!(0)))
        })
    });
    let slow: ChildBody<'_> = Box::new(|_| {
        Box::pin(async {
            let has_result = || {
                let steps = journal.steps(engine.run()).expect("steps");
                steps.iter().any(|row| row.result == Some(json!("made")))
            };
            let seen = async {
                while !has_result() {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(5), seen)
                .await
                .expect("committed before the others end");
            Ok(ChildEnd::Done(json!(1)))
        })
    });
    let cancel = CancellationToken::new();
    let end = engine.fan_out(request(), vec![quick, slow], 2, &cancel).await.expect("they end").value;
    assert_eq!(end.reports, reports(&[0, 1]));
}

#[tokio::test]
async fn reports_come_in_the_order_of_the_children_and_no_more_run_than_allowed() {
    let place = Place::new();
    let journal = place.open();
    let children = Children::default();
    let engine = begin(&journal, "r").await;
    let end = fan_out(&engine, &children, &["ends"; 12], 3).await.expect("they end").value;
    let all: Vec<i64> = (0..12).map(|n| n * 10).collect();
    assert_eq!(end, FanOutEnd { reports: reports(&all), ..FanOutEnd::default() });
    assert_eq!(children.most.load(Ordering::SeqCst), 3);
    let none = fan_out(&engine, &children, &[], 3).await.expect("nothing to do").value;
    assert_eq!(none, FanOutEnd::default());
    let end = fan_out(&engine, &children, &["ends"], 0).await.expect("it ends").value;
    assert_eq!(end.reports.len(), 1, "a limit of 0 is a limit of 1");
}

#[tokio::test]
async fn the_first_failure_stops_the_others_and_starts_no_more() {
    let place = Place::new();
    let engine = begin(&place.open(), "r").await;
    let children = Children::default();
    let end = fan_out(&engine, &children, &["waits", "fails", "ends"], 2).await.expect("they end").value;
    let expected =
        FanOutEnd { failed: Some(1), reports: reports(&[1, 10]), stopped: vec![0], cancelled: false };
    assert_eq!(end, expected);
    assert_eq!(children.started.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_cancellation_stops_all_of_them() {
    let place = Place::new();
    let engine = begin(&place.open(), "r").await;
    let (children, cancel) = (Children::default(), CancellationToken::new());
    let ends = ["waits", "waits", "ends"];
    let cancelling = async {
        while children.started.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let running = engine.fan_out(request(), children.bodies(&engine, &ends), 2, &cancel);
    let (end, ()) = tokio::join!(running, cancelling);
    let mut end = end.expect("they end").value;
    end.stopped.sort_unstable();
    let expected =
        FanOutEnd { failed: None, reports: reports(&[1, 1]), stopped: vec![0, 1], cancelled: true };
    assert_eq!(end, expected);
}

#[tokio::test]
async fn children_whose_end_is_recorded_do_not_run_again() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let ends = ["ends", "fails"];
    let first = fan_out(&engine, &Children::default(), &ends, 4).await.expect("they end");
    engine.flush().await.expect("committed");
    drop(engine);
    let (engine, children) = (resume(&journal, "r"), Children::default());
    let again = fan_out(&engine, &children, &ends, 4).await.expect("recorded");
    assert_eq!((again.value, again.replayed, first.replayed), (first.value, true, false));
    assert_eq!(children.started.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn children_that_were_interrupted_continue_after_their_last_step() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let interrupted = Children::default();
    let all_asked = async {
        while engine.position(&Branch::main().child(1)) < 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = fan_out(&engine, &interrupted, &["waits", "waits"], 2) => panic!("they end too soon"),
        () = all_asked => {}
    }
    engine.flush().await.expect("committed");
    drop(engine);
    let (engine, children) = (resume(&journal, "r"), Children::default());
    let end = fan_out(&engine, &children, &["ends", "ends"], 2).await.expect("they end").value;
    assert_eq!(end, FanOutEnd { reports: reports(&[0, 10]), ..FanOutEnd::default() });
    engine.finish(RunStatus::Completed).await.expect("ended");
    let output = journaled(&journal, "r");
    assert_eq!(texts(&output), ["child 0", "child 1"], "their events are not repeated");
}

#[tokio::test]
async fn a_child_that_cannot_go_on_stops_the_run_and_records_nothing() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let aborted: ChildBody<'_> =
        Box::new(|_| Box::pin(async { Err(RunAborted::Unreadable("damaged".to_owned())) }));
    let cancel = CancellationToken::new();
    let stop = engine.fan_out(request(), vec![aborted], 1, &cancel).await.expect_err("it cannot go on");
    assert_eq!(stop.to_string(), "a recorded step cannot be read back: damaged");
    engine.flush().await.expect("committed");
    assert_eq!(journal.steps(&run("r")).expect("its steps").len(), 0);
}

#[tokio::test]
async fn children_end_with_the_one_who_asked_for_them() {
    let place = Place::new();
    let engine = begin(&place.open(), "r").await;
    let children = Children::default();
    let all_began = async {
        while children.started.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = fan_out(&engine, &children, &["ends"; 3], 3) => panic!("they end too soon"),
        () = all_began => {}
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(children.ended.load(Ordering::SeqCst), 0, "nobody waits for them any more");
}
