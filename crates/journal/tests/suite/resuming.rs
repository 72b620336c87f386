//! Resuming after the process ended: the program may be newer, so only kind and callee have to match.

use fusee_journal::{Branch, DurableRun, Event, RunAborted, RunStatus, SqliteRun, StepKind};
use serde_json::{Value, json};

use crate::kit::*;

#[tokio::test]
async fn other_arguments_are_taken_as_they_were() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    ask(&engine, "then", gives("answer")).await.expect("asked");
    engine.flush().await.expect("committed");
    drop(engine);
    let engine = resume(&journal, "r");
    assert_eq!(ask(&engine, "now", never()).await.expect("recorded"), json!("answer"));
}

#[tokio::test]
async fn another_callee_or_kind_stops_the_run_for_good() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    ask(&engine, "q", gives("answer")).await.expect("asked");
    engine.flush().await.expect("committed");
    drop(engine);

    let engine = resume(&journal, "r");
    let stop =
        engine.record_step(call(StepKind::Model, "other", Value::Null), never()).await.expect_err("differs");
    let output =
        "the run diverges from its journal at main step 0: recorded model `model`, now model `other`";
    assert_eq!(stop.to_string(), output);
    // A program that continues is stopped, on other branches too, and nothing more is written.
    engine.emit(&Branch::main(), message("after"));
    let elsewhere = call_on(&Branch::main().child(1), StepKind::Tool, "t", Value::Null);
    assert_eq!(engine.record_step(elsewhere, never()).await.expect_err("stopped").to_string(), output);
    assert_eq!(engine.finish(RunStatus::Completed).await.expect_err("stopped").to_string(), output);
    assert_eq!(journal.run("r").expect("run").status, RunStatus::Open);
    assert_eq!(journaled(&journal, "r"), []);
    drop(engine);

    let engine = resume(&journal, "r");
    let stop =
        engine.record_step(call(StepKind::Tool, "model", Value::Null), never()).await.expect_err("differs");
    assert_eq!(
        stop.to_string(),
        "the run diverges from its journal at main step 0: recorded model `model`, now tool `model`"
    );
}

#[tokio::test]
async fn events_that_stand_in_the_journal_are_not_made_twice() {
    let place = Place::new();
    let journal = place.open();
    let main = Branch::main();
    let program = async |engine: &SqliteRun, to: usize| {
        for n in 0..to {
            engine.emit(&main, message(format!("before {n}")));
            ask(engine, "q", gives(n)).await.expect("asked");
            engine.emit(&main, message(format!("after {n}")));
        }
    };
    let engine = begin(&journal, "r").await;
    program(&engine, 2).await;
    engine.flush().await.expect("committed");
    program(&engine, 1).await;
    drop(engine);

    let engine = resume(&journal, "r");
    assert_eq!(engine.resumed_from(), 5);
    engine.note(&main, Event::TaskResumed { from_seq: engine.resumed_from(), amended: None });
    program(&engine, 3).await;
    engine.finish(RunStatus::Completed).await.expect("ended");
    let expected = ["before 0", "after 0", "before 1", "after 1", "before 0", "after 2"];
    assert_eq!(texts(&journaled(&journal, "r")), expected);
    let seqs: Vec<_> = journaled(&journal, "r").iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=7).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_event_of_a_body_that_ran_in_vain_hides_no_later_event() {
    let place = Place::new();
    let journal = place.open();
    let main = Branch::main();
    let engine = begin(&journal, "r").await;
    engine.emit(&main, message("asking"));
    {
        let mut asking = std::pin::pin!(ask(
            &engine,
            "q",
            Box::new(|| {
                Box::pin(async {
                    engine.emit(&main, warning("trying again"));
                    engine.flush().await.expect("shown");
                    std::future::pending().await
                })
            })
        ));
        tokio::select! {
            _ = &mut asking => panic!("it cannot end"),
            () = tokio::time::sleep(std::time::Duration::from_millis(100)) => {}
        }
    }
    drop(engine);

    // This time the model replies immediately.
    let engine = resume(&journal, "r");
    engine.emit(&main, message("asking"));
    ask(&engine, "q", gives("a")).await.expect("asked");
    engine.emit(&main, message("answered"));
    engine.finish(RunStatus::Completed).await.expect("ended");
    assert_eq!(texts(&journaled(&journal, "r")), ["asking", "trying again", "answered"]);

    let engine = replay(&journal, "r");
    engine.emit(&main, message("asking"));
    ask(&engine, "q", never()).await.expect("recorded");
    engine.emit(&main, message("answered"));
    engine.finish(RunStatus::Completed).await.expect("a body's events are not the program's");
}

#[tokio::test]
async fn a_result_of_another_shape_says_so() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let recorded =
        engine.record_step(call(StepKind::Tool, "t", Value::Null), gives("text")).await.expect("runs");
    let stop = recorded.read::<u32>().expect_err("it is a text");
    assert!(matches!(&stop, RunAborted::Unreadable(_)), "{stop}");
    assert_eq!(
        stop.to_string(),
        "a recorded step cannot be read back: invalid type: string \"text\", expected u32"
    );
}

#[tokio::test]
async fn resuming_an_ended_run_leaves_its_end_as_it_was() {
    let place = Place::new();
    let journal = place.open();
    begin(&journal, "r").await.finish(RunStatus::Completed).await.expect("ended");
    let later = fusee_journal::Journal::open(
        &place.path(),
        fusee_journal::JournalOptions::default(),
        std::sync::Arc::new(fusee_journal::FixedClock(NOW + 5000)),
    )
    .expect("it opens");
    resume(&later, "r").finish(RunStatus::Completed).await.expect("ended");
    assert_eq!(later.run("r").expect("run").ended_ms, Some(NOW));
}

#[tokio::test]
async fn what_a_model_nested_too_deeply_can_be_read_back() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let mut deep = json!("x".repeat(600));
    for n in 0..400 {
        deep = if n % 2 == 0 { json!([deep]) } else { json!({ "a": deep }) };
    }
    engine.record_step(call(StepKind::Tool, "t", deep.clone()), gives(deep.clone())).await.expect("runs");
    engine.emit(
        &Branch::main(),
        Event::ToolCall { call_id: "c".to_owned(), name: "t".to_owned(), arguments: deep.clone() },
    );
    engine.flush().await.expect("committed");
    drop(engine);
    let engine = replay(&journal, "r");
    let back = engine.record_step(call(StepKind::Tool, "t", deep.clone()), never()).await.expect("recorded");
    assert_eq!(back.value, deep);
    let events = journaled(&journal, "r");
    assert!(matches!(&events[0].event, Event::ToolCall { arguments, .. } if *arguments == deep));
}
