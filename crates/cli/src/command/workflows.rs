//! `fusee workflows`.

use clap::Args;
use fusee::engine::lang::Callable;
use fusee::engine::run::ExitStatus;
use serde_json::{Value, json};

use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::workflow_registry::{self, NamedWorkflow};

/// List the workflows that can be run by name, with their parameters.
///
/// Workflows are the .fusee files in .fusee/workflows and .fusee/templates, those in your configuration folder,
/// and the built-in ones. `fusee task NAME` runs one, `fusee task NAME --help` describes its parameters.
#[derive(Args)]
pub(crate) struct WorkflowsArgs {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn workflows(args: &WorkflowsArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let mut found = workflow_registry::workflows(&project, &process.environment);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let text = if args.json {
        format!("{:#}\n", found.iter().map(as_json).collect::<Value>())
    } else {
        let width = found.iter().map(|workflow| workflow.name.chars().count()).max().unwrap_or_default();
        found.iter().map(|workflow| line(workflow, width)).collect()
    };
    stdio::print_as(args.json, &text)?;
    Ok(ExitStatus::Completed)
}

fn line(workflow: &NamedWorkflow, width: usize) -> String {
    let Callable { params, .. } = workflow.callable();
    let words: Vec<String> = params
        .iter()
        .map(|param| match param.default {
            Some(_) => format!("[{}=…]", param.name),
            None => format!("{}=…", param.name),
        })
        .collect();
    let line = format!("{:<width$}  {}", workflow.name, words.join(" "));
    format!("{}\n{:width$}  {}\n", line.trim_end(), "", workflow.file)
}

fn as_json(workflow: &NamedWorkflow) -> Value {
    let param = |param: &fusee::engine::lang::Param| {
        json!({
            "name": param.name,
            "type": param.kind.name(),
            "default": param.default,
            "required": param.required,
            "description": param.doc,
        })
    };
    let params: Vec<Value> = workflow.callable().params.iter().map(param).collect();
    json!({ "name": workflow.name, "file": workflow.file, "parameters": params })
}
