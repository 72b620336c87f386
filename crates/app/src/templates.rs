//! The templates a command can use: the project's, the user's and those of the product.

use fusee_engine::template::{Folder, Layer, Loaded, load, shipped};
use fusee_engine::text::render::{self, Colour};

use crate::environment::Environment;
use crate::output;
use crate::project::Project;

/// Finds them all. One with mistakes is left out and told of.
pub(crate) fn gather(project: &Project, environment: &Environment) -> Loaded {
    let mut folders = vec![Folder {
        path: project.home().join(".fusee/templates"),
        layer: Layer::Project,
        shown_below: Some(project.home().to_owned()),
    }];
    if let Some(folder) = environment.config_folder() {
        folders.push(Folder { path: folder.join("templates"), layer: Layer::User, shown_below: None });
    }
    let mut loaded = load(&folders);
    for shipped in shipped() {
        // Their names differ; a test reads them all.
        let _ = loaded.registry.register_template(shipped);
    }
    loaded
}

/// Says what is wrong with those that were left out.
pub(crate) fn warn(loaded: &Loaded) {
    if loaded.problems.is_empty() {
        return;
    }
    let source = |file: &str| loaded.sources.iter().find(|source| &**source.name() == file);
    let text = render::terminal(&loaded.problems, source, Colour::Never);
    output::error(&format!("templates with mistakes are left out:\n{text}"));
}
