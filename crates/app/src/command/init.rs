//! `fusee init`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use clap::Args;
use fusee_engine::run::Exit;

use super::Process;
use crate::arguments::shared::Place;
use crate::config::{KEYS, Reach};
use crate::failure::Failure;
use crate::output;
use crate::project::{self, Project};

#[cfg(test)]
mod tests;

/// Make this directory a project.
///
/// Makes a folder `.fusee` for the journal and for what is yours (templates, prompts, agents), and a `fusee.toml` with
/// every key that a project may set, commented out. What is there already is left as it is.
#[derive(Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    place: Place,
}

/// Makes it.
pub(crate) fn init(args: &InitArgs, process: &Process) -> Result<Exit, Failure> {
    let environment = &process.environment;
    let directory = match &args.place.directory {
        Some(directory) => environment.directory().join(directory),
        None => environment.directory().clone(),
    };
    let text = make(&directory).map_err(|error| {
        Failure::failed(format!("cannot make a project of {}: {error}", directory.display()))
    })?;
    output::print(&text)?;
    // Whoever is within another project may not have meant to make a new one.
    let project = Project::find(Some(&directory), environment)?;
    if let Some(above) =
        project.directory.parent().and_then(|parent| Project::find(Some(parent), environment).ok())
        && let Some(root) = above.root
        && root.join(".fusee").is_dir()
    {
        output::error(&format!("note: {} is a project too; this one is its own\n", root.display()));
    }
    Ok(Exit::Completed)
}

/// Makes what is missing, and says what it did.
fn make(directory: &Path) -> io::Result<String> {
    let mut told = String::new();
    let mut say = |made: bool, what: &str| {
        told.push_str(&if made {
            format!("made {what}\n")
        } else {
            format!("kept {what}, which was there\n")
        });
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
    told.push_str("next: fusee run 'what is to be done', or `fusee doctor` to see what works here\n");
    Ok(told)
}

/// Every key a project may set, with its default, commented out.
fn template() -> String {
    let mut text = String::from(
        "# Settings of this project for fusee. `fusee config` shows what holds and where it comes from.\n\
         # What reaches outside the project (base_url, approve, sandbox, [models]) belongs into your own file,\n\
         # ~/.config/fusee/config.toml; from here it counts only after `fusee trust`.\n",
    );
    for key in KEYS.iter().filter(|key| key.reach == Reach::Workspace) {
        let value = match (key.default, key.kind) {
            (None, crate::config::Kind::Text) => "\"\"".to_owned(),
            (None, kind) => format!("…  # {kind}"),
            (
                Some(default),
                crate::config::Kind::Text | crate::config::Kind::Url | crate::config::Kind::Word(_),
            ) => {
                format!("\"{default}\"")
            }
            (Some(default), _) => default.to_owned(),
        };
        text.push_str(&format!("\n# {}\n# {} = {value}\n", key.doc, key.name));
    }
    text
}
