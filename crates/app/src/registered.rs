//! Workflows that can be called by name: those of the project, then the user's, then the built-in ones. A nearer one of
//! a name hides the farther one.

use std::path::Path;

use fusee_engine::lang::{self, Callable};
use fusee_engine::text::Source;
use fusee_engine::workflow::Loading;

use crate::environment::Environment;
use crate::project::Project;
use crate::sources;

/// A workflow with a name.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    /// The name of its file without the end.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) file: String,
    /// Its text.
    pub(crate) text: String,
}

impl Registered {
    /// What other workflows see of it.
    pub(crate) fn callable(&self) -> Callable {
        Callable::task(&self.name, lang::params(&Source::new(self.file.as_str(), self.text.as_str())))
    }
}

/// The folders of a layer, below its base.
const FOLDERS: [&str; 2] = ["workflows", "templates"];

/// All of them. One that cannot be read is left out: `fusee check` says why.
pub(crate) fn workflows(project: &Project, environment: &Environment) -> Vec<Registered> {
    let mut found: Vec<Registered> = Vec::new();
    let layers = [Some(project.home().join(".fusee")), environment.config_folder()];
    for base in layers.into_iter().flatten() {
        for folder in FOLDERS {
            for workflow in below(&base.join(folder)) {
                if !found.iter().any(|known| known.name == workflow.name) {
                    found.push(workflow);
                }
            }
        }
    }
    found
}

fn below(folder: &Path) -> Vec<Registered> {
    if !folder.is_dir() {
        return Vec::new();
    }
    let is_workflow = |path: &Path| path.extension().is_some_and(|end| end == "fusee");
    let files = sources::files(folder, &[folder.to_owned()], is_workflow);
    let read = files.into_iter().filter_map(|path| {
        let name = path.file_stem()?.to_str()?.to_owned();
        let text = Loading::read(&path).ok()?;
        Some(Registered { name, file: path.display().to_string(), text })
    });
    read.collect()
}
