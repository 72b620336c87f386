//! The closing summary of a run: one to four lines, derived from its events alone.

use std::collections::BTreeMap;

use fusee::engine::journal::event::{ChangeKind, ErrorCode, Event, TaskComplete, TaskStatus};
use fusee::engine::journal::{Branch, EventRecord};
use fusee::engine::tools::NETWORK_BLOCKED;

use super::format;
use super::line::{Style, StyledLine};

/// Maximum number of changed files that are named; more are only counted.
const NAMED_FILES: usize = 3;

/// Maximum number of changed files that tools run that are named.
const NAMED_CONVENTIONS: usize = 8;

/// How the reason of a refusal begins if nobody could be asked.
const UNASKED: &str = "nobody is there to approve it";

/// Reasons of tasks that a small model brought to nothing.
const NO_RESULT_REASONS: [&str; 2] = ["nothing_changed", "asked_for_input"];

/// Facts for the summary, collected from the event stream.
#[derive(Debug, Default)]
pub(crate) struct RunTally {
    /// Whether the summary is a single line.
    brief: bool,
    files: BTreeMap<String, ChangeKind>,
    /// Changed files that tools run by convention.
    run_by_convention: Vec<String>,
    /// Whether the verification command passed the last time it ran.
    verified: Option<bool>,
    /// Calls that were refused because nobody could be asked.
    refused_unasked: u64,
    /// Whether a command failed because the sandbox blocks the network.
    network_blocked: bool,
}

impl RunTally {
    /// Creates an empty tally; with `brief`, the summary is a single line, and one for files to review.
    pub(crate) fn new(brief: bool) -> Self {
        Self { brief, ..Self::default() }
    }

    /// Takes what the summary needs from an event.
    pub(crate) fn note(&mut self, stamped: &EventRecord) {
        match &stamped.event {
            Event::FileChanged { path, change } => self.changed(path, *change),
            Event::ApprovalResolved { approved: false, reason: Some(reason), .. } => {
                self.refused_unasked += u64::from(reason.starts_with(UNASKED));
            }
            Event::ToolResult(result) => {
                self.network_blocked |= !result.ok && result.content.contains(NETWORK_BLOCKED);
            }
            Event::TaskReport(report) if stamped.task == Branch::main() => {
                self.verified = report.verify.as_ref().map(|verification| verification.passed);
                self.run_by_convention.clone_from(&report.files_run_by_convention);
            }
            _ => {}
        }
    }

    fn changed(&mut self, path: &str, change: ChangeKind) {
        let change = match (self.files.get(path), change) {
            // A file created by this run stays "created", whatever happens to it later.
            (Some(ChangeKind::Created), ChangeKind::Modified) => ChangeKind::Created,
            (_, change) => change,
        };
        self.files.insert(path.to_owned(), change);
    }

    fn files(&self) -> Option<String> {
        let names: Vec<&str> = self.files.keys().map(String::as_str).collect();
        match names.len() {
            0 => None,
            1..=NAMED_FILES => Some(format!("changed {}", names.join(", "))),
            more => Some(format!("{} changed", format::count(more as u64, "file"))),
        }
    }

    /// Names the changed files that run with the user's rights as soon as a tool is used.
    fn run_later(&self) -> Option<StyledLine> {
        let shown = self.run_by_convention.iter().take(NAMED_CONVENTIONS).map(String::as_str);
        let mut names = shown.collect::<Vec<_>>().join(", ");
        match self.run_by_convention.len().saturating_sub(NAMED_CONVENTIONS) {
            0 => {}
            more => names.push_str(&format!(" and {more} more")),
        }
        let line = StyledLine::styled(Style::Warning, "review first: ");
        (!names.is_empty()).then(|| line.and(Style::Plain, &format!("tools run {names}")))
    }

    /// Renders the summary of a finished run.
    pub(crate) fn lines(&self, complete: &TaskComplete, run: &str) -> Vec<StyledLine> {
        let (word, style) = match complete.status {
            TaskStatus::Completed => ("completed", Style::Good),
            TaskStatus::Failed => ("failed", Style::Bad),
            TaskStatus::Cancelled => ("cancelled", Style::Warning),
        };
        let mut facts = vec![
            format::count(u64::from(complete.total_turns), "turn"),
            match complete.cached_tokens.saturating_mul(100).checked_div(complete.total_tokens) {
                None | Some(0) => format!("{} tokens", format::tokens(complete.total_tokens)),
                Some(share) => format!("{} tokens, {share} % cached", format::tokens(complete.total_tokens)),
            },
            format::span(complete.duration_ms),
        ];
        facts.extend(complete.cost_usd.map(format::usd));
        facts.extend(self.files());
        let first = StyledLine::styled(style, word).and(Style::Plain, &format!(" · {}", facts.join(" · ")));
        let is_unverified = complete.status == TaskStatus::Completed && !self.files.is_empty();
        let first = match self.verified {
            None if is_unverified => first.and(Style::Plain, " · ").and(Style::Warning, "unverified"),
            None => first,
            Some(true) => first.and(Style::Plain, " · ").and(Style::Good, "verified"),
            Some(false) => first.and(Style::Plain, " · ").and(Style::Bad, "not verified"),
        };
        let first = match self.refused_unasked {
            0 => first,
            count => {
                let calls = format::count(count, "call");
                first
                    .and(Style::Plain, " · ")
                    .and(Style::Warning, &format!("{calls} refused because nobody could be asked"))
            }
        };
        let first = match self.network_blocked {
            false => first,
            true => first
                .and(Style::Plain, " · ")
                .and(Style::Warning, "the sandbox blocked the network (--allow-net allows it)"),
        };
        let error = complete.error.as_ref().filter(|_| complete.status == TaskStatus::Failed);
        let second =
            error.map(|error| StyledLine::styled(Style::Bad, "error: ").and(Style::Plain, &error.message));
        let next = match error.map(|error| error.code) {
            None => String::new(),
            Some(ErrorCode::MaxTurns) => " · raise the limit with --max-turns".to_owned(),
            Some(ErrorCode::TokenLimit) => {
                " · raise the limit with --max-tokens, or use a model with a larger context".to_owned()
            }
            Some(ErrorCode::Budget) => " · raise the limit with --budget-usd".to_owned(),
            Some(ErrorCode::Timeout) => " · raise the limit with --timeout".to_owned(),
            Some(ErrorCode::TurnFailed) if error.is_some_and(|error| error.reason == "llm_error") => {
                " · run `fusee doctor` to check the setup".to_owned()
            }
            Some(ErrorCode::TurnFailed)
                if error.is_some_and(|error| NO_RESULT_REASONS.contains(&&*error.reason)) =>
            {
                " · name the file in the request, give --verify COMMAND, or use a larger model with --model"
                    .to_owned()
            }
            Some(_) => format!(" · run `fusee show {}` for details", short(run)),
        };
        let last = StyledLine::styled(Style::Dim, &format!("run {run}{next}"));
        if self.brief {
            return [Some(first), self.run_later()].into_iter().flatten().collect();
        }
        [Some(first), self.run_later(), second, Some(last)].into_iter().flatten().collect()
    }
}

/// A unique prefix of a run's id: for a UUIDv7, the timestamp part.
pub(crate) fn short(run: &str) -> &str {
    let is_uuid = run.len() == 36 && run.bytes().filter(|byte| *byte == b'-').count() == 4;
    if is_uuid { run.get(..13).unwrap_or(run) } else { run }
}
