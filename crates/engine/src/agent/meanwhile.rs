//! What changed in the workspace while nobody worked on the run, for a run that goes on.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::Ordering;

use fusee_model::Message;
use fusee_tools::workspace::Opened;
use fusee_tools::{ContentHash, Seen, ToolOutput, Workspace};
use serde::{Deserialize, Serialize};

use super::session::Session;
use crate::flow::Sending;

/// Larger files are not compared; an edit looks at their content anyway.
const MOST_BYTES: u64 = 16 << 20;

/// More names than this help nobody.
const MOST_NAMES: usize = 20;

/// The content of files as the run knows it; `None` is a file it deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Known(BTreeMap<String, Option<ContentHash>>);

impl Known {
    /// Takes note of a result.
    pub(crate) fn learn(&mut self, output: &ToolOutput) {
        for seen in &output.seen {
            self.0.insert(seen.path.clone(), Some(seen.hash));
        }
        for change in &output.changed {
            self.0.insert(change.path.clone(), change.after);
        }
    }

    /// Lets a workspace know of it, so that what was seen can be edited without another look.
    pub(crate) fn remind(&self, workspace: &Workspace) {
        for (path, hash) in &self.0 {
            if let Some(hash) = *hash {
                workspace.saw(&Seen { path: path.clone(), hash });
            }
        }
    }

    /// Files that hold something else now than is known, with what that is; those that were `told` so are left out.
    fn changed(&self, told: &Self, workspace: &Workspace) -> Self {
        let differing = self.0.iter().filter_map(|(path, known)| {
            let now = current(workspace, path).filter(|now| now != known)?;
            (told.0.get(path) != Some(&now)).then(|| (path.clone(), now))
        });
        Self(differing.take(MOST_NAMES).collect())
    }

    /// More of it.
    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What the file holds now: `Some(None)` if it is not there, `None` if that cannot be told.
fn current(workspace: &Workspace, path: &str) -> Option<Option<ContentHash>> {
    let located = workspace.locate(path).ok()?;
    match workspace.open_to_read(&located) {
        Ok(Opened::File { file, size }) if size <= MOST_BYTES => {
            let mut content = Vec::new();
            file.take(MOST_BYTES).read_to_end(&mut content).ok()?;
            Some(Some(ContentHash::of(&content)))
        }
        Ok(_) => None,
        Err(_) => Some(None),
    }
}

/// What the model is told before a request because the world has moved on.
pub(crate) struct Preface {
    pub(crate) text: String,
    /// The files it names, as they are now: it is said once.
    pub(crate) told: Known,
}

/// What to tell the model first, if an earlier process began this run and files changed since it looked.
pub(crate) fn preface(
    session: &Session,
    known: &Known,
    told: &Known,
    conversation: &mut Sending,
) -> Option<Preface> {
    if !session.resumed.swap(false, Ordering::Relaxed) {
        return None;
    }
    let changed = known.changed(told, &session.workspace);
    if changed.is_empty() {
        return None;
    }
    let names: Vec<&str> = changed.0.keys().map(String::as_str).collect();
    let text = format!(
        "{}These files changed meanwhile, so read them again before you rely on them: {}.",
        if session.continues.is_some() { "" } else { "The run was interrupted and goes on now. " },
        names.join(", ")
    );
    conversation.push(Message::User { text: text.clone() });
    Some(Preface { text, told: changed })
}
