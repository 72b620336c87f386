//! The table of runs.

use std::sync::Arc;

use fusee::engine::journal::{
    Branch, DurableRun, FixedClock, Journal, JournalOptions, RunStatus, SqliteRun, StepKind, StepRequest,
};
use insta::assert_snapshot;

use super::*;

#[tokio::test]
async fn runs_are_listed_with_what_they_were_asked() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(FixedClock(1_000_000));
    let journal = Journal::open(&folder.path().join("journal.db"), JournalOptions::default(), clock).unwrap();
    let begin = async |name: &str, title: &str| {
        let run = SqliteRun::begin(&journal, &name.parse().unwrap(), title).await.unwrap();
        let steps: &dyn DurableRun = &*run;
        // A run that was killed before its settings were recorded is not listed.
        let settings = StepRequest::new(&Branch::main(), StepKind::Settings, "run");
        steps.step(settings, async { 0 }).await.unwrap();
        run.flush().await.unwrap();
        run
    };
    begin("first", "Fix the bug").await.finish(RunStatus::Completed).await.unwrap();
    begin("a-longer-name", "Write a very long story about a clock that would not stop").await;
    let table = |columns| {
        let rows = journal.runs().unwrap();
        let length = find_run::short_length(&rows);
        super::table(&listed(rows, &journal), length, 1_000_000 + 3_700_000, columns)
    };
    assert_snapshot!(table(60));
    let rows = listed(journal.runs().unwrap(), &journal);
    let id = "01a1e34b-0c59-77d6-bf8a-ee7fa834ccf2";
    begin(id, "Say it").await.finish(RunStatus::Failed).await.unwrap();
    assert_eq!(
        table(40),
        "RUN        AGE  REQUEST\n01a1e34b   1 h  failed: Say it\na-longer   1 h  interrupted: Write a v…\n\
         first      1 h  Fix the bug\n"
    );
    let ended = listed_json(&rows[1]);
    assert_eq!(ended["status"], "completed");
    assert_eq!(ended["started"], "1970-01-01T00:16:40.000Z");
    assert_eq!(listed_json(&rows[0])["ended"], serde_json::Value::Null);
}
