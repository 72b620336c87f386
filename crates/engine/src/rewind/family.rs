//! The runs that belong together because they continue, rewind or fork each other, and the state of their files at any
//! turn of any of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use fusee_journal::{Branch, Journal, RunId, RunStatus, StepKey, StepRow};
use fusee_tools::workspace::BackupContent;
use fusee_tools::{ContentHash, FileChange, ToolOutput, Workspace};

use super::RewindError;
use super::file_history::{ContentStore, FileHistory, PathChange, PathState};
use super::turns::{self, Cut, TurnList};
use crate::run::{self, RunOrigin, RunSpec};

/// A run of the family.
pub(super) struct Member {
    pub(super) id: RunId,
    pub(super) spec: RunSpec,
    pub(super) status: RunStatus,
    pub(super) steps: Vec<StepRow>,
    pub(super) turns: TurnList,
    pub(super) history: FileHistory,
    /// What had been recorded at the turns that were asked for.
    cuts: RefCell<BTreeMap<u32, Rc<Cut>>>,
}

/// The runs that belong to one.
pub(super) struct Family {
    /// From the oldest to the newest.
    pub(super) members: Vec<Member>,
    by_id: HashMap<RunId, usize>,
    store: ContentStore,
}

impl Family {
    /// Finds the family of a run and reads what it did.
    pub(super) fn load(journal: &Journal, run: &RunId) -> Result<Self, RewindError> {
        let mut rows = journal.runs()?;
        rows.reverse();
        let mut specs = HashMap::new();
        for row in &rows {
            // A run that was killed before it started, or that another version wrote, has no part in this.
            if let Ok(spec) = run::settings_of(journal, &row.id) {
                specs.insert(row.id.clone(), spec);
            }
        }
        let related = related(&specs, run);
        let line = line(&specs, run);
        let mut family = Self { members: Vec::new(), by_id: HashMap::new(), store: ContentStore::default() };
        for row in rows.into_iter().filter(|row| related.contains(&row.id)) {
            let Some(spec) = specs.get(&row.id).cloned() else { continue };
            // A rewind that did nothing since only repeats what the run has that it came from.
            let repeats = spec.origin.as_ref().filter(|origin| specs.contains_key(&origin.run));
            let is_copy = !line.contains(&row.id)
                && match repeats {
                    Some(origin) => has_no_own_steps(journal, &row.id, origin)?,
                    None => false,
                };
            let (steps, turns) = match is_copy {
                true => (Vec::new(), TurnList::default()),
                false => (journal.steps(&row.id)?, turns::turns(journal, &row.id)?),
            };
            let mut history = FileHistory::read(&steps, &mut family.store);
            if history.cut_off && row.status == RunStatus::Open {
                note_interrupted(journal, &row.id, &spec, &mut history);
            }
            family.by_id.insert(row.id.clone(), family.members.len());
            let (id, status, cuts) = (row.id, row.status, RefCell::default());
            family.members.push(Member { id, spec, status, steps, turns, history, cuts });
        }
        Ok(family)
    }

    /// A run of the family.
    pub(super) fn member(&self, run: &RunId) -> Option<&Member> {
        self.by_id.get(run).map(|at| &self.members[*at])
    }

    /// The members that work in this directory.
    pub(super) fn in_workspace<'a>(&'a self, workspace: &'a Path) -> impl Iterator<Item = &'a Member> {
        self.members.iter().filter(move |member| member.spec.workspace == workspace)
    }

    /// The paths that the runs in this directory changed.
    pub(super) fn paths(&self, workspace: &Path) -> BTreeSet<&str> {
        let members = self.members.iter().filter(|member| member.spec.workspace == workspace);
        members.flat_map(|member| member.history.changes.keys().map(String::as_str)).collect()
    }

    /// The state of a path when a run had completed `turn` turns, or at its end.
    pub(super) fn state(&self, member: &Member, turn: Option<u32>, path: &str) -> Option<PathState> {
        let in_line = self.state_in_line(member, turn, path, self.members.len());
        // Only a later run of the family changed it.
        in_line.or_else(|| {
            self.in_workspace(&member.spec.workspace)
                .filter(|other| other.id != member.id)
                .find_map(|other| Some(other.history.changes.get(path)?.first()?.before))
        })
    }

    /// The same, from the run and those it goes back to. `depth` bounds how many these are.
    fn state_in_line(
        &self,
        member: &Member,
        turn: Option<u32>,
        path: &str,
        depth: usize,
    ) -> Option<PathState> {
        let deeper = depth.checked_sub(1)?;
        let changes = member.history.changes.get(path).map(Vec::as_slice).unwrap_or_default();
        let origin = member.spec.origin.as_ref();
        let parent = origin.and_then(|origin| Some((origin, self.member(&origin.run)?)));
        let cut = turn.map(|turn| member.cut(turn));
        let Some((origin, parent)) = parent else {
            let own = own_state(changes.iter(), cut.as_deref());
            return own.or_else(|| {
                let earlier = self.member(member.spec.continues.as_ref()?)?;
                self.state_in_line(earlier, None, path, deeper)
            });
        };
        let is_own = |change: &&PathChange| {
            change.key.n >= origin.steps.get(&change.key.branch).copied().unwrap_or_default()
        };
        let own: Vec<&PathChange> = changes.iter().filter(is_own).collect();
        if turn.is_some_and(|turn| turn <= origin.turns) {
            let shared = self.state_in_line(parent, turn, path, deeper);
            return shared.or_else(|| own.first().map(|change| change.before));
        }
        let included = own.iter().rev().find(|change| is_included(change, cut.as_deref()));
        if let Some(change) = included {
            return Some(change.after);
        }
        let at = origin.files.then_some(origin.turn);
        let inherited = self.state_in_line(parent, at, path, deeper);
        inherited.or_else(|| own.first().map(|change| change.before))
    }

    /// The content with this hash, if the journal has it.
    pub(super) fn content(&self, hash: ContentHash) -> Option<&BackupContent> {
        self.store.find(hash)
    }

    /// Why the content of a path is not in the journal.
    pub(super) fn reason(&self, path: &str) -> String {
        self.store.reason(path)
    }

    /// Whether some run of the family recorded this content for the path, so that it can be restored.
    pub(super) fn has_version(&self, path: &str, content: &[u8]) -> bool {
        let is_content = |state: PathState| match state {
            PathState::File { hash, .. } => {
                hash.is_of(content) && (hash.git_blob().is_some() || self.content(hash).is_some())
            }
            PathState::Absent | PathState::Directory => false,
        };
        let changes = self.members.iter().filter_map(|member| member.history.changes.get(path));
        changes.flatten().any(|change| is_content(change.before) || is_content(change.after))
    }
}

impl Member {
    /// What had been recorded when `turn` turns were completed.
    pub(super) fn cut(&self, turn: u32) -> Rc<Cut> {
        let mut cuts = self.cuts.borrow_mut();
        let cut = cuts.entry(turn).or_insert_with(|| Rc::new(turns::cut(&self.steps, &self.turns, turn)));
        Rc::clone(cut)
    }
}

fn is_included(change: &PathChange, cut: Option<&Cut>) -> bool {
    cut.is_none_or(|cut| cut.includes(&change.key))
}

/// The state after the changes that the cut includes, or else before the first one that it does not include.
fn own_state<'c>(
    changes: impl DoubleEndedIterator<Item = &'c PathChange> + Clone,
    cut: Option<&Cut>,
) -> Option<PathState> {
    let last = changes.clone().rev().find(|change| is_included(change, cut));
    last.map(|change| change.after).or_else(|| changes.clone().next().map(|change| change.before))
}

/// The runs that are connected with one, including itself.
fn related(specs: &HashMap<RunId, RunSpec>, run: &RunId) -> HashSet<RunId> {
    let mut links: BTreeMap<&str, Vec<&RunId>> = BTreeMap::new();
    for (id, spec) in specs {
        let earlier = [spec.continues.as_ref(), spec.origin.as_ref().map(|origin| &origin.run)];
        for other in earlier.into_iter().flatten() {
            links.entry(id.as_str()).or_default().push(other);
            links.entry(other.as_str()).or_default().push(id);
        }
    }
    let (mut found, mut ahead) = (HashSet::from([run.clone()]), vec![run]);
    while let Some(next) = ahead.pop() {
        for other in links.get(next.as_str()).into_iter().flatten() {
            if found.insert((*other).clone()) {
                ahead.push(other);
            }
        }
    }
    found
}

/// A run and those that it goes back to, one after the other.
fn line(specs: &HashMap<RunId, RunSpec>, run: &RunId) -> HashSet<RunId> {
    let (mut found, mut next) = (HashSet::new(), Some(run.clone()));
    while let Some(run) = next.filter(|run| !found.contains(run)) {
        let origin = specs.get(&run).and_then(|spec| spec.origin.as_ref());
        next = origin.map(|origin| origin.run.clone());
        found.insert(run);
    }
    found
}

/// Whether a run has only the steps that it took over, and the one that restored its files.
fn has_no_own_steps(journal: &Journal, run: &RunId, origin: &RunOrigin) -> Result<bool, RewindError> {
    let counts = journal.step_counts(run)?;
    Ok(counts.iter().all(|(branch, count)| {
        *branch == RunOrigin::branch() || origin.steps.get(branch).is_some_and(|taken| taken == count)
    }))
}

/// Adds what an interrupted command changed, as far as the snapshot from before the first command shows it.
fn note_interrupted(journal: &Journal, run: &RunId, spec: &RunSpec, history: &mut FileHistory) {
    let Ok(workspace) = Workspace::open(&spec.workspace) else { return };
    workspace.load_snapshot(run::initial_snapshot_path(journal, run));
    let changes = history.changes.iter().filter_map(|(path, changes)| {
        let after = match changes.last()?.after {
            PathState::File { hash, .. } => Some(hash),
            PathState::Absent => None,
            PathState::Directory => return None,
        };
        Some(FileChange { path: path.clone(), before: None, after, mode: None })
    });
    workspace.record_output(&ToolOutput { changed: changes.collect(), ..ToolOutput::default() });
    let found = workspace.scan_changes();
    // After every recorded step, so that no turn includes it.
    let key = StepKey { branch: Branch::main(), n: u64::MAX };
    history.add(&key, found, &HashMap::new(), workspace.take_directory_changes());
}
