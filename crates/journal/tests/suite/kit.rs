//! Shared helpers: a journal in a temporary directory, and short constructors for calls, bodies and events.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use fusee_journal::event::{EventDelta, Role};
use fusee_journal::{
    Branch, DurableRun, Event, EventRecord, FixedClock, IntentFn, Intention, Journal, JournalOptions,
    OnceOutcome, RunAborted, RunId, SqliteRun, StepBody, StepKind, StepRequest, StepResult,
};
use serde_json::Value;

/// The fixed time of all tests.
pub(crate) const NOW: i64 = 1_760_000_000_000;

/// A temporary directory with one journal.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn directory(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("journal.db")
    }

    pub(crate) fn wal(&self) -> PathBuf {
        self.0.path().join("journal.db-wal")
    }

    pub(crate) fn open(&self) -> Journal {
        self.open_with(JournalOptions::default())
    }

    pub(crate) fn open_with(&self, options: JournalOptions) -> Journal {
        Journal::open(&self.path(), options, clock()).expect("it opens")
    }

    pub(crate) fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).expect("it is a database")
    }

    /// Blocks all writers of the file until the returned connection is dropped.
    pub(crate) fn hold_writers(&self) -> rusqlite::Connection {
        let connection = self.sql();
        connection.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
        connection
    }
}

pub(crate) fn clock() -> Arc<FixedClock> {
    Arc::new(FixedClock(NOW))
}

pub(crate) fn run(name: &str) -> RunId {
    name.parse().expect("a run id")
}

pub(crate) async fn begin(journal: &Journal, name: &str) -> Arc<SqliteRun> {
    SqliteRun::begin(journal, &run(name), "a title").await.expect("a new run")
}

pub(crate) fn resume(journal: &Journal, name: &str) -> Arc<SqliteRun> {
    SqliteRun::resume(journal, &run(name)).expect("it can go on")
}

pub(crate) fn replay(journal: &Journal, name: &str) -> Arc<SqliteRun> {
    SqliteRun::replay(journal, &run(name)).expect("it can be replayed")
}

pub(crate) fn call(kind: StepKind, callee: &str, args: Value) -> StepRequest {
    call_on(&Branch::main(), kind, callee, args)
}

pub(crate) fn call_on(branch: &Branch, kind: StepKind, callee: &str, args: Value) -> StepRequest {
    StepRequest { branch: branch.clone(), kind, callee: callee.to_owned(), args }
}

/// A body that returns this value.
pub(crate) fn gives<'a>(value: impl Into<Value>) -> StepBody<'a> {
    let value = value.into();
    Box::new(|| Box::pin(async { value }))
}

/// A body that must not run.
pub(crate) fn never<'a>() -> StepBody<'a> {
    Box::new(|| panic!("the journal holds this step"))
}

/// An intent to proceed.
pub(crate) fn intends<'a>(value: impl Into<Value>) -> IntentFn<'a> {
    let value = value.into();
    Box::new(|| Box::pin(async { Intention::Proceed(value) }))
}

/// Counts how often bodies run.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(crate) fn gives<'a>(&self, value: impl Into<Value>) -> StepBody<'a> {
        let (value, count) = (value.into(), Arc::clone(&self.0));
        Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { value })
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) fn done(outcome: OnceOutcome) -> StepResult {
    match outcome {
        OnceOutcome::Done(recorded) => recorded,
        OnceOutcome::Interrupted { key, .. } => panic!("{key} was interrupted"),
    }
}

pub(crate) fn message(text: impl Into<String>) -> Event {
    Event::Message { role: Role::Assistant, text: text.into() }
}

pub(crate) fn warning(text: impl Into<String>) -> Event {
    Event::Warning { code: "test".to_owned(), message: text.into() }
}

pub(crate) fn piece(text: &str) -> EventDelta {
    EventDelta::Text(text.to_owned())
}

/// All journaled events of a run.
pub(crate) fn journaled(journal: &Journal, name: &str) -> Vec<EventRecord> {
    journal.events(&run(name), 0, u64::MAX, usize::MAX >> 1).expect("events")
}

/// The texts of messages and warnings, in order.
pub(crate) fn texts<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Vec<String> {
    events
        .into_iter()
        .filter_map(|stamped| match &stamped.event {
            Event::Message { text, .. } | Event::Warning { message: text, .. } => Some(text.clone()),
            _ => None,
        })
        .collect()
}

/// Calls the model once on the main branch.
pub(crate) async fn ask<'a>(
    engine: &'a SqliteRun,
    question: &str,
    answer: StepBody<'a>,
) -> Result<Value, RunAborted> {
    let call = call(StepKind::Model, "model", Value::from(question));
    engine.record_step(call, answer).await.map(|recorded| recorded.value)
}

/// Polls a future once, like a caller that then drops it.
pub(crate) fn poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}
