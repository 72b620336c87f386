//! Taking back what a run changed in its workspace, from its journal alone.
//!
//! A change of a file is a step whose intent holds what was there before, the first time a run touches it. So what can be
//! put back is known, and said, before anything is done; what a command changed is not in the journal.

use std::collections::BTreeMap;

use fusee_journal::{Journal, JournalError, Kind, RunId, StepRow};
use fusee_tools::workspace::{Kept, KeptContent, PutBack};
use fusee_tools::{ContentHash, FileChange, Workspace};
use serde_json::Value;

/// Larger files are left alone.
const MOST_BYTES: u64 = 64 << 20;

/// What undoing a run would do.
#[derive(Debug, Default)]
pub struct Undo {
    /// Files that are put back, removed or made again.
    pub files: Vec<PutBack>,
    /// Files that hold already what they held before.
    pub already: Vec<String>,
    /// Files that are left as they are, and why.
    pub left: Vec<(String, String)>,
    /// Commands that were run. What they changed is not known.
    pub commands: Vec<String>,
}

/// A file's way through a run.
#[derive(Default)]
struct Trail {
    before: Option<ContentHash>,
    after: Option<ContentHash>,
    kept: Option<Kept>,
}

impl Undo {
    /// Works out what can be taken back of a run.
    pub fn plan(journal: &Journal, run: &RunId, workspace: &Workspace) -> Result<Self, JournalError> {
        let mut steps: Vec<StepRow> =
            journal.steps(run)?.into_iter().filter(|step| step.kind == Kind::Tool).collect();
        // In the order in which they happened, of whatever branch.
        steps.sort_by_key(|step| step.at_ms);
        let (mut trails, mut undo) = (BTreeMap::<String, Trail>::new(), Self::default());
        for step in &steps {
            undo.note(step, &mut trails);
        }
        for (path, trail) in trails {
            undo.judge(path, trail, workspace);
        }
        Ok(undo)
    }

    fn note(&mut self, step: &StepRow, trails: &mut BTreeMap<String, Trail>) {
        let read = |value: Option<&Value>, name: &str| value.and_then(|value| value.get(name)).cloned();
        if let Some(Value::String(command)) = read(step.intent.as_ref(), "command") {
            // What it changed is seen, but what was there before is not kept.
            self.commands.push(command);
            return;
        }
        let kept = read(step.intent.as_ref(), "kept")
            .and_then(|kept| serde_json::from_value::<Vec<Kept>>(kept).ok());
        // A call that was cut off and never settled may have happened: its intent stands for it.
        let changed = match &step.result {
            Some(result) => read(Some(result), "changed"),
            None => read(step.intent.as_ref(), "changes"),
        };
        let changed = changed.and_then(|changed| serde_json::from_value::<Vec<FileChange>>(changed).ok());
        for change in changed.into_iter().flatten() {
            let first = Trail { before: change.before, ..Trail::default() };
            let trail = trails.entry(change.path.clone()).or_insert(first);
            trail.after = change.after;
            if trail.kept.is_none() {
                trail.kept = kept.iter().flatten().find(|kept| kept.path == change.path).cloned();
            }
        }
    }

    fn judge(&mut self, path: String, trail: Trail, workspace: &Workspace) {
        let Trail { before, after, kept } = trail;
        let now = match workspace.holds(&path, MOST_BYTES) {
            Ok(now) => now,
            Err(why) => return self.left.push((path, why)),
        };
        if now == before {
            return self.already.push(path);
        }
        if now != after {
            let why = "it was changed again after the run, by something else".to_owned();
            return self.left.push((path, why));
        }
        let before = match (before, kept) {
            (None, _) => None,
            (Some(hash), Some(kept)) => match (kept.content.bytes(), &kept.content) {
                (Some(bytes), _) if ContentHash::of(&bytes) == hash => Some((bytes, kept.mode)),
                (_, KeptContent::TooLarge(bytes)) => {
                    let why = format!("it held {bytes} bytes, more than the journal keeps");
                    return self.left.push((path, why));
                }
                _ => {
                    let why = "it held a secret, which is not written down, or is damaged in the journal";
                    return self.left.push((path, why.to_owned()));
                }
            },
            (Some(_), None) => {
                let why = "what it held is not in the journal of this run".to_owned();
                return self.left.push((path, why));
            }
        };
        self.files.push(PutBack { path, now, before });
    }

    /// Does it, all files or none.
    pub fn carry_out(&self, workspace: &Workspace, run: &RunId) -> Result<(), String> {
        workspace.put_back(&self.files, &format!("undo-{run}"), MOST_BYTES)
    }
}
