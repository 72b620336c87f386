//! Long content is stored once per file, no matter how many steps, events and runs refer to it.

use fusee_journal::{Branch, DurableRun, RunStatus, StepKind};
use serde_json::json;

use crate::kit::*;

fn stored(place: &Place) -> Vec<String> {
    let sql = place.sql();
    let mut statement = sql.prepare("SELECT text FROM blobs ORDER BY text").expect("a query");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("texts")
}

#[tokio::test]
async fn steps_events_and_runs_share_content() {
    let place = Place::new();
    let journal = place.open();
    let (text, short) = ("long ".repeat(200), "s".repeat(511));
    for name in ["one", "two"] {
        let engine = begin(&journal, name).await;
        for _ in 0..3 {
            let args = json!({"text": text, "short": short});
            engine.record_step(call(StepKind::Tool, "t", args.clone()), gives(args)).await.expect("runs");
            engine.emit(&Branch::main(), message(text.clone()));
            engine.flush().await.expect("committed");
        }
        let shell = call(StepKind::Tool, "shell", json!([text]));
        done(engine.once(shell, intends(text.clone()), gives(text.clone())).await.expect("runs"));
        engine.finish(RunStatus::Completed).await.expect("ended");
    }
    assert_eq!(stored(&place), std::slice::from_ref(&text));
    for name in ["one", "two"] {
        let steps = journal.steps(&run(name)).expect("steps");
        assert_eq!(steps[2].args, json!({"text": text, "short": short}));
        assert_eq!(steps[2].result, Some(json!({"text": text, "short": short})));
        assert_eq!(steps[3].intent, Some(json!(text)));
        assert_eq!(texts(&journaled(&journal, name)), [text.clone(), text.clone(), text.clone()]);
    }
}

#[tokio::test]
async fn a_large_text_held_often_costs_its_size_once() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let text = "0123456789abcdef".repeat(16 << 10);
    for _ in 0..40 {
        engine.record_step(call(StepKind::Tool, "t", json!(text)), gives(text.clone())).await.expect("runs");
        engine.flush().await.expect("committed");
    }
    let size = |path: std::path::PathBuf| std::fs::metadata(path).expect("a file").len();
    let total = size(place.path()) + size(place.wal());
    assert!(total < 3 * text.len() as u64, "{total} bytes for a text of {}", text.len());
}

#[tokio::test]
async fn text_with_any_character_comes_back() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let odd: String = ('\0'..='\u{2fff}').collect();
    let value = json!({"short": "\0\u{1}\"\\\n\u{2028}é😀", odd.clone(): [odd]});
    engine.record_step(call(StepKind::Tool, "t", value.clone()), gives(value.clone())).await.expect("runs");
    engine.flush().await.expect("committed");
    let steps = journal.steps(&run("r")).expect("steps");
    assert_eq!((&steps[0].args, steps[0].result.as_ref()), (&value, Some(&value)));
}
