//! Replies about the conversation as a whole: its state, its cost, its earlier messages, and the other conversations of
//! this directory.

use std::collections::HashSet;

use fusee::engine::journal::event::{Event, TaskComplete};
use fusee::engine::journal::{Branch, RunId, RunRow, RunStatus};
use fusee::engine::run;

use super::Chat;
use crate::chat::session_picker::PickerEntry;
use crate::process::error::CliError;
use crate::ui::line::{Style, StyledLine};
use crate::ui::{activity, event_pages, format, markdown};

/// Maximum number of conversations in the list.
const MAX_LISTED: usize = 100;

/// Maximum number of runs that are looked through for them.
const MAX_RUNS: usize = 1_000;

/// Maximum number of earlier messages that are shown when a conversation is continued.
const MAX_EARLIER: usize = 20;

/// Maximum number of rows of an earlier answer.
const MAX_ANSWER_ROWS: usize = 40;

impl Chat<'_> {
    /// The state of the chat.
    pub(super) fn status(&self) -> Vec<StyledLine> {
        let chain = self.chain();
        let conversation = match chain.last() {
            None => "new".to_owned(),
            Some(last) => format!("{}, the last one {last}", format::count(chain.len() as u64, "message")),
        };
        let version = env!("CARGO_PKG_VERSION");
        let rows = [
            ("version", version.to_owned()),
            ("model", self.model().to_owned()),
            ("directory", self.directory().display().to_string()),
            ("permissions", self.approval_and_sandbox()),
            ("flow", self.setup.config.text("task_flow_mode").unwrap_or("auto").to_owned()),
            ("conversation", conversation),
        ];
        let row = |(name, value): (&str, String)| {
            StyledLine::styled(Style::Dim, &format!("{name:<13} ")).and(Style::Plain, &value)
        };
        rows.into_iter().map(row).collect()
    }

    /// Tokens and cost of the conversation.
    pub(super) fn cost(&self) -> Result<Vec<StyledLine>, CliError> {
        let (mut tokens, mut cached, mut turns, mut usd, mut unpriced) = (0, 0, 0, 0.0, 0_u64);
        let chain = self.chain();
        for run in &chain {
            let Some(end) = self.end_of(run)? else { continue };
            tokens += end.total_tokens;
            cached += end.cached_tokens;
            turns += u64::from(end.total_turns);
            match end.cost_usd {
                Some(cost) => usd += cost,
                None => unpriced += 1,
            }
        }
        let messages = format::count(chain.len() as u64, "message");
        let used = format!(
            "{messages}, {}, {} tokens ({} from the cache)",
            format::count(turns, "model reply").replace("replys", "replies"),
            format::tokens(tokens),
            format::tokens(cached)
        );
        let cost = match (chain.len() as u64 - unpriced, unpriced) {
            (0, _) => "the price of the model is not known".to_owned(),
            (_, 0) => format!("{} spent", format::usd(usd)),
            (_, some) => format!("{} spent, and {some} without a known price", format::usd(usd)),
        };
        Ok([used, cost].iter().map(|text| StyledLine::styled(Style::Plain, text)).collect())
    }

    /// The last event of a run's main task.
    fn end_of(&self, run: &RunId) -> Result<Option<TaskComplete>, CliError> {
        let journal = &self.setup.journal;
        let last = journal.event_index(run, u64::MAX)?.last;
        let end = journal.events(run, last.saturating_sub(1), u64::MAX, 1)?.pop();
        Ok(match end.map(|record| record.event) {
            Some(Event::TaskComplete(complete)) => Some(complete),
            _ => None,
        })
    }

    /// The earlier messages of the conversation with their answers.
    pub(crate) fn earlier(&self, columns: usize) -> Result<Vec<StyledLine>, CliError> {
        let chain = self.chain();
        let mut rows = Vec::new();
        let skipped = chain.len().saturating_sub(MAX_EARLIER);
        if skipped > 0 {
            let text = format!("… {}", format::count(skipped as u64, "earlier message"));
            rows.push(StyledLine::styled(Style::Dim, &text));
        }
        for run in chain.iter().skip(skipped) {
            let (mut request, mut answer) = (String::new(), String::new());
            event_pages::for_each_event(&self.setup.journal, run, |record| {
                match record.event {
                    Event::TaskStarted(started) if record.task == Branch::main() => request = started.request,
                    Event::TaskComplete(complete) if record.task == Branch::main() => {
                        answer = complete.answer
                    }
                    _ => {}
                }
                Ok(())
            })?;
            for (index, line) in format::request_text(&request).trim().lines().enumerate() {
                let lead = if index == 0 { "> " } else { "  " };
                rows.push(StyledLine::styled(Style::Accent, lead).and(Style::Plain, line));
            }
            let shown = markdown::rows(answer.trim(), columns);
            let more = shown.len().saturating_sub(MAX_ANSWER_ROWS);
            rows.extend(shown.into_iter().take(MAX_ANSWER_ROWS));
            if more > 0 {
                let text =
                    format!("… {}; `fusee show {run}` has all", format::count(more as u64, "more line"));
                rows.push(StyledLine::styled(Style::Dim, &text));
            }
            rows.push(StyledLine::new());
        }
        Ok(rows)
    }

    /// The conversations of this directory, newest first: each by its newest run.
    pub(crate) fn sessions(&self) -> Result<Vec<PickerEntry>, CliError> {
        let journal = &self.setup.journal;
        let mut continued: HashSet<RunId> = HashSet::new();
        let mut entries = Vec::new();
        for row in journal.runs()?.into_iter().take(MAX_RUNS) {
            // A run that cannot be read cannot be continued either.
            let Ok(settings) = run::settings_of(journal, &row.id) else { continue };
            let is_continued = continued.contains(&row.id);
            continued.extend(settings.continues.clone());
            let is_live = row.status == RunStatus::Open && journal.is_active(&row.id);
            if is_continued || is_live || settings.workspace != self.setup.project.directory {
                continue;
            }
            entries.push(self.entry(&row, settings.continues.is_some()));
            if entries.len() == MAX_LISTED {
                break;
            }
        }
        Ok(entries)
    }

    fn entry(&self, row: &RunRow, continues: bool) -> PickerEntry {
        let age = format::age(self.setup.journal.now_ms() - row.ended_ms.unwrap_or(row.started_ms));
        let state = match row.status {
            RunStatus::Completed => "",
            RunStatus::Open if activity::is_ready(&self.setup.journal, row) => "rewound: ",
            RunStatus::Open => "interrupted: ",
            RunStatus::Failed => "failed: ",
            RunStatus::Cancelled => "cancelled: ",
        };
        let more = if continues { "… " } else { "" };
        let text = format!("{age:>5}  {state}{more}{}", row.title);
        PickerEntry { run: row.id.to_string(), turn: 0, text }
    }

    /// The conversations as rows, for plain output.
    pub(super) fn session_rows(&self) -> Result<Vec<StyledLine>, CliError> {
        let entries = self.sessions()?;
        if entries.is_empty() {
            return Ok(vec![StyledLine::styled(Style::Dim, "no earlier conversations here")]);
        }
        let rows = entries.iter().map(|entry| format!("{}  {}", entry.run, entry.text));
        let hint = "/resume RUN continues one".to_owned();
        Ok(rows.chain([hint]).map(|text| StyledLine::styled(Style::Plain, &text)).collect())
    }
}
