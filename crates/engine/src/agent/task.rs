//! One task, from its start to its single terminal event.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fusee_journal::event::{
    ErrorCode, ErrorDetail, Event, TaskComplete, TaskReport, TaskStarted, TaskStatus, TurnType,
};
use fusee_journal::{Branch, DurableRun, RunAborted};
use fusee_model::{CancellationToken, Image, Message, Usage};
use parking_lot::Mutex;

use super::facts::{Facts, ReportedEnd};
use super::interrupt::TurnInterrupt;
use super::machine::TaskEnd;
use super::plan::Plan;
use super::session::Session;
use super::turn_manager::{TurnManager, TurnResult};
use crate::agent::completion::answer_check::AnswerCheck;
use crate::agent::conversation::carry_over::PriorConversation;
use crate::agent::conversation::sectioned_prompt::SectionedPrompt;
use crate::agent::flow::{Phases, SampleResult, TaskRules};
use crate::agent::limits::budget::Spent;
use crate::agent::limits::resource_metrics::ResourceMetrics;

/// A task that a model works through.
pub struct AgentTask {
    pub(crate) session: Arc<Session>,
    pub(crate) engine: Arc<dyn DurableRun>,
    pub(crate) branch: Branch,
    pub(crate) submission_id: String,
    pub(crate) turn_type: TurnType,
    pub(crate) system: String,
    /// System prompt of stages without tools, if it differs.
    pub(crate) direct_system: Option<String>,
    pub(crate) input: Vec<Message>,
    pub(crate) earlier: PriorConversation,
    pub(crate) sectioned_prompt: Option<SectionedPrompt>,
    pub(crate) check: Option<Arc<dyn AnswerCheck>>,
    /// Form of the answer that the check demands, as the model is told.
    pub(crate) answer_form: Option<String>,
    pub(crate) preset_end: Option<PresetEnd>,
    pub(crate) request: String,
    warnings: Vec<String>,
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Arc<TaskProgress>,
    pub(crate) answer_handler: Option<Arc<dyn super::AnswerHandler>>,
    pub(crate) spawn: Option<Arc<dyn super::SubtaskRunner>>,
    pub(crate) rules: TaskRules,
    /// Whether the start event has already been emitted.
    announced: bool,
    /// Resources used for the task before it started.
    spent_before: Spent,
}

/// The end of a task that needs no turn.
#[derive(Clone, Debug)]
pub(crate) enum PresetEnd {
    /// It cannot start, with the reason.
    Failure(String),
    /// There is nothing to do; the answer says so.
    Answer(String),
}

/// Progress of a task, readable while it runs.
#[derive(Debug, Default)]
pub struct TaskProgress {
    turn_index: AtomicU32,
    usage: Mutex<Usage>,
    metrics: Mutex<ResourceMetrics>,
    pub(crate) status: Mutex<Option<TaskStatus>>,
    pub(crate) turn_stop: TurnInterrupt,
    /// Facts of the task once it has ended, for its parent task.
    facts: Mutex<Facts>,
}

impl TaskProgress {
    /// Resources used so far. In a run of several tasks, those of the task that reported last.
    pub fn resource_metrics(&self) -> ResourceMetrics {
        *self.metrics.lock()
    }

    /// Final status; `None` while the task runs.
    pub fn status(&self) -> Option<TaskStatus> {
        *self.status.lock()
    }

    /// Number of model replies so far.
    pub fn current_turn_index(&self) -> u32 {
        self.turn_index.load(Ordering::Relaxed)
    }

    /// Reported token usage so far.
    pub fn token_usage(&self) -> Usage {
        *self.usage.lock()
    }

    pub(crate) fn set_facts(&self, facts: Facts) {
        *self.facts.lock() = facts;
    }

    pub(crate) fn take_facts(&self) -> Facts {
        std::mem::take(&mut *self.facts.lock())
    }

    /// Reports the state after this many replies; `spent` counts the turns of subtasks only.
    pub(crate) fn update(&self, turn_index: u32, spent: &Spent) {
        *self.metrics.lock() = ResourceMetrics { turns: turn_index, ..spent.metrics() };
        self.turn_index.store(turn_index, Ordering::Relaxed);
        *self.usage.lock() = spent.charges.usage();
    }
}

/// How a task ended, and what it used.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskOutcome {
    /// Final status.
    pub status: TaskStatus,
    /// The answer, or a partial answer.
    pub answer: String,
    /// Whether the answer makes the run fail, as a review with severe findings does.
    pub fails_run: bool,
    /// Set if the task failed or was cancelled.
    pub error: Option<ErrorDetail>,
    /// On failure: whether the model could not be reached.
    pub unreachable: bool,
    /// Resources used by the task and its subtasks.
    pub spent: Spent,
    /// Tokens of context that the model's server accepts, if it rejected a larger conversation.
    pub accepted_tokens: Option<u64>,
    /// Full result of a template or a workflow.
    pub result: Option<Box<fusee_lang::TaskResult>>,
}

impl TaskOutcome {
    /// Reported token usage of all model requests.
    pub fn usage(&self) -> Usage {
        self.spent.charges.usage()
    }

    /// The terminal event of a task with this outcome.
    pub(crate) fn complete_event(
        &self,
        submission_id: &str,
        duration_ms: u64,
        cost_usd: Option<f64>,
    ) -> TaskComplete {
        let usage = self.usage();
        TaskComplete {
            submission_id: submission_id.to_owned(),
            total_turns: self.spent.turns,
            total_tokens: usage.input_tokens + usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            duration_ms,
            cost_usd,
            status: self.status,
            answer: self.answer.clone(),
            error: self.error.clone(),
        }
    }

    /// Resources used by the task.
    pub fn resource_metrics(&self) -> ResourceMetrics {
        self.spent.metrics()
    }
}

/// A task that ended, with everything known about it.
pub(crate) struct FinishedTask {
    pub(crate) outcome: TaskOutcome,
    pub(crate) facts: Facts,
    pub(crate) plan: Plan,
    /// Phase state for the next stage.
    pub(crate) phases: Option<Phases>,
    /// Unmet requirements of a stage that would have succeeded otherwise.
    pub(crate) missing: Vec<String>,
    /// Payload with which the model ended its stage.
    pub(crate) payload: Option<serde_json::Value>,
    pub(crate) last_ms: i64,
    /// The sections open at the end.
    pub(crate) opened: BTreeSet<String>,
    /// Result of the task, if it is one of several samples.
    pub(crate) sample: SampleResult,
}

impl AgentTask {
    /// A task on `branch` of a run, with its system prompt and request.
    pub fn new(
        session: Arc<Session>,
        engine: Arc<dyn DurableRun>,
        branch: Branch,
        submission_id: String,
        system: String,
        request: String,
        turn_type: TurnType,
    ) -> Self {
        let input = vec![Message::user(request.clone())];
        let (cancel, progress, earlier) =
            (CancellationToken::new(), Arc::default(), PriorConversation::default());
        Self {
            session,
            engine,
            branch,
            submission_id,
            turn_type,
            system,
            direct_system: None,
            input,
            earlier,
            sectioned_prompt: None,
            check: None,
            answer_form: None,
            preset_end: None,
            request,
            warnings: Vec::new(),
            cancel,
            progress,
            answer_handler: None,
            spawn: None,
            rules: TaskRules { attempt: 1, ..TaskRules::default() },
            announced: false,
            spent_before: Spent::default(),
        }
    }

    /// Adds resources that were used before the task starts.
    #[must_use]
    pub(crate) fn with_spent(self, spent: Spent) -> Self {
        Self { spent_before: spent, ..self }
    }

    /// Sets the system prompt of stages without tools.
    #[must_use]
    pub(crate) fn with_direct_system(self, system: String) -> Self {
        Self { direct_system: Some(system), ..self }
    }

    /// Makes the task fail immediately with this message.
    #[must_use]
    pub(crate) fn with_failure(self, why: String) -> Self {
        Self { preset_end: Some(PresetEnd::Failure(why)), ..self }
    }

    /// Completes the task immediately with this answer, without a model request.
    #[must_use]
    pub(crate) fn with_answer(self, answer: String) -> Self {
        Self { preset_end: Some(PresetEnd::Answer(answer)), ..self }
    }

    /// Requires the answer to pass a check.
    #[must_use]
    pub fn with_answer_check(self, check: Arc<dyn AnswerCheck>) -> Self {
        Self { check: Some(check), ..self }
    }

    /// Tells the model which form its answer must have.
    #[must_use]
    pub(crate) fn with_answer_form(self, form: String) -> Self {
        let task = self.append_request(&form);
        Self { answer_form: Some(form), ..task }
    }

    /// Sends images along with the request.
    #[must_use]
    pub(crate) fn with_images(mut self, sent: Vec<Image>) -> Self {
        if let Some(Message::User { images, .. }) = self.input.last_mut() {
            *images = sent;
        }
        self
    }

    /// Appends text to the request.
    #[must_use]
    pub fn append_request(mut self, words: &str) -> Self {
        if let Some(Message::User { text, .. }) = self.input.last_mut() {
            text.push_str("\n\n");
            text.push_str(words);
        }
        self
    }

    /// Adds warnings about the prompt, each emitted as one event.
    #[must_use]
    pub(crate) fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }

    /// Uses a prompt with expandable sections instead of the system prompt.
    #[must_use]
    pub fn with_prompt(self, sectioned_prompt: SectionedPrompt) -> Self {
        Self { sectioned_prompt: Some(sectioned_prompt), ..self }
    }

    /// Continues an earlier conversation with this request.
    #[must_use]
    pub fn with_prior(mut self, mut earlier: PriorConversation) -> Self {
        earlier.known.remind(&self.session.workspace);
        let mut input = std::mem::take(&mut earlier.messages);
        input.append(&mut self.input);
        Self { input, earlier, ..self }
    }

    /// Sets the initial plan.
    #[must_use]
    pub(crate) fn planned(mut self, plan: Plan) -> Self {
        self.earlier.plan = plan;
        self
    }

    /// Sets what decides about the final answer.
    #[must_use]
    pub(crate) fn with_answer_handler(self, handler: Arc<dyn super::AnswerHandler>) -> Self {
        Self { answer_handler: Some(handler), ..self }
    }

    /// Allows the task to spawn subtasks.
    #[must_use]
    pub(crate) fn with_subtasks(self, spawn: Arc<dyn super::SubtaskRunner>) -> Self {
        Self { spawn: Some(spawn), ..self }
    }

    /// Sets the parent task.
    #[must_use]
    pub fn child_of(mut self, parent: Branch) -> Self {
        self.rules.parent = Some(parent);
        self
    }

    /// Uses a cancellation token and a progress handle shared with the caller.
    #[must_use]
    pub fn with_cancel(self, cancel: CancellationToken, progress: Arc<TaskProgress>) -> Self {
        Self { cancel, progress, ..self }
    }

    /// Applies flow rules.
    #[must_use]
    pub(crate) fn with_rules(self, rules: TaskRules) -> Self {
        Self { rules, ..self }
    }

    /// Cancels the task: ends the model's stream, kills the running tool, and answers open calls.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The cancellation token of the task.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Final status; `None` while the task runs.
    pub fn status(&self) -> Option<TaskStatus> {
        self.progress.status()
    }

    /// Number of model replies so far.
    pub fn current_turn_index(&self) -> u32 {
        self.progress.current_turn_index()
    }

    /// Reported token usage so far.
    pub fn token_usage(&self) -> Usage {
        self.progress.token_usage()
    }

    /// Resources used so far.
    pub fn resource_metrics(&self) -> ResourceMetrics {
        self.progress.resource_metrics()
    }

    /// Runs the task. It emits exactly one terminal event, whatever happens. An error means that the journal
    /// itself failed; then the caller has to report it.
    pub async fn run(&self, started_ms: i64) -> Result<TaskOutcome, RunAborted> {
        self.run_to_end(started_ms).await.map(|worked| worked.outcome)
    }

    /// Like [`Self::run`], but returns everything known about the task.
    pub(crate) async fn run_to_end(&self, started_ms: i64) -> Result<FinishedTask, RunAborted> {
        let (runner, outcome, missing) = self.drive(started_ms).await?;
        let outcome = self.end(&runner, outcome);
        Ok(runner.finish(outcome, missing))
    }

    /// Runs the task up to its end, which is left to [`Self::end`]; also returns the requirements that it does not
    /// meet.
    pub(crate) async fn drive(
        &self,
        started_ms: i64,
    ) -> Result<(TurnManager<'_>, TaskOutcome, Vec<String>), RunAborted> {
        self.announce(started_ms);
        let mut runner = TurnManager::new(self, started_ms);
        runner.run.meter.spent.add(&self.spent_before);
        let mut event = runner.start().await?;
        let end = loop {
            match runner.execute_turn(event).await? {
                TurnResult::Complete(next) => event = next,
                TurnResult::End(end) => break end,
            }
        };
        let mut outcome = outcome(end, &runner);
        let missing = runner.missing(&outcome);
        if !missing.is_empty() {
            (outcome.status, outcome.error) = (TaskStatus::Failed, Some(unmet(&missing)));
        }
        Ok((runner, outcome, missing))
    }

    /// Fails the task before any model request, still emitting its start and end events.
    pub(crate) fn fail(&self, started_ms: i64, error: ErrorDetail) -> TaskOutcome {
        self.announce(started_ms);
        let runner = TurnManager::new(self, started_ms);
        let outcome = outcome(TaskEnd::Failed { error, unreachable: false }, &runner);
        self.end(&runner, outcome)
    }

    /// Sets whether the start event has been emitted.
    #[must_use]
    pub(crate) fn announced(self, announced: bool) -> Self {
        Self { announced, ..self }
    }

    /// Whether the start event has been emitted.
    pub(crate) fn is_announced(&self) -> bool {
        self.announced
    }

    /// Identifies a turn of the task in the events.
    pub(crate) fn turn_id(&self, turn_index: u32) -> String {
        format!("{}:{turn_index}", self.branch)
    }

    /// Emits the start event, unless that was done because other events of the task precede its run.
    pub(crate) fn announce(&self, started_ms: i64) {
        if self.announced {
            return;
        }
        self.start_events(started_ms).for_each(|event| self.engine.emit(&self.branch, event));
        for message in &self.warnings {
            let warning = Event::Warning { code: "prompt_file".to_owned(), message: message.clone() };
            self.engine.emit(&self.branch, warning);
        }
    }

    /// The start of the task, and the compaction of the conversation it continues.
    pub(crate) fn start_events(&self, started_ms: i64) -> impl Iterator<Item = Event> {
        let started = Event::TaskStarted(TaskStarted {
            submission_id: self.submission_id.clone(),
            turn_type: self.turn_type,
            timestamp: started_ms,
            request: self.request.clone(),
            model: self.session.model.name().to_owned(),
            sandbox: self.session.sandbox.clone(),
            parent: self.rules.parent.as_ref().map(ToString::to_string),
            continues: self.session.continues.as_ref().map(ToString::to_string),
        });
        let chosen = self.rules.chosen.as_ref().map(|choice| Event::FlowChosen {
            flow: choice.flow.name().to_owned(),
            reason: choice.reason.clone(),
        });
        [started].into_iter().chain(chosen).chain(self.earlier.compaction(started_ms))
    }

    /// Reports on the task and ends it.
    pub(crate) fn end(&self, runner: &TurnManager<'_>, outcome: TaskOutcome) -> TaskOutcome {
        self.report(runner, &outcome);
        if self.rules.parent.is_none() {
            *self.progress.status.lock() = Some(outcome.status);
        }
        outcome
    }

    fn report(&self, runner: &TurnManager<'_>, outcome: &TaskOutcome) {
        let end = ReportedEnd {
            status: outcome.status,
            plan_steps: u32::try_from(runner.flow.plan.tasks().len()).unwrap_or(u32::MAX),
            attempts: self.rules.attempt,
            replan_max: self.rules.further_attempts,
            error: outcome.error.as_ref().map(|error| error.message.as_str()),
        };
        let description = self.rules.description.as_deref().unwrap_or(&self.request);
        let report = runner.flow.facts.report(&self.branch, description, end);
        self.emit_end(outcome, report, runner.run.meter.elapsed_ms());
    }

    /// Emits the events of an end: the error of a failed task, the report, and the terminal event.
    pub(crate) fn emit_end(&self, outcome: &TaskOutcome, report: TaskReport, duration_ms: u64) {
        let failed = outcome.error.as_ref().filter(|_| outcome.status == TaskStatus::Failed);
        let error = failed.map(|error| Event::Error { code: error.code, message: error.message.clone() });
        let cost_usd = outcome.spent.charges.cost_usd(self.session.limits.price);
        let complete = outcome.complete_event(&self.submission_id, duration_ms, cost_usd);
        let events = [crate::agent::task_report::checked(report), Event::TaskComplete(complete)];
        error.into_iter().chain(events).for_each(|event| self.engine.emit(&self.branch, event));
    }
}

/// The error of a stage that ended before its requirements were met.
fn unmet(missing: &[String]) -> ErrorDetail {
    ErrorDetail {
        code: ErrorCode::TurnFailed,
        reason: "subtask_failure".to_owned(),
        message: format!("the stage did not complete: {}", missing.join("; ")),
    }
}

fn outcome(ending: TaskEnd, runner: &TurnManager<'_>) -> TaskOutcome {
    let (machine, meter) = (&runner.machine, &runner.run.meter);
    let base = TaskOutcome {
        status: TaskStatus::Failed,
        answer: machine.answer().to_owned(),
        fails_run: machine.fails_run(),
        error: None,
        unreachable: false,
        spent: meter.total(machine.turn_index()),
        accepted_tokens: runner.conversation.accepted_tokens,
        result: None,
    };
    match ending {
        TaskEnd::Completed { answer } => TaskOutcome { status: TaskStatus::Completed, answer, ..base },
        TaskEnd::Failed { error, unreachable } => TaskOutcome { error: Some(error), unreachable, ..base },
        TaskEnd::Cancelled => {
            let message = "the task was cancelled".to_owned();
            let error = ErrorDetail { code: ErrorCode::Cancelled, reason: "cancelled".to_owned(), message };
            TaskOutcome { status: TaskStatus::Cancelled, error: Some(error), ..base }
        }
    }
}
