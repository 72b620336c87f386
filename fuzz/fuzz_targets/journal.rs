//! Fuzzes the journal: a damaged file never panics and never yields rows that were not written, and any JSON
//! value in a step round-trips.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use fusee_journal::event::Role;
use fusee_journal::{
    StepBody, Branch, StepRequest, SqliteRun, DurableRun, Event, FixedClock, Journal, StepKind, JournalOptions, RunId, RunStatus,
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|input: &[u8]| {
    match input.split_first() {
        Some((b'{', _)) => round_trip(input),
        Some((_, edits)) => damage(edits),
        None => {}
    }
});

/// SQLite defines two tables of the same name in its amalgamation, which ASan reports as an ODR violation.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const std::ffi::c_char {
    c"detect_odr_violation=0".as_ptr()
}

/// An intact journal: the bytes of its file and the rows read from it.
struct Sample {
    directory: tempfile::TempDir,
    file: Vec<u8>,
    rows: Vec<String>,
}

fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("sample.db");
        let journal = open(&path);
        for name in ["one", "two"] {
            record(&journal, name, &json!({"long": format!("{name} ").repeat(300), "n": [1, 2.5, null]}));
        }
        let rows = read(&journal).expect("it is whole").concat();
        // Garbage collection checkpoints the WAL into the database file.
        runtime().block_on(journal.collect(usize::MAX)).expect("collected");
        drop(journal);
        let file = std::fs::read(&path).expect("a file");
        Sample { directory, file, rows }
    })
}

/// Flips bits in a copy of the sample: each five bytes of input are a position and an XOR mask.
fn damage(edits: &[u8]) {
    let sample = sample();
    let mut file = sample.file.clone();
    for edit in edits.chunks_exact(5).take(64) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize % file.len();
        file[at] ^= edit[4];
    }
    let path = sample.directory.path().join("damaged.db");
    std::fs::write(&path, file).expect("written");
    if let Ok(journal) = Journal::open_to_read(&path, Arc::new(FixedClock(0))) {
        let _ = journal.check();
        for rows in read(&journal).unwrap_or_default() {
            for row in rows {
                assert!(sample.rows.contains(&row), "damage was read as data: {row}");
            }
        }
    }
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(PathBuf::from(format!("{}{ending}", path.display())));
    }
}

fn round_trip(input: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let journal = open(&directory.path().join("journal.db"));
    record(&journal, "r", &value);
    let steps = journal.steps(&run("r")).expect("steps");
    assert_eq!((&steps[0].args, steps[0].result.as_ref()), (&value, Some(&value)));
    let events = journal.events(&run("r"), 0, u64::MAX, 10).expect("events");
    assert!(matches!(&events[0].event, Event::ToolCall { arguments, .. } if *arguments == value));
}

fn record(journal: &Journal, name: &str, value: &Value) {
    runtime().block_on(async {
        let engine = SqliteRun::begin(journal, &run(name), "a title").await.expect("a new run");
        let main = Branch::main();
        for n in 0..3 {
            let call =
                StepRequest { branch: main.clone(), kind: StepKind::Tool, callee: "t".to_owned(), args: value.clone() };
            let result = value.clone();
            let body: StepBody<'_> = Box::new(|| Box::pin(async { result }));
            engine.record_step(call, body).await.expect("it runs");
            let (call_id, name) = (n.to_string(), "t".to_owned());
            engine.emit(&main, Event::ToolCall { call_id, name, arguments: value.clone() });
            engine.emit(&main, Event::Message { role: Role::User, text: format!("{n}") });
        }
        engine.finish(RunStatus::Completed).await.expect("ended");
    });
}

/// The readable rows of each run; unreadable runs are skipped.
fn read(journal: &Journal) -> Result<Vec<Vec<String>>, fusee_journal::JournalError> {
    let runs = journal.runs()?.into_iter().map(|run| {
        let mut rows: Vec<_> = journal.steps(&run.id)?.iter().map(|row| format!("{row:?}")).collect();
        let events = journal.events(&run.id, 0, u64::MAX, 1000)?;
        // Without the run id, which is stored in another row.
        rows.extend(events.iter().map(|row| format!("{:?}", (row.seq, row.ts_ms, &row.task, &row.event))));
        Ok(rows)
    });
    Ok(runs.filter_map(Result::<_, fusee_journal::JournalError>::ok).collect())
}

fn open(path: &Path) -> Journal {
    Journal::open(path, JournalOptions::default(), Arc::new(FixedClock(0))).expect("it opens")
}

fn run(name: &str) -> RunId {
    name.parse().expect("a run id")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
