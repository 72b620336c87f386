//! `fusee completions`: scripts for shells, and what those scripts ask for when they run.

use clap::Args;
use clap_complete::Shell;
use fusee_engine::run::Exit;

use super::Process;
use crate::failure::Failure;
use crate::project::Project;
use crate::{arguments, output, registered, templates};

/// Print a completion script for a shell.
///
/// For bash: `fusee completions bash > ~/.local/share/bash-completion/completions/fusee`. For zsh: into a file
/// `_fusee` in a directory of `$fpath`. For fish: `fusee completions fish > ~/.config/fish/completions/fusee.fish`.
/// In bash and fish, `fusee task` completes the names of templates and workflows as they are then, and their inputs.
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// List what `fusee task` could run, or the inputs of one.
#[derive(Args)]
pub(crate) struct NamesArgs {
    /// The template or workflow whose inputs are listed
    name: Option<String>,
}

/// After the script that clap makes: the words after `task` come from the project.
const BASH: &str = r#"
_fusee_task() {
    _fusee "$@"
    local word="${COMP_WORDS[COMP_CWORD]}" named="" other
    [[ ${COMP_WORDS[1]} == task && $word != -* ]] || return 0
    for other in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
        if [[ $other != -* ]]; then named="$other"; break; fi
    done
    [[ -z $named ]] || compopt -o nospace 2>/dev/null
    local IFS=$'\n'
    COMPREPLY=($(compgen -W "$(fusee __names ${named:+"$named"} 2>/dev/null)" -- "$word"))
}
complete -F _fusee_task -o bashdefault -o default fusee
"#;

const FISH: &str = r#"
function __fusee_named --description "the template or workflow that is named after task"
    set -l after
    for word in (commandline -opc)
        if test -z "$after"
            test "$word" = task; and set after yes
        else if not string match -q -- '-*' $word
            echo $word
            return 0
        end
    end
    return 1
end
complete -c fusee -n "__fish_seen_subcommand_from task; and not __fusee_named >/dev/null" -f -a "(fusee __names 2>/dev/null)"
complete -c fusee -n "__fish_seen_subcommand_from task; and __fusee_named >/dev/null" -f -a "(fusee __names (__fusee_named) 2>/dev/null)"
"#;

/// Prints it.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut arguments::command(), "fusee", &mut script);
    let names = match args.shell {
        Shell::Bash => BASH,
        Shell::Fish => FISH,
        _ => "",
    };
    output::print(&format!("{}{names}", String::from_utf8_lossy(&script)))?;
    Ok(Exit::Completed)
}

/// Lists them, one a line.
pub(crate) fn names(args: &NamesArgs, process: &Process) -> Result<Exit, Failure> {
    let project = Project::find(None, &process.environment)?;
    let loaded = templates::gather(&project, &process.environment);
    let workflows = registered::workflows(&project, &process.environment);
    let mut known = templates::callables(&loaded.registry);
    known.extend(workflows.iter().map(registered::Registered::callable));
    let mut lines: Vec<String> = match &args.name {
        None => known.into_iter().map(|task| task.name).collect(),
        Some(name) => {
            let named = known.iter().filter(|task| task.name == *name);
            named.flat_map(|task| &task.params).map(|param| format!("{}=", param.name)).collect()
        }
    };
    lines.sort_unstable();
    lines.dedup();
    output::print(&lines.into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(Exit::Completed)
}
