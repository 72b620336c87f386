//! Detects files that changed while a run was interrupted, and reports them to the model on resume.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::Ordering;

use fusee_model::Message;
use fusee_tools::workspace::OpenedPath;
use fusee_tools::{ContentHash, SeenVersion, ToolOutput, Workspace};
use serde::{Deserialize, Serialize};

use crate::agent::conversation::history_window::HistoryWindow;
use crate::agent::session::Session;

/// Larger files are not compared; an edit checks their content anyway.
const MAX_BYTES: u64 = 16 << 20;

/// Maximum number of files named.
const MAX_NAMES: usize = 20;

/// File contents known to the run; `None` is a file it deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FileSnapshot(BTreeMap<String, Option<ContentHash>>);

impl FileSnapshot {
    /// Records the files in a tool result.
    pub(crate) fn learn(&mut self, output: &ToolOutput) {
        for seen in &output.seen {
            self.0.insert(seen.path.clone(), Some(seen.hash));
        }
        for change in &output.changed {
            self.0.insert(change.path.clone(), change.after);
        }
    }

    /// Registers the known files with a workspace, so that they can be edited without being read again.
    pub(crate) fn remind(&self, workspace: &Workspace) {
        for (path, hash) in &self.0 {
            if let Some(hash) = *hash {
                workspace.record_seen(&SeenVersion { path: path.clone(), hash });
            }
        }
    }

    /// Files whose content differs from what is known, with the current content; skips changes already in
    /// `told`.
    fn changed(&self, reported: &Self, workspace: &Workspace) -> Self {
        let differing = self.0.iter().filter_map(|(path, known)| {
            let now = current(workspace, path).filter(|now| now != known)?;
            (reported.0.get(path) != Some(&now)).then(|| (path.clone(), now))
        });
        Self(differing.take(MAX_NAMES).collect())
    }

    /// Adds the entries of `more`, replacing existing ones.
    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Whether no file is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Current content of a file: `Some(None)` if it cannot be opened, `None` if it cannot be determined.
fn current(workspace: &Workspace, path: &str) -> Option<Option<ContentHash>> {
    let located = workspace.locate(path).ok()?;
    match workspace.open_to_read(&located) {
        Ok(OpenedPath::File { file, size }) if size <= MAX_BYTES => {
            let mut content = Vec::new();
            file.take(MAX_BYTES).read_to_end(&mut content).ok()?;
            Some(Some(ContentHash::of(&content)))
        }
        Ok(_) => None,
        Err(_) => Some(None),
    }
}

/// Message inserted before a request because files changed meanwhile.
pub(crate) struct ChangeNotice {
    pub(crate) text: String,
    /// The files it names with their current content, so that each change is reported once.
    pub(crate) reported: FileSnapshot,
}

/// Builds the message and adds it to the conversation, if the run was resumed and known files have changed.
pub(crate) fn preface(
    session: &Session,
    known: &FileSnapshot,
    reported: &FileSnapshot,
    conversation: &mut HistoryWindow,
) -> Option<ChangeNotice> {
    if !session.resumed.swap(false, Ordering::Relaxed) {
        return None;
    }
    let changed = known.changed(reported, &session.workspace);
    if changed.is_empty() {
        return None;
    }
    let names: Vec<&str> = changed.0.keys().map(String::as_str).collect();
    let text = format!(
        "{}These files changed meanwhile, so read them again before you rely on them: {}.",
        if session.continues.is_some() { "" } else { "The run was interrupted and goes on now. " },
        names.join(", ")
    );
    conversation.push(Message::user(text.clone()));
    Some(ChangeNotice { text, reported: changed })
}
