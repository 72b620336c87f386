//! Who created a journal, and what a journal of someone else may hold.

use fusee_journal::{Branch, DurableRun, Journal, JournalOptions, OwnerKey, Ownership, StepKind};
use serde_json::json;

use crate::kit::*;

fn key(byte: u8) -> OwnerKey {
    OwnerKey::new([byte; OwnerKey::LENGTH])
}

#[test]
fn a_new_journal_is_signed_and_only_its_owners_key_proves_it() {
    let place = Place::new();
    let journal = place.open_with(JournalOptions { owner: Some(key(1)), ..JournalOptions::default() });
    assert_eq!(journal.ownership(&key(1)), Some(Ownership::Created));
    assert_eq!(journal.ownership(&key(2)), None);
    drop(journal);
    // Opening it with another key does not change its owner.
    let journal = place.open_with(JournalOptions { owner: Some(key(2)), ..JournalOptions::default() });
    assert_eq!(journal.ownership(&key(2)), None);
    assert!(!format!("{:?}", key(7)).contains('7'), "a key is not printed");
}

#[test]
fn a_signature_is_written_replaced_and_removed() {
    let place = Place::new();
    let journal = place.open();
    assert_eq!(journal.ownership(&key(1)), None);
    Journal::sign(&place.path(), &key(1), Ownership::Trusted).expect("signed");
    assert_eq!(journal.ownership(&key(1)), Some(Ownership::Trusted));
    Journal::sign(&place.path(), &key(1), Ownership::Created).expect("signed");
    assert_eq!(journal.ownership(&key(1)), Some(Ownership::Created));
    Journal::remove_signature(&place.path()).expect("removed");
    assert_eq!(journal.ownership(&key(1)), None);
}

/// A signature that someone copied from a journal of the user proves nothing in another file.
#[test]
fn a_copied_signature_proves_nothing() {
    let (mine, theirs) = (Place::new(), Place::new());
    drop(mine.open_with(JournalOptions { owner: Some(key(1)), ..JournalOptions::default() }));
    drop(theirs.open());
    let proof: Vec<u8> =
        mine.sql().query_row("SELECT proof FROM owner", [], |row| row.get(0)).expect("a proof");
    theirs.sql().execute_batch("CREATE TABLE owner (id INTEGER PRIMARY KEY, proof BLOB)").expect("a table");
    theirs.sql().execute("INSERT INTO owner VALUES (1, ?)", [&proof]).expect("a row");
    assert_eq!(theirs.open().ownership(&key(1)), None);
}

/// Rows for runs that do not exist yet: steps that the next run would find done, and answers to its questions.
#[tokio::test]
async fn a_new_run_does_not_start_with_rows_that_someone_left_for_it() {
    let place = Place::new();
    {
        let journal = place.open();
        let engine = begin(&journal, "theirs").await;
        engine.record_step(call(StepKind::Model, "m", json!({})), gives("evil")).await.expect("a step");
        engine.flush().await.expect("written");
        journal.signal(&run("theirs"), "approval", &json!("yes")).await.expect("left");
    }
    // Leaves everything but the run itself, and the number that the next run gets.
    place
        .sql()
        .execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM runs; UPDATE sqlite_sequence SET seq = 0 WHERE name = 'runs'")
        .expect("changed");
    let _ = std::fs::remove_file(place.directory().join("journal.db-marks"));
    let left: i64 = place
        .sql()
        .query_row("SELECT COUNT(*) FROM steps WHERE run = 1", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(left, 1, "the rows are there");
    let journal = place.open();
    let engine = begin(&journal, "mine").await;
    let asked =
        engine.record_step(call(StepKind::Model, "m", json!({})), gives("good")).await.expect("a step");
    assert_eq!(asked.value, json!("good"));
    engine.emit(&Branch::main(), message("one"));
    engine.flush().await.expect("no row is in the way");
    let signals: i64 =
        place.sql().query_row("SELECT COUNT(*) FROM signals", [], |row| row.get(0)).expect("a count");
    assert_eq!(signals, 0, "no answer waits for a question of this run");
}
