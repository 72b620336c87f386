//! Slash commands: one table that parsing, completion and `/help` are derived from. [`super::session`] and
//! the UIs implement them.

use std::path::Path;

use fusee::engine::approval::ApprovalMode;
use fusee::engine::text::suggest;

use crate::project::markdown_commands::{self, MarkdownCommand};
use crate::ui::line::{Style, StyledLine, wrap};

#[cfg(test)]
mod tests;

/// Column count that stands for plain output, which is not wrapped.
pub(crate) const PLAIN: usize = usize::MAX;

/// Minimum width for help text beside the commands; narrower terminals get it below them.
const READABLE: usize = 36;

/// A slash command and its help.
pub(crate) struct SlashEntry {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) help: &'static str,
}

/// All commands, in the order of `/help`.
pub(crate) const TABLE: &[SlashEntry] = &[
    entry("/task", "NAME [KEY=VALUE…]", "run a template or workflow by name, or a workflow in parentheses"),
    entry("/review", "[PATHS]", "review code; also takes --base, --focus, --ask and --reference"),
    entry("/flow", "[MODE]", "show the flow mode, or set it starting with the next message"),
    entry("/model", "[NAME]", "show the model, or switch it starting with the next message"),
    entry("/approve", "[auto|ask|never]", "show or set when you are asked for approval"),
    entry(
        "/plan",
        "[on|off|edit [FILE]]",
        "show the plan; on/off switches read-only plan mode; edit opens the plan in your editor or loads it from FILE",
    ),
    entry("/sections", "[KEY]", "list the prompt's sections; with KEY, open one for the model"),
    entry("/status", "", "show model, directory, permissions, mode and conversation"),
    entry("/cost", "", "show the tokens and the cost of this conversation"),
    entry("/context", "", "show what fills the model's context window"),
    entry("/compact", "", "compact the conversation starting with the next message"),
    entry("/diff", "", "show the file changes of this conversation"),
    entry("/undo", "[RUN]", "undo the file changes of the last task, or of RUN"),
    entry(
        "/rewind",
        "",
        "go back to an earlier turn of this conversation: its files, the conversation, or both (esc esc)",
    ),
    entry("/runs", "", "list the runs of this project"),
    entry("/background", "", "move the running task to the background (ctrl-b)"),
    entry("/sessions", "", "choose an earlier conversation to continue"),
    entry("/resume", "[RUN]", "resume an interrupted run, or continue the conversation of a finished one"),
    entry("/new", "", "start a new conversation"),
    entry("/clear", "", "start a new conversation on an empty screen"),
    entry("/init", "", "let the model write AGENTS.md, which tells agents about this project"),
    #[cfg(feature = "serve")]
    entry("/web", "", "serve the web page of this project and print its URL"),
    entry("/export", "[FILE]", "write this conversation to a file"),
    entry("/help", "", "show this list"),
    entry("/quit", "", "exit; a running task can be resumed later"),
];

const fn entry(name: &'static str, arguments: &'static str, help: &'static str) -> SlashEntry {
    SlashEntry { name, arguments, help }
}

/// A parsed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlashCommand {
    Flow(Option<String>),
    Sections(Option<String>),
    Context,
    Compact,
    Undo(Option<String>),
    /// Undoes the run; the user has confirmed.
    UndoNow(String),
    /// Chooses a turn to go back to, or shows what going back to it would change.
    Rewind(Option<TurnTarget>),
    Model(Option<String>),
    Approve(Option<ApprovalMode>),
    Plan,
    PlanMode(bool),
    Status,
    Cost,
    Background,
    Sessions,
    Clear,
    PlanEdit(Option<String>),
    Diff,
    Runs,
    Resume(Option<String>),
    New,
    #[cfg(feature = "serve")]
    Web,
    Export(Option<String>),
    Help,
    Quit,
}

/// A turn of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnTarget {
    /// Id of the run.
    pub(crate) run: String,
    /// Number of completed turns.
    pub(crate) turn: u32,
}

/// The work that a new run of the chat is started for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunRequest {
    /// A message for the model.
    Words(String),
    /// A template or workflow: the text after `/task`.
    Task(String),
    /// A code review: the text after `/review`.
    Review(String),
    /// The model writes AGENTS.md.
    Init,
    /// A command of the project: the line, and the message it stands for.
    Command { line: String, message: String },
}

impl RunRequest {
    /// The input that leads to this work, for display.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Task(line) => format!("/task {line}"),
            Self::Review(line) => format!("/review {line}").trim_end().to_owned(),
            Self::Init => "/init".to_owned(),
            Self::Command { line, .. } => line.clone(),
        }
    }
}

/// A parsed line of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    /// An empty line.
    Nothing,
    /// Work that starts a run.
    Request(RunRequest),
    /// A slash command.
    Command(SlashCommand),
    /// A command for the user's shell: the text after `!`.
    Shell(String),
    /// An unknown or malformed command, with the error message.
    Unknown(String),
}

/// Parses a line of input in a directory of a project, which may have commands of its own. They do not replace those of
/// the table.
pub(crate) fn parse_line_in(typed: &str, directory: &Path) -> InputLine {
    let line = typed.trim();
    let word = line.split_whitespace().next().unwrap_or_default();
    let is_own = TABLE.iter().any(|entry| entry.name == word) || word == "/exit";
    match markdown_commands::expand(line, directory).filter(|_| !is_own) {
        Some(message) => InputLine::Request(RunRequest::Command { line: line.to_owned(), message }),
        None => parse_line(typed),
    }
}

/// Parses a line of input. A word with a second slash is a path, and a leading `//` is a message that starts
/// with a slash. A leading parenthesis starts a workflow, as in `fusee run`.
pub(crate) fn parse_line(typed: &str) -> InputLine {
    let typed = typed.trim();
    if typed.is_empty() {
        return InputLine::Nothing;
    }
    if let Some(words) = typed.strip_prefix("//") {
        return InputLine::Request(RunRequest::Words(format!("/{words}")));
    }
    if let Some(line) = typed.strip_prefix('!').map(str::trim).filter(|line| !line.is_empty()) {
        return InputLine::Shell(line.to_owned());
    }
    if typed.starts_with('(') {
        return InputLine::Request(RunRequest::Task(typed.to_owned()));
    }
    let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let is_command = word.starts_with('/') && !word[1..].contains('/');
    if !is_command {
        return InputLine::Request(RunRequest::Words(typed.to_owned()));
    }
    let word = match spelled_out(word) {
        Ok(word) => word,
        Err(problem) => return InputLine::Unknown(problem),
    };
    match word {
        "/task" => return InputLine::Request(RunRequest::Task(rest.trim().to_owned())),
        "/review" => return InputLine::Request(RunRequest::Review(rest.trim().to_owned())),
        "/init" if rest.trim().is_empty() => return InputLine::Request(RunRequest::Init),
        "/init" => return InputLine::Unknown("/init takes no arguments".to_owned()),
        _ => {}
    }
    match command(word, rest.trim()) {
        Ok(slash) => InputLine::Command(slash),
        Err(problem) => InputLine::Unknown(problem),
    }
}

/// The command that a word names by itself or by a unique beginning.
fn spelled_out(word: &str) -> Result<&str, String> {
    let fitting: Vec<&str> =
        TABLE.iter().map(|entry| entry.name).filter(|name| name.starts_with(word)).collect();
    match fitting.as_slice() {
        _ if fitting.contains(&word) || word == "/exit" => Ok(word),
        [only] if word.len() > 1 => Ok(only),
        [] | [_] => Ok(word),
        several => Err(format!("{word} is ambiguous: {}", several.join(", "))),
    }
}

fn command(word: &str, rest: &str) -> Result<SlashCommand, String> {
    let one = || (!rest.is_empty()).then(|| rest.to_owned());
    let none = |slash: SlashCommand| match rest {
        "" => Ok(slash),
        _ => Err(format!("{word} takes no arguments")),
    };
    match word {
        "/flow" => Ok(SlashCommand::Flow(one())),
        "/sections" => Ok(SlashCommand::Sections(one())),
        "/context" => none(SlashCommand::Context),
        "/compact" => none(SlashCommand::Compact),
        "/undo" => Ok(SlashCommand::Undo(one())),
        "/rewind" => none(SlashCommand::Rewind(None)),
        "/model" => Ok(SlashCommand::Model(one())),
        "/approve" => match rest {
            "" => Ok(SlashCommand::Approve(None)),
            "auto" => Ok(SlashCommand::Approve(Some(ApprovalMode::Auto))),
            "ask" => Ok(SlashCommand::Approve(Some(ApprovalMode::Ask))),
            "never" => Ok(SlashCommand::Approve(Some(ApprovalMode::Never))),
            other => Err(format!("invalid value `{other}` for /approve: expected auto, ask or never")),
        },
        "/plan" => match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
            ("", _) => Ok(SlashCommand::Plan),
            ("on", "") => Ok(SlashCommand::PlanMode(true)),
            ("off", "") => Ok(SlashCommand::PlanMode(false)),
            ("edit", file) => {
                Ok(SlashCommand::PlanEdit((!file.trim().is_empty()).then(|| file.trim().to_owned())))
            }
            (other, _) => Err(format!("invalid argument `{other}` for /plan: expected on, off or edit")),
        },
        "/status" => none(SlashCommand::Status),
        "/cost" => none(SlashCommand::Cost),
        "/background" => none(SlashCommand::Background),
        "/sessions" => none(SlashCommand::Sessions),
        "/clear" => none(SlashCommand::Clear),
        "/diff" => none(SlashCommand::Diff),
        "/runs" => none(SlashCommand::Runs),
        "/resume" => Ok(SlashCommand::Resume(one())),
        "/new" => none(SlashCommand::New),
        #[cfg(feature = "serve")]
        "/web" => none(SlashCommand::Web),
        "/export" => Ok(SlashCommand::Export(one())),
        "/help" => none(SlashCommand::Help),
        "/quit" | "/exit" => none(SlashCommand::Quit),
        _ => {
            let near = suggest::did_you_mean(word, TABLE.iter().map(|entry| entry.name));
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            Err(format!(
                "unknown command {word}{near} (/help lists commands; type // to start a message with a slash)"
            ))
        }
    }
}

/// The list of commands, and of those of the project: help text beside the commands, or below them in narrow terminals.
pub(crate) fn help(columns: usize, of_project: &[MarkdownCommand]) -> Vec<StyledLine> {
    let spelled = |entry: &SlashEntry| format!("{} {}", entry.name, entry.arguments).trim_end().to_owned();
    let entries: Vec<(String, &str)> = TABLE
        .iter()
        .map(|entry| (spelled(entry), entry.help))
        .chain(of_project.iter().map(|own| (format!("/{}", own.name), own.summary.as_str())))
        .collect();
    let width = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default() + 2;
    let beside = columns.saturating_sub(width) >= READABLE;
    let mut rows = Vec::new();
    for (name, help) in entries {
        let (lead, indent) = if beside { (format!("{name:<width$}"), width) } else { (String::new(), 4) };
        if !beside {
            rows.push(StyledLine::styled(Style::Accent, &name));
        }
        let first = StyledLine::styled(Style::Accent, &lead);
        let indent = " ".repeat(indent);
        for (index, text) in wrap(help, columns.saturating_sub(indent.len())).iter().enumerate() {
            let lead =
                if index == 0 && beside { first.clone() } else { StyledLine::styled(Style::Plain, &indent) };
            rows.push(lead.and(Style::Plain, text));
        }
    }
    let words = "Anything else is sent to the model. @path attaches a file or an image. !command runs a shell command.";
    let keys = match columns {
        PLAIN => {
            "A backslash at the end of a line continues it on the next. ctrl-c stops a task, ctrl-d exits."
        }
        _ => {
            "ctrl-j inserts a line break, ctrl-g opens your editor, ctrl-v inserts the image in the clipboard, up and down browse the history, ctrl-r searches it, esc stops a task, esc esc goes back to an earlier turn, ctrl-b moves the task to the background, ctrl-z suspends fusee."
        }
    };
    rows.extend([words, keys].map(|text| StyledLine::styled(Style::Dim, text)));
    rows
}
