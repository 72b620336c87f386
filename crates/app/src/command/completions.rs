//! `fusee completions`.

use clap::Args;
use clap_complete::Shell;
use fusee_engine::run::Exit;

use crate::failure::Failure;
use crate::{arguments, output};

/// Print a completion script for a shell.
///
/// For bash: `fusee completions bash > ~/.local/share/bash-completion/completions/fusee`. For zsh: into a file
/// `_fusee` in a directory of `$fpath`. For fish: `fusee completions fish > ~/.config/fish/completions/fusee.fish`.
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints it.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut arguments::command(), "fusee", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Completed)
}
