//! What the demo says in the end: what happened, the diff, and what to do next. Text from values; who gathers them is
//! [`crate::command::demo`].

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::change::Change;
use super::check::Tests;

/// Diffs of a model that rewrote everything are cut here.
const DIFF_LINES: usize = 80;

/// Columns of a heading.
const WIDTH: usize = 80;

/// What there is to say.
pub(crate) struct Summary<'a> {
    /// The user's own model; none is the recording.
    pub(crate) own_model: Option<&'a str>,
    /// What the tests said at first.
    pub(crate) before: Tests,
    /// What they say now.
    pub(crate) after: Tests,
    /// What it took.
    pub(crate) work: Work,
    /// How it was killed, if it was.
    pub(crate) killed: Option<Killed>,
    /// What differs now.
    pub(crate) changes: &'a [Change],
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) turns: u32,
    pub(crate) calls: u32,
    pub(crate) tokens: u64,
    pub(crate) wall: Duration,
}

/// A kill on the way, and what the journal then gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Killed {
    /// The command that ran at that moment.
    pub(crate) command: String,
    /// Turns so far.
    pub(crate) turn: u32,
    /// Replies that were read back instead of asked for again.
    pub(crate) replies: usize,
    /// Results that were read back instead of calls made again.
    pub(crate) results: usize,
    /// Whether the cut-off command was named to the model.
    pub(crate) told: bool,
}

/// What the commands to try next are made of.
pub(crate) struct Next<'a> {
    /// How the user calls us.
    pub(crate) fusee: &'a str,
    /// The run's name.
    pub(crate) run: &'a str,
    /// Where the project is, if it is kept.
    pub(crate) kept: Option<&'a Path>,
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Coloured,
}

impl Ink {
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn place(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// A heading over what follows.
    pub(crate) fn heading(self, title: &str) -> String {
        let rule = "─".repeat(WIDTH.saturating_sub(title.chars().count() + 4));
        format!("{} {} {}\n", self.dim("──"), self.bold(title), self.dim(&rule))
    }
}

impl Summary<'_> {
    /// The whole of it.
    pub(crate) fn render(&self, ink: Ink) -> String {
        let mut out = ink.heading("what happened");
        let now = self.after.is();
        let now = if self.after.pass { ink.good(&now) } else { ink.bad(&now) };
        row(&mut out, ink, "tests", &format!("{} at first, {now} now", self.before.was()));
        match self.own_model {
            Some(name) => row(&mut out, ink, "model", name),
            None => {
                row(
                    &mut out,
                    ink,
                    "model",
                    "a recording: its replies are played from a file; all else is real,",
                );
                row(&mut out, ink, "", "the tools, the edits, the test runs and the journal");
            }
        }
        row(&mut out, ink, "work", &self.work.words());
        if let Some(killed) = &self.killed {
            killed.render(&mut out, ink);
        }
        let changed = match self.changes {
            [] => "nothing".to_owned(),
            changes => changes.iter().map(|change| named(change, ink)).collect::<Vec<_>>().join(", "),
        };
        row(&mut out, ink, "changed", &changed);
        out.push('\n');
        for line in diff_lines(self.changes, ink) {
            let _ = writeln!(out, "    {line}");
        }
        if !self.changes.is_empty() {
            out.push('\n');
        }
        out
    }
}

impl Work {
    fn words(self) -> String {
        let Self { turns, calls, tokens, wall } = self;
        let seconds = wall.as_secs_f64();
        format!("{turns} turns, {calls} tool calls, {} tokens, {seconds:.1} s", grouped(tokens))
    }
}

impl Killed {
    fn render(&self, out: &mut String, ink: Ink) {
        let Self { command, turn, replies, results, told } = self;
        row(out, ink, "killed", &format!("with kill -9 in turn {turn}, while `{command}` ran"));
        row(
            out,
            ink,
            "resumed",
            &format!("{replies} replies and {results} results were read back from the journal,"),
        );
        row(out, ink, "", "none was asked for or run again");
        if *told {
            row(out, ink, "", "the model was told which command was cut off, and decided what to do");
        }
    }
}

impl Next<'_> {
    /// The commands, each of which works as it is printed.
    pub(crate) fn render(&self, ink: Ink) -> String {
        let fusee = self.fusee;
        let mut out = ink.heading("next");
        let mut part = |title: &str, commands: &[(String, &str)]| {
            let _ = writeln!(out, "  {title}");
            let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default();
            for (command, what) in commands {
                let gap = " ".repeat(width - command.chars().count() + 2);
                let line = format!("    {}{gap}{}", ink.bold(command), ink.dim(what));
                let _ = writeln!(out, "{}", line.trim_end());
            }
        };
        part(
            "The same with your own model:",
            &[
                (
                    format!("{fusee} demo -m ollama:MODEL"),
                    "a local Ollama; also llama.cpp:, lmstudio:, vllm:",
                ),
                (format!("{fusee} demo -m openai:MODEL"), "with OPENAI_API_KEY set"),
                (format!("{fusee} demo -m MODEL --base-url URL"), "any server that speaks chat completions"),
            ],
        );
        part("In a project of yours:", &[(format!("{fusee} run -C DIR -m MODEL 'what is to be done'"), "")]);
        match self.kept {
            Some(project) => {
                let (project, run) = (project.display(), self.run);
                let title = format!("The project and its journal are kept in {project}:");
                part(
                    &title,
                    &[
                        (format!("{fusee} show -C {project} {run}"), "what was done, step by step"),
                        (
                            format!("{fusee} replay -C {project} {run}"),
                            "again from the journal: no model, no tools",
                        ),
                    ],
                );
            }
            None => part(
                "More of this:",
                &[
                    (format!("{fusee} demo --kill"), "killed with kill -9 on the way, and resumed"),
                    (format!("{fusee} demo --keep"), "keeps the project, to look at with show and replay"),
                ],
            ),
        }
        out
    }
}

fn row(out: &mut String, ink: Ink, name: &str, text: &str) {
    let _ = writeln!(out, "  {}  {text}", ink.dim(&format!("{name:<7}")));
}

fn named(change: &Change, ink: Ink) -> String {
    let Change { path, added, removed, .. } = change;
    format!("{path} {} {}", ink.good(&format!("+{added}")), ink.bad(&format!("-{removed}")))
}

fn diff_lines(changes: &[Change], ink: Ink) -> Vec<String> {
    let all = changes.iter().flat_map(|change| change.diff.lines());
    let mut lines: Vec<String> = all
        .clone()
        .take(DIFF_LINES)
        .map(|line| match line.as_bytes() {
            [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => ink.bold(line),
            [b'@', ..] => ink.place(line),
            [b'+', ..] => ink.good(line),
            [b'-', ..] => ink.bad(line),
            _ => line.to_owned(),
        })
        .collect();
    let more = all.count().saturating_sub(DIFF_LINES);
    if more > 0 {
        lines.push(ink.dim(&format!("… and {more} more lines")));
    }
    lines
}

/// A number as people read it: 35,312.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests;
