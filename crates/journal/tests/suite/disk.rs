//! Full and read-only disks, for real: in a child process with its own mount namespace.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use fusee_journal::{
    Branch, DurableRun, GcReport, Journal, JournalError, JournalOptions, RunAborted, RunStatus, SqliteRun,
    StepKind,
};
use serde_json::json;

use crate::kit::*;

/// Runs one of the ignored tests below in an environment set up by a shell line; `$1` is the directory.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the test starts a child process")]
fn within(prepare: &str, test: &str) {
    let directory = tempfile::Builder::new().prefix("odd %41 ?#é ").tempdir().expect("a directory");
    let script = format!("{prepare}\nexec ${{VIA-}} \"$0\" --exact disk::{test} --ignored --nocapture");
    let mut child = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-ec", &script])
        .arg(std::env::current_exe().expect("this program"))
        .arg(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("unshare of util-linux");
    let path = directory.path().join("journal.db");
    writeln!(child.stdin.as_mut().expect("a pipe"), "{}", path.display()).expect("told");
    let output = child.wait_with_output().expect("it ends");
    let reported =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && reported.contains("1 passed"), "{reported}");
}

/// The path passed to this process on standard input.
fn told_path() -> std::path::PathBuf {
    let mut path = String::new();
    std::io::stdin().read_to_string(&mut path).expect("a path");
    path.trim().into()
}

fn open(path: &Path) -> Result<Journal, JournalError> {
    Journal::open(path, JournalOptions::default(), clock())
}

/// Text that occurs nowhere else.
fn noise(seed: u64) -> String {
    blake3::hash(&seed.to_le_bytes()).to_hex().repeat(250)
}

async fn turn(engine: &SqliteRun, n: u64) -> Result<(), RunAborted> {
    engine.record_step(call(StepKind::Tool, "t", json!(n)), gives(noise(n))).await?;
    engine.emit(&Branch::main(), message(n.to_string()));
    engine.flush().await
}

/// Runs turns until one fails; returns the number that succeeded and the error.
async fn fill(engine: &Arc<SqliteRun>) -> (u64, RunAborted) {
    for n in 0..100_000 {
        if let Err(stop) = turn(engine, n).await {
            return (n, stop);
        }
    }
    panic!("the disk is not full after all");
}

async fn survives_a_full_disk(path: &Path, make_space: impl FnOnce()) -> String {
    let journal = open(path).expect("it opens");
    begin(&journal, "ended").await.finish(RunStatus::Completed).await.expect("ended");
    let engine = begin(&journal, "r").await;
    let (turns, stop) = fill(&engine).await;
    assert!(turns > 5, "{turns}: {stop}");
    drop(engine);
    // Everything committed is readable, also for a process that opens the journal now.
    let expected: Vec<_> = (0..turns).map(|n| n.to_string()).collect();
    assert_eq!(texts(&journaled(&journal, "r")), expected);
    drop(journal);
    let journal = Journal::open_to_read(path, clock()).expect("readable");
    assert_eq!(texts(&journaled(&journal, "r")), expected);
    drop(journal);

    make_space();
    let journal = open(path).expect("it opens");
    let engine = resume(&journal, "r");
    for n in 0..turns + 2 {
        turn(&engine, n).await.expect("there is space");
    }
    engine.finish(RunStatus::Completed).await.expect("ended");
    assert_eq!(texts(&journaled(&journal, "r")).len() as u64, turns + 2);
    assert!(journal.check().expect("a check").is_empty());
    stop.to_string()
}

#[test]
fn a_full_disk_keeps_what_was_committed_and_says_what_to_do() {
    within("mount -t tmpfs -o size=3m tmpfs \"$1\"", "on_a_small_disk");
}

#[tokio::test]
#[ignore = "needs a small disk"]
async fn on_a_small_disk() {
    let path = told_path();
    let ballast = path.with_file_name("ballast");
    std::fs::write(&ballast, vec![0; 1 << 20]).expect("it fits");
    let reported = survives_a_full_disk(&path, || std::fs::remove_file(&ballast).expect("removed")).await;
    assert_eq!(
        reported,
        format!("no space left for the journal {}; committed steps are kept", path.display())
    );
}

#[test]
fn ended_runs_can_be_removed_with_little_space() {
    within("mount -t tmpfs -o size=32m tmpfs \"$1\"", "collecting_on_a_small_disk");
}

#[tokio::test]
#[ignore = "needs a small disk"]
async fn collecting_on_a_small_disk() {
    let path = told_path();
    let ballast = path.with_file_name("ballast");
    std::fs::write(&ballast, vec![0; 6 << 20]).expect("it fits");
    let journal = open(&path).expect("it opens");
    for name in 0..3 {
        let engine = begin(&journal, &name.to_string()).await;
        for n in 0..300 {
            turn(&engine, n + 1000 * name).await.expect("it fits");
        }
        engine.finish(RunStatus::Completed).await.expect("ended");
    }
    let engine = begin(&journal, "open").await;
    let (turns, _) = fill(&engine).await;
    drop(engine);
    // Far less than a second copy of the file would need.
    std::fs::remove_file(&ballast).expect("removed");
    let GcReport { runs, before, after } = journal.collect(0).await.expect("collecting needs little space");
    assert_eq!(runs, 3);
    assert!(before > 20 << 20 && after < before - (9 << 20), "{before} to {after}");
    assert_eq!(std::fs::metadata(&path).expect("a file").len(), after);
    let engine = resume(&journal, "open");
    for n in 0..turns + 2 {
        turn(&engine, n).await.expect("there is space again");
    }
    assert!(journal.check().expect("a check").is_empty());
}

#[test]
fn a_disk_too_full_to_begin_says_so() {
    within("mount -t tmpfs -o size=1m tmpfs \"$1\"", "beginning_on_a_full_disk");
}

#[tokio::test]
#[ignore = "needs a small disk"]
async fn beginning_on_a_full_disk() {
    let path = told_path();
    let ballast = path.with_file_name("ballast");
    let mut file = std::fs::File::create(&ballast).expect("a file");
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    let error = open(&path).err().expect("no space").to_string();
    assert!(error.starts_with(&format!("no space left for the journal {}", path.display())), "{error}");
    std::fs::remove_file(&ballast).expect("removed");
    begin(&open(&path).expect("it opens"), "r").await.finish(RunStatus::Completed).await.expect("ended");
}

#[test]
fn a_file_size_limit_keeps_what_was_committed() {
    within("ulimit -f 2048", "under_a_file_size_limit");
}

#[tokio::test]
#[ignore = "needs a file size limit"]
async fn under_a_file_size_limit() {
    // The default action of SIGXFSZ would end the process before it sees the error; users of the journal
    // handle it.
    let _aside =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(25)).expect("a handler");
    let path = told_path();
    let journal = open(&path).expect("it opens");
    let engine = begin(&journal, "r").await;
    let (turns, stop) = fill(&engine).await;
    let reported = stop.to_string();
    assert!(
        reported.contains(&path.display().to_string()) && reported.contains("a file size limit"),
        "{reported}"
    );
    drop((engine, journal));
    let journal = Journal::open_to_read(&path, clock()).expect("readable");
    assert_eq!(texts(&journaled(&journal, "r")).len() as u64, turns);
}

const READ_ONLY: &str = "cannot write the journal";

fn assert_read_only(path: &Path, error: &JournalError) {
    let reported = error.to_string();
    assert!(matches!(error, JournalError::ReadOnly { .. }), "{reported}");
    assert!(reported.starts_with(&format!("{READ_ONLY} {}: ", path.display())), "{reported}");
    assert!(reported.ends_with("; make its directory writable or use another one"), "{reported}");
}

#[test]
fn a_read_only_directory_without_a_journal_says_so() {
    within("mount --bind \"$1\" \"$1\"; mount -o remount,ro,bind \"$1\"", "in_a_read_only_directory");
}

#[tokio::test]
#[ignore = "needs a read-only directory"]
async fn in_a_read_only_directory() {
    let path = told_path();
    assert_read_only(&path, &open(&path).err().expect("it cannot be made"));
    let deeper = path.with_file_name("deeper").join("journal.db");
    assert_read_only(&deeper, &open(&deeper).err().expect("it cannot be made"));
}

#[test]
fn a_journal_in_a_read_only_directory_can_be_read() {
    let prepare =
        "printf '%s\\n' \"$1/journal.db\" | \"$0\" --exact disk::write_a_journal --ignored >/dev/null
        mount --bind \"$1\" \"$1\"; mount -o remount,ro,bind \"$1\"";
    within(prepare, "reading_in_a_read_only_directory");
}

#[test]
fn a_journal_without_its_index_in_a_read_only_directory_can_be_read() {
    let prepare =
        "printf '%s\\n' \"$1/journal.db\" | \"$0\" --exact disk::write_a_journal --ignored >/dev/null
        rm \"$1/journal.db-shm\"
        mount --bind \"$1\" \"$1\"; mount -o remount,ro,bind \"$1\"";
    within(prepare, "reading_in_a_read_only_directory");
}

/// Drops root's capabilities to override file permissions.
const AS_ANYBODY: &str = "VIA='setpriv --bounding-set=-dac_override,-dac_read_search'";

#[test]
fn a_directory_without_permission_to_write_says_so() {
    within(&format!("chmod 555 \"$1\"; {AS_ANYBODY}"), "in_a_read_only_directory");
}

#[test]
fn a_journal_in_a_directory_without_permission_to_write_can_be_read() {
    for left in ["", "-shm", "-wal \"$1\"/journal.db-shm"] {
        // The WAL must be empty before it is removed, or committed data is lost with it.
        let remove = match left {
            "" => String::new(),
            "-shm" => "rm \"$1\"/journal.db-shm".to_owned(),
            both => format!("rm \"$1\"/journal.db{both}"),
        };
        let write =
            if left.starts_with("-wal") { "write_a_journal_without_a_log" } else { "write_a_journal" };
        let prepare = format!(
            "printf '%s\\n' \"$1/journal.db\" | \"$0\" --exact disk::{write} --ignored >/dev/null
            {remove}
            chmod 444 \"$1\"/journal.db*; chmod 555 \"$1\" \"$1\"/locks; {AS_ANYBODY}"
        );
        within(&prepare, "reading_in_a_read_only_directory");
    }
}

#[tokio::test]
#[ignore = "the first half of the test above"]
async fn write_a_journal_without_a_log() {
    let journal = open(&told_path()).expect("it opens");
    let engine = begin(&journal, "r").await;
    for n in 0..5 {
        turn(&engine, n).await.expect("committed");
    }
    engine.finish(RunStatus::Completed).await.expect("ended");
    journal.collect(usize::MAX).await.expect("collected");
}

#[tokio::test]
#[ignore = "the first half of the tests above"]
async fn write_a_journal() {
    let journal = open(&told_path()).expect("it opens");
    let engine = begin(&journal, "r").await;
    for n in 0..5 {
        turn(&engine, n).await.expect("committed");
    }
    engine.finish(RunStatus::Completed).await.expect("ended");
}

#[tokio::test]
#[ignore = "needs a read-only directory"]
async fn reading_in_a_read_only_directory() {
    let path = told_path();
    assert_read_only(&path, &open(&path).err().expect("it cannot be written"));
    let journal = Journal::open_to_read(&path, clock()).expect("it can be read");
    assert_eq!(texts(&journaled(&journal, "r")), ["0", "1", "2", "3", "4"]);
    assert_eq!(journal.steps(&run("r")).expect("steps").len(), 5);
    let refused = SqliteRun::resume(&journal, &run("r")).err().expect("no lock can be taken");
    assert!(matches!(refused, JournalError::ReadOnly { .. }), "{refused}");
    let engine = replay(&journal, "r");
    for n in 0..5 {
        engine.record_step(call(StepKind::Tool, "t", json!(n)), never()).await.expect("recorded");
        engine.emit(&Branch::main(), message(n.to_string()));
    }
    engine.finish(RunStatus::Completed).await.expect("a replay writes nothing");
}

#[test]
fn a_directory_in_the_place_of_the_file_says_so() {
    let place = Place::new();
    std::fs::create_dir(place.path()).expect("a directory");
    let error = open(&place.path()).err().expect("no file").to_string();
    assert_eq!(error, format!("cannot open the journal {}: it is a directory", place.path().display()));
}
