//! [`DurableRun`] for a run: each request is looked up in the journal, or executed and recorded.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::fan_out::run_concurrently;
use super::{OpenWait, RunMode, SqliteRun};
use crate::event::EventDelta;
use crate::ops::WriteOp;
use crate::{
    BoxFuture, Branch, ChildBody, Divergence, DurableRun, Event, FanOutEnd, IntentFn, Intention, OnceOutcome,
    RunAborted, RunId, StepBody, StepKey, StepRequest, StepResult, StepRow, WaitRequest,
};

/// How often a wait polls the file for an answer left by another process.
const SIGNAL_POLL: Duration = Duration::from_millis(300);

impl DurableRun for SqliteRun {
    fn run(&self) -> &RunId {
        &self.broadcast.run
    }

    fn record_step<'a>(
        &'a self,
        call: StepRequest,
        body: StepBody<'a>,
    ) -> BoxFuture<'a, Result<StepResult, RunAborted>> {
        Box::pin(async move {
            let (key, row) = self.next_step(&call)?;
            let begun = row.is_some();
            if let Some(recorded) = row.and_then(replayed) {
                return Ok(recorded);
            }
            if call.kind.is_visible_outside() {
                self.commit().await?;
            }
            Ok(self.execute(key, (!begun).then_some(call), body).await)
        })
    }

    fn once<'a>(
        &'a self,
        call: StepRequest,
        intend: IntentFn<'a>,
        body: StepBody<'a>,
    ) -> BoxFuture<'a, Result<OnceOutcome, RunAborted>> {
        Box::pin(async move {
            let (key, row) = self.next_step(&call)?;
            if let Some(mut row) = row {
                let intent = row.intent.take().unwrap_or_default();
                let recorded = replayed(row).map(OnceOutcome::Done);
                return Ok(recorded.unwrap_or(OnceOutcome::Interrupted { key, intent }));
            }
            let Some(_unrepeatable) = UnrepeatableGuard::new(self) else {
                return std::future::pending().await;
            };
            let inside = StepGuard::new(self, key.branch.clone());
            let intention = intend().await;
            drop(inside);
            match intention {
                Intention::Resolved(value) => {
                    let body: StepBody<'_> = Box::new(|| Box::pin(async { value }));
                    Ok(OnceOutcome::Done(self.execute(key, Some(call), body).await))
                }
                Intention::Proceed(intent) => {
                    self.write_intent(&key, call, &intent);
                    self.commit().await?;
                    Ok(OnceOutcome::Done(self.execute(key, None, body).await))
                }
            }
        })
    }

    fn conclude<'a>(
        &'a self,
        key: StepKey,
        body: StepBody<'a>,
    ) -> BoxFuture<'a, Result<StepResult, RunAborted>> {
        Box::pin(async move {
            self.check_active()?;
            Ok(self.execute(key, None, body).await)
        })
    }

    fn fan_out<'a>(
        &'a self,
        call: StepRequest,
        children: Vec<ChildBody<'a>>,
        limit: usize,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<StepResult<FanOutEnd>, RunAborted>> {
        Box::pin(async move {
            let (key, row) = self.next_step(&call)?;
            let begun = row.is_some();
            if let Some(recorded) = row.and_then(replayed) {
                return recorded.typed();
            }
            self.commit().await?;
            let started = Instant::now();
            let inside = StepGuard::new(self, key.branch.clone());
            let end = run_concurrently(children, limit, cancel, self).await;
            drop(inside);
            // What ended because the run was stopped must not be recorded.
            let value = serde_json::to_value(end?).unwrap_or_default();
            self.check_active()?;
            self.record(key, (!begun).then_some(call), value, started, None).typed()
        })
    }

    fn record_wait<'a>(
        &'a self,
        wait: WaitRequest,
        ask: StepBody<'a>,
    ) -> BoxFuture<'a, Result<StepResult, RunAborted>> {
        Box::pin(async move {
            let WaitRequest { call, signal, limit, timeout_value, accepts } = wait;
            let (key, row) = self.next_step(&call)?;
            let begun = row.is_some();
            if let Some(recorded) = row.and_then(replayed) {
                return Ok(recorded);
            }
            let listed = WaitGuard::new(self, &call.callee, &signal);
            self.commit().await?;
            let started = Instant::now();
            let inside = StepGuard::new(self, key.branch.clone());
            let value = tokio::select! {
                biased;
                answer = self.answer(&signal, accepts) => answer?,
                answer = ask() => answer,
                () = tokio::time::sleep(limit) => timeout_value,
            };
            drop((inside, listed));
            let used = self.consume_signal(&signal)?;
            Ok(self.record(key, (!begun).then_some(call), value, started, used))
        })
    }

    fn position(&self, branch: &Branch) -> u64 {
        self.state.lock().progress.get(branch).map_or(0, |progress| progress.steps)
    }

    fn emit(&self, task: &Branch, event: Event) {
        let mut state = self.state.lock();
        let progress = state.progress(task);
        if progress.bodies > 0 {
            drop(state);
            return self.note(task, event);
        }
        let (k, after) = (progress.events, progress.seq);
        progress.events += 1;
        let known = k < self.recorded.events.get(task).copied().unwrap_or_default();
        match self.mode {
            RunMode::Live if known => {}
            RunMode::Live => state.pending.event(task, Some(k), self.journal.now_ms(), event),
            RunMode::Replay => {
                drop(state);
                self.compare_event(task, k, after, &event);
            }
        }
    }

    fn note(&self, task: &Branch, event: Event) {
        if self.mode == RunMode::Live {
            self.state.lock().pending.event(task, None, self.journal.now_ms(), event);
        }
    }

    fn publish_delta(&self, task: &Branch, delta: EventDelta) {
        self.broadcast.publish_delta(task, self.journal.now_ms(), delta);
    }

    fn flush<'a>(&'a self) -> BoxFuture<'a, Result<(), RunAborted>> {
        Box::pin(self.commit())
    }
}

/// The recorded result of a row, if it has one.
fn replayed(row: StepRow) -> Option<StepResult> {
    let StepRow { result, at_ms, duration_ms, .. } = row;
    result.map(|value| StepResult { value, at_ms, duration_ms, replayed: true })
}

impl SqliteRun {
    fn write_intent(&self, key: &StepKey, call: StepRequest, intent: &Value) {
        let (key, at_ms) = (key.clone(), self.journal.now_ms());
        let mut state = self.state.lock();
        let (args, intent) = (state.pending.encode(&call.args), state.pending.encode(intent));
        let StepRequest { kind, callee, .. } = call;
        state.pending.push(WriteOp::Intent { key, kind, callee, args, intent, at_ms });
    }

    /// Runs a body and records its result. `call` is `None` if the step already has a row.
    async fn execute(&self, key: StepKey, call: Option<StepRequest>, body: StepBody<'_>) -> StepResult {
        let started = Instant::now();
        let inside = StepGuard::new(self, key.branch.clone());
        let value = body().await;
        drop(inside);
        self.record(key, call, value, started, None)
    }

    /// Records a result together with the signal it consumed, if any.
    fn record(
        &self,
        key: StepKey,
        call: Option<StepRequest>,
        value: Value,
        started: Instant,
        taken: Option<WriteOp>,
    ) -> StepResult {
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let at_ms = self.journal.now_ms();
        let mut state = self.state.lock();
        let result = state.pending.encode(&value);
        let op = match call {
            Some(StepRequest { kind, callee, args, .. }) => {
                let args = state.pending.encode(&args);
                WriteOp::Step { key, kind, callee, args, result, at_ms, duration_ms }
            }
            None => WriteOp::Conclusion { key, result, at_ms, duration_ms },
        };
        state.pending.push(op);
        if let Some(taken) = taken {
            state.pending.push(taken);
        }
        StepResult { value, at_ms, duration_ms, replayed: false }
    }

    /// Commits if the result of something that happened outside waits to be written.
    pub(super) async fn commit_effects(&self) -> Result<(), RunAborted> {
        if self.state.lock().pending.has_effects() {
            self.commit().await?;
        }
        Ok(())
    }

    /// Stops the replay unless the event equals the recorded one.
    fn compare_event(&self, task: &Branch, k: u64, after: u64, event: &Event) {
        let (key, run) = (self.broadcast.key, &self.broadcast.run);
        let now = serde_json::to_value(event).unwrap_or_default();
        let at = format!("event {k} of {task}");
        let stop = match self.journal.read(|reader| reader.program_event(key, run, task, after)) {
            Ok(Some((seq, recorded))) if recorded == now => {
                self.state.lock().progress(task).seq = seq;
                return;
            }
            Ok(Some((_, recorded))) => RunAborted::Diverged(Box::new(Divergence::event(at, &recorded, &now))),
            Ok(None) => RunAborted::Diverged(Box::new(Divergence::surplus(at, &now))),
            Err(error) => error.into(),
        };
        self.stop(stop);
    }

    /// Waits for an answer sent to this process, or left in the file by another, that has the right form.
    async fn answer(&self, name: &str, accepts: fn(&Value) -> bool) -> Result<Value, RunAborted> {
        loop {
            let mut answered = std::pin::pin!(self.answered.notified());
            answered.as_mut().enable();
            if let Some(value) = self.answers.lock().given.remove(name)
                && accepts(&value)
            {
                return Ok(value);
            }
            // The signal stays in the file until the step that consumed it is committed.
            let left = self.journal.read(|reader| reader.signal(self.broadcast.key, name))?;
            if let Some((signal, value)) = left
                && !self.answers.lock().taken.contains(&signal)
                && accepts(&value)
            {
                return Ok(value);
            }
            // Check again after a notification or the poll interval, whichever comes first.
            let _ = tokio::time::timeout(SIGNAL_POLL, answered).await;
        }
    }

    /// Removes the signal that answered a wait, or that came too late for it: neither may answer another.
    fn consume_signal(&self, name: &str) -> Result<Option<WriteOp>, RunAborted> {
        let left = self.journal.read(|reader| reader.signal(self.broadcast.key, name))?;
        let mut answers = self.answers.lock();
        answers.given.remove(name);
        let signal = left.map(|(signal, _)| signal).filter(|signal| answers.taken.insert(*signal));
        Ok(signal.map(|signal| WriteOp::Taken { signal }))
    }
}

/// Lists a wait while it lasts.
struct WaitGuard<'a> {
    engine: &'a SqliteRun,
    wait: OpenWait,
}

impl<'a> WaitGuard<'a> {
    fn new(engine: &'a SqliteRun, callee: &str, signal: &str) -> Self {
        let wait = OpenWait { callee: callee.to_owned(), signal: signal.to_owned() };
        engine.answers.lock().waiting.push(wait.clone());
        Self { engine, wait }
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut answers = self.engine.answers.lock();
        if let Some(at) = answers.waiting.iter().position(|wait| *wait == self.wait) {
            answers.waiting.remove(at);
        }
    }
}

/// Counts a step that must not repeat while it lasts.
struct UnrepeatableGuard<'a>(&'a SqliteRun);

impl<'a> UnrepeatableGuard<'a> {
    /// `None` if the run is parked.
    fn new(engine: &'a SqliteRun) -> Option<Self> {
        let mut state = engine.state.lock();
        if state.parked {
            return None;
        }
        state.unrepeatable += 1;
        Some(Self(engine))
    }
}

impl Drop for UnrepeatableGuard<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unrepeatable -= 1;
        self.0.settled.notify_waiters();
    }
}

/// Guard that marks a branch as running a body; also cleans up when the future is dropped.
struct StepGuard<'a> {
    engine: &'a SqliteRun,
    branch: Branch,
}

impl<'a> StepGuard<'a> {
    fn new(engine: &'a SqliteRun, branch: Branch) -> Self {
        engine.state.lock().progress(&branch).bodies += 1;
        Self { engine, branch }
    }
}

impl Drop for StepGuard<'_> {
    fn drop(&mut self) {
        self.engine.state.lock().progress(&self.branch).bodies -= 1;
    }
}
