//! Workflows that can be called by name: the project's, the user's and the built-in ones, in this order of
//! precedence.

use std::collections::BTreeMap;
use std::path::Path;

use fusee::engine::lang::{self, Callable};
use fusee::engine::run::WorkflowRun;
use fusee::engine::text::Source;
use fusee::engine::workflow::{WorkflowLoader, catalog, standard_tools};

use crate::process::environment::Environment;
use crate::project::Project;
use crate::project::source_files;

/// A workflow that can be run by its name.
#[derive(Clone, Debug)]
pub(crate) struct NamedWorkflow {
    /// Its file name without the extension.
    pub(crate) name: String,
    /// Path of its file, or `built-in:NAME.fusee`.
    pub(crate) file: String,
    /// Source text.
    pub(crate) text: String,
}

impl NamedWorkflow {
    /// Its signature, as other workflows call it.
    pub(crate) fn callable(&self) -> Callable {
        Callable::task(&self.name, lang::params(&Source::new(self.file.as_str(), self.text.as_str())))
    }
}

/// Built-in workflows.
const SHIPPED: &[(&str, &str)] = &[
    ("best-of", include_str!("../../workflows/best-of.fusee")),
    ("fix-tests", include_str!("../../workflows/fix-tests.fusee")),
    ("migrate-files", include_str!("../../workflows/migrate-files.fusee")),
    ("review-changes", include_str!("../../workflows/review-changes.fusee")),
    ("summarise-folder", include_str!("../../workflows/summarise-folder.fusee")),
];

/// The named workflows and, transitively, those they call, each with everything it needs to run.
pub(crate) fn library(
    names: &[String],
    all: &[NamedWorkflow],
    tasks: &[Callable],
) -> BTreeMap<String, WorkflowRun> {
    let mut library = BTreeMap::new();
    let mut wanted: Vec<String> = names.to_vec();
    while let Some(name) = wanted.pop() {
        let Some(found) = all.iter().find(|workflow| workflow.name == name) else { continue };
        if library.contains_key(&name) {
            continue;
        }
        let source = Source::new(found.file.as_str(), found.text.as_str());
        let mut loading = WorkflowLoader::from_disk(Path::new("/"));
        let catalog = catalog(standard_tools().definitions(), tasks);
        let compiled = lang::compile(&source, &catalog, &mut loading);
        let called: Vec<String> = compiled
            .program
            .iter()
            .flat_map(|program| {
                program.calls().filter_map(|call| call.callee.map(str::to_owned)).collect::<Vec<_>>()
            })
            .collect();
        let tasks = tasks.iter().filter(|task| called.contains(&task.name)).cloned().collect();
        let (name_of_text, text, files) = (found.file.clone(), found.text.clone(), loading.files);
        library
            .insert(name, WorkflowRun { name: name_of_text, text, files, tasks, ..WorkflowRun::default() });
        wanted.extend(called);
    }
    library
}

/// Folders that hold workflows, below the base folder of a layer.
const FOLDERS: [&str; 2] = ["workflows", "templates"];

/// All workflows. Unreadable ones are skipped; `fusee check` reports them.
pub(crate) fn workflows(project: &Project, environment: &Environment) -> Vec<NamedWorkflow> {
    let mut found: Vec<NamedWorkflow> = Vec::new();
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
    let shipped = SHIPPED.iter().filter(|(name, _)| !found.iter().any(|known| known.name == **name));
    let shipped: Vec<NamedWorkflow> = shipped
        .map(|(name, text)| NamedWorkflow {
            name: (*name).to_owned(),
            file: format!("built-in:{name}.fusee"),
            text: (*text).to_owned(),
        })
        .collect();
    found.extend(shipped);
    found
}

fn below(folder: &Path) -> Vec<NamedWorkflow> {
    if !folder.is_dir() {
        return Vec::new();
    }
    let is_workflow = |path: &Path| path.extension().is_some_and(|end| end == "fusee");
    let files = source_files::files(folder, &[folder.to_owned()], is_workflow);
    let read = files.into_iter().filter_map(|path| {
        let name = path.file_stem()?.to_str()?.to_owned();
        let text = WorkflowLoader::read(&path).ok()?;
        Some(NamedWorkflow { name, file: path.display().to_string(), text })
    });
    read.collect()
}
