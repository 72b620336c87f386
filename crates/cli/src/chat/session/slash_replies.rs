//! Replies to slash commands that start no run, as rows for either UI.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write as _};

use fusee::engine::approval::ApprovalMode;
use fusee::engine::journal::event::Event;
use fusee::engine::journal::{EventRecord, RunId};
use fusee::engine::run::{self, CarryOver};
use serde_json::Value;

use super::Chat;
use crate::chat::commands::{self, SlashCommand};
use crate::command::runs::{self, undo};
use crate::model_selection;
use crate::process::error::CliError;
use crate::project::find_run;
use crate::project::markdown_commands;
use crate::ui::call_diff;
use crate::ui::event_pages;
use crate::ui::line::{Style, StyledLine};
use crate::ui::{Transcript, Ui as _, format, summary};

/// Maximum number of earlier messages of a chat that are followed back.
const MAX_MESSAGES: usize = 10_000;

/// Maximum number of runs listed by `/runs`.
const LISTED: usize = 20;

/// Maximum number of rows in a reply; more are only counted.
const MAX_ROWS: usize = 2_000;

impl Chat<'_> {
    /// Replies to a command. Commands that start or end something are handled by the UI.
    pub(crate) fn answer(
        &mut self,
        slash: &SlashCommand,
        columns: usize,
    ) -> Result<Vec<StyledLine>, CliError> {
        let mut rows = match slash {
            SlashCommand::Model(None) => vec![self.model_line("is the current model")],
            SlashCommand::Model(Some(name)) => {
                self.change_model(name)?;
                vec![self.model_line("is used starting with the next message")]
            }
            SlashCommand::Approve(word) => {
                self.approve = word.unwrap_or(self.approve);
                vec![approve_line(self.approve, word.is_some())]
            }
            SlashCommand::Flow(None) => vec![self.flow_line("is the current flow mode")?],
            SlashCommand::Flow(Some(mode)) => {
                self.set("task_flow_mode", mode)?;
                vec![self.flow_line("is used starting with the next message")?]
            }
            SlashCommand::Sections(None) => self.sections()?,
            SlashCommand::Sections(Some(key)) => self.open_section(key)?,
            SlashCommand::Context => self.context()?,
            SlashCommand::Compact => vec![self.compact()?],
            SlashCommand::UndoNow(run) => self.undo_now(run)?,
            SlashCommand::Plan => self.plan()?,
            SlashCommand::PlanMode(on) => {
                self.set_planning(*on);
                vec![plan_mode_line(*on)]
            }
            SlashCommand::Status => self.status(),
            SlashCommand::Cost => self.cost()?,
            SlashCommand::Sessions => self.session_rows()?,
            SlashCommand::Rewind(_) => self.turn_rows()?,
            SlashCommand::Diff => self.diff()?,
            SlashCommand::Runs => runs::newest(&self.setup.journal, LISTED, columns)?
                .lines()
                .map(|line| StyledLine::styled(Style::Plain, line))
                .collect(),
            SlashCommand::New | SlashCommand::Clear => {
                (self.continues, self.carry) = (None, CarryOver::Whole);
                self.prompt.clone_from(&self.given_prompt);
                self.opened.clear();
                (self.plan, self.plan_draft) = (None, None);
                vec![StyledLine::styled(
                    Style::Dim,
                    "new conversation: the next message starts without history",
                )]
            }
            #[cfg(feature = "serve")]
            SlashCommand::Web => self.web_page()?,
            SlashCommand::Export(file) => vec![self.export(file.as_deref())?],
            SlashCommand::Help => commands::help(columns, &markdown_commands::list(self.directory())),
            SlashCommand::PlanEdit(Some(file)) => self.change_plan_from(file)?,
            SlashCommand::PlanEdit(None)
            | SlashCommand::Background
            | SlashCommand::Undo(_)
            | SlashCommand::Resume(_)
            | SlashCommand::Quit => Vec::new(),
        };
        let more = rows.len().saturating_sub(MAX_ROWS);
        if more > 0 {
            rows.truncate(MAX_ROWS);
            rows.push(StyledLine::styled(
                Style::Dim,
                &format!("… {}", format::count(more as u64, "more line")),
            ));
        }
        Ok(rows)
    }

    fn model_line(&self, what: &str) -> StyledLine {
        StyledLine::styled(Style::Bold, &self.setup.resolved.name).and(Style::Plain, &format!(" {what}"))
    }

    fn change_model(&mut self, name: &str) -> Result<(), CliError> {
        let choice = model_selection::named(name, &self.setup.config, &self.setup.process.environment)?;
        let choice =
            model_selection::with_display(choice, &self.setup.config, &self.setup.process.environment)?;
        let model = model_selection::open(&choice, None)?;
        self.set("model", name)?;
        (self.setup.model, self.setup.resolved) = (model, choice);
        Ok(())
    }

    fn flow_line(&self, what: &str) -> Result<StyledLine, CliError> {
        let mode = self.setup.config.text("task_flow_mode").unwrap_or("auto");
        Ok(StyledLine::styled(Style::Bold, mode).and(Style::Plain, &format!(" {what}")))
    }

    /// Plans undoing the newest run of the chat that changed something, or the named run. The run is `None`
    /// if there is nothing to undo; the rows then say so.
    pub(crate) fn undo(&self, name: Option<&str>) -> Result<(Option<RunId>, Vec<StyledLine>), CliError> {
        self.setup.project.check_owner()?;
        let row = match name {
            Some(name) => Some(find_run::named(&self.setup.journal, name)?),
            None => {
                let chain = self.chain().into_iter().rev();
                let mut rows = chain.filter_map(|run| self.setup.journal.run(run.as_str()).ok());
                rows.find(|row| undo::has_something(&self.setup.journal, row))
            }
        };
        let Some(row) = row else {
            let text = "nothing to undo in this conversation";
            return Ok((None, vec![StyledLine::styled(Style::Dim, text)]));
        };
        let undoing = undo::PreparedUndo::plan(&self.setup.journal, &row)?;
        let title = StyledLine::styled(Style::Bold, "undo").and(Style::Plain, &format!("  {}", row.title));
        let described = undoing.describe("will be");
        let rows =
            [title].into_iter().chain(described.lines().map(|line| StyledLine::styled(Style::Plain, line)));
        Ok(((!undoing.is_empty()).then_some(row.id), rows.collect()))
    }

    fn undo_now(&self, run: &str) -> Result<Vec<StyledLine>, CliError> {
        let row = find_run::named(&self.setup.journal, run)?;
        let done = undo::PreparedUndo::plan(&self.setup.journal, &row)?.apply()?;
        Ok(vec![StyledLine::styled(Style::Plain, &done)])
    }

    /// The runs of the chat so far, oldest first.
    pub(super) fn chain(&self) -> Vec<RunId> {
        let (mut chain, mut next) = (Vec::new(), self.continues.clone());
        while let Some(run) = next.filter(|_| chain.len() < MAX_MESSAGES) {
            // An earlier run may have been removed since; the remaining ones are shown.
            next = run::settings_of(&self.setup.journal, &run).ok().and_then(|settings| settings.continues);
            if self.setup.journal.run(run.as_str()).is_ok() {
                chain.push(run);
            }
        }
        chain.reverse();
        chain
    }

    /// Passes every successful call of a run to `take`, with its result.
    fn calls(&self, run: &RunId, mut take: impl FnMut(&str, &Value, &str)) -> Result<(), CliError> {
        let mut open: HashMap<String, (String, Value)> = HashMap::new();
        event_pages::for_each_event(&self.setup.journal, run, |EventRecord { event, .. }| {
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

    fn diff(&self) -> Result<Vec<StyledLine>, CliError> {
        let mut rows = Vec::new();
        for run in self.chain() {
            self.calls(&run, |name, arguments, _| {
                rows.extend(call_diff::rows(name, arguments, None).unwrap_or_default());
            })?;
        }
        if rows.is_empty() {
            let text =
                "no file changed by tools in this conversation (for changes by commands, run `git diff`)";
            rows.push(StyledLine::styled(Style::Dim, text));
        }
        Ok(rows)
    }

    fn export(&self, file: Option<&str>) -> Result<StyledLine, CliError> {
        let chain = self.chain();
        let Some(last) = chain.last() else {
            return Err(CliError::usage("nothing to export: the conversation is empty"));
        };
        let name =
            file.map_or_else(|| format!("conversation-{}.txt", summary::short(last.as_str())), str::to_owned);
        let path = self.setup.project.directory.join(&name);
        let failed = |error: std::io::Error| CliError::usage(format!("cannot write {name}: {error}"));
        // Never overwrites an existing file.
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        let mut out = BufWriter::new(file);
        for run in &chain {
            let mut transcript = Transcript::new(&mut out, true);
            event_pages::show_all(&self.setup.journal, run, &mut transcript)?;
            transcript.close().map_err(failed)?;
            writeln!(out).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        let messages = format::count(chain.len() as u64, "message");
        Ok(StyledLine::styled(Style::Plain, &format!("{messages} written to {name}")))
    }
}

fn plan_mode_line(on: bool) -> StyledLine {
    let (word, meaning) = match on {
        true => ("plan mode", ": messages only read and plan; nothing is changed until /plan off"),
        false => ("plan mode is off", ": messages may change files again"),
    };
    StyledLine::styled(Style::Bold, word).and(Style::Plain, meaning)
}

fn approve_line(approve: ApprovalMode, changed: bool) -> StyledLine {
    let (word, meaning) = match approve {
        ApprovalMode::Auto => ("auto", "sandboxed calls run without asking"),
        ApprovalMode::Ask => ("ask", "you are asked before every change"),
        ApprovalMode::Never => ("never", "calls that need approval are refused"),
    };
    let from = if changed { " (starting with the next message)" } else { "" };
    StyledLine::styled(Style::Bold, word).and(Style::Plain, &format!(": {meaning}{from}"))
}
