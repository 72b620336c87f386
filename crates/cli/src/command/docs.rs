//! `fusee __docs`, for the repository's own use: writes the generated reference pages and schemas.

pub(crate) mod reference;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use fusee::engine::run::ExitStatus;

use crate::config;
use crate::process::error::CliError;
use crate::process::stdio;

/// Write the reference pages and schemas.
#[derive(Args)]
pub(crate) struct DocsArgs {
    /// Repository root; pages go to docs/reference, schemas to schema
    root: PathBuf,
}

/// Runs the command.
pub(crate) fn docs(args: &DocsArgs) -> Result<ExitStatus, CliError> {
    for (path, text) in files() {
        let path = args.root.join(path);
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| CliError::failed(format!("cannot write {}: {error}", path.display())))?;
        stdio::print(&format!("{}\n", path.display()))?;
    }
    Ok(ExitStatus::Completed)
}

/// Every generated file, by its path in the repository.
pub(crate) fn files() -> Vec<(PathBuf, String)> {
    let pages = reference::pages().into_iter();
    let mut files: Vec<(PathBuf, String)> =
        pages.map(|(name, text)| (Path::new("docs/reference").join(name), text)).collect();
    let schema = |value: serde_json::Value| format!("{value:#}\n");
    files.push(("schema/config.schema.json".into(), schema(config::json_schema())));
    files.push(("schema/task-template-1.0.xsd".into(), fusee::engine::template::xsd()));
    files
}
