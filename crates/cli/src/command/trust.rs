//! `fusee trust`.

use std::path::Path;

use clap::Args;
use fusee::engine::journal::Ownership;
use fusee::engine::run::ExitStatus;
use fusee::engine::tools::workspace::bounded_read;

use crate::config::flags::DirectoryFlag;
use crate::config::trust::Trust;
use crate::config::trust_report::{self, TrustReport};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::ui::approval_prompt;

/// Trust this project's settings that reach outside the workspace.
///
/// An untrusted project can configure how a task runs, but not where requests and keys are sent, which MCP
/// servers are started, how commands are sandboxed, or when you are asked for approval. `fusee trust` lists
/// everything it would enable (settings, rules, models, MCP servers, hooks, commands, agent files and their prompts)
/// and asks; without a terminal, `--yes` is required. When any of these change, the project is no longer trusted, and
/// a run says so.
///
/// A journal that came with the project is trusted as well: its runs can then be resumed, continued and
/// undone. `--revoke` revokes both; the journal of your own runs is not affected.
#[derive(Args)]
pub(crate) struct TrustArgs {
    /// Do not ask; still list what is enabled
    #[arg(long, conflicts_with = "revoke")]
    yes: bool,
    /// Revoke trust in the project
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn trust(args: &TrustArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let project = Project::find(args.directory.directory.as_deref(), environment)?;
    let file = project.config_file();
    let mut trust = Trust::read(environment);
    let ownership = project.ownership();
    if args.revoke {
        let was = trust.revoke(&file).map_err(|error| unsaved(&error))?;
        let words = if was { "is no longer trusted" } else { "was not trusted" };
        stdio::print(&format!("{} {words}\n", file.display()))?;
        if ownership.revoke(&project.journal)? {
            stdio::print(&format!("{} is no longer trusted\n", project.journal.display()))?;
        }
        return Ok(ExitStatus::Completed);
    }
    let report = trust_report::report(&file, approval_prompt::describe)?;
    let is_foreign = project.journal.exists() && !ownership.covers(&project.journal);
    let has_settings = file.exists() || !report.is_empty();
    if !is_foreign && !has_settings {
        return Err(CliError::usage(format!("nothing to trust: {} does not exist", file.display()))
            .help("a project without fusee.toml needs no trust; use -C to select another directory"));
    }
    stdio::print(&described(&project, &report, is_foreign))?;
    let terminals = process.environment.terminals();
    let can_ask = terminals.stdin && terminals.stderr;
    if !args.yes && !can_ask {
        return Err(CliError::usage("nothing was trusted: there is no terminal to confirm it on")
            .help("read the list above, then pass --yes to trust without asking"));
    }
    if !args.yes && !stdio::confirm("trust it? [y/n] ")? {
        stdio::error("nothing was trusted\n");
        return Ok(ExitStatus::Cancelled);
    }
    if is_foreign {
        ownership.add(&project.journal, Ownership::Trusted)?;
        stdio::print(&format!(
            "{} is now trusted: its runs can be resumed, continued and undone\n",
            project.journal.display()
        ))?;
    }
    if has_settings {
        trust.grant(&file, &content(&file)?).map_err(|error| unsaved(&error))?;
        stdio::print(&format!("{} is trusted with its current content\n", project.home().display()))?;
    }
    Ok(ExitStatus::Completed)
}

fn unsaved(error: &std::io::Error) -> CliError {
    CliError::failed(format!("cannot save the list of trusted projects: {error}"))
}

fn content(file: &Path) -> Result<String, CliError> {
    if !file.exists() {
        return Ok(String::new());
    }
    bounded_read::read_text(file, crate::config::MAX_BYTES)
        .map_err(|error| CliError::usage(format!("cannot read {}: {error}", file.display())))
}

/// Lists what would be enabled.
fn described(project: &Project, report: &TrustReport, is_foreign: bool) -> String {
    let mut text = format!("Trusting {} enables:\n", project.home().display());
    for (group, entries) in report {
        text.push_str(&format!("  {group}:\n"));
        text.extend(entries.iter().map(|entry| format!("    {entry}\n")));
    }
    if report.is_empty() {
        text.push_str("  nothing: it sets nothing that needs trust\n");
    }
    if is_foreign {
        text.push_str(&format!("  the runs in {}, which came with the project\n", project.journal.display()));
    }
    text
}
