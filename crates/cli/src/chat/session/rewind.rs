//! `/rewind` and esc esc: the turns of a conversation, and going back to one of them. The command `fusee rewind` does the
//! same for a single run.

use fusee::engine::journal::event::Event;
use fusee::engine::journal::{EventRecord, RunId};
use fusee::engine::rewind::{Rewind, RewindParts};
use fusee::engine::run;
use fusee::system;

use super::Chat;
use crate::chat::commands::TurnTarget;
use crate::chat::session_picker::PickerEntry;
use crate::command::rewind::{describe, done};
use crate::process::error::CliError;
use crate::ui::line::{Style, StyledLine};
use crate::ui::{event_pages, format};

/// Maximum number of turns in the list, newest first.
const MAX_TURNS: usize = 500;

/// Maximum characters of what a turn did.
const SHOWN: usize = 200;

impl Chat<'_> {
    /// The points of the conversation, newest first: before each message, and after each turn. The newest turn is where
    /// the conversation is.
    pub(crate) fn turn_entries(&self) -> Result<Vec<PickerEntry>, CliError> {
        let mut entries = Vec::new();
        for run in self.chain().into_iter().rev() {
            let (request, turns) = self.turns_of(&run)?;
            for (index, did) in turns.into_iter().enumerate().rev() {
                let turn = u32::try_from(index + 1).unwrap_or(u32::MAX);
                entries.push(PickerEntry { run: run.to_string(), turn, text: format!("  after {did}") });
            }
            let text = format!("before > {}", format::one_line(&request, SHOWN));
            entries.push(PickerEntry { run: run.to_string(), turn: 0, text });
            if entries.len() > MAX_TURNS {
                break;
            }
        }
        if !entries.is_empty() {
            entries.remove(0);
        }
        entries.truncate(MAX_TURNS);
        Ok(entries)
    }

    /// The turns as rows, for plain output.
    pub(super) fn turn_rows(&self) -> Result<Vec<StyledLine>, CliError> {
        let entries = self.turn_entries()?;
        if entries.is_empty() {
            let text = "nothing to go back to: this conversation is new";
            return Ok(vec![StyledLine::styled(Style::Dim, text)]);
        }
        let rows = entries.iter().map(|entry| format!("{} {:>3}  {}", entry.run, entry.turn, entry.text));
        let hint =
            "`fusee rewind RUN TURN` goes back to one, and `fusee --continue RUN` continues it".to_owned();
        Ok(rows.chain([hint]).map(|text| StyledLine::styled(Style::Plain, &text)).collect())
    }

    /// The request of a run, and what each of its completed turns did.
    fn turns_of(&self, run: &RunId) -> Result<(String, Vec<String>), CliError> {
        let (mut request, mut turns, mut calls) = (String::new(), Vec::new(), Vec::new());
        event_pages::for_each_event(&self.setup.journal, run, |EventRecord { task, event, .. }| {
            // The turns of a subtask belong to the turn that started it.
            if task.as_str().split('/').any(|part| part.starts_with("sub-")) {
                return Ok(());
            }
            match event {
                Event::TaskStarted(started) if request.is_empty() => {
                    request = format::request_text(&started.request).trim().to_owned();
                }
                Event::ToolCall { name, arguments, .. } => {
                    let gist = format::summarize_arguments(&name, &arguments);
                    calls.push(format::one_line(format!("{name} {gist}").trim_end(), SHOWN));
                }
                Event::TurnComplete { .. } => {
                    let calls = std::mem::take(&mut calls);
                    turns.push(match calls.as_slice() {
                        [] => "the answer".to_owned(),
                        [only] => only.clone(),
                        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
                    });
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok((request, turns))
    }

    /// What going back to a turn would change.
    pub(crate) fn describe_rewind(&self, target: &TurnTarget) -> Result<Vec<StyledLine>, CliError> {
        let both = RewindParts { files: true, conversation: true };
        let planned = self.plan_rewind(target, both)?;
        let text = describe(&planned, "will be");
        Ok(text.lines().map(|line| StyledLine::styled(Style::Plain, line)).collect())
    }

    fn plan_rewind(&self, target: &TurnTarget, parts: RewindParts) -> Result<Rewind, CliError> {
        self.setup.project.check_owner()?;
        let run: RunId = target.run.parse().map_err(CliError::failed)?;
        Ok(Rewind::plan(&self.setup.journal, &run, target.turn, parts)?)
    }

    /// Goes back to a turn. Returns what was done, and the message that the conversation is before, to be sent again or
    /// changed.
    pub(crate) async fn rewind(
        &mut self,
        target: &TurnTarget,
        parts: RewindParts,
    ) -> Result<(Vec<StyledLine>, Option<String>), CliError> {
        let is_start = target.turn == 0;
        let planned =
            self.plan_rewind(target, RewindParts { conversation: parts.conversation && !is_start, ..parts })?;
        let (origin, left) = (planned.run.clone(), planned.left.len() as u64);
        let mut text = String::new();
        // Before its first turn a message has no conversation of its own: it is not sent yet.
        if parts.files || !is_start {
            let id = system::new_run_id().map_err(CliError::failed)?;
            let report = planned.apply(&self.setup.journal, &id).await?;
            text = done(&report, &self.setup.journal, &id);
            if parts.conversation && !is_start {
                self.continues = Some(id);
            }
        }
        if left > 0 {
            text.push_str(&format!("{} could not be restored\n", format::count(left, "file")));
        }
        let mut message = None;
        if parts.conversation && is_start {
            let settings = run::settings_of(&self.setup.journal, &origin)?;
            self.continues = settings.continues;
            message = Some(settings.request);
        }
        text.push_str(match parts {
            RewindParts { conversation: true, .. } => "the next message continues from there",
            RewindParts { conversation: false, .. } => "the conversation is unchanged",
        });
        let rows = text.lines().map(|line| StyledLine::styled(Style::Plain, line));
        Ok((rows.collect(), message))
    }
}
