//! The content of the terminal UI: finished rows, and the area for work in progress. Consumes events and
//! produces rows; performs no I/O.

use std::time::Duration;

use fusee::engine::approval::{ApprovalExtent, ApprovalQuestion};
use fusee::engine::journal::event::{Event, Role, TaskComplete, TaskStarted, TaskStatus, ToolResult};
use fusee::engine::journal::{Branch, EventRecord};
use serde_json::Value;

use super::glyphs::Glyphs;
use super::rows::{indented, shown_change};
use super::status::Status;
use super::stream_buffer::TextStream;
use super::tail::OutputTail;
use crate::ui::line::{Style, StyledLine, wrap};
use crate::ui::summary::RunTally;
use crate::ui::{RunHeader, approval_prompt, format, markdown, stdin_approver};

/// Lines of a running command's output that are shown.
const TAIL_LINES: usize = 3;

/// Name of the tool with which a model asks the user a question.
const ASK_USER: &str = "ask_user";

/// Lines of a failed command's output that are kept.
const FAILURE_LINES: usize = 5;

/// Maximum rows of an incomplete Markdown block.
const GROWING_ROWS: usize = 10;

/// Minimum duration in milliseconds that is shown for a call.
const NOTABLE_MS: u64 = 100;

/// Maximum column of right-aligned text.
const MAX_RIGHT_COLUMN: usize = 120;

/// Maximum width of prose, for readability.
const READABLE: usize = 100;

/// A finished row, or text that is wrapped once the width is known.
#[derive(Debug)]
enum ViewRow {
    Line {
        left: StyledLine,
        right: StyledLine,
    },
    Words {
        text: String,
        style: Style,
        indent: &'static str,
        first: StyledLine,
    },
    Settled(String),
    /// A row that is wrapped, and the indent of its continuation.
    Whole(StyledLine, &'static str),
    /// A blank row. Consecutive gaps collapse into one.
    Gap,
}

/// The kind of output that the rows belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowGroup {
    /// A single run.
    Run,
    /// A message of a chat: text is rendered as Markdown, diffs are shown, and the chat asks the questions.
    Conversation,
}

/// The model's current activity.
#[derive(Debug)]
enum ModelActivity {
    Idle,
    Waiting { since: Duration, thought: OutputTail },
    Resting { until: Duration, attempt: u32, reason: String },
}

/// A tool call in progress.
#[derive(Debug)]
struct ActiveCall {
    name: String,
    gist: String,
    since: Duration,
    tail: OutputTail,
    /// Diff of its changes; only in a chat.
    diff: Vec<StyledLine>,
}

/// The state of the view.
#[derive(Debug)]
pub(crate) struct View {
    /// The prompt in front of the user's answer while a question is open.
    asking: Option<&'static str>,
    manner: RowGroup,
    plan: RunHeader,
    glyphs: &'static Glyphs,
    rows: Vec<ViewRow>,
    last_was_gap: bool,
    stream: TextStream,
    said: String,
    /// Whether the streamed text is only the JSON that the answer is rendered from.
    drafts: bool,
    model: ModelActivity,
    call: Option<ActiveCall>,
    changes: Vec<StyledLine>,
    status: Status,
    tally: RunTally,
    ended: bool,
    dirty: bool,
}

impl View {
    pub(crate) fn new(plan: RunHeader, glyphs: &'static Glyphs) -> Self {
        Self {
            manner: RowGroup::Run,
            glyphs,
            rows: Vec::new(),
            last_was_gap: true,
            stream: TextStream::default(),
            said: String::new(),
            drafts: false,
            model: ModelActivity::Idle,
            call: None,
            asking: None,
            changes: Vec::new(),
            status: Status::default(),
            tally: RunTally::new(plan.brief),
            plan,
            ended: false,
            dirty: false,
        }
    }

    /// Creates a view for one message of a chat.
    pub(crate) fn of_message(plan: RunHeader, glyphs: &'static Glyphs) -> Self {
        Self { manner: RowGroup::Conversation, ..Self::new(plan, glyphs) }
    }

    /// Whether an event arrived since the rows were last taken.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Whether a question is open, so that the keyboard belongs to the user.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Takes an event; `now` is the time since the start.
    pub(crate) fn take(&mut self, stamped: &EventRecord, now: Duration) {
        self.dirty = true;
        self.status.take(&stamped.event);
        self.tally.note(stamped);
        match &stamped.event {
            Event::TaskStarted(_) if stamped.task != Branch::main() => {}
            Event::TaskStarted(started) => self.started(started),
            Event::TaskResumed { .. } => {
                let line = StyledLine::styled(Style::Accent, self.glyphs.task)
                    .and(Style::Bold, &format!(" run {} resumed", stamped.run));
                self.line(line);
            }
            Event::TurnStart { .. } => {
                self.model = ModelActivity::Waiting { since: now, thought: OutputTail::default() };
            }
            Event::TurnComplete { .. } => self.model = ModelActivity::Idle,
            Event::MessageDelta { text } => self.piece(text),
            Event::ReasoningDelta { text } => {
                if let ModelActivity::Waiting { thought, .. } = &mut self.model {
                    thought.push(text);
                }
            }
            Event::ToolOutput { text, .. } => {
                if let Some(call) = &mut self.call {
                    call.tail.push(text);
                }
            }
            Event::Message { role: Role::Assistant, text } => self.message(text),
            Event::Message { role: Role::User, text } => {
                self.words(&format!("to the model: {}", text.trim()), Style::Dim, StyledLine::new());
                if !self.stream.is_empty() {
                    self.gap();
                }
            }
            Event::ToolCall { name, arguments, .. } => self.call(name, arguments, now),
            Event::ToolResult(result) => self.result(result),
            Event::FileChanged { path, change } => {
                let line = StyledLine::styled(Style::Dim, "    ").and(Style::Plain, path);
                self.changes.push(line.and(Style::Dim, &format!(" {}", format::change(*change))));
            }
            Event::Compaction { tokens_before, tokens_after, .. } => {
                let (before, after) = (format::tokens(*tokens_before), format::tokens(*tokens_after));
                let text = format!("  conversation compacted from {before} to {after} tokens");
                self.line(StyledLine::styled(Style::Dim, &text));
            }
            Event::Expansion { section_keys, reason, .. } => {
                let text = format!("  opened {}: {}", section_keys.join(", "), format::one_line(reason, 160));
                self.line(StyledLine::styled(Style::Dim, &text));
            }
            Event::Retry { attempt, after_ms, reason } => {
                self.broken_off();
                let until = now + Duration::from_millis(*after_ms);
                self.model = ModelActivity::Resting {
                    until,
                    attempt: *attempt,
                    reason: format::one_line(reason, 200),
                };
                let text = format!(" attempt {attempt} failed: {}", format::one_line(reason, 300));
                self.words(
                    &text,
                    Style::Warning,
                    StyledLine::styled(Style::Warning, &format!("  {}", self.glyphs.again)),
                );
            }
            Event::ApprovalRequested { call_id, name, arguments, reason } => {
                self.question(call_id, name, arguments, reason)
            }
            Event::ApprovalResolved { .. } => {
                self.asking = None;
                if let Some(call) = &mut self.call {
                    call.since = now;
                }
            }
            Event::Log { message } => {
                self.words(message, Style::Plain, StyledLine::styled(Style::Plain, "  "))
            }
            Event::Warning { message, .. } => {
                let first = StyledLine::styled(Style::Warning, &format!("  {}", self.glyphs.warning));
                self.words(&format!(" {message}"), Style::Warning, first);
            }
            Event::TaskReportInvalid { problems, .. } => {
                let text = format!(" invalid task report: {}", problems.join("; "));
                self.words(
                    &text,
                    Style::Warning,
                    StyledLine::styled(Style::Warning, &format!("  {}", self.glyphs.warning)),
                );
            }
            Event::Hook(_)
            | Event::Network(_)
            | Event::Rewound { .. }
            | Event::FlowChosen { .. }
            | Event::FilesLocated(_)
            | Event::Sample(_)
            | Event::StageStarted { .. }
            | Event::StageComplete { .. }
            | Event::FlowStageReport(_)
            | Event::PhaseState { .. }
            | Event::PhaseTransition { .. }
            | Event::PhaseProbeError { .. } => {
                if let Some(text) = format::flow_text(&stamped.event) {
                    self.line(StyledLine::styled(Style::Accent, &format!("  {text}")));
                }
            }
            Event::TaskComplete(complete) if stamped.task == Branch::main() => {
                self.complete(complete, stamped.run.as_str());
            }
            // Covered by the final event, or never shown.
            Event::TaskComplete(_)
            | Event::Error { .. }
            | Event::TaskReport(_)
            | Event::Reasoning { .. }
            | Event::Gap { .. } => {}
        }
    }

    /// Takes note of an event that an earlier process rendered.
    pub(crate) fn note_rendered(&mut self, stamped: &EventRecord) {
        self.tally.note(stamped);
        match &stamped.event {
            Event::ToolCall { name, arguments, .. } => self.call(name, arguments, Duration::ZERO),
            Event::ApprovalRequested { call_id, name, arguments, reason } => {
                self.question(call_id, name, arguments, reason);
            }
            _ => {}
        }
    }

    fn started(&mut self, started: &TaskStarted) {
        let request = format!(" {}", format::request_text(&started.request).trim());
        self.rows.push(ViewRow::Words {
            text: request,
            style: Style::Bold,
            indent: "  ",
            first: StyledLine::styled(Style::Accent, self.glyphs.task),
        });
        self.last_was_gap = false;
        if self.manner == RowGroup::Run {
            let facts = format!("  {} · sandbox {}", started.model, started.sandbox);
            self.line(StyledLine::styled(Style::Dim, &facts));
        }
        self.gap();
    }

    fn piece(&mut self, text: &str) {
        self.drafts |= self.stream.is_empty() && self.plan.is_draft(text);
        if self.drafts {
            return;
        }
        if self.stream.is_empty() {
            self.gap();
        }
        self.stream.push(text);
    }

    fn message(&mut self, text: &str) {
        if std::mem::take(&mut self.drafts) || (self.stream.is_empty() && self.plan.is_draft(text)) {
            self.model = ModelActivity::Idle;
            return;
        }
        if self.stream.is_empty() {
            self.gap();
        }
        text.trim_end().clone_into(&mut self.said);
        self.stream.finish(text.trim_end());
        self.model = ModelActivity::Idle;
        self.settle_stream();
        self.gap();
    }

    /// Settles text that was streamed by a reply that was cut off.
    fn broken_off(&mut self) {
        self.drafts = false;
        if !self.stream.is_empty() {
            self.settle_stream();
            self.gap();
        }
    }

    fn settle_stream(&mut self) {
        // The width is only known when rows are taken, so the text is queued unwrapped until then.
        let stream = std::mem::take(&mut self.stream);
        if !stream.pending_text().is_empty() {
            self.rows.push(ViewRow::Settled(stream.pending_text().to_owned()));
        }
        self.last_was_gap = false;
    }

    fn call(&mut self, name: &str, arguments: &Value, now: Duration) {
        self.model = ModelActivity::Idle;
        let (name, gist) = (name.to_owned(), format::summarize_arguments(name, arguments));
        let diff = match self.manner {
            RowGroup::Run => Vec::new(),
            RowGroup::Conversation => {
                shown_change(&name, arguments, self.plan.workspace.as_deref(), ": /diff")
            }
        };
        self.call = Some(ActiveCall { name, gist, since: now, tail: OutputTail::default(), diff });
    }

    fn result(&mut self, result: &ToolResult) {
        let (name, gist, diff) = match self.call.take() {
            Some(call) => (call.name, call.gist, call.diff),
            None => (result.call_id.clone(), String::new(), Vec::new()),
        };
        let verdict = format::verdict(result);
        let (glyph, style) = match verdict.as_str() {
            "ok" => (self.glyphs.ok, Style::Good),
            _ => (self.glyphs.bad, Style::Bad),
        };
        let mut facts: Vec<String> = Vec::new();
        facts.extend((verdict != "ok").then_some(verdict));
        facts.extend((result.duration_ms >= NOTABLE_MS).then(|| format::span(result.duration_ms)));
        let right = StyledLine::styled(if result.ok { Style::Dim } else { style }, &facts.join(" · "));
        let left = StyledLine::styled(style, &format!("  {glyph} "))
            .and(Style::Bold, &name)
            .and(Style::Plain, &format!(" {gist}"));
        self.rows.push(ViewRow::Line { left, right });
        self.last_was_gap = false;
        if style == Style::Bad {
            self.failure(result);
        }
        for change in std::mem::take(&mut self.changes) {
            self.line(change);
        }
        if result.ok {
            for row in diff {
                self.line(StyledLine::styled(Style::Dim, &format!("    {} ", self.glyphs.side)).join(row));
            }
        }
    }

    fn failure(&mut self, result: &ToolResult) {
        let mut tail = OutputTail::default();
        tail.push(&result.content);
        let lines: Vec<String> = if result.exit_code.is_some() {
            tail.lines(FAILURE_LINES).into_iter().map(str::to_owned).collect()
        } else {
            vec![format::first_line(&result.content).to_owned()]
        };
        for line in lines.iter().filter(|line| !line.is_empty()) {
            self.line(StyledLine::styled(Style::Dim, &format!("    {} {line}", self.glyphs.side)));
        }
    }

    fn question(&mut self, call_id: &str, name: &str, arguments: &Value, reason: &str) {
        if self.manner == RowGroup::Conversation {
            return;
        }
        self.broken_off();
        self.gap();
        let first = StyledLine::styled(Style::Warning, self.glyphs.question);
        self.line(first.and(Style::Bold, &format!(" {name}")).and(Style::Dim, &format!("  {reason}")));
        if name == ASK_USER {
            let question = arguments["question"].as_str().unwrap_or_default();
            question.lines().for_each(|line| self.words(line, Style::Plain, StyledLine::new()));
            self.asking = Some("> ");
            return;
        }
        let indent =
            |row: StyledLine| ViewRow::Whole(StyledLine::styled(Style::Plain, "    ").join(row), "       ");
        let rows = approval_prompt::subject(name, arguments, self.plan.workspace.as_deref());
        let notice = approval_prompt::length_notice(rows.len());
        self.rows.extend(rows.into_iter().chain(notice).map(indent));
        let question = ApprovalQuestion {
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.clone(),
            reason: reason.to_owned(),
        };
        let choices = approval_prompt::choices(&question, ApprovalExtent::Shown, stdin_approver::RUN);
        self.rows.extend(choices.iter().map(|row| indent(StyledLine::styled(Style::Dim, row))));
        self.asking = Some(stdin_approver::SHORT_PROMPT);
    }

    fn complete(&mut self, complete: &TaskComplete, run: &str) {
        self.broken_off();
        self.ended = true;
        let answer = complete.answer.trim_end();
        if complete.status == TaskStatus::Completed && !answer.is_empty() && answer != self.said {
            self.gap();
            self.rows.push(ViewRow::Settled(answer.to_owned()));
            self.last_was_gap = false;
        }
        self.gap();
        let glyph = match complete.status {
            TaskStatus::Completed => StyledLine::styled(Style::Good, self.glyphs.ok),
            TaskStatus::Failed => StyledLine::styled(Style::Bad, self.glyphs.bad),
            TaskStatus::Cancelled => StyledLine::styled(Style::Warning, self.glyphs.bad),
        };
        let mut lines = self.tally.lines(complete, run);
        if self.manner == RowGroup::Conversation
            && complete.status == TaskStatus::Completed
            && lines.len() > 1
        {
            // The run id is not needed to continue the chat; /runs shows it.
            lines.pop();
        }
        for (index, line) in lines.into_iter().enumerate() {
            let lead = if index == 0 {
                glyph.clone().and(Style::Plain, " ")
            } else {
                StyledLine::styled(Style::Plain, "  ")
            };
            self.rows.push(ViewRow::Whole(lead.join(line), "  "));
        }
    }

    fn line(&mut self, left: StyledLine) {
        self.rows.push(ViewRow::Line { left, right: StyledLine::new() });
        self.last_was_gap = false;
    }

    fn words(&mut self, text: &str, style: Style, first: StyledLine) {
        self.rows.push(ViewRow::Words { text: text.to_owned(), style, indent: "    ", first });
        self.last_was_gap = false;
    }

    fn gap(&mut self) {
        if !std::mem::replace(&mut self.last_was_gap, true) {
            self.rows.push(ViewRow::Gap);
        }
    }

    /// Takes the finished rows, laid out for `columns` columns.
    pub(crate) fn take_finished_rows(&mut self, columns: usize) -> Vec<StyledLine> {
        self.dirty = false;
        let mut lines = Vec::new();
        for row in std::mem::take(&mut self.rows) {
            match row {
                ViewRow::Line { left, right } => {
                    lines.push(left.with_right(right, columns.min(MAX_RIGHT_COLUMN)))
                }
                ViewRow::Gap => lines.push(StyledLine::new()),
                ViewRow::Whole(line, indent) => lines.extend(line.broken(columns, indent)),
                ViewRow::Settled(text) => {
                    lines.extend(self.prose(&text, columns));
                }
                ViewRow::Words { text, style, indent, first } => {
                    lines.extend(indented(&text, style, indent, first, columns));
                }
            }
        }
        match self.manner {
            RowGroup::Run => {
                let growing = self.stream.take_finished_rows(columns.min(READABLE));
                lines.extend(growing.iter().map(|row| StyledLine::styled(Style::Plain, row)));
            }
            RowGroup::Conversation => {
                let blocks = self.stream.blocks();
                if !blocks.trim().is_empty() {
                    lines.extend(self.prose(&blocks, columns));
                    lines.push(StyledLine::new());
                }
            }
        }
        lines
    }

    fn prose(&self, text: &str, columns: usize) -> Vec<StyledLine> {
        match self.manner {
            RowGroup::Run => {
                let rows = wrap(text, columns.min(READABLE));
                rows.iter().map(|row| StyledLine::styled(Style::Plain, row)).collect()
            }
            RowGroup::Conversation => markdown::rows(text, columns.min(READABLE)),
        }
    }

    /// Renders the work in progress in at most `columns` columns and `rows` rows.
    pub(crate) fn render_progress(
        &self,
        columns: usize,
        rows: usize,
        now: Duration,
        cancelled: bool,
    ) -> Vec<StyledLine> {
        if self.ended {
            return Vec::new();
        }
        if let Some(prompt) = self.asking {
            return vec![StyledLine::styled(Style::Bold, prompt).cut(columns)];
        }
        let mut area = Vec::new();
        match (self.manner, self.stream.pending_text()) {
            (_, "") => {}
            (RowGroup::Run, growing) => area.push(StyledLine::styled(Style::Plain, growing).cut(columns)),
            (RowGroup::Conversation, growing) => {
                let rows = self.prose(growing, columns);
                area.extend(rows.iter().skip(rows.len().saturating_sub(GROWING_ROWS)).cloned());
            }
        }
        if cancelled {
            let text = "  cancelling; ctrl-c again exits at once";
            area.push(StyledLine::styled(Style::Warning, text).cut(columns));
        } else {
            area.extend(self.activity(columns, now));
        }
        area.push(self.status.line(&self.plan, self.glyphs, columns, now));
        // In a short terminal the newest rows win.
        let most = rows.saturating_sub(1).max(1);
        let skipped = area.len().saturating_sub(most);
        area.split_off(skipped)
    }

    fn activity(&self, columns: usize, now: Duration) -> Vec<StyledLine> {
        let spinner = self.glyphs.spinner;
        let frame = spinner[now.as_millis() as usize / 100 % spinner.len()];
        let lead = StyledLine::styled(Style::Accent, &format!("  {frame} "));
        let passed = |since: Duration| {
            let ms = now.saturating_sub(since).as_millis() as u64;
            StyledLine::styled(Style::Dim, &if ms < 1_000 { String::new() } else { format::span(ms) })
        };
        if let Some(call) = &self.call {
            let line = lead.and(Style::Bold, &call.name).and(Style::Plain, &format!(" {}", call.gist));
            let first = line.with_right(passed(call.since), columns.min(MAX_RIGHT_COLUMN));
            return [first].into_iter().chain(self.beside(&call.tail, TAIL_LINES, columns)).collect();
        }
        match &self.model {
            ModelActivity::Idle => Vec::new(),
            ModelActivity::Waiting { .. } if !self.stream.is_empty() => Vec::new(),
            ModelActivity::Waiting { since, thought } => {
                let doing = if self.drafts { "writing the findings" } else { "thinking" };
                let first =
                    lead.and(Style::Plain, doing).with_right(passed(*since), columns.min(MAX_RIGHT_COLUMN));
                [first].into_iter().chain(self.beside(thought, 1, columns)).collect()
            }
            ModelActivity::Resting { until, attempt, reason } => {
                let left = until.saturating_sub(now).as_millis() as u64;
                let again =
                    format!("attempt {} in {}", attempt + 1, format::span(left.next_multiple_of(100)));
                vec![lead.and(Style::Warning, &again).and(Style::Dim, &format!(" · {reason}")).cut(columns)]
            }
        }
    }

    fn beside(&self, tail: &OutputTail, most: usize, columns: usize) -> Vec<StyledLine> {
        let lines = tail.lines(most).into_iter();
        lines
            .map(|line| {
                StyledLine::styled(Style::Dim, &format!("    {} {line}", self.glyphs.side)).cut(columns)
            })
            .collect()
    }
}
