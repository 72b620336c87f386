//! Command-line parsing. Each command's own arguments are in its file under [`crate::command`]; flags shared
//! by several commands are in [`crate::config::flags`]. The commands combine them with the configuration and the
//! environment.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use fusee::engine::journal::event::TurnType;
use fusee::engine::run::ExitStatus;

use crate::chat::{self, entry::ChatArgs};
use crate::command::unstarted_run::UnstartedRun;
use crate::command::{Command, ToolUse, version};
use crate::process::Process;
use crate::process::environment;
use crate::process::error::CliError;
use crate::ui::line::wrap;

#[cfg(test)]
mod tests;

/// Run LLM agents durably: every step is journaled, so runs can be resumed and replayed.
#[derive(Parser)]
#[command(name = "fusee", version, disable_version_flag = true, help_template = TEMPLATE)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    /// Print the version; with --verbose also the commit, the features and the sandbox layers
    #[arg(short = 'V', long)]
    version: bool,
    /// With --version: print details
    #[arg(long, requires = "version")]
    verbose: bool,
    #[command(flatten)]
    pub(crate) conversation: ChatArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Runs the command, or the chat if there is none.
    pub(crate) async fn perform(self, process: &Process) -> Result<ExitStatus, CliError> {
        match self.command {
            None if self.version => version::version(self.verbose, process).await,
            Some(command) => Box::pin(command.perform(process)).await,
            None => Box::pin(chat::entry::chat(self.conversation, short_help_text(), process)).await,
        }
    }
}

/// The command list is rendered by us: the short help shows a selection, the long help groups all commands.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}";

/// Columns beyond which help texts become hard to read.
const WIDEST: usize = 100;

/// Commands listed in the short help.
const SHORT: &[&str] = &["demo", "run", "resume", "runs", "show", "config", "doctor", "init"];

/// All commands, grouped for the long help and the reference page.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Tasks",
        &[
            "demo",
            "run",
            "task",
            "review",
            "resume",
            "prompt",
            "templates",
            "workflows",
            "match",
            "memory",
            "check",
            "fmt",
        ],
    ),
    ("Measurement", &["bench"]),
    ("History", &["runs", "show", "attach", "cancel", "replay", "rewind", "fork", "adopt", "serve"]),
    #[cfg(feature = "restate")]
    ("Engine", &["worker", "answer", "pull", "dev-engine"]),
    ("Protocols", &["mcp", "mcp-login", "acp"]),
    ("Setup", &["init", "config", "trust", "approvals", "doctor", "models", "completions", "docs"]),
];

/// Output that needs no command: help, version, or a usage error.
pub(crate) struct EarlyExit {
    error: clap::Error,
    /// The run that was meant, if its events are asked for.
    unstarted: Option<UnstartedRun>,
}

impl EarlyExit {
    /// Prints it and returns the exit code.
    pub(crate) fn print(self) -> ExitCode {
        // If printing fails there is no other channel left.
        let _ = self.error.print();
        if let Some(unstarted) = self.unstarted {
            let text = self.error.to_string();
            let problem = text.lines().next().unwrap_or_default();
            let problem = problem.strip_prefix("error: ").unwrap_or(problem);
            let _ = unstarted.report(&CliError::usage(problem));
        }
        ExitCode::from(u8::try_from(self.error.exit_code()).unwrap_or(2))
    }
}

/// Parses the process arguments.
pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, EarlyExit> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(answer) = other_name(&arguments) {
        return Err(answer);
    }
    let mut command = command();
    let early = |error: clap::Error, arguments: &[OsString]| {
        let unstarted = error.use_stderr().then(|| unstarted(arguments)).flatten();
        EarlyExit { error, unstarted }
    };
    let matches = command
        .try_get_matches_from_mut(&arguments)
        .map_err(|error| early(with_advice(error), &arguments))?;
    Cli::from_arg_matches(&matches).map_err(|error| early(error.format(&mut command), &arguments))
}

/// The run of a command line that could not be parsed, if it asks for events or the benchmark line.
fn unstarted(arguments: &[OsString]) -> Option<UnstartedRun> {
    let turn_type = match arguments.get(1)?.to_str()? {
        "run" => TurnType::User,
        "review" => TurnType::Review,
        _ => return None,
    };
    let has = |name: &str| {
        let mut flags = arguments.iter().take_while(|argument| *argument != "--");
        flags.any(|argument| argument == name)
    };
    let (json, benchmark) = (has("--json"), has("--benchmark"));
    (json || benchmark).then(|| UnstartedRun {
        id: None,
        request: String::new(),
        model: String::new(),
        turn_type,
        benchmark_try: (!json).then(|| if has("--continue") { 2 } else { 1 }),
    })
}

/// The parser with its help texts, for the terminal of this process.
pub(crate) fn command() -> clap::Command {
    command_for(environment::columns().unwrap_or(WIDEST).min(WIDEST))
}

/// The parser with its help texts for this many columns. All texts are wrapped here or by the parser, never by both.
fn command_for(columns: usize) -> clap::Command {
    let command = Cli::command().term_width(columns);
    let (short, long) = (short_help(&command, columns), long_help(&command, columns));
    command.after_help(short).after_long_help(long)
}

/// The short help, printed by `fusee` without input or terminal.
pub(crate) fn short_help_text() -> String {
    command().render_help().to_string()
}

fn short_help(command: &clap::Command, columns: usize) -> String {
    let mut text = String::from("Commands:\n");
    let shown = SHORT.iter().filter_map(|name| command.find_subcommand(name));
    shown.for_each(|entry| line(&mut text, entry, columns));
    text.push_str("\nWithout a command, `fusee` opens a chat in the terminal.\nSee `fusee COMMAND --help` for a command, `fusee --help` for all commands.");
    text
}

fn long_help(command: &clap::Command, columns: usize) -> String {
    let mut text = String::from(
        "Without a command, fusee opens a chat, in the terminal or as plain lines (--plain, or piped input). \
         It accepts -C, -m, --base-url, --api, --continue, --approve, --sandbox and the limits of \
         `fusee run`.\n\n",
    );
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{group}:");
        names
            .iter()
            .filter_map(|name| command.find_subcommand(name))
            .for_each(|entry| line(&mut text, entry, columns));
        text.push('\n');
    }
    text.push_str(
        "Exit codes: 0 completed, 1 task failed, 2 usage or configuration error, 3 limit reached, \
         4 model unreachable, 5 findings (`fusee review --fail-on`), 130 cancelled.\n\n\
         See `fusee COMMAND --help` for details.",
    );
    text
}

/// Columns before the description of a command.
const INDENT: usize = 15;

/// A command with its description, whose further lines are indented.
fn line(text: &mut String, entry: &clap::Command, columns: usize) {
    let about = entry.get_about().map(ToString::to_string).unwrap_or_default();
    let rows = wrap(&about, columns.saturating_sub(INDENT).max(1));
    for (n, row) in rows.iter().enumerate() {
        let name = if n == 0 { entry.get_name() } else { "" };
        let _ = writeln!(text, "  {name:<12} {row}");
    }
}

impl Cli {
    /// Whether the command needs the fork server for tools.
    pub(crate) fn tools(&self) -> ToolUse {
        if self.version && !self.verbose {
            return ToolUse::None;
        }
        // The chat runs tools, but without a terminal it may only print the help.
        self.command.as_ref().map_or(ToolUse::Probed, Command::tools)
    }
}

/// Words that other tools use for a command, and what it is called here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("undo", "fusee runs undo"),
    ("log", "fusee show --log"),
    ("logs", "fusee show --log"),
    ("list", "fusee runs"),
    ("ls", "fusee runs"),
    ("history", "fusee runs"),
    ("chat", "fusee"),
    ("exec", "fusee run"),
    ("ask", "fusee run"),
    ("validate", "fusee check"),
    ("permissions", "fusee approvals"),
];

/// An error that names the right command, if the first word is one of another tool.
fn other_name(arguments: &[OsString]) -> Option<EarlyExit> {
    let word = arguments.get(1)?.to_str()?;
    let (_, here) = OTHER_NAMES.iter().find(|(name, _)| *name == word)?;
    let mut command = command();
    let message = format!("unrecognized subcommand '{word}'\n\n  tip: use `{here}`");
    let error = command.error(clap::error::ErrorKind::InvalidSubcommand, message);
    Some(EarlyExit { error, unstarted: None })
}

/// Hints at missing quotes: an extra word is usually an unquoted request.
fn with_advice(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let is_word = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if !word.starts_with('-'));
    if error.kind() == ErrorKind::UnknownArgument && is_word {
        let advice = "the request must be one argument: put it in quotes";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.to_owned().into()]));
    }
    error
}
