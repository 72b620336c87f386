//! Replies to slash commands that start no run, as rows for either UI.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write as _};

use fusee_engine::approval::Approve;
use fusee_engine::journal::event::Event;
use fusee_engine::journal::{RunId, Stamped};
use fusee_engine::run::{self, Carry};
use serde_json::Value;

use super::Session;
use crate::choice::Choice;
use crate::command::runs::{self, undo};
use crate::face::line::{Line, Style};
use crate::face::{Face as _, Transcript, summary, words};
use crate::failure::Failure;
use crate::history;
use crate::selection;
use crate::tui::change;
use crate::tui::commands::{self, Slash};

/// Maximum number of earlier messages of a chat that are followed back.
const LOOKED_BACK: usize = 10_000;

/// Maximum number of runs listed by `/runs`.
const LISTED: usize = 20;

/// Maximum number of rows in a reply; more are only counted.
const MOST_ROWS: usize = 2_000;

impl Session<'_> {
    /// Replies to a command. Commands that start or end something are handled by the UI.
    pub(crate) fn answer(&mut self, slash: &Slash, columns: usize) -> Result<Vec<Line>, Failure> {
        let mut rows = match slash {
            Slash::Model(None) => vec![self.model_line("is the current model")],
            Slash::Model(Some(name)) => {
                self.change_model(name)?;
                vec![self.model_line("is used from the next message on")]
            }
            Slash::Approve(word) => {
                self.approve = word.unwrap_or(self.approve);
                vec![approve_line(self.approve, word.is_some())]
            }
            Slash::Flow(None) => vec![self.flow_line("is the current flow mode")?],
            Slash::Flow(Some(mode)) => {
                self.set("task_flow_mode", mode)?;
                vec![self.flow_line("is used from the next message on")?]
            }
            Slash::Sections(None) => self.sections()?,
            Slash::Sections(Some(key)) => self.open_section(key)?,
            Slash::Context => self.context()?,
            Slash::Compact => vec![self.compact()?],
            Slash::UndoNow(run) => self.undo_now(run)?,
            Slash::Plan => self.plan()?,
            Slash::Diff => self.diff()?,
            Slash::Runs => runs::newest(&self.journal, LISTED, columns)?
                .lines()
                .map(|line| Line::of(Style::Plain, line))
                .collect(),
            Slash::New => {
                (self.continues, self.carry) = (None, Carry::Whole);
                self.prompt.clone_from(&self.given_prompt);
                self.opened.clear();
                (self.plan, self.plan_draft) = (None, None);
                vec![Line::of(Style::Dim, "new conversation: the next message starts without history")]
            }
            Slash::Export(file) => vec![self.export(file.as_deref())?],
            Slash::Help => commands::help(columns),
            Slash::PlanEdit(Some(file)) => self.change_plan_from(file)?,
            Slash::PlanEdit(None) | Slash::Undo(_) | Slash::Resume(_) | Slash::Quit => Vec::new(),
        };
        let more = rows.len().saturating_sub(MOST_ROWS);
        if more > 0 {
            rows.truncate(MOST_ROWS);
            rows.push(Line::of(Style::Dim, &format!("… {}", words::count(more as u64, "more line"))));
        }
        Ok(rows)
    }

    fn model_line(&self, what: &str) -> Line {
        Line::of(Style::Bold, &self.choice.name).and(Style::Plain, &format!(" {what}"))
    }

    fn change_model(&mut self, name: &str) -> Result<(), Failure> {
        let choice = Choice::named(name, &self.config, &self.process.environment)?;
        let model = choice.open(None)?;
        self.set("model", name)?;
        (self.model, self.choice) = (model, choice);
        Ok(())
    }

    fn flow_line(&self, what: &str) -> Result<Line, Failure> {
        let mode = self.config.text("task_flow_mode").unwrap_or("flat");
        Ok(Line::of(Style::Bold, mode).and(Style::Plain, &format!(" {what}")))
    }

    /// Plans undoing the newest run of the chat that changed something, or the named run. The run is `None`
    /// if there is nothing to undo; the rows then say so.
    pub(crate) fn undo(&self, name: Option<&str>) -> Result<(Option<RunId>, Vec<Line>), Failure> {
        self.project.check_owner()?;
        let row = match name {
            Some(name) => Some(selection::named(&self.journal, name)?),
            None => {
                let chain = self.chain().into_iter().rev();
                let mut rows = chain.filter_map(|run| self.journal.run(run.as_str()).ok());
                rows.find(|row| undo::has_something(&self.journal, row))
            }
        };
        let Some(row) = row else {
            let text = "nothing to undo in this conversation";
            return Ok((None, vec![Line::of(Style::Dim, text)]));
        };
        let undoing = undo::Undoing::plan(&self.journal, &row)?;
        let title = Line::of(Style::Bold, "undo").and(Style::Plain, &format!("  {}", row.title));
        let told = undoing.told("will be");
        let rows = [title].into_iter().chain(told.lines().map(|line| Line::of(Style::Plain, line)));
        Ok(((!undoing.is_empty()).then_some(row.id), rows.collect()))
    }

    fn undo_now(&self, run: &str) -> Result<Vec<Line>, Failure> {
        let row = selection::named(&self.journal, run)?;
        let done = undo::Undoing::plan(&self.journal, &row)?.carry_out()?;
        Ok(vec![Line::of(Style::Plain, &done)])
    }

    /// The runs of the chat so far, oldest first.
    pub(super) fn chain(&self) -> Vec<RunId> {
        let (mut chain, mut next) = (Vec::new(), self.continues.clone());
        while let Some(run) = next.filter(|_| chain.len() < LOOKED_BACK) {
            // An earlier run may have been removed since; the remaining ones are shown.
            next = run::settings_of(&self.journal, &run).ok().and_then(|settings| settings.continues);
            if self.journal.run(run.as_str()).is_ok() {
                chain.push(run);
            }
        }
        chain.reverse();
        chain
    }

    /// Passes every successful call of a run to `take`, with its result.
    fn calls(&self, run: &RunId, mut take: impl FnMut(&str, &Value, &str)) -> Result<(), Failure> {
        let mut open: HashMap<String, (String, Value)> = HashMap::new();
        history::each(&self.journal, run, |Stamped { event, .. }| {
            match event {
                Event::ToolCall { call_id, name, arguments } => {
                    open.insert(call_id, (name, arguments));
                }
                Event::ToolResult(result) => {
                    if let Some((name, arguments)) = open.remove(&result.call_id).filter(|_| result.ok) {
                        take(&name, &arguments, &result.content);
                    }
                }
                _ => {}
            }
            Ok(())
        })
    }

    fn diff(&self) -> Result<Vec<Line>, Failure> {
        let mut rows = Vec::new();
        for run in self.chain() {
            self.calls(&run, |name, arguments, _| {
                rows.extend(change::rows(name, arguments, None).unwrap_or_default());
            })?;
        }
        if rows.is_empty() {
            let text =
                "no file changed by tools in this conversation (for changes by commands, run `git diff`)";
            rows.push(Line::of(Style::Dim, text));
        }
        Ok(rows)
    }

    fn export(&self, file: Option<&str>) -> Result<Line, Failure> {
        let chain = self.chain();
        let Some(last) = chain.last() else {
            return Err(Failure::usage("nothing to export: the conversation is empty"));
        };
        let name =
            file.map_or_else(|| format!("conversation-{}.txt", summary::short(last.as_str())), str::to_owned);
        let path = self.project.directory.join(&name);
        let failed = |error: std::io::Error| Failure::usage(format!("cannot write {name}: {error}"));
        // Never overwrites an existing file.
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        let mut out = BufWriter::new(file);
        for run in &chain {
            let mut transcript = Transcript::new(&mut out, true);
            history::show_all(&self.journal, run, &mut transcript)?;
            transcript.close().map_err(failed)?;
            writeln!(out).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        let messages = words::count(chain.len() as u64, "message");
        Ok(Line::of(Style::Plain, &format!("{messages} written to {name}")))
    }
}

fn approve_line(approve: Approve, changed: bool) -> Line {
    let (word, meaning) = match approve {
        Approve::Auto => ("auto", "sandboxed calls run without asking"),
        Approve::Ask => ("ask", "you are asked before every change"),
        Approve::Never => ("never", "calls that need approval are refused"),
    };
    let from = if changed { " (from the next message on)" } else { "" };
    Line::of(Style::Bold, word).and(Style::Plain, &format!(": {meaning}{from}"))
}
