//! What the journal says about the files of a run: for each path, the states it went through, and the content.

use std::collections::{BTreeMap, HashMap};

use fusee_journal::{StepKey, StepKind, StepRow};
use fusee_tools::workspace::{Backup, BackupContent, FileVersion};
use fusee_tools::{ContentHash, DirectoryChange, FileChange, ModeChange};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Type of a regular file in a mode.
const REGULAR: u32 = 0o100_000;
const FILE_TYPE: u32 = 0o170_000;

/// What is known about a path at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathState {
    Absent,
    Directory,
    /// A file or a symlink.
    File {
        /// `st_mode`, if it is known.
        mode: Option<u32>,
        hash: ContentHash,
    },
}

/// One recorded step that created, wrote or removed a path.
#[derive(Clone, Debug)]
pub(super) struct PathChange {
    /// The step that made it.
    pub(super) key: StepKey,
    pub(super) before: PathState,
    pub(super) after: PathState,
}

/// The changes of one run.
#[derive(Debug, Default)]
pub(super) struct FileHistory {
    /// The changes of each path, in order.
    pub(super) changes: BTreeMap<String, Vec<PathChange>>,
    /// The commands, with the steps that ran them.
    pub(super) commands: Vec<(StepKey, String)>,
    /// Whether a command was interrupted, so that its changes are not recorded.
    pub(super) cut_off: bool,
    /// Modes of files before the run first changed them, as far as backups tell.
    kept_modes: HashMap<String, u32>,
}

/// Content of files, from the journals of several runs.
#[derive(Debug, Default)]
pub(super) struct ContentStore {
    kept: HashMap<ContentHash, BackupContent>,
    /// Sizes of content that was too large to keep, by path.
    too_large: HashMap<String, u64>,
}

impl ContentStore {
    /// The content with this hash.
    pub(super) fn find(&self, hash: ContentHash) -> Option<&BackupContent> {
        self.kept.get(&hash)
    }

    /// Why content of a path is not here.
    pub(super) fn reason(&self, path: &str) -> String {
        match self.too_large.get(path) {
            Some(bytes) => format!("its content ({bytes} bytes) was too large for the journal"),
            None => "its content is not in the journal: it was too large, or held a secret".to_owned(),
        }
    }

    fn add(&mut self, path: &str, content: BackupContent) {
        match content {
            BackupContent::TooLarge(bytes) => {
                self.too_large.insert(path.to_owned(), bytes);
            }
            content => {
                if let Some(bytes) = content.bytes() {
                    self.kept.insert(ContentHash::of(&bytes), content);
                }
            }
        }
    }
}

impl FileHistory {
    /// Reads the history of a run from its steps, and the content into the store.
    pub(super) fn read(steps: &[StepRow], store: &mut ContentStore) -> Self {
        let effects = |step: &&StepRow| matches!(step.kind, StepKind::Tool | StepKind::Environment);
        let mut steps: Vec<&StepRow> = steps.iter().filter(effects).collect();
        // In chronological order, across branches.
        steps.sort_by_key(|step| step.at_ms);
        let mut history = Self::default();
        steps.into_iter().for_each(|step| history.note(step, store));
        history
    }

    fn note(&mut self, step: &StepRow, store: &mut ContentStore) {
        let (intent, result) = (step.intent.as_ref(), step.result.as_ref());
        if let Some(command) = intent.and_then(|intent| intent.get("command")).and_then(Value::as_str) {
            self.cut_off |= result.is_none();
            self.commands.push((step.key.clone(), command.to_owned()));
        }
        for Backup { path, mode, content } in read::<Backup>(intent, "kept") {
            self.kept_modes.entry(path.clone()).or_insert(mode);
            store.add(&path, content);
        }
        // An interrupted call that was never settled may have happened, so its intent counts.
        let mut changed: Vec<FileChange> = match result {
            Some(_) => read(result, "changed"),
            None => read(intent, "changes"),
        };
        // Changes found at the end of a task were made by commands that kept running in the background.
        changed.extend(read::<FileChange>(result, "found"));
        let mut versions: HashMap<String, FileVersion> = HashMap::new();
        for version in read::<FileVersion>(result, "versions") {
            store.add(&version.path, version.content.clone());
            versions.insert(version.via.clone().unwrap_or_else(|| version.path.clone()), version);
        }
        let mut directories: Vec<DirectoryChange> = read(result, "directories");
        // A tool that changed nothing created no directories either, whatever its intent.
        if result.is_none() || !changed.is_empty() {
            directories.extend(read::<DirectoryChange>(intent, "directories"));
        }
        self.add(&step.key, changed, &versions, directories);
        for ModeChange { path, content: hash, before, after } in read(result, "modes") {
            let before = PathState::File { mode: before.or(self.last_mode(&path)), hash };
            let after = PathState::File { mode: Some(after), hash };
            self.push(path, PathChange { key: step.key.clone(), before, after });
        }
    }

    /// Adds the changes of a step. What is removed comes before what is created in its place.
    pub(super) fn add(
        &mut self,
        key: &StepKey,
        changed: Vec<FileChange>,
        versions: &HashMap<String, FileVersion>,
        directories: Vec<DirectoryChange>,
    ) {
        let (deleted, written): (Vec<_>, Vec<_>) =
            changed.into_iter().partition(|change| change.after.is_none());
        deleted.into_iter().for_each(|change| self.add_file(key, change, versions));
        let (made, removed): (Vec<_>, Vec<_>) =
            directories.into_iter().partition(|change| matches!(change, DirectoryChange::Made(_)));
        for change in removed.into_iter().chain(made) {
            let (path, before, after) = match change {
                DirectoryChange::Made(path) => (path, PathState::Absent, PathState::Directory),
                DirectoryChange::Removed(path) => (path, PathState::Directory, PathState::Absent),
            };
            self.push(path, PathChange { key: key.clone(), before, after });
        }
        written.into_iter().for_each(|change| self.add_file(key, change, versions));
    }

    fn add_file(&mut self, key: &StepKey, change: FileChange, versions: &HashMap<String, FileVersion>) {
        let version = versions.get(&change.path);
        let path = version.map_or_else(|| change.path.clone(), |version| version.path.clone());
        let state = |hash: Option<ContentHash>, mode: Option<u32>| match hash {
            None => PathState::Absent,
            Some(hash) => PathState::File { mode: mode.map(with_type), hash },
        };
        let mode = change.mode.or(self.last_mode(&path));
        let mode = mode.or(self.kept_modes.get(&change.path).copied());
        let before = state(change.before, mode);
        // Without a version, the permissions stay what they were.
        let after = state(change.after, version.map(|version| version.mode).or(mode));
        self.push(path, PathChange { key: key.clone(), before, after });
    }

    /// The mode that the last change of a path left.
    fn last_mode(&self, path: &str) -> Option<u32> {
        match self.changes.get(path)?.last()?.after {
            PathState::File { mode, .. } => mode,
            PathState::Absent | PathState::Directory => None,
        }
    }

    fn push(&mut self, path: String, change: PathChange) {
        self.changes.entry(path).or_default().push(change);
    }
}

/// A mode with a file type; backups of tools have only permissions, and are of regular files.
fn with_type(mode: u32) -> u32 {
    if mode & FILE_TYPE == 0 { mode | REGULAR } else { mode }
}

/// A list in an intent or a result; empty if there is none that can be read.
fn read<T: DeserializeOwned>(value: Option<&Value>, name: &str) -> Vec<T> {
    let list = value.and_then(|value| value.get(name)).cloned();
    list.and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default()
}
