//! Parallel children: bounded, in order, and read back or replayed like everything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fusee_journal::{
    BoxFuture, Branch, ChildBody, ChildFailure, DurableRun, RunAborted, RunStatus, SqliteRun, StepKind,
    StepRequest,
};
use serde_json::{Value, json};

use crate::kit::*;

/// Children that call the model twice and report; their arguments select how they behave.
#[derive(Default)]
struct Children {
    now: AtomicUsize,
    most: AtomicUsize,
    performed: AtomicUsize,
    ended: AtomicUsize,
}

impl Children {
    async fn child(&self, engine: Arc<dyn DurableRun>, call: StepRequest) -> Result<Value, ChildFailure> {
        self.performed.fetch_add(1, Ordering::SeqCst);
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let n = call.args["n"].as_u64().unwrap_or_default();
        engine.emit(&call.branch, message(format!("child {n}")));
        let ask = |q: &str| call_on(&call.branch, StepKind::Model, "m", json!([n, q]));
        let fault = |stop: RunAborted| ChildFailure { kind: "stopped".to_owned(), message: stop.to_string() };
        engine.record_step(ask("one"), gives(n)).await.map_err(fault)?;
        // The later a child starts, the earlier it ends.
        tokio::time::sleep(Duration::from_millis(20_u64.saturating_sub(n))).await;
        let two = engine.record_step(ask("two"), gives(n * 10)).await.map_err(fault)?;
        self.now.fetch_sub(1, Ordering::SeqCst);
        self.ended.fetch_add(1, Ordering::SeqCst);
        match call.args["end"].as_str() {
            Some("fail") => {
                Err(ChildFailure { kind: "failed".to_owned(), message: format!("child {n} failed") })
            }
            Some("panic") => panic!("child {n} panicked"),
            _ => Ok(two.value),
        }
    }
}

struct Performing(Arc<Children>);

impl ChildBody for Performing {
    fn perform(
        &self,
        engine: Arc<dyn DurableRun>,
        call: StepRequest,
    ) -> BoxFuture<'static, Result<Value, ChildFailure>> {
        let children = Arc::clone(&self.0);
        Box::pin(async move { children.child(engine, call).await })
    }
}

fn calls(ends: &[&str]) -> Vec<StepRequest> {
    let call = |(n, end): (usize, &&str)| {
        call_on(&Branch::main().child(n), StepKind::FanOut, "child", json!({"n": n, "end": end}))
    };
    ends.iter().enumerate().map(call).collect()
}

fn performing() -> (Arc<Children>, Option<Arc<dyn ChildBody>>) {
    let children = Arc::<Children>::default();
    let perform: Arc<dyn ChildBody> = Arc::new(Performing(Arc::clone(&children)));
    (children, Some(perform))
}

async fn recorded(
    place: &Place,
    ends: &[&str],
) -> (fusee_journal::Journal, Vec<Result<Value, ChildFailure>>) {
    let journal = place.open();
    let (_, perform) = performing();
    let engine = SqliteRun::begin(&journal, &run("r"), "", perform).await.expect("a new run");
    let results = engine.fan_out(&Branch::main(), calls(ends), 4).await.expect("they end");
    engine.emit(&Branch::main(), message("all ended"));
    engine.finish(RunStatus::Completed).await.expect("ended");
    (journal, results)
}

#[tokio::test]
async fn results_come_in_the_order_of_the_calls_and_no_more_run_than_allowed() {
    let place = Place::new();
    let journal = place.open();
    let (children, perform) = performing();
    let engine = SqliteRun::begin(&journal, &run("r"), "", perform).await.expect("a new run");
    let results = engine.fan_out(&Branch::main(), calls(&["ok"; 12]), 3).await.expect("they end");
    let expected: Vec<_> = (0..12).map(|n| Ok(json!(n * 10))).collect();
    assert_eq!(results, expected);
    assert_eq!(children.most.load(Ordering::SeqCst), 3);
    assert_eq!(engine.fan_out(&Branch::main(), Vec::new(), 3).await.expect("nothing to do"), []);
    let results = engine.fan_out(&Branch::main().child("x"), calls(&["ok"]), 0).await.expect("they end");
    assert_eq!(results.len(), 1, "a limit of none is a limit of one");
}

#[tokio::test]
async fn a_child_that_fails_or_panics_is_a_fault_of_its_own() {
    let place = Place::new();
    let (_, results) = recorded(&place, &["ok", "fail", "panic", "ok"]).await;
    let fault =
        |kind: &str, message: &str| Err(ChildFailure { kind: kind.to_owned(), message: message.to_owned() });
    let expected = [
        Ok(json!(0)),
        fault("failed", "child 1 failed"),
        fault("unexpected_error", "child 2 panicked"),
        Ok(json!(30)),
    ];
    assert_eq!(results, expected);
}

#[tokio::test]
async fn children_that_all_ended_are_not_run_again_on_resume() {
    let place = Place::new();
    let (journal, results) = recorded(&place, &["ok", "fail", "ok"]).await;
    let (children, perform) = performing();
    let engine = SqliteRun::resume(&journal, &run("r"), perform).expect("resumable");
    let again = engine.fan_out(&Branch::main(), calls(&["ok", "fail", "ok"]), 4).await.expect("recorded");
    assert_eq!(again, results);
    assert_eq!(children.performed.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_replay_runs_the_children_too_and_finds_nothing_left() {
    let place = Place::new();
    let ends = ["ok", "fail", "panic"];
    let (journal, results) = recorded(&place, &ends).await;
    let (children, perform) = performing();
    let engine = SqliteRun::replay(&journal, &run("r"), perform).expect("replayable");
    assert_eq!(engine.fan_out(&Branch::main(), calls(&ends), 4).await.expect("recorded"), results);
    engine.emit(&Branch::main(), message("all ended"));
    engine.finish(RunStatus::Completed).await.expect("all that is recorded was used");
    assert_eq!(children.performed.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_difference_within_a_child_stops_the_replay() {
    let place = Place::new();
    let (journal, _) = recorded(&place, &["ok", "ok"]).await;
    struct Other;
    impl ChildBody for Other {
        fn perform(
            &self,
            engine: Arc<dyn DurableRun>,
            call: StepRequest,
        ) -> BoxFuture<'static, Result<Value, ChildFailure>> {
            Box::pin(async move {
                let ask = call_on(&call.branch, StepKind::Model, "m", json!("something else"));
                let answer = engine.record_step(ask, never()).await;
                answer
                    .map(|recorded| recorded.value)
                    .map_err(|stop| ChildFailure { kind: "stopped".to_owned(), message: stop.to_string() })
            })
        }
    }
    let engine = SqliteRun::replay(&journal, &run("r"), Some(Arc::new(Other))).expect("replayable");
    let stop = engine.fan_out(&Branch::main(), calls(&["ok", "ok"]), 1).await.expect_err("it differs");
    let told = stop.to_string();
    assert!(
        told.starts_with(
            "the run diverges from its journal at main/0 step 0: model `m` has different arguments\n"
        ),
        "{told}"
    );
}

#[tokio::test]
async fn children_end_with_the_one_who_asked_for_them() {
    let place = Place::new();
    let journal = place.open();
    let (children, perform) = performing();
    let engine = SqliteRun::begin(&journal, &run("r"), "", perform).await.expect("a new run");
    let main = Branch::main();
    let all_began = async {
        while children.performed.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = engine.fan_out(&main, calls(&["ok"; 3]), 3) => panic!("they end too soon"),
        () = all_began => {}
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(children.ended.load(Ordering::SeqCst), 0, "nobody waits for them any more");
}

#[tokio::test]
async fn a_run_without_child_tasks_says_so() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let results = engine.fan_out(&Branch::main(), calls(&["ok"]), 1).await.expect("answered");
    assert_eq!(
        results[0].as_ref().expect_err("nobody performs it").to_string(),
        "configuration_error: this run has no child tasks"
    );
}
