//! Taking back what a run changed in its workspace, from its journal and from git.
//!
//! A change of a file is a step whose intent holds what was there before, the first time a run touches it. Before its
//! first command a run keeps the files that git could not give back; the others come from git (`git`). So what can be
//! put back is known, and said, before anything is done.

mod git;

use std::collections::{BTreeMap, HashMap, HashSet};

use fusee_journal::{Journal, JournalError, Kind, RunId, StepRow};
use fusee_tools::workspace::{Kept, KeptContent, PutBack, Standing};
use fusee_tools::{ContentHash, DirectoryChange, FileChange, ToolOutput, Workspace};
use serde_json::Value;

/// Larger files are left alone.
const MOST_BYTES: u64 = 64 << 20;

/// More than this is not put back at once.
const MOST_AT_ONCE: usize = 512 << 20;

/// How a file is made again of which nobody knows the permissions.
const PLAIN_FILE: u32 = 0o100644;

/// What undoing a run would do.
#[derive(Debug, Default)]
pub struct Undo {
    /// Files that are put back, removed or made again.
    pub files: Vec<PutBack>,
    /// Files that hold already what they held before.
    pub already: Vec<String>,
    /// Files that are left as they are, and why.
    pub left: Vec<(String, String)>,
    /// Directories that the run made and that will be empty: they are removed, inner ones first.
    pub emptied: Vec<String>,
    /// Directories that the run took away and that no file brings back: they are made again.
    pub missing: Vec<String>,
    /// Commands that were run. What they changed elsewhere than in files that are looked at (ignored ones, `.git`,
    /// permissions, what is outside of the workspace) is not known.
    pub commands: Vec<String>,
}

/// A file's way through a run.
#[derive(Default)]
struct Trail {
    before: Option<ContentHash>,
    after: Option<ContentHash>,
    mode: Option<u32>,
    by_command: bool,
}

/// Whether a directory was there before the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    There,
    Absent,
}

/// Where the content comes from that is put back.
enum Source {
    /// Nothing was there.
    Nowhere,
    Kept(Vec<u8>, u32),
    Git([u8; 20], u32),
}

/// All that the journal says about changes.
#[derive(Default)]
struct Found {
    trails: BTreeMap<String, Trail>,
    kept: HashMap<String, Vec<Kept>>,
    commands: Vec<String>,
    /// Directories that came or went, and whether each was there before the run.
    directories: BTreeMap<String, Before>,
    /// Whether the end of a command is not known.
    cut_off: bool,
}

impl Undo {
    /// Works out what can be taken back of a run.
    pub fn plan(journal: &Journal, run: &RunId, workspace: &Workspace) -> Result<Self, JournalError> {
        let effects = |step: &StepRow| matches!(step.kind, Kind::Tool | Kind::Environment);
        let mut steps: Vec<StepRow> = journal.steps(run)?.into_iter().filter(effects).collect();
        // In the order in which they happened, of whatever branch.
        steps.sort_by_key(|step| step.at_ms);
        let mut found = Found::default();
        for step in &steps {
            found.note(step);
        }
        let mut undo = Self::default();
        if found.cut_off {
            undo.leave_unknown(&found, workspace, crate::run::first_look(journal, run));
        }
        let mut pending = Vec::new();
        for (path, trail) in std::mem::take(&mut found.trails) {
            let kept = found.kept.remove(&path).unwrap_or_default();
            if let Some((now, source)) = undo.judge(&path, &trail, &kept, workspace) {
                pending.push((path, now, source));
            }
        }
        undo.commands = found.commands;
        undo.fetch(pending, workspace);
        undo.drop_second_names(workspace);
        undo.judge_directories(&found.directories, workspace);
        Ok(undo)
    }

    /// What changed since a command began that was cut off. Whether it did that, or somebody else afterwards, nobody
    /// can tell.
    fn leave_unknown(&mut self, found: &Found, workspace: &Workspace, look: std::path::PathBuf) {
        workspace.keep_first_look(look);
        let told = found.trails.iter().map(|(path, trail)| FileChange {
            path: path.clone(),
            before: trail.before,
            after: trail.after,
            mode: None,
        });
        workspace.recall(&ToolOutput { changed: told.collect(), ..ToolOutput::default() });
        for change in workspace.look_for_changes() {
            if !found.trails.contains_key(&change.path) {
                let why = "it changed during a command that was cut off, or since then".to_owned();
                self.left.push((change.path, why));
            }
        }
    }

    /// What stands there and what is to be put in its place, unless the file is left alone.
    fn judge(
        &mut self,
        path: &str,
        trail: &Trail,
        kept: &[Kept],
        workspace: &Workspace,
    ) -> Option<(Option<Standing>, Source)> {
        let known = |standing: &Standing| {
            [trail.before, trail.after].into_iter().flatten().any(|name| standing.is(name))
        };
        let now = match workspace.standing(path, MOST_BYTES) {
            // Tools write through links: the content is behind it.
            Ok(Some(link @ Standing::Link(_))) if !known(&link) => {
                workspace.standing_behind(path, MOST_BYTES)
            }
            now => now,
        };
        let now = match now {
            Ok(now) => now,
            Err(why) => return self.leave(path, why),
        };
        let is = |name: Option<ContentHash>| match (&now, name) {
            (None, None) => true,
            (Some(now), Some(name)) => now.is(name),
            _ => false,
        };
        if is(trail.before) {
            self.already.push(path.to_owned());
            return None;
        }
        if !is(trail.after) {
            return self.leave(path, "it was changed again after the run, by something else".to_owned());
        }
        match source(trail, kept) {
            Ok(source) => Some((now, source)),
            Err(why) => self.leave(path, why),
        }
    }

    fn leave<T>(&mut self, path: &str, why: String) -> Option<T> {
        self.left.push((path.to_owned(), why));
        None
    }

    /// Gets the content from where it is.
    fn fetch(&mut self, pending: Vec<(String, Option<Standing>, Source)>, workspace: &Workspace) {
        let wanted = pending.iter().filter_map(|(_, _, source)| match source {
            Source::Git(id, _) => Some(*id),
            Source::Nowhere | Source::Kept(..) => None,
        });
        let objects = git::blobs(workspace.root(), &wanted.collect::<Vec<_>>(), MOST_AT_ONCE);
        let mut bytes = 0;
        for (path, now, source) in pending {
            let before = match source {
                Source::Nowhere => None,
                Source::Kept(content, mode) => Some((content, mode)),
                Source::Git(id, mode) => match objects.find(&id) {
                    Ok(content) => Some((content, mode)),
                    Err(why) => {
                        self.left.push((path, why));
                        continue;
                    }
                },
            };
            bytes += before.as_ref().map_or(0, |(content, _)| content.len());
            if bytes > MOST_AT_ONCE {
                let why = "there is more to put back than is done at once; undo again for the rest";
                self.left.push((path, why.to_owned()));
                continue;
            }
            self.files.push(PutBack { path, now, before });
        }
    }

    /// A file that was changed under two names is put back under its real one.
    fn drop_second_names(&mut self, workspace: &Workspace) {
        let names: HashSet<String> = self.files.iter().map(|file| file.path.clone()).collect();
        self.files.retain(|file| match (&file.now, workspace.real_name(&file.path)) {
            (Some(Standing::File { .. }), Some(real)) => real == file.path || !names.contains(&real),
            _ => true,
        });
    }

    /// Of the directories that the run made those that will be empty, and of those it took away those that are still
    /// missing.
    fn judge_directories(&mut self, directories: &BTreeMap<String, Before>, workspace: &Workspace) {
        let removed: HashSet<&str> =
            self.files.iter().filter(|file| file.before.is_none()).map(|file| file.path.as_str()).collect();
        // Back to front, what lies in a directory comes before it.
        for (path, _) in directories.iter().rev().filter(|(_, before)| **before == Before::Absent) {
            let Some(names) = workspace.names_in(path) else { continue };
            let goes = |(name, is_directory): &(String, bool)| {
                let inner = format!("{path}/{name}");
                if *is_directory { self.emptied.contains(&inner) } else { removed.contains(inner.as_str()) }
            };
            if names.iter().all(goes) {
                self.emptied.push(path.clone());
            }
        }
        let back = self.files.iter().filter(|file| file.before.is_some()).map(|file| file.path.clone());
        let brought: Vec<String> = back.collect();
        let below =
            |path: &str, outer: &str| path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
        let missing = directories.iter().filter(|(path, before)| {
            **before == Before::There
                && workspace.names_in(path).is_none()
                && !brought.iter().any(|file| below(file, path))
        });
        self.missing = missing.map(|(path, _)| path.clone()).collect();
    }

    /// Whether there is nothing to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.emptied.is_empty() && self.missing.is_empty()
    }

    /// Does it, all files or none. A directory that somebody used meanwhile stays.
    pub fn carry_out(&self, workspace: &Workspace, run: &RunId) -> Result<(), String> {
        workspace.put_back(&self.files, &format!("undo-{run}"), MOST_BYTES)?;
        for path in &self.emptied {
            workspace.remove_empty_directory(path);
        }
        for path in &self.missing {
            workspace.make_directory(path);
        }
        Ok(())
    }
}

impl Found {
    fn note(&mut self, step: &StepRow) {
        let read = |value: Option<&Value>, name: &str| value.and_then(|value| value.get(name)).cloned();
        let command = read(step.intent.as_ref(), "command");
        let by_command = command.is_some() || step.kind == Kind::Environment;
        if let Some(Value::String(command)) = command {
            self.cut_off |= step.result.is_none();
            self.commands.push(command);
        }
        let kept = read(step.intent.as_ref(), "kept")
            .and_then(|kept| serde_json::from_value::<Vec<Kept>>(kept).ok());
        for kept in kept.into_iter().flatten() {
            self.kept.entry(kept.path.clone()).or_default().push(kept);
        }
        // A call that was cut off and never settled may have happened: its intent stands for it. What is found at the
        // end of a task was done by commands that had gone on in the background.
        let changed = match &step.result {
            Some(result) => read(Some(result), "changed").or_else(|| read(Some(result), "found")),
            None => read(step.intent.as_ref(), "changes"),
        };
        let changed = changed.and_then(|changed| serde_json::from_value::<Vec<FileChange>>(changed).ok());
        let changed = changed.unwrap_or_default();
        // A tool that changed nothing made no directories either, whatever it was about to do.
        let about_to = step.intent.as_ref().filter(|_| step.result.is_none() || !changed.is_empty());
        for step in [about_to, step.result.as_ref()] {
            self.note_directories(read(step, "directories"));
        }
        for change in changed {
            let first = Trail { before: change.before, mode: change.mode, by_command, ..Trail::default() };
            self.trails.entry(change.path).or_insert(first).after = change.after;
        }
    }
}

impl Found {
    /// The first thing that happened to a directory tells how it was before.
    fn note_directories(&mut self, told: Option<Value>) {
        let told = told.and_then(|told| serde_json::from_value::<Vec<DirectoryChange>>(told).ok());
        for change in told.into_iter().flatten() {
            let (path, before) = match change {
                DirectoryChange::Made(path) => (path, Before::Absent),
                DirectoryChange::Removed(path) => (path, Before::There),
            };
            self.directories.entry(path).or_insert(before);
        }
    }
}

/// Where what a file held is to be had. An error says why it is not.
fn source(trail: &Trail, kept: &[Kept]) -> Result<Source, String> {
    let Some(hash) = trail.before else { return Ok(Source::Nowhere) };
    let mut copies = kept.iter().filter_map(|kept| Some((kept.content.bytes()?, kept.mode)));
    if let Some((content, mode)) = copies.find(|(content, _)| hash.is_of(content)) {
        return Ok(Source::Kept(content, mode));
    }
    if let Some(id) = hash.git_blob() {
        return Ok(Source::Git(id, trail.mode.unwrap_or(PLAIN_FILE)));
    }
    Err(match kept.first().map(|kept| &kept.content) {
        Some(KeptContent::TooLarge(bytes)) => format!("it held {bytes} bytes, more than the journal keeps"),
        Some(_) => "it held a secret, which is not written down, or is damaged in the journal".to_owned(),
        None if trail.by_command => {
            "git did not have it as it was, and it was too large to be kept before the run's first command"
                .to_owned()
        }
        None => "what it held is not in the journal of this run".to_owned(),
    })
}
