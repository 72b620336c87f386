//! `fusee init`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use clap::Args;
use fusee::engine::run::ExitStatus;

use crate::config::Key;
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::{self, Project};
use crate::ui::line::wrap;

#[cfg(test)]
mod tests;

/// Create a project in this directory.
///
/// Creates a `.fusee` folder for the journal and your own files (templates, prompts, agents), and a
/// `fusee.toml` with the five keys that most projects set, commented out. Existing files are kept. For all
/// other keys, see `fusee config --all`.
#[derive(Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    place: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn init(args: &InitArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let directory = match &args.place.directory {
        Some(directory) => environment.directory().join(directory),
        None => environment.directory().clone(),
    };
    let text = make(&directory).map_err(|error| {
        CliError::failed(format!("cannot create a project in {}: {error}", directory.display()))
    })?;
    stdio::print(&text)?;
    // Inside another project, creating a new one may be a mistake.
    let project = Project::find(Some(&directory), environment)?;
    if let Some(above) =
        project.directory.parent().and_then(|parent| Project::find(Some(parent), environment).ok())
        && let Some(root) = above.root
        && root.join(".fusee").is_dir()
    {
        stdio::error(&format!("note: {} is also a project; this one is separate\n", root.display()));
    }
    if let Some(notice) = project.former_notice() {
        stdio::error(&format!("note: {notice}\n"));
    }
    Ok(ExitStatus::Completed)
}

/// Creates what is missing and returns a report.
fn make(directory: &Path) -> io::Result<String> {
    let mut told = String::new();
    let mut say = |made: bool, what: &str| {
        told.push_str(&if made { format!("created {what}\n") } else { format!("kept existing {what}\n") });
    };
    let folder = directory.join(".fusee");
    let made = match fs::create_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        other => other.map(|()| true)?,
    };
    say(made, ".fusee");
    say(project::make_ignore_file(&folder)?, ".fusee/.gitignore");
    let made = match OpenOptions::new().write(true).create_new(true).open(directory.join("fusee.toml")) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
        Ok(mut file) => file.write_all(template().as_bytes()).map(|()| true)?,
    };
    say(made, "fusee.toml");
    told.push_str("next: fusee run 'your task', or `fusee doctor` to check the setup\n");
    Ok(told)
}

/// The keys that most projects set, each with an example value; all keys are in `fusee config --all`.
const USEFUL: [(&str, &str); 5] = [
    ("model", "\"ollama:qwen2.5-coder:7b\""),
    ("verify", "\"make test\""),
    ("task_flow_mode", "\"staged\""),
    ("max_turns", "30"),
    ("task_timeout_s", "900"),
];

/// Columns of a comment in the file.
const COLUMNS: usize = 100;

/// The useful keys with their descriptions, commented out.
fn template() -> String {
    let mut text = String::from(
        "# Fusee settings of this project. `fusee config --all` lists every key, `fusee config KEY` explains one.\n\
         # Keys that reach outside the project (base_url, approve, sandbox, [models], [mcp], rules) take effect\n\
         # here only after `fusee trust`; your own file is ~/.config/fusee/config.toml.\n",
    );
    for (name, value) in USEFUL {
        let doc = Key::named(name).map_or("", |key| key.doc);
        let doc: String = wrap(doc, COLUMNS).iter().map(|line| format!("# {line}\n")).collect();
        text.push_str(&format!("\n{doc}# {name} = {value}\n"));
    }
    text
}
