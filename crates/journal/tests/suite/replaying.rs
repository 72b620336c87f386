//! Replaying a run from the journal alone: any difference is reported as an error.

use fusee_journal::{Branch, DurableRun, Event, RunAborted, RunStatus, SqliteRun, StepKind};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::kit::*;

async fn program(engine: &SqliteRun, question: &str, last: &str) -> Result<(), RunAborted> {
    let main = Branch::main();
    let args = json!({"model": "m", "temperature": 0.7, "messages": [{"role": "user", "text": question}]});
    engine.record_step(call(StepKind::Model, "m", args), gives("answer")).await?;
    engine.emit(&main, message("answer"));
    let outcome = engine
        .once(call(StepKind::Tool, "shell", json!({"command": "ls"})), intends("ls"), gives("a b"))
        .await?;
    engine.emit(&main, message(done(outcome).value.as_str().unwrap_or_default()));
    engine.emit(&main, message(last));
    Ok(())
}

async fn recorded(place: &Place) -> fusee_journal::Journal {
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    engine.note(&Branch::main(), Event::TaskResumed { from_seq: 0, amended: None });
    program(&engine, "list the files\nof this project\nplease", "end").await.expect("it runs");
    engine.finish(RunStatus::Completed).await.expect("ended");
    journal
}

#[tokio::test]
async fn the_same_program_replays_without_a_writer() {
    let place = Place::new();
    drop(recorded(&place).await);
    let journal = fusee_journal::Journal::open_to_read(&place.path(), clock()).expect("readable");
    let engine = replay(&journal, "r");
    program(&engine, "list the files\nof this project\nplease", "end").await.expect("the same");
    engine.finish(RunStatus::Completed).await.expect("all used");
}

#[tokio::test]
async fn other_arguments_are_shown_as_a_diff() {
    let place = Place::new();
    let journal = recorded(&place).await;
    let engine = replay(&journal, "r");
    let stop = program(&engine, "list the files\nof that project\nplease", "end").await.expect_err("differs");
    assert_snapshot!(stop.to_string(), @r#"
    the run diverges from its journal at main step 0: model `m` has different arguments
    --- recorded
    +++ now
    @@ -6,5 +6,5 @@
           "role": "user",
           "text": "list the files
    -    of this project
    +    of that project
         please"
         }
    "#);
    assert_eq!(
        engine.finish(RunStatus::Completed).await.expect_err("stopped").to_string(),
        stop.to_string(),
        "the first difference is the one that counts"
    );
}

#[tokio::test]
async fn another_event_is_shown_as_a_diff() {
    let place = Place::new();
    let journal = recorded(&place).await;
    let engine = replay(&journal, "r");
    program(&engine, "list the files\nof this project\nplease", "another end")
        .await
        .expect("steps are the same");
    let stop = engine.finish(RunStatus::Completed).await.expect_err("differs");
    assert_snapshot!(stop.to_string(), @r#"
    the run diverges from its journal at event 2 of main: the event differs
    --- recorded
    +++ now
    @@ -2,4 +2,4 @@
       "type": "message",
       "role": "assistant",
    -  "text": "end"
    +  "text": "another end"
     }
    "#);
}

#[tokio::test]
async fn an_event_too_many_is_shown() {
    let place = Place::new();
    let journal = recorded(&place).await;
    let engine = replay(&journal, "r");
    program(&engine, "list the files\nof this project\nplease", "end").await.expect("the same");
    engine.emit(&Branch::main(), message("and more"));
    let stop = engine.finish(RunStatus::Completed).await.expect_err("differs");
    assert_snapshot!(stop.to_string(), @r#"
    the run diverges from its journal at event 3 of main: no event is recorded here
    {
      "type": "message",
      "role": "assistant",
      "text": "and more"
    }
    "#);
}

#[tokio::test]
async fn a_journal_that_ends_before_the_program_says_where() {
    let place = Place::new();
    let journal = recorded(&place).await;
    let engine = replay(&journal, "r");
    program(&engine, "list the files\nof this project\nplease", "end").await.expect("the same");
    let stop = ask(&engine, "more", never()).await.expect_err("not recorded");
    assert_eq!(stop.to_string(), "the journal ends at main step 2: the run was not finished");
    let stop = engine.finish(RunStatus::Completed).await.expect_err("it cannot be right now");
    assert_eq!(stop.to_string(), "the journal ends at main step 2: the run was not finished");
}

#[tokio::test]
async fn an_intent_without_a_result_is_the_end_of_the_journal() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let mut running = engine.once(
        call(StepKind::Tool, "shell", Value::Null),
        intends("x"),
        Box::new(|| Box::pin(std::future::pending())),
    );
    tokio::select! {
        _ = &mut running => panic!("it cannot end"),
        () = tokio::time::sleep(std::time::Duration::from_millis(100)) => {}
    }
    drop(running);
    drop(engine);
    let engine = replay(&journal, "r");
    let stop = engine.once(call(StepKind::Tool, "shell", Value::Null), intends("x"), never()).await;
    assert_eq!(
        stop.expect_err("no result").to_string(),
        "the journal ends at main step 0: the run was not finished"
    );
}

#[tokio::test]
async fn what_the_program_did_not_come_to_is_named() {
    let place = Place::new();
    let journal = recorded(&place).await;
    let engine = replay(&journal, "r");
    let stop = engine.finish(RunStatus::Completed).await.expect_err("nothing was asked");
    assert_eq!(
        stop.to_string(),
        "the run diverges from its journal at the steps of main: 2 recorded but not reached"
    );
}

#[tokio::test]
async fn a_long_difference_is_cut() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let text = |word: &str| (0..5000).map(|n| format!("{word} {n}\n")).collect::<String>();
    ask(&engine, &text("then"), gives("a")).await.expect("asked");
    engine.finish(RunStatus::Completed).await.expect("ended");
    let engine = replay(&journal, "r");
    let stop = ask(&engine, &text("now"), never()).await.expect_err("differs").to_string();
    let lines: Vec<_> = stop.lines().collect();
    assert!(lines.len() < 220, "{} lines", lines.len());
    assert_eq!(lines.last(), Some(&"... 9803 more lines"));
}

#[tokio::test]
async fn replaying_a_long_run_does_not_read_it_over_for_each_event() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let main = Branch::main();
    for n in 0..6000 {
        engine.emit(&main, message(format!("{n} {}", "x".repeat(300))));
    }
    engine.finish(RunStatus::Completed).await.expect("ended");
    let engine = replay(&journal, "r");
    let started = std::time::Instant::now();
    for n in 0..6000 {
        engine.emit(&main, message(format!("{n} {}", "x".repeat(300))));
    }
    engine.finish(RunStatus::Completed).await.expect("the same");
    assert!(started.elapsed().as_secs_f64() < 6.0, "{:?}", started.elapsed());
}
