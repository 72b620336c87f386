//! Goes back to an earlier turn of a run: its files, its conversation, or both.
//!
//! A rewind is a new run. It begins with the recorded steps of the old one up to that turn, so it is resumed or
//! continued like a run that was interrupted there, and the old run stays as it is. The plan for the files is journaled
//! together with the new run, before any file changes (`crate::restore`).

mod adoption;
mod comparison;
mod family;
mod file_history;
mod fork;
mod restore_plan;
mod turns;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee_journal::{
    Branch, DurableRun, Journal, JournalError, RunAborted, RunCopy, RunId, RunStatus, SqliteRun, StepKey,
};
use fusee_tools::Workspace;
use serde_json::Value;

use crate::restore::{RestorePlan, RestoreReport, aside_folder, conclude_restore};
use crate::run::{self, RunOrigin, RunSpec, StartError};
use family::{Family, Member};
use turns::Cut;

pub use adoption::Adoption;
pub use comparison::{FileDifference, file_differences};

/// Error while going back to an earlier turn.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// The run has fewer turns.
    #[error("run {run} has no turn {turn}: its turns are 0 (before the run) to {last}")]
    NoSuchTurn {
        /// Run that was named.
        run: RunId,
        /// The turn that was asked for.
        turn: u32,
        /// Its last completed turn.
        last: u32,
    },
    /// A run that works on the same files is in progress.
    #[error("run {run} is in progress: another process may be changing its files")]
    InProgress {
        /// Run that was named.
        run: RunId,
    },
    /// The run does not work in a copy of a workspace.
    #[error("run {run} is not a fork with a worktree: its changes are already in its workspace")]
    NoFork {
        /// Run that was named.
        run: RunId,
    },
    /// The files could not be restored.
    #[error("{0}")]
    Files(String),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The settings of a run cannot be read.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The new run could not be written.
    #[error(transparent)]
    Aborted(#[from] RunAborted),
}

/// What goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewindParts {
    /// The files of the workspace.
    pub files: bool,
    /// The conversation with the model.
    pub conversation: bool,
}

/// A planned rewind. Nothing has changed yet.
#[derive(Debug)]
pub struct Rewind {
    /// The run that contains the target turn: the requested run or one of its ancestors.
    pub run: RunId,
    /// Number of its turns that are kept.
    pub turn: u32,
    /// What goes back.
    pub parts: RewindParts,
    /// The planned state of the files.
    pub plan: RestorePlan,
    /// Changes of files, with what happens to each.
    pub changes: Vec<(String, FileAction)>,
    /// Files that cannot be restored, each with the reason.
    pub left: Vec<(String, String)>,
    /// Files whose current content is set aside, because it is nowhere else.
    pub aside: Vec<String>,
    /// Commands that ran since then. Their effects outside of the tracked files are not known.
    pub commands: Vec<String>,
    cut: Cut,
    turns: u32,
    spec: RunSpec,
    status: RunStatus,
}

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// It gets its earlier content or permissions.
    Restored,
    /// It is created again.
    Recreated,
    /// The path exists now and did not exist then.
    Removed,
}

/// Number of completed turns that a run can go back to, including those of the runs it was rewound from.
pub fn turn_count(journal: &Journal, run: &RunId) -> Result<u32, RewindError> {
    let mut next = Some(run.clone());
    let mut most = 0;
    // A journal that someone else made may have runs that go back to each other.
    for _ in 0..journal.runs()?.len() {
        let Some(run) = next.take() else { break };
        if journal.run(run.as_str()).is_err() {
            break;
        }
        most = most.max(turns::turns(journal, &run)?.count());
        next = run::settings_of(journal, &run)?.origin.map(|origin| origin.run);
    }
    Ok(most)
}

impl Rewind {
    /// Determines what a rewind of `run` to `turn` does.
    pub fn plan(journal: &Journal, run: &RunId, turn: u32, parts: RewindParts) -> Result<Self, RewindError> {
        let family = Family::load(journal, run)?;
        let member = find_turn(journal, &family, run, turn)?;
        let asked = family.member(run).unwrap_or(member);
        let directory = asked.spec.workspace.clone();
        let mut rewind = Self::without_files(journal, member, turn, parts)?;
        rewind.spec.workspace.clone_from(&directory);
        if parts.files {
            if let Some(busy) = family.in_workspace(&directory).find(|other| journal.is_active(&other.id)) {
                return Err(RewindError::InProgress { run: busy.id.clone() });
            }
            let workspace = open(&directory)?;
            restore_plan::plan(&mut rewind, &family, member, &workspace)?;
            rewind.commands = commands_since(&family, member, turn, &directory);
        }
        Ok(rewind)
    }

    /// A rewind that leaves the files as they are.
    fn without_files(
        journal: &Journal,
        member: &Member,
        turn: u32,
        parts: RewindParts,
    ) -> Result<Self, RewindError> {
        let last_seq = journal.event_index(&member.id, u64::MAX)?.last;
        let (cut, turns) = match parts.conversation {
            true => ((*member.cut(turn)).clone(), turn),
            false => (Cut::end(&member.steps, last_seq), member.turns.count()),
        };
        Ok(Self {
            run: member.id.clone(),
            turn,
            parts,
            plan: RestorePlan::default(),
            changes: Vec::new(),
            left: Vec::new(),
            aside: Vec::new(),
            commands: Vec::new(),
            cut,
            turns,
            spec: member.spec.clone(),
            status: member.status,
        })
    }

    /// Creates the new run and restores the files.
    pub async fn apply(self, journal: &Journal, run: &RunId) -> Result<RestoreReport, RewindError> {
        let Self { parts, status, .. } = self;
        let origin = self.origin(None);
        let spec = RunSpec { origin: Some(origin), ..self.spec.clone() };
        let started = self.begin(journal, run, spec, true).await?;
        let report = started.restore(journal).await?;
        // All of the conversation was taken over, and with it its end.
        if !parts.conversation && status != RunStatus::Open {
            started.sqlite_run.finish(status).await?;
        }
        Ok(report)
    }

    /// The origin of a run that begins here. `workspace` is that of the original, if the run works in a copy of it.
    fn origin(&self, workspace: Option<PathBuf>) -> RunOrigin {
        RunOrigin {
            run: self.run.clone(),
            turn: self.turn,
            files: self.parts.files,
            conversation: self.parts.conversation,
            turns: self.turns,
            steps: self.cut.steps.clone(),
            workspace,
        }
    }

    /// Writes the new run into the journal, with the plan for the files if they are to be restored.
    async fn begin(
        self,
        journal: &Journal,
        run: &RunId,
        spec: RunSpec,
        restores: bool,
    ) -> Result<StartedRewind, RewindError> {
        let origin = spec.origin.clone().unwrap_or_else(|| self.origin(None));
        let model = (spec.model != self.spec.model).then(|| (self.spec.model.clone(), spec.model.clone()));
        let value = |value: serde_json::Result<Value>| value.unwrap_or_default();
        let copy = RunCopy {
            from: self.run,
            steps: self.cut.steps,
            last_seq: self.cut.last_seq,
            settings: value(serde_json::to_value(&spec)),
            model,
            first: (restores && origin.files)
                .then(|| (origin.restore_step(), value(serde_json::to_value(&self.plan)))),
        };
        let sqlite_run = SqliteRun::begin_copy(journal, run, &spec.title(), copy).await?;
        Ok(StartedRewind { sqlite_run, origin, workspace: spec.workspace })
    }
}

/// A new run whose files may not be restored yet.
struct StartedRewind {
    sqlite_run: Arc<SqliteRun>,
    origin: RunOrigin,
    workspace: PathBuf,
}

impl StartedRewind {
    /// Restores the files as the journal says, and records it.
    async fn restore(&self, journal: &Journal) -> Result<RestoreReport, RewindError> {
        let mut report = RestoreReport::default();
        if self.origin.files {
            let workspace = Arc::new(open(&self.workspace)?);
            let aside = aside_folder(journal, self.sqlite_run.run());
            let request = self.origin.restore_step();
            report = conclude_restore(&*self.sqlite_run, request, &workspace, &aside)
                .await
                .map_err(|error| RewindError::Files(error.to_string()))?;
        }
        self.record_rewind_event().await?;
        Ok(report)
    }

    /// Records the event about the rewind.
    async fn record_rewind_event(&self) -> Result<(), RewindError> {
        self.sqlite_run.note(&Branch::main(), self.origin.event());
        Ok(self.sqlite_run.flush().await?)
    }
}

/// Completes the rewinds that a crash interrupted, except those of runs that another process has open. Returns the
/// completed runs.
pub async fn finish_interrupted(journal: &Journal) -> Result<Vec<RunId>, RewindError> {
    let mut finished = Vec::new();
    for row in journal.runs()?.into_iter().filter(|row| row.status == RunStatus::Open) {
        let key = StepKey { branch: RunOrigin::branch(), n: 0 };
        let step = journal.step(&row.id, &key)?;
        if step.is_none_or(|step| step.result.is_some()) || journal.is_active(&row.id) {
            continue;
        }
        let spec = run::settings_of(journal, &row.id)?;
        let Some(origin) = spec.origin else { continue };
        let sqlite_run = SqliteRun::resume(journal, &row.id)?;
        let started = StartedRewind { sqlite_run, origin, workspace: spec.workspace };
        started.restore(journal).await?;
        let status = journal.run(started.origin.run.as_str()).map_or(RunStatus::Open, |run| run.status);
        if !started.origin.conversation && status != RunStatus::Open {
            started.sqlite_run.finish(status).await?;
        }
        finished.push(row.id);
    }
    Ok(finished)
}

/// The run that has this turn: the one that is asked for, or the one that it goes back to.
fn find_turn<'f>(
    journal: &Journal,
    family: &'f Family,
    run: &RunId,
    turn: u32,
) -> Result<&'f Member, RewindError> {
    let missing = || StartError::NoSettings { run: run.clone() };
    let mut member = family.member(run).ok_or_else(missing)?;
    for _ in 0..family.members.len() {
        if turn <= member.turns.count() {
            return Ok(member);
        }
        match member.spec.origin.as_ref().and_then(|origin| family.member(&origin.run)) {
            Some(parent) => member = parent,
            None => break,
        }
    }
    Err(RewindError::NoSuchTurn { run: run.clone(), turn, last: turn_count(journal, run)? })
}

/// The commands that ran in this directory since a turn, the newest last.
fn commands_since(family: &Family, member: &Member, turn: u32, directory: &Path) -> Vec<String> {
    let cut = member.cut(turn);
    let later = family.members.iter().skip_while(|other| other.id != member.id);
    let mut commands = Vec::new();
    for other in later.filter(|other| other.spec.workspace == directory) {
        let origin = other.spec.origin.as_ref();
        let is_since = |key: &StepKey| match origin {
            _ if other.id == member.id => !cut.includes(key),
            Some(origin) => key.n >= origin.steps.get(&key.branch).copied().unwrap_or_default(),
            None => true,
        };
        let since = other.history.commands.iter().filter(|(key, _)| is_since(key));
        commands.extend(since.map(|(_, command)| command.clone()));
    }
    commands
}

fn open(directory: &Path) -> Result<Workspace, RewindError> {
    Workspace::open(directory).map_err(|error| {
        RewindError::Files(format!("{error}; a rewind needs the directory that the run worked in"))
    })
}
