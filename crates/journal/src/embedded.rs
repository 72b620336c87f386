//! The engine in one process: a run on a SQLite journal.
//!
//! Writes are collected and committed when something is about to become visible outside: before a request to
//! a model, before a command starts, at the end. A turn with a command so costs two commits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, oneshot};

use crate::event::Delta;
use crate::hub::{Events, Hub};
use crate::lock::RunLock;
use crate::writer::{Batch, Op, Request};
use crate::{
    Body, BoxFuture, Branch, Call, Divergence, Engine, Event, Fault, Intend, Intention, Journal,
    JournalError, Kind, Outcome, Recorded, RunId, RunStatus, StepKey, StepRow, Stop, blob,
};

/// How often a wait looks whether another process left an answer.
const SIGNAL_POLL: Duration = Duration::from_secs(1);

/// What may happen to steps that the journal does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They run. Recorded steps must be of the same kind and callee.
    Live,
    /// They are an error. Recorded steps and events must be the same in all.
    Replay,
}

/// Executes the calls of a [`Engine::fan_out`], each on its own branch.
pub trait Perform: Send + Sync {
    /// Runs one call to its end.
    fn perform(&self, engine: Arc<dyn Engine>, call: Call) -> BoxFuture<'static, Result<Value, Fault>>;
}

/// One run on a journal.
pub struct Embedded {
    this: Weak<Self>,
    run: RunId,
    key: i64,
    mode: Mode,
    journal: Journal,
    hub: Arc<Hub>,
    first_seq: u64,
    recorded_steps: HashMap<Branch, u64>,
    recorded_events: HashMap<Branch, u64>,
    state: Mutex<State>,
    signals: Mutex<HashMap<String, Value>>,
    signalled: Notify,
    perform: Option<Arc<dyn Perform>>,
    lock: Mutex<Option<RunLock>>,
}

#[derive(Default)]
struct State {
    next_step: HashMap<Branch, u64>,
    next_event: HashMap<Branch, u64>,
    pending: Vec<Op>,
    diverged: Option<Box<Divergence>>,
}

impl Embedded {
    /// Begins a new run.
    pub async fn begin(
        journal: &Journal,
        run: &RunId,
        title: &str,
        perform: Option<Arc<dyn Perform>>,
    ) -> Result<Arc<Self>, JournalError> {
        let lock = RunLock::take(journal.directory(), run)?;
        let key = journal.begin(run, title).await?;
        let recorded = (HashMap::new(), HashMap::new());
        Ok(Self::new(journal, run.clone(), key, Mode::Live, 0, recorded, perform, Some(lock)))
    }

    /// Goes on with a run from the last step that was committed.
    pub fn resume(
        journal: &Journal,
        run: &RunId,
        perform: Option<Arc<dyn Perform>>,
    ) -> Result<Arc<Self>, JournalError> {
        let lock = RunLock::take(journal.directory(), run)?;
        Self::reopen(journal, run, Mode::Live, perform, Some(lock))
    }

    /// Runs it again from the journal alone.
    pub fn replay(
        journal: &Journal,
        run: &RunId,
        perform: Option<Arc<dyn Perform>>,
    ) -> Result<Arc<Self>, JournalError> {
        Self::reopen(journal, run, Mode::Replay, perform, None)
    }

    fn reopen(
        journal: &Journal,
        run: &RunId,
        mode: Mode,
        perform: Option<Arc<dyn Perform>>,
        lock: Option<RunLock>,
    ) -> Result<Arc<Self>, JournalError> {
        let key = journal.run(run.as_str())?.key;
        let (steps, events, last) = journal.read(|reader| {
            Ok((reader.branch_lengths(key)?, reader.event_counts(key)?, reader.last_seq(key)?))
        })?;
        Ok(Self::new(journal, run.clone(), key, mode, last, (steps, events), perform, lock))
    }

    #[expect(clippy::too_many_arguments, reason = "the one place where a run is put together")]
    fn new(
        journal: &Journal,
        run: RunId,
        key: i64,
        mode: Mode,
        last_seq: u64,
        (recorded_steps, recorded_events): (HashMap<Branch, u64>, HashMap<Branch, u64>),
        perform: Option<Arc<dyn Perform>>,
        lock: Option<RunLock>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            hub: Arc::new(Hub::new(run.clone(), last_seq + 1)),
            run,
            key,
            mode,
            journal: journal.clone(),
            first_seq: last_seq,
            recorded_steps,
            recorded_events,
            state: Mutex::default(),
            signals: Mutex::default(),
            signalled: Notify::new(),
            perform,
            lock: Mutex::new(lock),
        })
    }

    /// A reader of what happens from now on.
    pub fn events(&self) -> Events {
        Events::new(Arc::clone(&self.hub), self.journal.clone(), self.first_seq)
    }

    /// The number of the last event that stood in the journal when this run was opened.
    pub fn resumed_from(&self) -> u64 {
        self.first_seq
    }

    /// Answers a wait of this run.
    pub fn signal(&self, name: &str, value: Value) {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), value);
        self.signalled.notify_waiters();
    }

    /// Writes how the run ended and closes its stream. In a replay, all that is recorded must have been used.
    pub async fn finish(&self, status: RunStatus) -> Result<(), Stop> {
        let result = match self.mode {
            Mode::Live => {
                let at_ms = self.journal.now_ms();
                self.state().pending.push(Op::Status { status, at_ms });
                self.flush().await
            }
            Mode::Replay => self.check_leftovers(),
        };
        self.hub.close();
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
        result
    }

    /// Ends a run whose journal failed: its readers are told, the run stays open and can be resumed.
    pub fn abandon(&self, task: &Branch, last: Event) {
        self.hub.pass_event(task, self.journal.now_ms(), last);
        self.hub.close();
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn check_leftovers(&self) -> Result<(), Stop> {
        let state = self.state();
        if let Some(diverged) = &state.diverged {
            return Err(Stop::Diverged(diverged.clone()));
        }
        let tables = [
            ("steps", &self.recorded_steps, &state.next_step),
            ("events", &self.recorded_events, &state.next_event),
        ];
        for (what, recorded, used) in tables {
            for (branch, &count) in recorded {
                let left = count - used.get(branch).copied().unwrap_or_default();
                if left > 0 {
                    let at = format!("the {what} of {branch}");
                    return Err(Stop::Diverged(Box::new(Divergence::leftover(at, left))));
                }
            }
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_key(&self, branch: &Branch) -> Result<StepKey, Stop> {
        let mut state = self.state();
        if let Some(diverged) = &state.diverged {
            return Err(Stop::Diverged(diverged.clone()));
        }
        let next = match state.next_step.get_mut(branch) {
            Some(next) => next,
            None => state.next_step.entry(branch.clone()).or_default(),
        };
        let n = *next;
        *next += 1;
        Ok(StepKey { branch: branch.clone(), n })
    }

    /// What the journal holds for a step, if it holds it, compared with what is asked now.
    fn recorded(&self, key: &StepKey, call: &Call) -> Result<Option<StepRow>, Stop> {
        if key.n >= self.recorded_steps.get(&key.branch).copied().unwrap_or_default() {
            return match self.mode {
                Mode::Live => Ok(None),
                Mode::Replay => Err(Stop::EndOfJournal(key.clone())),
            };
        }
        let row =
            self.journal.read(|reader| reader.step(self.key, key))?.ok_or_else(|| JournalError::Corrupt {
                path: self.journal.path().to_owned(),
                detail: format!("{key} of run {} is missing", self.run),
            })?;
        if row.kind != call.kind || row.callee != call.callee {
            let divergence = Divergence::callee(key, row.kind, &row.callee, call);
            return Err(Stop::Diverged(Box::new(divergence)));
        }
        if self.mode == Mode::Replay && row.args != call.args {
            return Err(Stop::Diverged(Box::new(Divergence::arguments(key, &row.args, call))));
        }
        if self.mode == Mode::Replay && row.result.is_none() {
            return Err(Stop::EndOfJournal(key.clone()));
        }
        Ok(Some(row))
    }

    /// Runs a body and writes its result down; `begun` says that the step's row is there already.
    async fn execute(&self, key: StepKey, call: Option<Call>, body: Body<'_>) -> Recorded {
        let started = Instant::now();
        let value = body().await;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let at_ms = self.journal.now_ms();
        let mut state = self.state();
        let result = state.encode(&value);
        let op = match call {
            Some(Call { kind, callee, args, .. }) => {
                let args = state.encode(&args);
                Op::Step { key, kind, callee, args, result, at_ms, duration_ms }
            }
            None => Op::Conclusion { key, result, at_ms, duration_ms },
        };
        state.pending.push(op);
        Recorded { value, at_ms, duration_ms, replayed: false }
    }

    async fn commit(&self) -> Result<(), Stop> {
        let ops = std::mem::take(&mut self.state().pending);
        if ops.is_empty() {
            return Ok(());
        }
        let (done, committed) = oneshot::channel();
        let (name, hub) = (self.run.clone(), Arc::clone(&self.hub));
        self.journal.send(Request::Batch(Batch { run: self.key, name, hub, ops, done })).await?;
        match committed.await {
            Ok(result) => Ok(result?),
            Err(_) => Err(self.journal.writer_gone().into()),
        }
    }

    fn add_event(&self, task: &Branch, k: Option<u64>, event: Event) {
        let ts_ms = self.journal.now_ms();
        let mut state = self.state();
        let body = match serde_json::to_value(&event) {
            Ok(value) => state.encode(&value),
            Err(_) => return,
        };
        state.pending.push(Op::Event { task: task.clone(), k, ts_ms, event: Box::new(event), body });
    }

    /// In a replay, the event must be the one that was made then.
    fn compare_event(&self, task: &Branch, k: u64, event: &Event) {
        let recorded = self.journal.read(|reader| reader.program_event(self.key, task, k));
        let now = serde_json::to_value(event).unwrap_or_default();
        let at = format!("event {k} of {task}");
        let diverged = match recorded {
            Ok(Some(recorded)) if recorded == now => return,
            Ok(Some(recorded)) => Divergence::event(at, &recorded, &now),
            Ok(None) => Divergence::event(at, &Value::Null, &now),
            Err(error) => Divergence { at, what: error.to_string(), diff: String::new() },
        };
        self.state().diverged.get_or_insert(Box::new(diverged));
    }

    async fn answer(&self, name: &str) -> Option<Value> {
        loop {
            let mut signalled = std::pin::pin!(self.signalled.notified());
            signalled.as_mut().enable();
            if let Some(value) = self.signals.lock().unwrap_or_else(PoisonError::into_inner).remove(name) {
                return Some(value);
            }
            if let Ok(Some(value)) = self.journal.read(|reader| reader.signal(self.key, name)) {
                return Some(value);
            }
            // Whichever comes first, look again.
            let _ = tokio::time::timeout(SIGNAL_POLL, signalled).await;
        }
    }

    async fn side_by_side(&self, calls: Vec<Call>, limit: usize) -> Value {
        let (Some(perform), Some(this)) = (&self.perform, self.this.upgrade()) else {
            let fault =
                Fault { kind: "configuration_error".into(), message: "this run has no child tasks".into() };
            return calls.iter().map(|_| json!({ "fault": fault })).collect();
        };
        let places = Arc::new(Semaphore::new(limit.max(1)));
        let children: Vec<_> = calls
            .into_iter()
            .map(|call| {
                let (places, perform) = (Arc::clone(&places), Arc::clone(perform));
                let engine: Arc<dyn Engine> = Arc::clone(&this) as Arc<dyn Engine>;
                async move {
                    let _place = places.acquire_owned().await;
                    match tokio::spawn(perform.perform(engine, call)).await {
                        Ok(Ok(value)) => json!({ "value": value }),
                        Ok(Err(fault)) => json!({ "fault": fault }),
                        Err(lost) => {
                            json!({ "fault": Fault { kind: "unexpected_error".into(), message: lost.to_string() } })
                        }
                    }
                }
            })
            .collect();
        futures_util::future::join_all(children).await.into()
    }
}

impl State {
    fn encode(&mut self, value: &Value) -> String {
        let (mut text, mut blobs) = (String::new(), Vec::new());
        blob::write(value, &mut text, &mut blobs);
        self.pending.extend(blobs.into_iter().map(Op::Content));
        text
    }
}

impl Engine for Embedded {
    fn run(&self) -> &RunId {
        &self.run
    }

    fn step<'a>(&'a self, call: Call, body: Body<'a>) -> BoxFuture<'a, Result<Recorded, Stop>> {
        Box::pin(async move {
            let key = self.next_key(&call.branch)?;
            let begun = match self.recorded(&key, &call)? {
                Some(StepRow { result: Some(value), at_ms, duration_ms, .. }) => {
                    return Ok(Recorded { value, at_ms, duration_ms, replayed: true });
                }
                Some(_) => true,
                None => false,
            };
            if call.kind.is_visible_outside() {
                self.commit().await?;
            }
            Ok(self.execute(key, (!begun).then_some(call), body).await)
        })
    }

    fn once<'a>(
        &'a self,
        call: Call,
        intend: Intend<'a>,
        body: Body<'a>,
    ) -> BoxFuture<'a, Result<Outcome, Stop>> {
        Box::pin(async move {
            let key = self.next_key(&call.branch)?;
            if let Some(row) = self.recorded(&key, &call)? {
                return Ok(match row.result {
                    Some(value) => Outcome::Done(Recorded {
                        value,
                        at_ms: row.at_ms,
                        duration_ms: row.duration_ms,
                        replayed: true,
                    }),
                    None => Outcome::Interrupted { key, intent: row.intent.unwrap_or_default() },
                });
            }
            match intend().await {
                Intention::Answer(value) => {
                    let body: Body<'_> = Box::new(|| Box::pin(async { value }));
                    Ok(Outcome::Done(self.execute(key, Some(call), body).await))
                }
                Intention::Go(intent) => {
                    let at_ms = self.journal.now_ms();
                    {
                        let mut state = self.state();
                        let (args, intent) = (state.encode(&call.args), state.encode(&intent));
                        let (kind, callee, key) = (call.kind, call.callee, key.clone());
                        state.pending.push(Op::Intent { key, kind, callee, args, intent, at_ms });
                    }
                    self.commit().await?;
                    Ok(Outcome::Done(self.execute(key, None, body).await))
                }
            }
        })
    }

    fn conclude<'a>(&'a self, key: StepKey, body: Body<'a>) -> BoxFuture<'a, Result<Recorded, Stop>> {
        Box::pin(async move { Ok(self.execute(key, None, body).await) })
    }

    fn fan_out<'a>(
        &'a self,
        branch: &'a Branch,
        calls: Vec<Call>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Result<Value, Fault>>, Stop>> {
        let args = calls
            .iter()
            .map(|call| json!({ "branch": call.branch, "callee": call.callee, "args": call.args }))
            .collect();
        let call = Call { branch: branch.clone(), kind: Kind::FanOut, callee: "children".to_owned(), args };
        Box::pin(async move {
            let recorded =
                self.step(call, Box::new(move || Box::pin(self.side_by_side(calls, limit)))).await?;
            let children: Vec<Child> = recorded.read()?;
            Ok(children.into_iter().map(Child::into_result).collect())
        })
    }

    fn wait<'a>(
        &'a self,
        branch: &'a Branch,
        name: &'a str,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Option<Value>, Stop>> {
        let call =
            Call { branch: branch.clone(), kind: Kind::Wait, callee: name.to_owned(), args: Value::Null };
        Box::pin(async move {
            let body: Body<'a> = Box::new(move || {
                Box::pin(async move {
                    match tokio::time::timeout(limit, self.answer(name)).await {
                        Ok(answer) => json!({ "answer": answer }),
                        Err(_) => json!({}),
                    }
                })
            });
            let mut recorded = self.step(call, body).await?;
            Ok(recorded.value.get_mut("answer").map(Value::take))
        })
    }

    fn emit(&self, task: &Branch, event: Event) {
        let k = {
            let mut state = self.state();
            let next = state.next_event.entry(task.clone()).or_default();
            *next += 1;
            *next - 1
        };
        let known = k < self.recorded_events.get(task).copied().unwrap_or_default();
        match self.mode {
            Mode::Replay => self.compare_event(task, k, &event),
            Mode::Live if known => {}
            Mode::Live => self.add_event(task, Some(k), event),
        }
    }

    fn note(&self, task: &Branch, event: Event) {
        if self.mode == Mode::Live {
            self.add_event(task, None, event);
        }
    }

    fn pass(&self, task: &Branch, delta: Delta) {
        self.hub.pass(task, self.journal.now_ms(), delta);
    }

    fn flush<'a>(&'a self) -> BoxFuture<'a, Result<(), Stop>> {
        Box::pin(self.commit())
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Child {
    Value(Value),
    Fault(Fault),
}

impl Child {
    fn into_result(self) -> Result<Value, Fault> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Fault(fault) => Err(fault),
        }
    }
}
