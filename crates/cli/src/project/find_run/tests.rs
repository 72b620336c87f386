//! Finding runs by id and by prefix.

use std::sync::Arc;

use fusee::engine::journal::{
    Branch, DurableRun, FixedClock, JournalOptions, SqliteRun, StepKind, StepRequest,
};

use super::*;

async fn journal_with(folder: &std::path::Path, names: &[(&str, Option<RunStatus>)]) -> Journal {
    let journal =
        Journal::open(&folder.join("journal.db"), JournalOptions::default(), Arc::new(FixedClock(0)))
            .unwrap();
    for (name, status) in names {
        let run = SqliteRun::begin(&journal, &name.parse().unwrap(), "a title").await.unwrap();
        let settings = StepRequest::new(&Branch::main(), StepKind::Settings, "run");
        let engine: &dyn DurableRun = &*run;
        engine.step(settings, async { 0 }).await.unwrap();
        run.flush().await.unwrap();
        if let Some(status) = status {
            run.finish(*status).await.unwrap();
        }
    }
    journal
}

#[tokio::test]
async fn a_whole_name_wins_over_a_beginning_and_a_beginning_must_be_the_only_one() {
    let folder = tempfile::tempdir().unwrap();
    let journal =
        journal_with(folder.path(), &[("ab", None), ("abc", None), ("abd", None), ("x", None)]).await;
    let id = |name: &str| named(&journal, name).map(|run| run.id.to_string());
    assert_eq!(id("ab").unwrap(), "ab");
    assert_eq!(id("abc").unwrap(), "abc");
    let ambiguous = id("a").unwrap_err();
    assert_eq!(ambiguous.message, "`a` is ambiguous: 3 runs have this prefix");
    assert_eq!(ambiguous.help.unwrap(), "abd  a title\nabc  a title\nab  a title");
    assert_eq!(id("").unwrap_err().exit, fusee::engine::run::ExitStatus::Usage);
    assert_eq!(id("zz").unwrap_err().exit, fusee::engine::run::ExitStatus::Usage);
}

#[tokio::test]
async fn the_newest_open_run_is_found_behind_ended_ones() {
    let folder = tempfile::tempdir().unwrap();
    let ended = Some(RunStatus::Completed);
    let journal = journal_with(folder.path(), &[("one", None), ("two", None), ("three", ended)]).await;
    assert_eq!(newest_open(&journal).unwrap().id.as_str(), "two");
}

#[tokio::test]
async fn without_an_open_run_the_newest_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal_with(folder.path(), &[("one", Some(RunStatus::Failed))]).await;
    let failure = newest_open(&journal).unwrap_err();
    assert_eq!(failure.message, "no open run here: the newest run, one, has ended (failed)");
}
