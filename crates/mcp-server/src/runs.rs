//! The runs that clients ask about: started here, resumed here, worked on by another process, or ended.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fusee::approval::OutsideAnswer;
use fusee::engine::run::{ControlSignal, RunHandle, RunOutcome, SignalOutcome};
use fusee::journal::{Journal, RunId, RunRow, RunStatus};
use fusee::launch::{LaunchRequest, Launcher, ResumeRequest};
use fusee::model::CancellationToken;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};

use crate::question::OpenQuestion;
use crate::run_state::{RunProgress, RunState};

/// Runs that one server works on at the same time.
const MAX_WORKING: usize = 64;
/// Ended runs whose state is kept.
const MAX_KEPT: usize = 256;
/// Events read from a journal at a time.
const PAGE: usize = 256;
/// How often the journal is read for a run of another process, and how often a run is checked for a panic.
const POLL: Duration = Duration::from_millis(500);
/// How long to wait until a run has taken an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(3);
/// Answers on their way to a run.
const ANSWERS: usize = 16;

/// All runs known to a server.
pub(crate) struct Runs {
    launcher: Arc<dyn Launcher>,
    /// By id.
    known: Mutex<BTreeMap<String, Arc<FollowedRun>>>,
    /// Held while a run is resumed, so that two calls do not resume the same one.
    resume: tokio::sync::Mutex<()>,
}

/// A run whose state is kept up to date.
pub(crate) struct FollowedRun {
    id: RunId,
    state: watch::Receiver<RunState>,
    control: RunControl,
}

/// How a run can be influenced.
enum RunControl {
    /// It works in this process.
    Here { cancel: CancellationToken, answers: mpsc::Sender<GivenAnswer> },
    /// Another process works on it, or it has ended.
    Journal(Journal),
}

/// An answer on its way to a run of this process.
struct GivenAnswer {
    call: String,
    answer: OutsideAnswer,
    taken: oneshot::Sender<bool>,
}

/// The runs of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunList {
    /// Runs, newest first
    pub(crate) runs: Vec<ListedRun>,
}

/// One entry of `fusee_runs`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedRun {
    /// Id of the run
    pub(crate) run: String,
    /// Shortened request
    pub(crate) title: String,
    /// State of the run
    pub(crate) status: RunProgress,
    /// Start time
    pub(crate) started: String,
}

impl FollowedRun {
    /// Id of the run.
    pub(crate) fn id(&self) -> &RunId {
        &self.id
    }

    /// Its state now.
    pub(crate) fn state(&self) -> RunState {
        self.state.borrow().clone()
    }

    /// Its state, with notice of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<RunState> {
        self.state.clone()
    }

    /// Cancels the run, also if another process works on it.
    pub(crate) async fn cancel(&self) -> Result<(), String> {
        let journal = match &self.control {
            RunControl::Here { cancel, .. } => {
                cancel.cancel();
                return Ok(());
            }
            RunControl::Journal(_) if self.state.borrow().status.has_ended() => return Ok(()),
            RunControl::Journal(journal) => journal,
        };
        match ControlSignal::Cancel.send(journal, &self.id).await.map_err(|error| error.to_string())? {
            SignalOutcome::Taken | SignalOutcome::Busy => Ok(()),
            SignalOutcome::NotRunning => Err(format!("no process works on run {}", self.id)),
        }
    }

    /// Answers a question and waits until the run has taken the answer. Returns false if it was answered before.
    pub(crate) async fn answer(
        &self,
        question: &OpenQuestion,
        answer: OutsideAnswer,
    ) -> Result<bool, String> {
        let is_taken = self.give(question, answer).await?;
        let mut changes = self.state.clone();
        let is_closed = |state: &RunState| !state.waiting.iter().any(|open| open.call == question.call);
        // Another process notices an answer within a second; if it takes longer, the next call sees it.
        let _ = tokio::time::timeout(ANSWER_WAIT, changes.wait_for(is_closed)).await;
        Ok(is_taken)
    }

    async fn give(&self, question: &OpenQuestion, answer: OutsideAnswer) -> Result<bool, String> {
        match &self.control {
            RunControl::Here { answers, .. } => {
                let (taken, is_taken) = oneshot::channel();
                let given = GivenAnswer { call: question.call.clone(), answer, taken };
                // Sending fails once the run has ended, and then nothing waits for an answer.
                let _ = answers.send(given).await;
                Ok(is_taken.await.unwrap_or(false))
            }
            RunControl::Journal(journal) => {
                let value = serde_json::to_value(answer).map_err(|error| error.to_string())?;
                let sent = journal.offer_signal(&self.id, &question.signal(), &value).await;
                sent.map(|signal| signal.is_some()).map_err(|error| error.to_string())
            }
        }
    }
}

impl Runs {
    pub(crate) fn new(launcher: Arc<dyn Launcher>) -> Self {
        Self { launcher, known: Mutex::default(), resume: tokio::sync::Mutex::default() }
    }

    /// The launcher of the runs.
    pub(crate) fn launcher(&self) -> &dyn Launcher {
        &*self.launcher
    }

    /// Starts a run.
    pub(crate) async fn start(&self, request: LaunchRequest) -> Result<Arc<FollowedRun>, String> {
        self.check_capacity()?;
        let handle = self.launcher.start(request).await.map_err(|error| error.to_string())?;
        let state = RunState::new(handle.id());
        Ok(self.follow(handle, state))
    }

    /// Finds a run. One that was interrupted is resumed.
    pub(crate) async fn find(
        &self,
        name: &str,
        directory: Option<&Path>,
    ) -> Result<Arc<FollowedRun>, String> {
        if let Some(known) = self.known_run(name) {
            return Ok(known);
        }
        let directory = directory.unwrap_or_else(|| self.launcher.directory()).to_owned();
        let journal = self.journal(&directory)?;
        let row = find_row(&journal, name)?;
        let _resuming = self.resume.lock().await;
        if let Some(known) = self.known_run(row.id.as_str()) {
            return Ok(known);
        }
        if row.status != RunStatus::Open {
            let (state, _) = read_state(&journal, &row)?;
            let (_, state) = watch::channel(state);
            return Ok(Arc::new(FollowedRun { id: row.id, state, control: RunControl::Journal(journal) }));
        }
        if journal.is_active(&row.id) {
            return poll(journal, row);
        }
        self.check_capacity()?;
        let (state, _) = read_state(&journal, &row)?;
        let handle = self.launcher.resume(&directory, &row.id, ResumeRequest::default()).await;
        Ok(self.follow(handle.map_err(|error| error.to_string())?, state))
    }

    /// The runs of a project, newest first.
    pub(crate) fn list(&self, directory: Option<&Path>, limit: usize) -> Result<Vec<ListedRun>, String> {
        let directory = directory.unwrap_or_else(|| self.launcher.directory());
        let Some(journal) = self.open_journal(directory)? else { return Ok(Vec::new()) };
        let rows = journal.runs().map_err(|error| error.to_string())?;
        Ok(rows.into_iter().take(limit).map(|row| self.listed(&journal, &row)).collect())
    }

    fn listed(&self, journal: &Journal, row: &RunRow) -> ListedRun {
        let status = match row.status {
            RunStatus::Completed => RunProgress::Completed,
            RunStatus::Failed => RunProgress::Failed,
            RunStatus::Cancelled => RunProgress::Cancelled,
            RunStatus::Open => match self.known_run(row.id.as_str()) {
                Some(known) => known.state().status,
                None if journal.is_active(&row.id) => RunProgress::Working,
                None => RunProgress::Interrupted,
            },
        };
        ListedRun {
            run: row.id.to_string(),
            title: row.title.clone(),
            status,
            started: rfc3339(row.started_ms),
        }
    }

    /// The journal of a project in which something was run.
    pub(crate) fn journal(&self, directory: &Path) -> Result<Journal, String> {
        let none = || format!("no run has been started in {}", directory.display());
        self.open_journal(directory)?.ok_or_else(none)
    }

    fn open_journal(&self, directory: &Path) -> Result<Option<Journal>, String> {
        self.launcher.journal(directory).map_err(|error| error.to_string())
    }

    fn known_run(&self, name: &str) -> Option<Arc<FollowedRun>> {
        self.known.lock().get(name).cloned()
    }

    fn check_capacity(&self) -> Result<(), String> {
        let known = self.known.lock();
        let working = known.values().filter(|run| !run.state.borrow().status.has_ended()).count();
        if working < MAX_WORKING {
            return Ok(());
        }
        Err(format!("{MAX_WORKING} runs are working already; wait for one of them or cancel it"))
    }

    /// Keeps the state of a run of this process up to date until it ends.
    fn follow(&self, handle: RunHandle, state: RunState) -> Arc<FollowedRun> {
        let id = handle.id().clone();
        let cancel = handle.cancellation();
        let (sender, state) = watch::channel(state);
        let (answers, given) = mpsc::channel(ANSWERS);
        let run =
            Arc::new(FollowedRun { id: id.clone(), state, control: RunControl::Here { cancel, answers } });
        tokio::spawn(drive(handle, sender, given));
        let mut known = self.known.lock();
        known.insert(id.to_string(), Arc::clone(&run));
        while known.len() > MAX_KEPT {
            let ended = known.iter().find(|(_, run)| run.state.borrow().status.has_ended());
            let Some(oldest) = ended.map(|(id, _)| id.clone()) else { break };
            known.remove(&oldest);
        }
        run
    }
}

async fn drive(handle: RunHandle, sender: watch::Sender<RunState>, mut given: mpsc::Receiver<GivenAnswer>) {
    let mut events = handle.events();
    let mut check = tokio::time::interval(POLL);
    let mut was_finished = false;
    loop {
        tokio::select! {
            biased;
            next = events.next() => match next {
                Ok(Some(record)) => {
                    sender.send_if_modified(|state| state.apply(&record));
                }
                Ok(None) | Err(_) => break,
            },
            Some(GivenAnswer { call, answer, taken }) = given.recv() => {
                // The caller may have gone.
                let _ = taken.send(handle.answer(Some(&call), &answer));
            }
            // A task that panicked leaves the stream open.
            _ = check.tick() => {
                if std::mem::replace(&mut was_finished, handle.is_finished()) {
                    break;
                }
            }
        }
    }
    let lost = match handle.outcome().await {
        RunOutcome::Ended(_) => None,
        RunOutcome::Stopped(stop) => Some(stop.to_string()),
        RunOutcome::Lost(cause) => Some(cause),
    };
    let cause = lost.unwrap_or_else(|| "the run ended without a last event".to_owned());
    sender.send_if_modified(|state| {
        let is_lost = !state.status.has_ended();
        if is_lost {
            state.lose(&cause);
        }
        is_lost
    });
}

/// Follows a run of another process by its journal, until nobody is interested any more.
fn poll(journal: Journal, row: RunRow) -> Result<Arc<FollowedRun>, String> {
    let (state, mut after) = read_state(&journal, &row)?;
    let (sender, state) = watch::channel(state);
    let (reader, id) = (journal.clone(), row.id.clone());
    tokio::spawn(async move {
        while !sender.is_closed() {
            tokio::time::sleep(POLL).await;
            let mut read = Ok(after);
            sender.send_if_modified(|state| {
                let before = state.clone();
                read = read_events(&reader, &id, after, state);
                *state != before
            });
            match read {
                Ok(last) => after = last,
                Err(_) => return,
            }
            if sender.borrow().status.has_ended() {
                return;
            }
            if !reader.is_active(&id) {
                sender.send_modify(|state| state.status = RunProgress::Interrupted);
                return;
            }
        }
    });
    Ok(Arc::new(FollowedRun { id: row.id, state, control: RunControl::Journal(journal) }))
}

/// The state of a run by its journal, and the number of its last event.
pub(crate) fn read_state(journal: &Journal, row: &RunRow) -> Result<(RunState, u64), String> {
    let mut state = RunState::new(&row.id);
    let after = read_events(journal, &row.id, 0, &mut state)?;
    if row.status == RunStatus::Open && state.status.has_ended() {
        // Its last event belongs to a process that gave up; the run can be continued.
        state.status = RunProgress::Interrupted;
    }
    Ok((state, after))
}

fn read_events(journal: &Journal, run: &RunId, after: u64, state: &mut RunState) -> Result<u64, String> {
    let mut last = after;
    loop {
        let page = journal.events(run, last, u64::MAX, PAGE).map_err(|error| error.to_string())?;
        for record in &page {
            state.apply(record);
            last = record.seq;
        }
        if page.len() < PAGE {
            return Ok(last);
        }
    }
}

/// Finds a run by its id or a unique prefix of it.
pub(crate) fn find_row(journal: &Journal, name: &str) -> Result<RunRow, String> {
    let unknown = match journal.run(name) {
        Ok(row) => return Ok(row),
        Err(error) => error.to_string(),
    };
    let rows = journal.runs().map_err(|error| error.to_string())?;
    let mut fitting = rows.into_iter().filter(|row| !name.is_empty() && row.id.as_str().starts_with(name));
    match (fitting.next(), fitting.next()) {
        (Some(row), None) => Ok(row),
        (Some(_), Some(_)) => Err(format!("several runs begin with `{name}`; use the whole id")),
        (None, _) => Err(unknown),
    }
}

/// A time of the journal as text.
pub(crate) fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).unwrap_or_default()
}
