//! Torn WALs, flipped bits and files that are not journals: detected and reported, and the rest stays
//! readable.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use fusee_journal::{
    Branch, DurableRun, Journal, JournalError, JournalOptions, RunStatus, SqliteRun, StepKind,
};
use serde_json::json;

use crate::kit::*;

fn read_only(path: &Path) -> Result<Journal, JournalError> {
    Journal::open_to_read(path, clock())
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

/// Moves the entire WAL into the database file.
fn checkpoint(place: &Place) {
    place.sql().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("nobody is in the way");
}

async fn turn(engine: &SqliteRun, n: usize) {
    engine.emit(&Branch::main(), message(format!("turn {n}")));
    engine
        .record_step(call(StepKind::Tool, "t", json!({ "n": n })), gives(format!("result {n}")))
        .await
        .expect("runs");
    engine.flush().await.expect("committed");
}

fn contents(journal: &Journal, name: &str) -> (Vec<String>, usize) {
    (texts(&journaled(journal, name)), journal.steps(&run(name)).expect("steps").len())
}

#[tokio::test]
async fn a_log_torn_anywhere_in_its_last_commit_keeps_all_commits_before() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    turn(&engine, 0).await;
    turn(&engine, 1).await;
    // A short WAL keeps the many checks below fast.
    checkpoint(&place);
    turn(&engine, 2).await;
    let (before, at) = (contents(&journal, "r"), size(&place.wal()));
    turn(&engine, 3).await;
    let (after, end) = (contents(&journal, "r"), size(&place.wal()));
    drop((engine, journal));

    // A copy in the state a crash leaves: without a shared memory file.
    let torn = Place::new();
    std::fs::copy(place.path(), torn.path()).expect("copied");
    std::fs::copy(place.wal(), torn.wal()).expect("copied");
    let log = OpenOptions::new().write(true).open(torn.wal()).expect("the log");
    for length in (at..end).rev() {
        log.set_len(length).expect("cut");
        let journal = read_only(&torn.path()).expect("readable");
        assert_eq!(contents(&journal, "r"), before, "cut at {length} of {at}..{end}");
        drop(journal);
        // The next process to open it must recover from the WAL alone.
        let _ = std::fs::remove_file(torn.directory().join("journal.db-shm"));
    }
    assert_eq!(contents(&place.open(), "r"), after, "and the whole log has it all");

    let journal = torn.open();
    let engine = resume(&journal, "r");
    turn(&engine, 4).await;
    assert_eq!(texts(&journaled(&journal, "r")).len(), 3, "the events of recorded steps are not made again");
}

#[tokio::test]
async fn a_torn_log_is_written_on_from_its_last_commit() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    turn(&engine, 0).await;
    let at = size(&place.wal());
    turn(&engine, 1).await;
    let end = size(&place.wal());
    drop((engine, journal));
    for cut in (at..end).step_by(511) {
        let torn = Place::new();
        std::fs::copy(place.path(), torn.path()).expect("copied");
        std::fs::copy(place.wal(), torn.wal()).expect("copied");
        OpenOptions::new().write(true).open(torn.wal()).expect("the log").set_len(cut).expect("cut");
        let journal = torn.open();
        let engine = resume(&journal, "r");
        for n in 0..3 {
            turn(&engine, n).await;
        }
        assert_eq!(texts(&journaled(&journal, "r")), ["turn 0", "turn 1", "turn 2"], "cut at {cut}");
        assert!(journal.check().expect("a check").is_empty());
    }
}

/// All rows of a run that can be read, or the error.
fn everything(journal: &Journal, name: &str) -> Result<Vec<String>, JournalError> {
    let mut rows: Vec<_> = journal.steps(&run(name))?.iter().map(|row| format!("{row:?}")).collect();
    rows.extend(journal.events(&run(name), 0, u64::MAX, 10_000)?.iter().map(|row| format!("{row:?}")));
    Ok(rows)
}

async fn several_runs(place: &Place, runs: usize) -> Vec<String> {
    let journal = place.open();
    let names: Vec<_> = (0..runs).map(|n| format!("run-{n}")).collect();
    for name in &names {
        let engine = begin(&journal, name).await;
        for n in 0..12 {
            let text = format!("{name} {n} ").repeat(if n % 3 == 0 { 300 } else { 3 });
            let shell = call(StepKind::Tool, "shell", json!({"n": n, "text": text}));
            done(engine.once(shell, intends(n), gives(text.clone())).await.expect("runs"));
            engine.emit(&Branch::main(), message(text));
        }
        engine.finish(RunStatus::Completed).await.expect("ended");
    }
    drop(journal);
    names
}

#[tokio::test]
async fn flipped_bits_never_panic_are_never_read_as_something_else_and_spare_the_other_runs() {
    let place = Place::new();
    let names = several_runs(&place, 6).await;
    let journal = place.open();
    let whole: Vec<_> = names.iter().map(|name| everything(&journal, name).expect("whole")).collect();
    drop(journal);
    checkpoint(&place);
    assert_eq!(size(&place.wal()), 0);
    let length = size(&place.path());
    let mut file = OpenOptions::new().read(true).write(true).open(place.path()).expect("the file");
    let (mut partly, mut tried) = (0, 0);
    for at in (0..length).step_by(257) {
        tried += 1;
        let flipped = flip(&mut file, at, 1 << (at % 8));
        let named = |error: JournalError| {
            let output = error.to_string();
            assert!(output.contains(&place.path().display().to_string()), "{output}");
        };
        match read_only(&place.path()) {
            Err(error) => named(error),
            Ok(journal) => {
                let (mut readable, mut lost) = (0, false);
                for (name, whole) in names.iter().zip(&whole) {
                    match everything(&journal, name) {
                        Ok(found) if found == *whole => readable += 1,
                        // A page may have lost its end: the remaining rows are correct, and the check finds
                        // the loss.
                        Ok(found) if found.iter().all(|row| whole.contains(row)) => lost = true,
                        Ok(found) => panic!("at {at} damage was read as data: {found:?}"),
                        Err(JournalError::NoSuchRun { .. }) => {}
                        Err(error) => named(error),
                    }
                }
                partly += usize::from((1..names.len()).contains(&readable));
                let sound = journal.check().is_ok_and(|problems| problems.is_empty());
                assert!(!(lost && sound), "at {at} rows were lost and nobody noticed");
            }
        }
        flip(&mut file, at, flipped);
    }
    assert!(partly > tried / 20, "of {tried} damaged files {partly} were read in part");
}

/// Flips one bit and returns the original byte.
fn flip(file: &mut File, at: u64, bit: u8) -> u8 {
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).expect("sought");
    file.read_exact(&mut byte).expect("read");
    file.seek(SeekFrom::Start(at)).expect("sought");
    file.write_all(&[byte[0] ^ bit]).expect("written");
    bit
}

#[tokio::test]
async fn a_damaged_page_is_named_and_other_runs_go_on() {
    let place = Place::new();
    let names = several_runs(&place, 3).await;
    place
        .sql()
        .execute("UPDATE steps SET result = '\"forged\"' WHERE run = 2 AND n = 5", [])
        .expect("changed");
    let journal = place.open();
    let error = everything(&journal, &names[1]).expect_err("it was changed");
    assert_eq!(
        error.to_string(),
        format!(
            "the journal {} is damaged: main step 5 of run run-1 does not match its checksum",
            place.path().display()
        )
    );
    assert_eq!(journal.check().expect("a check"), [error.to_string()]);
    for name in [&names[0], &names[2]] {
        everything(&journal, name).expect("it is whole");
    }
    begin(&journal, "new").await.finish(RunStatus::Completed).await.expect("new runs too");
}

#[tokio::test]
async fn content_that_is_missing_or_changed_is_named() {
    let place = Place::new();
    let names = several_runs(&place, 1).await;
    let sql = place.sql();
    sql.execute("UPDATE blobs SET text = text || 'x'", []).expect("changed");
    let journal = place.open();
    let error = journal.steps(&run(&names[0])).expect_err("changed").to_string();
    assert!(error.contains("does not match its hash"), "{error}");
    sql.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM blobs").expect("removed");
    let error = journal.events(&run(&names[0]), 0, u64::MAX, 100).expect_err("missing").to_string();
    assert!(error.contains("event 1 of run run-0 refers to content"), "{error}");
    assert!(error.contains("which is missing"), "{error}");
}

#[tokio::test]
async fn a_missing_step_is_no_reason_to_run_it_again() {
    let place = Place::new();
    let names = several_runs(&place, 1).await;
    place.sql().execute("DELETE FROM steps WHERE n = 3", []).expect("removed");
    std::fs::remove_file(place.directory().join("journal.db-marks")).expect("the marks");
    let journal = place.open();
    let engine = resume(&journal, &names[0]);
    for n in 0..4 {
        let outcome =
            engine.once(call(StepKind::Tool, "shell", json!({ "n": n })), intends(n), never()).await;
        match (n, outcome) {
            (3, Err(stop)) => {
                assert_eq!(
                    stop.to_string(),
                    format!(
                        "the journal {} is damaged: main step 3 of run run-0 is missing",
                        place.path().display()
                    )
                );
            }
            (_, outcome) => assert!(done(outcome.expect("recorded")).replayed),
        }
    }
}

#[tokio::test]
async fn a_newer_format_is_left_alone() {
    let place = Place::new();
    begin(&place.open(), "r").await.finish(RunStatus::Completed).await.expect("ended");
    place.sql().pragma_update(None, "user_version", 7).expect("set");
    let output = format!(
        "the journal {} has format 7, but this fusee supports format 1 only; use a newer fusee",
        place.path().display()
    );
    let open = Journal::open(&place.path(), JournalOptions::default(), clock());
    assert_eq!(open.err().expect("too new").to_string(), output);
    assert_eq!(read_only(&place.path()).err().expect("too new").to_string(), output);
}

#[test]
fn a_file_that_is_no_journal_is_left_alone() {
    let place = Place::new();
    for text in ["This is a diary. ".repeat(1000), "This is a diary. ".to_owned(), "T".to_owned()] {
        std::fs::write(place.path(), &text).expect("written");
        let output = format!(
            "the journal {} is damaged: it has no journal header; move it away to start a new one",
            place.path().display()
        );
        let open = Journal::open(&place.path(), JournalOptions::default(), clock());
        assert_eq!(open.err().expect("no journal").to_string(), output);
        assert_eq!(read_only(&place.path()).err().expect("no journal").to_string(), output);
        assert_eq!(std::fs::read_to_string(place.path()).expect("still there"), text);
    }
}

#[test]
fn a_database_of_something_else_is_left_alone() {
    let place = Place::new();
    place.sql().execute_batch("CREATE TABLE songs (title TEXT)").expect("made");
    let output = format!(
        "cannot open the journal {}: it is a database of another application; move it away to start a new one",
        place.path().display()
    );
    let open = Journal::open(&place.path(), JournalOptions::default(), clock());
    assert_eq!(open.err().expect("no journal").to_string(), output);
    assert_eq!(read_only(&place.path()).err().expect("no journal").to_string(), output);
    let tables: i64 =
        place.sql().query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0)).expect("a count");
    assert_eq!(tables, 1);
}

#[test]
fn an_empty_file_is_a_journal_that_was_not_begun() {
    let place = Place::new();
    std::fs::write(place.path(), "").expect("written");
    let output = read_only(&place.path()).err().expect("nothing to read").to_string();
    assert_eq!(output, format!("cannot open the journal {}: the file is empty", place.path().display()));
    assert_eq!(place.open().runs().expect("a new journal").len(), 0);
}

#[test]
fn a_file_cut_short_is_an_error_that_names_it() {
    let place = Place::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let names = runtime.block_on(several_runs(&place, 2));
    checkpoint(&place);
    let length = size(&place.path());
    let whole = std::fs::read(place.path()).expect("read");
    for cut in (1..length).step_by(1500).chain([length - 1]) {
        for left in ["journal.db-wal", "journal.db-shm"] {
            let _ = std::fs::remove_file(place.directory().join(left));
        }
        std::fs::write(place.path(), &whole[..cut as usize]).expect("cut");
        let outcome = read_only(&place.path()).and_then(|journal| {
            names.iter().map(|name| everything(&journal, name)).collect::<Result<Vec<_>, _>>()
        });
        if let Err(error) = outcome {
            assert!(error.to_string().contains(&place.path().display().to_string()), "{error}");
        }
        let open = Journal::open(&place.path(), JournalOptions::default(), clock());
        if let Err(error) = open {
            assert!(error.to_string().contains(&place.path().display().to_string()), "{error}");
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_in_the_log_never_shortens_a_run_unnoticed() {
    let place = Place::new();
    let names = several_runs(&place, 2).await;
    let journal = place.open();
    let engine = begin(&journal, "open").await;
    for n in 0..6 {
        let shell = call(StepKind::Tool, "shell", json!({ "n": n }));
        done(engine.once(shell, intends(n), gives(n)).await.expect("runs"));
        turn(&engine, n).await;
    }
    let names: Vec<_> = names.into_iter().chain(["open".to_owned()]).collect();
    let whole: Vec<_> = names.iter().map(|name| everything(&journal, name).expect("whole")).collect();
    drop((engine, journal));
    let (mut noticed, mut tried) = (0, 0);
    for at in (0..size(&place.wal())).step_by(3001) {
        let damaged = Place::new();
        for ending in ["", "-wal", "-marks"] {
            let name = format!("journal.db{ending}");
            std::fs::copy(place.directory().join(&name), damaged.directory().join(&name)).expect("copied");
        }
        let mut log = OpenOptions::new().read(true).write(true).open(damaged.wal()).expect("the log");
        flip(&mut log, at, 1 << (at % 8));
        tried += 1;
        if let Ok(journal) = read_only(&damaged.path()) {
            for (name, whole) in names.iter().zip(&whole) {
                match everything(&journal, name)
                    .and_then(|rows| journal.check_complete(&run(name)).map(|()| rows))
                {
                    Ok(rows) => assert_eq!(&rows, whole, "{name} after a flip at {at}"),
                    Err(_) => noticed += 1,
                }
            }
        }
        let Ok(journal) = Journal::open(&damaged.path(), JournalOptions::default(), clock()) else {
            continue;
        };
        if let Ok(engine) = SqliteRun::resume(&journal, &run("open")) {
            let steps: u64 = engine.recorded_steps().map(|(_, steps)| steps).sum();
            assert_eq!(steps, 12, "a flip at {at} is resumed as if steps had not run");
        }
    }
    assert!(noticed > 10, "{noticed} of {tried} flips had an effect");
}

#[tokio::test]
async fn a_shortened_journal_is_refused_until_its_marks_are_removed() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    turn(&engine, 0).await;
    let at = size(&place.wal());
    turn(&engine, 1).await;
    drop((engine, journal));
    OpenOptions::new().write(true).open(place.wal()).expect("the log").set_len(at).expect("cut");
    let journal = place.open();
    let Err(error) = SqliteRun::resume(&journal, &run("r")) else { panic!("resumed") };
    let output = error.to_string();
    assert!(output.contains("run r was longer: 1 of 2 steps and 1 of 2 events are left"), "{output}");
    drop(journal);
    std::fs::remove_file(place.directory().join("journal.db-marks")).expect("the marks");
    let journal = place.open();
    turn(&resume(&journal, "r"), 0).await;
}

#[test]
fn a_fifo_in_place_of_a_file_is_reported() {
    for ending in ["", "-wal", "-marks"] {
        let place = Place::new();
        let fifo = place.directory().join(format!("journal.db{ending}"));
        if !ending.is_empty() {
            drop(place.open());
            let _ = std::fs::remove_file(&fifo);
        }
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a FIFO");
        for opened in
            [read_only(&place.path()), Journal::open(&place.path(), JournalOptions::default(), clock())]
        {
            let output = opened.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(output.contains("not a regular file"), "{ending}: {output}");
        }
    }
}

#[test]
fn a_journal_with_a_trigger_is_not_written_to() {
    let place = Place::new();
    drop(place.open());
    let trigger = "CREATE TRIGGER t AFTER INSERT ON runs BEGIN UPDATE runs SET title = 'theirs'; END";
    place.sql().execute_batch(trigger).expect("a trigger");
    let opened = Journal::open(&place.path(), JournalOptions::default(), clock());
    let output = opened.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(output.contains("it has triggers or views"), "{output}");
}
