//! The changes of any run as a patch: the inverse of what undoing the run would do.

use std::path::Path;

use fusee::engine::journal::{Journal, RunId};
use fusee::engine::run::settings_of;
use fusee::tools::Workspace;
use fusee::tools::workspace::FileState;
use fusee::undo::UndoPlan;

use crate::patch::file_patch;

/// The patch of a run, from its journal and its directory. Files that something else has changed since are left out.
pub fn render(journal: &Journal, run: &RunId) -> Result<String, String> {
    let settings = settings_of(journal, run).map_err(|error| error.to_string())?;
    let workspace = Workspace::open(&settings.workspace).map_err(|error| {
        format!("{error}: the changes of a run are read from its directory; those of a trial are in its folder, in patch.diff")
    })?;
    let plan = UndoPlan::plan(journal, run, &workspace).map_err(|error| error.to_string())?;
    let mut patches: Vec<(String, String)> = Vec::new();
    for step in &plan.files {
        let before = match &step.before {
            None => None,
            Some((content, _)) => match std::str::from_utf8(content) {
                Ok(text) => Some(text),
                Err(_) => continue,
            },
        };
        let after = match &step.now {
            None => None,
            Some(FileState::File { .. }) => {
                match std::fs::read_to_string(workspace.root().join(&step.path)) {
                    Ok(text) => Some(text),
                    Err(_) => continue,
                }
            }
            Some(FileState::Link(_)) => continue,
        };
        patches.push((step.path.clone(), file_patch(Path::new(&step.path), before, after.as_deref())));
    }
    patches.sort();
    Ok(patches.into_iter().map(|(_, patch)| patch).collect())
}
