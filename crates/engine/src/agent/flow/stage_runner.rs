//! Runs a task in stages. Each stage is a sub-run with its own session, events and report. Only short notes,
//! the plan and the facts about files read and changed pass from one stage to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fusee_journal::event::{ErrorCode, ErrorDetail, Event, FlowStageReport, StageStatus, TaskStatus};
use fusee_journal::{Branch, RunAborted};
use fusee_model::CancellationToken;

use super::phases::Phases;
use super::settings::{FlowEditFormat, FlowSettings};
use super::stage_notes::{self, StageNote};
use super::task_rules::{FlowShape, TaskRules};
use crate::agent::{AgentTask, Facts, FactsEnd, FinishedTask, Plan, Spent, TaskOutcome};

/// One stage of the work, before it starts.
#[derive(Clone, Debug)]
pub(crate) struct StageSpec {
    pub(crate) id: String,
    pub(crate) label: String,
    /// Description in the report.
    pub(crate) description: String,
    /// Instructions for the model.
    pub(crate) task: String,
    /// Instructions for a retry that is told why the last attempt failed, if they differ.
    pub(crate) retry_instructions: Option<String>,
    pub(crate) rules: TaskRules,
    /// Maximum number of attempts.
    pub(crate) attempts: u32,
    /// Number of notes from earlier stages to include.
    pub(crate) notes_window: i64,
    pub(crate) necessity: StageNecessity,
    pub(crate) model: Option<String>,
    /// Whether its answer is that of the whole task, and is checked like it.
    pub(crate) gives_answer: bool,
}

impl StageSpec {
    /// A required stage with the retries and notes of the flow, named by its id.
    pub(crate) fn new(id: &str, task: String, rules: TaskRules, flow: &FlowSettings) -> Self {
        Self {
            id: id.to_owned(),
            label: id.to_owned(),
            description: id.to_owned(),
            task,
            retry_instructions: None,
            rules,
            attempts: flow.stage_retries + 1,
            notes_window: flow.context_window,
            necessity: StageNecessity::Required,
            model: None,
            gives_answer: false,
        }
    }
}

/// Whether the rest of the task depends on a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StageNecessity {
    /// A failure ends the task.
    Required,
    /// A failure is ignored.
    Optional,
}

/// Runner and accumulated state of the stages.
pub(crate) struct StageRunner<'a> {
    main: &'a AgentTask,
    flow: &'a FlowSettings,
    started_ms: i64,
    last_ms: i64,
    spent: Spent,
    /// Tokens that the servers of the stages' models accept, by the stage's own model.
    accepted_tokens: BTreeMap<Option<String>, u64>,
    pub(crate) facts: Facts,
    pub(crate) plan: Plan,
    pub(crate) notes: Vec<StageNote>,
    phases: Option<Phases>,
    answer: String,
    /// Whether the answer makes the run fail.
    fails_run: bool,
    /// Sections opened so far; they stay open in later stages.
    opened: BTreeSet<String>,
}

impl<'a> StageRunner<'a> {
    /// A runner that has not run any stage.
    pub(crate) fn new(main: &'a AgentTask, flow: &'a FlowSettings, started_ms: i64) -> Self {
        Self {
            main,
            flow,
            started_ms,
            last_ms: started_ms,
            spent: Spent::default(),
            accepted_tokens: main.rules.accepted_tokens.map(|tokens| (None, tokens)).into_iter().collect(),
            facts: Facts::default(),
            plan: main.earlier.plan.clone(),
            notes: Vec::new(),
            phases: Phases::begin(flow),
            answer: String::new(),
            fails_run: false,
            opened: BTreeSet::new(),
        }
    }

    /// Runs the stages in order until the end or the first failure of a required stage.
    pub(crate) async fn run_all(mut self, stages: Vec<StageSpec>) -> Result<TaskOutcome, RunAborted> {
        self.begin();
        for stage in stages {
            if let Err(failed) = self.run_stage(stage).await? {
                return self.end(*failed).await;
            }
        }
        let done = self.completed();
        self.end(done).await
    }

    /// Emits the start events of the main task.
    pub(crate) fn begin(&self) {
        if !self.main.is_announced() {
            self.main.start_events(self.started_ms).for_each(|event| self.emit(event));
        }
    }

    /// Runs one stage with its retries. The inner error is the outcome of the task if the stage failed.
    pub(crate) async fn run_stage(
        &mut self,
        stage: StageSpec,
    ) -> Result<Result<(), Box<TaskOutcome>>, RunAborted> {
        let (mut attempt, mut facts, mut hint) = (0, Facts::default(), None);
        let (finished, missing) = loop {
            attempt += 1;
            self.emit(Event::StageStarted { stage: stage.id.clone(), label: stage.label.clone(), attempt });
            let finished = self.attempt(&stage, attempt, hint.as_deref(), &facts, &self.main.cancel).await?;
            self.absorb(stage.model.as_ref(), &finished);
            facts.absorb(&finished.facts);
            let missing = failures(&finished);
            if missing.is_empty() || attempt >= stage.attempts || is_final(&finished.outcome) {
                break (finished, missing);
            }
            hint = self.flow.retry_hints.then(|| missing.join("; "));
            self.facts.count_feedback("stage_retry");
        };
        let completed = missing.is_empty();
        let summary = if completed { finished.outcome.answer.clone() } else { missing.join("; ") };
        self.notes.push(StageNote::new(&stage.label, &summary, finished.payload.as_ref(), &facts));
        self.report(&stage, completed, attempt, &facts, &summary, finished.payload.clone());
        let fatal = finished.outcome.status == TaskStatus::Cancelled || finished.outcome.unreachable;
        if completed {
            self.answer = finished.outcome.answer;
            self.fails_run = finished.outcome.fails_run;
            return Ok(Ok(()));
        }
        // Without the last stage there is no answer of the required form.
        let gives_answer = stage.gives_answer && self.main.check.is_some();
        if stage.necessity == StageNecessity::Optional && !fatal && !gives_answer {
            return Ok(Ok(()));
        }
        let unmet = !finished.missing.is_empty();
        Ok(Err(Box::new(self.failed(&stage.id, finished.outcome, &missing, unmet))))
    }

    /// Reports a stage that is skipped.
    pub(crate) fn skipped(&mut self, id: &str, label: &str, why: &str) {
        self.emit(Event::FlowStageReport(FlowStageReport {
            stage: id.to_owned(),
            label: label.to_owned(),
            status: StageStatus::Skipped,
            attempts: 0,
            files_read: Vec::new(),
            files_changed: Vec::new(),
            summary: why.to_owned(),
            payload: None,
        }));
        self.emit(Event::StageComplete { stage: id.to_owned(), status: StageStatus::Skipped });
    }

    /// Runs one attempt of a stage, until its end or until `cancel` stops it.
    pub(super) async fn attempt(
        &self,
        stage: &StageSpec,
        attempt: u32,
        hint: Option<&str>,
        so_far: &Facts,
        cancel: &CancellationToken,
    ) -> Result<FinishedTask, RunAborted> {
        let main = self.main;
        let name = if attempt == 1 { stage.id.clone() } else { format!("{}.{attempt}", stage.id) };
        let mut rules = stage.rules.clone();
        rules.parent = Some(main.branch.clone());
        rules.attempt = attempt;
        rules.used = self.spent.clone();
        rules.accepted_tokens = self.accepted_tokens.get(&stage.model).copied();
        rules.protected = main.rules.protected.clone();
        rules.request = Some(main.request.clone());
        rules.description = Some(stage.description.clone());
        rules.phases = self.phases.clone();
        rules.already_read = self.facts.contents().clone();
        if let FlowShape::Stage(requirements) = &mut rules.shape {
            requirements.read_before = self.facts.files_read().chain(so_far.files_read()).cloned().collect();
        }
        let session = match &stage.model {
            Some(model) => Arc::new(main.session.with_model(model)),
            None => Arc::clone(&main.session),
        };
        let mut task = AgentTask::new(
            session,
            Arc::clone(&main.engine),
            main.branch.child(&name),
            main.submission_id.clone(),
            self.system(stage),
            self.input(stage, hint),
            main.turn_type,
        )
        .with_cancel(cancel.clone(), Arc::clone(&main.progress))
        .with_rules(rules);
        if !stage.rules.access.no_tools {
            task.sectioned_prompt = main
                .sectioned_prompt
                .clone()
                .map(|sectioned_prompt| sectioned_prompt.with_opened(&self.opened));
            task.spawn = main.spawn.clone();
        }
        if stage.gives_answer {
            task.check = main.check.clone();
            task.answer_handler = main.answer_handler.clone();
        }
        task.earlier.known = main.earlier.known.clone();
        if !matches!(stage.rules.shape, FlowShape::Planning(_)) {
            task.earlier.plan = self.plan.clone();
        }
        Box::pin(task.run_to_end(self.last_ms)).await
    }

    /// System prompt of a stage.
    fn system(&self, stage: &StageSpec) -> String {
        let direct =
            self.main.direct_system.as_ref().filter(|_| stage.rules.edit_format != FlowEditFormat::Tools);
        direct.unwrap_or(&self.main.system).clone()
    }

    /// First message of a stage: the request, the notes so far, the plan, the instructions.
    fn input(&self, stage: &StageSpec, hint: Option<&str>) -> String {
        let mut pieces = vec![self.main.request.clone()];
        pieces.extend(stage_notes::shown(&self.notes, stage.notes_window));
        if !self.plan.tasks().is_empty() && !matches!(stage.rules.shape, FlowShape::Planning(_)) {
            pieces.push(format!("The plan:\n{}", self.plan.render()));
        }
        pieces.extend(hint.map(|hint| format!("The last attempt did not succeed: {hint}")));
        pieces.push(
            stage.retry_instructions.as_ref().filter(|_| hint.is_some()).unwrap_or(&stage.task).clone(),
        );
        pieces.extend(self.main.answer_form.clone().filter(|_| stage.gives_answer));
        pieces.join("\n\n")
    }

    /// Adds what a stage that ended found out and used. `model` is its own model, if it has one.
    pub(crate) fn absorb(&mut self, model: Option<&String>, finished: &FinishedTask) {
        if let Some(tokens) = finished.outcome.accepted_tokens {
            self.accepted_tokens.insert(model.cloned(), tokens);
        }
        self.facts.absorb(&finished.facts);
        self.phases = finished.phases.clone();
        self.opened.extend(finished.opened.iter().cloned());
        if !finished.plan.tasks().is_empty() {
            self.plan = finished.plan.clone();
        }
        self.add_spent(&finished.outcome.spent, finished.last_ms);
    }

    /// Adds resources that were used until `last_ms`.
    pub(crate) fn add_spent(&mut self, spent: &Spent, last_ms: i64) {
        self.spent.add(spent);
        self.last_ms = self.last_ms.max(last_ms);
    }

    /// The task that the stages belong to.
    pub(super) fn main(&self) -> &'a AgentTask {
        self.main
    }

    /// The settings of the flow.
    pub(super) fn flow(&self) -> &'a FlowSettings {
        self.flow
    }

    /// Sets the answer of the task so far.
    pub(super) fn set_answer(&mut self, answer: String) {
        self.answer = answer;
    }

    /// End of the last step.
    pub(crate) fn last_ms(&self) -> i64 {
        self.last_ms
    }

    /// Reports on a stage that ended.
    pub(super) fn report(
        &self,
        stage: &StageSpec,
        completed: bool,
        attempts: u32,
        facts: &Facts,
        summary: &str,
        payload: Option<serde_json::Value>,
    ) {
        let status = if completed { StageStatus::Completed } else { StageStatus::Failed };
        self.emit(Event::FlowStageReport(FlowStageReport {
            stage: stage.id.clone(),
            label: stage.label.clone(),
            status,
            attempts,
            files_read: facts.files_read().cloned().collect(),
            files_changed: facts.changed().map(|(path, _)| path.to_owned()).collect(),
            summary: stage_notes::one_line(summary, 1000),
            payload,
        }));
        self.emit(Event::StageComplete { stage: stage.id.clone(), status });
    }

    fn base(&self) -> TaskOutcome {
        TaskOutcome {
            status: TaskStatus::Completed,
            answer: self.answer.clone(),
            error: None,
            unreachable: false,
            spent: self.spent.clone(),
            accepted_tokens: self.accepted_tokens.get(&None).copied(),
            fails_run: self.fails_run,
            result: None,
        }
    }

    /// Outcome of a successful task.
    pub(crate) fn completed(&self) -> TaskOutcome {
        self.base()
    }

    /// Outcome of a task whose stage failed: with the stage's own error, or with the requirements that were unmet.
    pub(super) fn failed(
        &self,
        stage: &str,
        outcome: TaskOutcome,
        missing: &[String],
        unmet: bool,
    ) -> TaskOutcome {
        let base = TaskOutcome { answer: outcome.answer, unreachable: outcome.unreachable, ..self.base() };
        let error = outcome.error.map(|error| {
            let message = match unmet {
                true => format!("the stage `{stage}` did not complete: {}", missing.join("; ")),
                false => format!("in `{stage}`: {}", error.message),
            };
            ErrorDetail { message, ..error }
        });
        let status = match outcome.status {
            TaskStatus::Cancelled => TaskStatus::Cancelled,
            TaskStatus::Completed | TaskStatus::Failed => TaskStatus::Failed,
        };
        TaskOutcome { status, error, ..base }
    }

    /// Reports on the entire task and ends it.
    pub(crate) async fn end(mut self, outcome: TaskOutcome) -> Result<TaskOutcome, RunAborted> {
        crate::agent::task_report::settle_changes(self.main, &mut self.facts).await?;
        crate::agent::task_hooks::at_end(self.main, &outcome).await?;
        let end = FactsEnd {
            status: outcome.status,
            plan_steps: u32::try_from(self.plan.tasks().len()).unwrap_or(u32::MAX),
            attempts: 1,
            replan_max: self.flow.replan_max,
            error: outcome.error.as_ref().map(|error| error.message.as_str()),
        };
        let report = self.facts.report(&self.main.branch, &self.main.request, end);
        let duration_ms = u64::try_from(self.last_ms - self.started_ms).unwrap_or_default();
        self.main.emit_end(&outcome, report, duration_ms);
        *self.main.progress.status.lock() = Some(outcome.status);
        Ok(outcome)
    }

    pub(crate) fn emit(&self, event: Event) {
        let branch: &Branch = &self.main.branch;
        self.main.engine.emit(branch, event);
    }
}

/// The reasons why a stage did not succeed.
pub(super) fn failures(finished: &FinishedTask) -> Vec<String> {
    match &finished.outcome.error {
        Some(error) if finished.missing.is_empty() => vec![error.message.clone()],
        _ => finished.missing.clone(),
    }
}

/// Whether a retry would be pointless: the task was cancelled, the model is unreachable or refused, or a
/// limit is exhausted.
pub(crate) fn is_final(outcome: &TaskOutcome) -> bool {
    let code = outcome.error.as_ref().map(|error| error.code);
    let declined = outcome.error.as_ref().is_some_and(|error| error.reason == "llm_error");
    let spent = matches!(code, Some(ErrorCode::Cancelled | ErrorCode::Timeout | ErrorCode::Budget));
    outcome.status == TaskStatus::Cancelled || outcome.unreachable || spent || declined
}
