//! `fusee init`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use clap::Args;
use fusee::engine::run::ExitStatus;

use crate::config::flags::DirectoryFlag;
use crate::config::{Key, hooks};
use crate::process::Process;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::{self, Project};
use crate::ui::line::wrap;

mod claude_hooks;

#[cfg(test)]
mod tests;

/// Create a project in this directory.
///
/// Creates a `.fusee` folder for the journal and your own files (templates, prompts, agents), and a
/// `fusee.toml` with the five keys that most projects set, commented out. Existing files are kept. For all
/// other keys, see `fusee config --all`.
///
/// If `.claude/settings.json` has hooks and the project has none, you are asked whether to copy them to
/// `.fusee/hooks.json`. They run once you have trusted the project.
#[derive(Args)]
pub(crate) struct InitArgs {
    /// Copy the hooks of .claude/settings.json without asking
    #[arg(long)]
    hooks: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn init(args: &InitArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let directory = match &args.directory.directory {
        Some(directory) => environment.directory().join(directory),
        None => environment.directory().clone(),
    };
    let text = make(&directory).map_err(|error| {
        CliError::failed(format!("cannot create a project in {}: {error}", directory.display()))
    })?;
    stdio::print(&text)?;
    offer_hooks(&directory, args.hooks, environment)?;
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

/// Copies the hooks of `.claude/settings.json`, if the user wants that.
fn offer_hooks(directory: &Path, unasked: bool, environment: &Environment) -> Result<(), CliError> {
    let file = directory.join(hooks::PROJECT_FILE);
    let found = match claude_hooks::read(&directory.join(claude_hooks::FILE)) {
        Ok(Some(found)) if !file.exists() => found,
        Ok(Some(_)) if unasked => {
            return stdio::print(&format!("kept existing {}\n", hooks::PROJECT_FILE));
        }
        Ok(None) if unasked => {
            return Err(CliError::failed(format!("{} has no hooks", claude_hooks::FILE)));
        }
        Ok(_) => return Ok(()),
        Err(problem) if unasked => return Err(CliError::failed(problem)),
        Err(problem) => {
            stdio::error(&format!("note: {problem}; its hooks are not copied\n"));
            return Ok(());
        }
    };
    let terminals = environment.terminals();
    let can_ask = terminals.stdin && terminals.stderr;
    let question = format!("copy the hooks of {} to {}? [y/n] ", claude_hooks::FILE, hooks::PROJECT_FILE);
    let wanted = unasked || (can_ask && stdio::confirm(&question)?);
    if !wanted {
        stdio::error(&format!(
            "note: {} has hooks; `fusee init --hooks` copies them to {}\n",
            claude_hooks::FILE,
            hooks::PROJECT_FILE
        ));
        return Ok(());
    }
    fs::write(&file, &found.text)
        .map_err(|error| CliError::failed(format!("cannot write {}: {error}", file.display())))?;
    for left_out in &found.left_out {
        stdio::error(&format!("note: not copied: {left_out}\n"));
    }
    stdio::print(&format!("created {}; review it, then run `fusee trust`\n", hooks::PROJECT_FILE))?;
    Ok(())
}

/// Creates what is missing and returns a report.
fn make(directory: &Path) -> io::Result<String> {
    let mut output = String::new();
    let mut say = |made: bool, what: &str| {
        output.push_str(&if made { format!("created {what}\n") } else { format!("kept existing {what}\n") });
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
    output.push_str("next: fusee run 'your task', or `fusee doctor` to check the setup\n");
    Ok(output)
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
