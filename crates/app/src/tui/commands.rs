//! What begins with a slash: one table, from which parsing, completion and `/help` come. What each does is in
//! [`super::session`] and in the faces.

use fusee_engine::approval::Approve;
use fusee_engine::text::near;

use crate::face::line::{Line, Style, wrap};

#[cfg(test)]
mod tests;

/// So many columns are those of plain lines, which are not broken.
pub(crate) const PLAIN: usize = usize::MAX;

/// Columns that are enough to explain something in.
const READABLE: usize = 36;

/// A command as it is written and explained.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) help: &'static str,
}

/// All of them, in the order of `/help`.
pub(crate) const TABLE: &[Entry] = &[
    entry(
        "/task",
        "NAME [KEY=VALUE…]",
        "run a template or a workflow; a workflow may stand there in parentheses",
    ),
    entry("/review", "[PATHS]", "have the code reviewed; takes --base, --focus, --ask and --reference too"),
    entry("/flow", "[MODE]", "how tasks are worked through; with a mode, from the next message on"),
    entry("/model", "[NAME]", "which model answers; with a name, another one from the next message on"),
    entry("/approve", "[auto|ask|never]", "when you are asked before something is changed"),
    entry("/plan", "[edit [FILE]]", "the plan; with edit, change it in your editor, or take it from a file"),
    entry("/sections", "[KEY]", "the prompt's sections, open and closed; with a key, open one for the model"),
    entry("/context", "", "what fills the model's window, by kind"),
    entry("/compact", "", "shorten the conversation from the next message on"),
    entry("/diff", "", "what this conversation changed in files"),
    entry("/undo", "[RUN]", "take back what the last task changed in files, or the run named"),
    entry("/runs", "", "what was run in this project"),
    entry(
        "/resume",
        "[RUN]",
        "go on with an earlier run: finish it if it was cut off, else with its conversation",
    ),
    entry("/new", "", "begin a new conversation"),
    entry("/export", "[FILE]", "write this conversation to a file"),
    entry("/help", "", "this list"),
    entry("/quit", "", "leave; a task under way goes on when you come back"),
];

const fn entry(name: &'static str, arguments: &'static str, help: &'static str) -> Entry {
    Entry { name, arguments, help }
}

/// A command that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slash {
    Flow(Option<String>),
    Sections(Option<String>),
    Context,
    Compact,
    Undo(Option<String>),
    /// The same, and the person was asked.
    UndoNow(String),
    Model(Option<String>),
    Approve(Option<Approve>),
    Plan,
    PlanEdit(Option<String>),
    Diff,
    Runs,
    Resume(Option<String>),
    New,
    Export(Option<String>),
    Help,
    Quit,
}

/// What a run of the conversation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Words for the model.
    Words(String),
    /// A template or workflow: what stands after `/task`.
    Task(String),
    /// A review of code: what stands after `/review`.
    Review(String),
}

impl Errand {
    /// As it was typed, about.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Task(line) => format!("/task {line}"),
            Self::Review(line) => format!("/review {line}").trim_end().to_owned(),
        }
    }
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Nothing.
    Nothing,
    /// Something to be worked on.
    Errand(Errand),
    /// A command.
    Command(Slash),
    /// Meant as a command, and none.
    Unknown(String),
}

/// Understands what was typed. A word with a second slash is a path, and two slashes at the beginning are one for
/// the model. What begins with a parenthesis is a workflow, as it is for `fusee run`.
pub(crate) fn understand(typed: &str) -> Said {
    let typed = typed.trim();
    if typed.is_empty() {
        return Said::Nothing;
    }
    if let Some(words) = typed.strip_prefix("//") {
        return Said::Errand(Errand::Words(format!("/{words}")));
    }
    if typed.starts_with('(') {
        return Said::Errand(Errand::Task(typed.to_owned()));
    }
    let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let is_command = word.starts_with('/') && !word[1..].contains('/');
    if !is_command {
        return Said::Errand(Errand::Words(typed.to_owned()));
    }
    match word {
        "/task" => return Said::Errand(Errand::Task(rest.trim().to_owned())),
        "/review" => return Said::Errand(Errand::Review(rest.trim().to_owned())),
        _ => {}
    }
    match command(word, rest.trim()) {
        Ok(slash) => Said::Command(slash),
        Err(problem) => Said::Unknown(problem),
    }
}

fn command(word: &str, rest: &str) -> Result<Slash, String> {
    let one = || (!rest.is_empty()).then(|| rest.to_owned());
    let none = |slash: Slash| match rest {
        "" => Ok(slash),
        _ => Err(format!("{word} takes nothing after it")),
    };
    match word {
        "/flow" => Ok(Slash::Flow(one())),
        "/sections" => Ok(Slash::Sections(one())),
        "/context" => none(Slash::Context),
        "/compact" => none(Slash::Compact),
        "/undo" => Ok(Slash::Undo(one())),
        "/model" => Ok(Slash::Model(one())),
        "/approve" => match rest {
            "" => Ok(Slash::Approve(None)),
            "auto" => Ok(Slash::Approve(Some(Approve::Auto))),
            "ask" => Ok(Slash::Approve(Some(Approve::Ask))),
            "never" => Ok(Slash::Approve(Some(Approve::Never))),
            other => Err(format!("/approve knows auto, ask and never, not `{other}`")),
        },
        "/plan" => match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
            ("", _) => Ok(Slash::Plan),
            ("edit", file) => Ok(Slash::PlanEdit((!file.trim().is_empty()).then(|| file.trim().to_owned()))),
            (other, _) => Err(format!("/plan knows edit, not `{other}`")),
        },
        "/diff" => none(Slash::Diff),
        "/runs" => none(Slash::Runs),
        "/resume" => Ok(Slash::Resume(one())),
        "/new" => none(Slash::New),
        "/export" => Ok(Slash::Export(one())),
        "/help" => none(Slash::Help),
        "/quit" | "/exit" => none(Slash::Quit),
        _ => {
            let near = near::did_you_mean(word, TABLE.iter().map(|entry| entry.name));
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            Err(format!(
                "there is no command {word}{near} (/help lists all, // begins a message with a slash)"
            ))
        }
    }
}

/// The list of commands, for so many columns: side by side with what they do, or above it where it is narrow.
pub(crate) fn help(columns: usize) -> Vec<Line> {
    let spelled = |entry: &Entry| format!("{} {}", entry.name, entry.arguments).trim_end().to_owned();
    let width = TABLE.iter().map(|entry| spelled(entry).chars().count()).max().unwrap_or_default() + 2;
    let beside = columns.saturating_sub(width) >= READABLE;
    let mut rows = Vec::new();
    for entry in TABLE {
        let name = spelled(entry);
        let (lead, indent) = if beside { (format!("{name:<width$}"), width) } else { (String::new(), 4) };
        if !beside {
            rows.push(Line::of(Style::Accent, &name));
        }
        let first = Line::of(Style::Accent, &lead);
        let indent = " ".repeat(indent);
        for (index, text) in wrap(entry.help, columns.saturating_sub(indent.len())).iter().enumerate() {
            let lead = if index == 0 && beside { first.clone() } else { Line::of(Style::Plain, &indent) };
            rows.push(lead.and(Style::Plain, text));
        }
    }
    let words = "Anything else is a task for the model. @path puts a file into it.";
    let keys = match columns {
        PLAIN => {
            "A line that ends in a backslash goes on in the next one. ctrl-c stops a task, ctrl-d leaves."
        }
        _ => {
            "ctrl-j is a new line, ctrl-g opens your editor, up and down bring back what was typed, esc stops a task."
        }
    };
    rows.extend([words, keys].map(|text| Line::of(Style::Dim, text)));
    rows
}
