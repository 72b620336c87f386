//! `fusee completions`: completion scripts, and the hidden command that they call with the words of the line.
//!
//! The scripts hold no knowledge of their own: [`position`] finds what the last word of a line can be, from the parser,
//! and [`candidates`] lists it, from the project and the machine.

mod candidates;
mod position;

use clap::Args;
use clap_complete::Shell;
use fusee::engine::run::ExitStatus;

use crate::cli;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;

/// Print a shell completion script.
///
/// For bash: `fusee completions bash > ~/.local/share/bash-completion/completions/fusee`. For zsh: write it
/// to a file `_fusee` in a directory of `$fpath`. For fish: `fusee completions fish >
/// ~/.config/fish/completions/fusee.fish`. In these three, commands complete the current names of runs, models,
/// flows, templates, workflows and their inputs; elvish and powershell complete commands and flags.
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to generate the script for
    #[arg(value_enum)]
    shell: Shell,
}

/// Print what the last word can be, one candidate per line with its description after a tab.
#[derive(Args)]
pub(crate) struct CompleteArgs {
    /// Words of the line after the name of the program; the last one is completed and may be empty
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Runs the command.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitStatus, CliError> {
    let script = match args.shell {
        Shell::Bash => include_str!("completions/fusee.bash").to_owned(),
        Shell::Zsh => include_str!("completions/fusee.zsh").to_owned(),
        Shell::Fish => include_str!("completions/fusee.fish").to_owned(),
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut cli::command(), "fusee", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
    };
    stdio::print_exact(&script)?;
    Ok(ExitStatus::Completed)
}

/// Runs the hidden command. It prints nothing where only a file name fits, so that the shell completes those.
pub(crate) async fn complete(args: &CompleteArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let mut command = cli::command();
    command.build();
    let Some((typed, before)) = args.words.split_last() else { return Ok(ExitStatus::Completed) };
    let position = position::Position::find(&command, before, typed);
    let mut found = candidates::candidates(&position, process).await;
    found.retain(|candidate| candidate.word.starts_with(&position.typed));
    let lines = found.into_iter().map(|candidate| {
        format!(
            "{}{}\t{}\n",
            position.prefix,
            candidate.word,
            candidate.about.lines().next().unwrap_or_default()
        )
    });
    stdio::print(&lines.collect::<String>())?;
    Ok(ExitStatus::Completed)
}

#[cfg(test)]
mod tests;
