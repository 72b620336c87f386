//! The demo's final output: what happened, the diff, and what to try next. [`crate::command::demo`] collects
//! the values.

use std::path::Path;
use std::time::Duration;

use super::change::FileDiff;
use super::check::TestResults;
use crate::ui::format;
use crate::ui::line::{Style, StyledLine};

/// Maximum number of diff lines shown.
const DIFF_LINES: usize = 80;

/// Width of a heading in columns.
const WIDTH: usize = 80;

/// The values of the summary.
pub(crate) struct DemoSummary<'a> {
    /// The user's own model; `None` for the recording.
    pub(crate) own_model: Option<&'a str>,
    /// Test results before the run.
    pub(crate) before: TestResults,
    /// Test results after the run.
    pub(crate) after: TestResults,
    pub(crate) work: RunTotals,
    /// The kill, if the run was killed.
    pub(crate) killed: Option<KillReport>,
    pub(crate) changes: &'a [FileDiff],
}

/// Figures shown below the demo, summed over all its tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunTotals {
    pub(crate) turns: u32,
    pub(crate) calls: u32,
    pub(crate) tokens: u64,
    pub(crate) wall: Duration,
}

/// A kill, and what was read back from the journal after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KillReport {
    /// The command that was running, if any.
    pub(crate) command: Option<String>,
    /// Model replies read back instead of requested again.
    pub(crate) replies: usize,
    /// Tool results read back instead of run again.
    pub(crate) results: usize,
    /// Whether the model was told about the interrupted command.
    pub(crate) model_informed: bool,
}

/// The values of the suggested commands.
pub(crate) struct NextCommands<'a> {
    /// How the user invokes fusee.
    pub(crate) fusee: &'a str,
    /// The run's id.
    pub(crate) run: &'a str,
    /// Where the project is, if it is kept.
    pub(crate) kept: Option<&'a Path>,
}

/// A section heading.
pub(crate) fn heading(title: &str) -> StyledLine {
    let rule = "─".repeat(WIDTH.saturating_sub(title.chars().count() + 4));
    StyledLine::styled(Style::Dim, "── ").and(Style::Bold, title).and(Style::Dim, &format!(" {rule}"))
}

/// A labelled row; an empty label continues the row above.
pub(crate) fn row(name: &str, text: StyledLine) -> StyledLine {
    StyledLine::styled(Style::Dim, &format!("  {name:<7}  ")).join(text)
}

/// Renders the lines as text.
pub(crate) fn paint(lines: &[StyledLine], colour: bool) -> String {
    lines.iter().map(|line| line.paint(colour).trim_end().to_owned() + "\n").collect()
}

impl DemoSummary<'_> {
    /// The summary as lines.
    pub(crate) fn lines(&self) -> Vec<StyledLine> {
        let how = if self.after.pass { Style::Good } else { Style::Bad };
        let tests = plain(&format!("{} at first, ", self.before.past_tense())).and(how, &self.after.is());
        let mut lines = vec![heading("what happened"), row("tests", tests.and(Style::Plain, " now"))];
        lines.extend(match self.own_model {
            Some(name) => vec![row("model", plain(name))],
            None => vec![
                row("model", plain("a recording, played from a file; everything else is real:")),
                row("", plain("tools, edits, test runs and journal")),
            ],
        });
        lines.push(row("work", plain(&self.work.words())));
        lines.extend(self.killed.iter().flat_map(KillReport::lines));
        lines.push(row("changed", named(self.changes)));
        lines.push(StyledLine::new());
        lines.extend(diff_lines(self.changes));
        if !self.changes.is_empty() {
            lines.push(StyledLine::new());
        }
        lines
    }
}

impl RunTotals {
    fn words(self) -> String {
        let turns = format::count(u64::from(self.turns), "turn");
        let calls = format::count(u64::from(self.calls), "tool call");
        let (tokens, wall) =
            (format::tokens(self.tokens), u64::try_from(self.wall.as_millis()).unwrap_or(u64::MAX));
        format!("{turns} · {calls} · {tokens} tokens · {}", format::span(wall))
    }
}

impl KillReport {
    /// Describes what the run was doing, according to the journal.
    pub(crate) fn during(&self) -> String {
        match &self.command {
            Some(command) => format!("while `{command}` ran"),
            None => "during a model request".to_owned(),
        }
    }

    fn lines(&self) -> Vec<StyledLine> {
        let Self { replies, results, model_informed, .. } = self;
        let mut lines = vec![
            row("killed", plain(&format!("with kill -9, {}", self.during()))),
            row(
                "resumed",
                plain(&format!("{replies} replies and {results} results were read back from the journal,")),
            ),
            row("", plain("none was requested or run again")),
        ];
        if *model_informed {
            lines.push(row(
                "",
                plain("the model was told which command was interrupted, and decided what to do"),
            ));
        }
        lines
    }
}

impl NextCommands<'_> {
    /// The suggested commands, each of which works as printed.
    pub(crate) fn lines(&self) -> Vec<StyledLine> {
        let fusee = self.fusee;
        let mut lines = vec![heading("next")];
        lines.extend(part(
            "The same with your own model:",
            &[
                (format!("{fusee} demo -m ollama:MODEL"), "local Ollama; also llama.cpp:, lmstudio:, vllm:"),
                (format!("{fusee} demo -m openai:MODEL"), "with OPENAI_API_KEY set"),
                (format!("{fusee} demo -m MODEL --base-url URL"), "any server that speaks chat completions"),
            ],
        ));
        lines.extend(part(
            "In your own project:",
            &[(format!("{fusee} run -C DIR -m MODEL 'your task'"), "")],
        ));
        lines.extend(match self.kept {
            Some(project) => {
                let (project, run) = (project.display(), self.run);
                part(
                    &format!("The project and its journal are kept in {project}:"),
                    &[
                        (format!("{fusee} show -C {project} {run}"), "what was done, step by step"),
                        (
                            format!("{fusee} replay -C {project} {run}"),
                            "replayed from the journal: no model, no tools",
                        ),
                    ],
                )
            }
            None => part(
                "More:",
                &[
                    (format!("{fusee} demo --kill"), "kill the run with kill -9 and resume it"),
                    (format!("{fusee} demo --keep"), "keep the project, to inspect with show and replay"),
                ],
            ),
        });
        lines
    }
}

fn part(title: &str, commands: &[(String, &str)]) -> Vec<StyledLine> {
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default();
    let command = |(command, what): &(String, &str)| {
        let gap = " ".repeat(width - command.chars().count() + 2);
        plain("    ").and(Style::Accent, command).and(Style::Dim, &format!("{gap}{what}"))
    };
    std::iter::once(plain(&format!("  {title}"))).chain(commands.iter().map(command)).collect()
}

fn plain(text: &str) -> StyledLine {
    StyledLine::styled(Style::Plain, text)
}

fn named(changes: &[FileDiff]) -> StyledLine {
    if changes.is_empty() {
        return plain("nothing");
    }
    changes.iter().enumerate().fold(StyledLine::new(), |line, (at, FileDiff { path, added, removed, .. })| {
        line.and(Style::Plain, &format!("{}{path} ", if at > 0 { ", " } else { "" }))
            .and(Style::Good, &format!("+{added} "))
            .and(Style::Bad, &format!("-{removed}"))
    })
}

fn diff_lines(changes: &[FileDiff]) -> Vec<StyledLine> {
    let all = changes.iter().flat_map(|change| change.diff.lines());
    let style = |line: &str| match line.as_bytes() {
        [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => Style::Bold,
        [b'@', ..] => Style::Accent,
        [b'+', ..] => Style::Good,
        [b'-', ..] => Style::Bad,
        _ => Style::Plain,
    };
    let mut lines: Vec<StyledLine> =
        all.clone().take(DIFF_LINES).map(|line| plain("    ").and(style(line), line)).collect();
    let more = all.count().saturating_sub(DIFF_LINES);
    if more > 0 {
        lines.push(StyledLine::styled(Style::Dim, &format!("    … and {more} more lines")));
    }
    lines
}

#[cfg(test)]
mod tests;
