//! `fusee approvals`.

use clap::{Args, Subcommand};
use fusee::engine::approval::rules::ApprovalRule;
use fusee::engine::run::ExitStatus;
use serde_json::json;

use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::saved_rules::SavedRules;
use crate::ui::approval_prompt::describe;

/// List and revoke saved approvals of this project.
///
/// A saved approval is an answer `a` (always) to an approval question. It holds for later runs in this
/// project, and is stored in your state folder, where no project can change it.
#[derive(Args)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    action: Option<ApprovalsAction>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Subcommand)]
enum ApprovalsAction {
    /// List the saved approvals, numbered
    List(ListArgs),
    /// Revoke saved approvals
    Revoke(RevokeArgs),
}

#[derive(Args, Default)]
struct ListArgs {
    /// Print the approvals as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

#[derive(Args)]
struct RevokeArgs {
    /// Numbers of approvals, as listed by `fusee approvals`
    #[arg(value_name = "NUMBER", required_unless_present = "all")]
    numbers: Vec<usize>,
    /// Revoke all of them
    #[arg(long, conflicts_with = "numbers")]
    all: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn approvals(args: &ApprovalsArgs, process: &Process) -> Result<ExitStatus, CliError> {
    match &args.action {
        None => list(&args.list, process),
        Some(ApprovalsAction::List(more)) => {
            let directory =
                if more.directory.directory.is_some() { &more.directory } else { &args.list.directory };
            list(&ListArgs { json: args.list.json || more.json, directory: directory.clone() }, process)
        }
        Some(ApprovalsAction::Revoke(revoking)) => {
            let directory = if revoking.directory.directory.is_some() {
                &revoking.directory
            } else {
                &args.list.directory
            };
            revoke(revoking, &saved(directory, process)?)
        }
    }
}

fn saved(directory: &DirectoryFlag, process: &Process) -> Result<SavedRules, CliError> {
    let project = Project::find(directory.directory.as_deref(), &process.environment)?;
    Ok(SavedRules::new(&project, &process.environment))
}

fn list(args: &ListArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let rules = saved(&args.directory, process)?.read();
    let entries = rules.iter().enumerate().map(|(index, rule)| (index + 1, rule));
    let text = if args.json {
        let entry = |(number, rule): (usize, &ApprovalRule)| json!({ "number": number, "covers": describe(rule), "rule": rule });
        format!("{:#}\n", serde_json::Value::Array(entries.map(entry).collect()))
    } else if rules.is_empty() {
        "no saved approvals in this project\n".to_owned()
    } else {
        entries.map(|(number, rule)| format!("{number:>3}  {}\n", describe(rule))).collect()
    };
    stdio::print_as(args.json, &text).map(|()| ExitStatus::Completed)
}

fn revoke(args: &RevokeArgs, saved: &SavedRules) -> Result<ExitStatus, CliError> {
    let mut rules = saved.read();
    let known: Vec<ApprovalRule> = rules.iter().cloned().collect();
    let wanted: Vec<usize> = if args.all { (1..=known.len()).collect() } else { args.numbers.clone() };
    let find = |number: &usize| {
        number.checked_sub(1).and_then(|index| known.get(index)).ok_or_else(|| {
            CliError::usage(format!("no saved approval {number}: there are {}", known.len()))
                .help("run `fusee approvals` to list them")
        })
    };
    let revoked: Vec<&ApprovalRule> = wanted.iter().map(find).collect::<Result<_, _>>()?;
    for rule in &revoked {
        rules.remove(rule);
    }
    saved.write(&rules).map_err(|error| CliError::failed(format!("cannot save the approvals: {error}")))?;
    let text: String = revoked.iter().map(|rule| format!("revoked: {}\n", describe(rule))).collect();
    stdio::print(if text.is_empty() { "no saved approvals in this project\n" } else { &text })?;
    Ok(ExitStatus::Completed)
}
