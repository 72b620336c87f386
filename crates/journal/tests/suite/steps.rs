//! A step runs once, is recorded, and from then on is read back.

use fusee_journal::{Durability, DurableRun, Intention, JournalOptions, OnceOutcome, RunStatus, StepKind};
use serde_json::{Value, json};

use crate::kit::*;

#[tokio::test]
async fn a_step_runs_once_and_is_read_back_after_reopening() {
    let place = Place::new();
    let ran = Counter::default();
    {
        let journal = place.open();
        let engine = begin(&journal, "r").await;
        let fresh = engine
            .record_step(call(StepKind::Model, "m", json!({"q": 1})), ran.gives(json!({"a": "x"})))
            .await
            .expect("it runs");
        assert_eq!((fresh.value, fresh.at_ms, fresh.replayed), (json!({"a": "x"}), NOW, false));
        engine.flush().await.expect("it is committed");
    }
    let journal = place.open();
    let engine = resume(&journal, "r");
    let back = engine
        .record_step(call(StepKind::Model, "m", json!({"q": 1})), ran.gives("other"))
        .await
        .expect("known");
    assert_eq!((back.value, back.at_ms, back.replayed), (json!({"a": "x"}), NOW, true));
    assert_eq!(ran.count(), 1);
}

#[tokio::test]
async fn commits_that_wait_for_the_disk_hold_the_same() {
    let place = Place::new();
    let options = JournalOptions { durability: Durability::Power, ..JournalOptions::default() };
    let ran = Counter::default();
    for _ in 0..2 {
        let journal = place.open_with(options.clone());
        let engine = match journal.run("r") {
            Ok(_) => resume(&journal, "r"),
            Err(_) => begin(&journal, "r").await,
        };
        for n in 0..20 {
            ask(&engine, "q", ran.gives(n)).await.expect("asked");
        }
        engine.flush().await.expect("committed");
    }
    assert_eq!(ran.count(), 20);
    assert_eq!(place.open().steps(&run("r")).expect("steps").len(), 20);
}

#[tokio::test]
async fn a_step_that_was_not_committed_runs_again() {
    let place = Place::new();
    let ran = Counter::default();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    engine.record_step(call(StepKind::Tool, "read", Value::Null), ran.gives(1)).await.expect("it runs");
    drop(engine);
    let engine = resume(&journal, "r");
    engine.record_step(call(StepKind::Tool, "read", Value::Null), ran.gives(2)).await.expect("it runs");
    assert_eq!(ran.count(), 2);
}

#[tokio::test]
async fn a_once_that_ended_is_read_back() {
    let place = Place::new();
    let ran = Counter::default();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let args = json!({"command": "make"});
    let outcome = engine
        .once(call(StepKind::Tool, "shell", args.clone()), intends("make"), ran.gives(json!({"exit": 0})))
        .await
        .expect("it runs");
    assert!(!done(outcome).replayed);
    engine.flush().await.expect("it is committed");
    drop(engine);

    let engine = resume(&journal, "r");
    let outcome = engine
        .once(call(StepKind::Tool, "shell", args), intends("make"), ran.gives("again"))
        .await
        .expect("known");
    let back = done(outcome);
    assert_eq!((back.value, back.replayed), (json!({"exit": 0}), true));
    assert_eq!(ran.count(), 1);
}

#[tokio::test]
async fn an_intent_without_a_result_is_interrupted_and_settled_on_the_same_key() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    ask(&engine, "q", gives("a")).await.expect("asked");
    // Killed while the command runs: its body never completes.
    let shell = || call(StepKind::Tool, "shell", json!({"command": "rm x"}));
    let mut running =
        engine.once(shell(), intends(json!({"will": "rm x"})), Box::new(|| Box::pin(std::future::pending())));
    tokio::select! {
        _ = &mut running => panic!("it cannot end"),
        () = tokio::time::sleep(std::time::Duration::from_millis(100)) => {}
    }
    drop(running);
    drop(engine);

    for _ in 0..2 {
        // A crash before the settlement is committed changes nothing.
        let engine = resume(&journal, "r");
        ask(&engine, "q", never()).await.expect("recorded");
        let outcome = engine.once(shell(), intends("other"), never()).await.expect("found");
        let OnceOutcome::Interrupted { key, intent } = outcome else { panic!("it must not be done") };
        assert_eq!((key.to_string().as_str(), &intent), ("main step 1", &json!({"will": "rm x"})));
        engine.conclude(key, gives("unknown")).await.expect("settled");
    }

    let engine = resume(&journal, "r");
    ask(&engine, "q", never()).await.expect("recorded");
    let OnceOutcome::Interrupted { key, .. } =
        engine.once(shell(), intends(""), never()).await.expect("found")
    else {
        panic!("it must not be done")
    };
    let settled = engine.conclude(key, gives("settled")).await.expect("settled");
    assert_eq!((settled.value, settled.replayed), (json!("settled"), false));
    ask(&engine, "next", gives("b")).await.expect("asked");
    engine.finish(RunStatus::Completed).await.expect("ended");
    drop(engine);

    let engine = resume(&journal, "r");
    ask(&engine, "q", never()).await.expect("recorded");
    let back = done(engine.once(shell(), intends(""), never()).await.expect("found"));
    assert_eq!((back.value, back.replayed), (json!("settled"), true));
    assert_eq!(ask(&engine, "next", never()).await.expect("recorded"), json!("b"));

    let steps = journal.steps(&run("r")).expect("steps");
    let intents: Vec<_> = steps.iter().map(|step| (step.key.n, step.intent.clone())).collect();
    assert_eq!(intents, [(0, None), (1, Some(json!({"will": "rm x"}))), (2, None)]);
}

#[tokio::test]
async fn an_intent_is_durable_before_the_body_begins() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let path = place.path();
    let body: fusee_journal::StepBody<'_> = Box::new(move || {
        Box::pin(async move {
            let other = rusqlite::Connection::open(path).expect("another connection");
            let intents: i64 = other
                .query_row("SELECT COUNT(*) FROM steps WHERE intent IS NOT NULL", [], |row| row.get(0))
                .expect("a count");
            intents.into()
        })
    });
    let outcome =
        engine.once(call(StepKind::Tool, "shell", Value::Null), intends("x"), body).await.expect("runs");
    assert_eq!(done(outcome).value, json!(1));
}

#[tokio::test]
async fn an_answer_in_place_of_an_intention_is_a_plain_result() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let refuse: fusee_journal::IntentFn<'_> =
        Box::new(|| Box::pin(async { Intention::Resolved(json!("refused")) }));
    let outcome =
        engine.once(call(StepKind::Tool, "shell", Value::Null), refuse, never()).await.expect("answered");
    assert_eq!(done(outcome).value, json!("refused"));
    engine.flush().await.expect("committed");
    let steps = journal.steps(&run("r")).expect("steps");
    assert_eq!((&steps[0].intent, &steps[0].result), (&None, &Some(json!("refused"))));
}

#[tokio::test]
async fn branches_count_their_steps_apart() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let main = fusee_journal::Branch::main();
    for (branch, value) in [(main.clone(), 1), (main.child(0), 2), (main.clone(), 3), (main.child(0), 4)] {
        engine
            .record_step(call_on(&branch, StepKind::Tool, "t", Value::Null), gives(value))
            .await
            .expect("runs");
    }
    engine.finish(RunStatus::Completed).await.expect("ended");
    let steps: Vec<_> = journal
        .steps(&run("r"))
        .expect("steps")
        .into_iter()
        .map(|step| (step.key.to_string(), step.result.expect("a result")))
        .collect();
    let expected = [
        ("main step 0".to_owned(), json!(1)),
        ("main step 1".to_owned(), json!(3)),
        ("main/0 step 0".to_owned(), json!(2)),
        ("main/0 step 1".to_owned(), json!(4)),
    ];
    assert_eq!(steps, expected);
}

#[tokio::test]
async fn a_run_is_listed_with_how_far_it_came() {
    let place = Place::new();
    let journal = place.open();
    let one = begin(&journal, "one").await;
    let _two = begin(&journal, "two").await;
    one.finish(RunStatus::Failed).await.expect("ended");
    let listed: Vec<_> = journal
        .runs()
        .expect("runs")
        .into_iter()
        .map(|row| (row.id.to_string(), row.title, row.status, row.started_ms, row.ended_ms))
        .collect();
    let title = || "a title".to_owned();
    let expected = [
        ("two".to_owned(), title(), RunStatus::Open, NOW, None),
        ("one".to_owned(), title(), RunStatus::Failed, NOW, Some(NOW)),
    ];
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn a_run_that_is_not_there_is_answered_with_names_like_it() {
    let place = Place::new();
    let journal = place.open();
    for name in ["fix-parser", "fix-printer", "other"] {
        begin(&journal, name).await.finish(RunStatus::Completed).await.expect("ended");
    }
    let error = journal.run("fix-parsers").expect_err("no such run").to_string();
    assert_eq!(error, "run `fix-parsers` not found; did you mean `fix-parser` or `fix-printer`?");
    let error = journal.run("zzz").expect_err("no such run").to_string();
    assert_eq!(error, "run `zzz` not found");
}

#[tokio::test]
async fn a_run_id_in_use_is_refused() {
    let place = Place::new();
    let journal = place.open();
    begin(&journal, "r").await.finish(RunStatus::Completed).await.expect("ended");
    let again = fusee_journal::SqliteRun::begin(&journal, &run("r"), "again").await;
    let error = again.err().expect("the name is taken").to_string();
    assert_eq!(error, "run id `r` already exists");
}
