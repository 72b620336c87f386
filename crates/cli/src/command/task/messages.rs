//! Output of `fusee task` without running anything: help and errors.

use std::fmt::Write as _;

use fusee::engine::lang::Param;
use fusee::engine::run::ExitStatus;
use fusee::engine::text::Severity;
use fusee::engine::workflow::unstarted_result;

use super::workflow_source::{CheckedWorkflow, SourceProblems};
use crate::cli;
use crate::process::error::CliError;
use crate::process::stdio;

/// Prints the command's help, or fails because TASK is missing.
pub(super) fn own_help(asked: bool) -> Result<ExitStatus, CliError> {
    if !asked {
        return Err(CliError::usage("missing TASK")
            .help("pass a workflow in parentheses, a .fusee file or a name: fusee task '(+ 1 2)'"));
    }
    let mut command = cli::command();
    // Gives the usage line the name of the program.
    command.build();
    let help = command.find_subcommand_mut("task").map(|task| task.render_long_help().to_string());
    stdio::print(&help.unwrap_or_default()).map(|()| ExitStatus::Completed)
}

/// Reports a workflow that cannot run.
pub(super) fn refused(json: bool, problems: &SourceProblems) -> Result<ExitStatus, CliError> {
    let first = problems.found.iter().find(|problem| problem.severity == Severity::Error);
    let (message, code) = first
        .map_or((String::new(), ""), |first| (format!("{}: {}", first.start, first.message), first.code));
    let reason = (code == "unknown-task").then_some("template_not_found");
    if !json {
        return Err(CliError { reason, headline: Some(message), ..CliError::rendered(problems.rendered()) });
    }
    stdio::error(&problems.rendered());
    super::print_result(unstarted_result(reason, &message))?;
    Ok(ExitStatus::Usage)
}

/// Hint about parameters.
pub(super) const INPUTS_HELP: &str = "`fusee task NAME --help` shows the parameters of a task";

/// Reports invalid parameters.
pub(super) fn wrong_inputs(json: bool, message: &str) -> Result<ExitStatus, CliError> {
    let reason = Some("input_validation_failure");
    let help = "pass `--help` after the task to see its parameters";
    if !json {
        return Err(CliError { reason, ..CliError::usage(message).help(help) });
    }
    stdio::error(&format!("error: {message}\n  help: {help}\n"));
    super::print_result(unstarted_result(reason, &format!("1:1: {message}")))?;
    Ok(ExitStatus::Usage)
}

/// Prints the parameters of a workflow.
pub(super) fn parameters(checked: &CheckedWorkflow) -> Result<ExitStatus, CliError> {
    let params: Vec<&Param> = checked.program.params().collect();
    let mut text = format!("Usage: fusee task {}", checked.workflow.name);
    for param in &params {
        let word = format!("{}={}", param.name, param.kind.name().to_uppercase());
        let _ = match param.default {
            Some(_) => write!(text, " [{word}]"),
            None => write!(text, " {word}"),
        };
    }
    text.push_str("\n\nParameters:\n");
    if params.is_empty() {
        text.push_str("  none\n");
    }
    let width = params.iter().map(|param| param.name.chars().count()).max().unwrap_or_default();
    for param in params {
        let (name, kind) = (&param.name, param.kind.name());
        let _ = write!(text, "  {name:<width$}  {kind:<7}");
        if let Some(doc) = &param.doc {
            let _ = write!(text, "  {doc}");
        }
        if let Some(default) = &param.default {
            let _ = write!(
                text,
                "  [default: {}]",
                default.as_str().map_or_else(|| default.to_string(), str::to_owned)
            );
        }
        text.push('\n');
    }
    stdio::print(&text).map(|()| ExitStatus::Completed)
}
