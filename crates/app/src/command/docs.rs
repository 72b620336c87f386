//! `fusee __docs`, for the repository's own use: writes what is made from our tables.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use fusee_engine::run::Exit;

use crate::failure::Failure;
use crate::{config, output, reference};

/// Write the reference pages and schemas.
#[derive(Args)]
pub(crate) struct DocsArgs {
    /// The root of the repository: pages go to its docs/reference, schemas to its schema
    root: PathBuf,
}

/// Writes them.
pub(crate) fn docs(args: &DocsArgs) -> Result<Exit, Failure> {
    for (path, text) in files() {
        let path = args.root.join(path);
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
        output::print(&format!("{}\n", path.display()))?;
    }
    Ok(Exit::Completed)
}

/// Every file that is made from our tables, by its path in the repository.
pub(crate) fn files() -> Vec<(PathBuf, String)> {
    let pages = reference::pages().into_iter();
    let mut files: Vec<(PathBuf, String)> =
        pages.map(|(name, text)| (Path::new("docs/reference").join(name), text)).collect();
    let schema = |value: serde_json::Value| format!("{value:#}\n");
    files.push(("schema/config.schema.json".into(), schema(config::json_schema())));
    files.push(("schema/task-template-1.0.xsd".into(), fusee_engine::template::xsd()));
    files
}
