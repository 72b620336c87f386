//! The handler of one atomic task: its configuration (limits, tools, model) and its session with the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fusee_journal::event::{Event, TurnType};
use fusee_journal::{DurableRun, RunAborted};
use fusee_model::Message;
use fusee_text::suggest;
use fusee_tools::{Tool, Toolbox};

use super::ResourceMetrics;
use super::error::{Reason, TaskError};
use super::pipeline::{TaskScope, TaskSystem};
use super::prompt::{ComposedPrompt, HandlerPayload, PreparedContext, SystemPrompt};
use super::request::SubtaskRequest;
use super::subtasks::Subtasks;
use crate::agent::flow::{self, FlowMode, FlowSettings};
use crate::agent::{
    AgentTask, AnswerCheck, AnswerHandler, FinishedTask, Limits, Remaining, SPAWN_SUBTASK, Session, Spent,
    TaskOutcome, control_names,
};
use crate::template::output::{OutputSchema, constraint};
use crate::template::{LimitOverrides, Template};

/// Runs one atomic task. It is created for each execution, so that nothing leaks between tasks; its
/// configuration does not change.
pub(super) struct Handler {
    /// Model, tools, limits and options of this execution.
    pub(super) context: Arc<Session>,
    engine: Arc<dyn DurableRun>,
    pub(super) scope: TaskScope,
    /// Whether the start of the task was announced.
    announced: AtomicBool,
}

impl Handler {
    /// Creates a handler with this configuration.
    pub(super) fn new(context: Arc<Session>, engine: &Arc<dyn DurableRun>, scope: &TaskScope) -> Self {
        let (engine, scope) = (Arc::clone(engine), scope.clone());
        Self { context, engine, scope, announced: AtomicBool::new(false) }
    }

    /// Creates the handler of a template's task: its limits, its tools, its model.
    pub(super) fn for_task(
        system: &TaskSystem,
        template: &Template,
        request: &SubtaskRequest,
        schema: Option<&OutputSchema>,
        scope: &TaskScope,
    ) -> Result<Self, TaskError> {
        let base = &system.base;
        let limits = limits(base.limits, &template.limits, request.limits.as_ref(), scope.left);
        let (toolbox, mut options) = (toolbox(&base.toolbox, template)?, base.options.clone());
        if let Some(constraint) = constraint(template.output_format.as_ref(), schema)
            && toolbox.definitions().next().is_none()
            && !may_spawn(template)
        {
            // If tools are offered, a constrained reply could never call one.
            options.extra.entry("response_format").or_insert(constraint);
        }
        let context = Session { toolbox, options, ..base.for_child(limits) };
        let context = requested_model(context, system, template, request, scope)?;
        Ok(Self::new(Arc::new(context), &system.engine, scope))
    }

    /// Constructs the payload of the first request.
    pub(super) fn construct_payload(
        &self,
        template: &Template,
        composed: ComposedPrompt,
        context: PreparedContext,
    ) -> HandlerPayload {
        let tools = self.context.toolbox.definitions().map(|tool| tool.name.to_string());
        let spawns = may_spawn(template).then(|| SPAWN_SUBTASK.to_owned());
        let facts = [
            ("template", template.name.clone()),
            ("subtype", template.subtype().to_owned()),
            ("task", self.scope.branch.to_string()),
            ("run", self.engine.run().to_string()),
        ];
        HandlerPayload {
            system_prompt: composed.system,
            messages: vec![Message::user(composed.request)],
            context,
            tools: tools.chain(spawns).collect(),
            metadata: facts.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect(),
        }
    }

    /// Opens the session in which the model works on the task.
    pub(super) fn session(&self, payload: &HandlerPayload) -> HandlerSession {
        let request = payload.messages.iter().find_map(|message| match message {
            Message::User { text, .. } => Some(text.clone()),
            _ => None,
        });
        let task = self.task(payload.system_prompt.text().to_owned(), request.unwrap_or_default());
        let task = match &payload.system_prompt {
            SystemPrompt::Sections(sections) => task.with_prompt((**sections).clone()),
            SystemPrompt::Text(_) => task,
        };
        HandlerSession { task, started_ms: self.scope.started_ms }
    }

    /// Announces the start of the task, unless this was done before: events about it, such as questions
    /// while it is prepared, must come after its start.
    pub(super) fn announce(&self, title: &str) {
        if !self.announced.load(Ordering::Relaxed) {
            self.task(String::new(), title.to_owned()).announce(self.scope.started_ms);
            self.announced.store(true, Ordering::Relaxed);
        }
    }

    /// Fails the task before the model is called, with start and end events.
    pub(super) fn refuse(&self, title: &str, error: TaskError) -> TaskOutcome {
        let detail = error.to_event(error.code());
        let mut outcome = self.task(String::new(), title.to_owned()).fail(self.scope.started_ms, detail);
        let metrics = self.resource_metrics();
        let mut result = error.measured(metrics).to_result("");
        PreparedContext::default().note_in(&mut result, title, self.scope.path);
        metrics.note_in(&mut result);
        outcome.result = Some(Box::new(result));
        outcome
    }

    /// Resources used by the execution so far.
    pub(super) fn resource_metrics(&self) -> ResourceMetrics {
        self.scope.progress.resource_metrics()
    }

    fn task(&self, system: String, request: String) -> AgentTask {
        let scope = &self.scope;
        let turn_type = if self.context.review.is_some() { TurnType::Review } else { TurnType::User };
        let submission = match scope.parent {
            Some(_) => format!("{}:{}", self.engine.run(), scope.branch),
            None => self.engine.run().to_string(),
        };
        let (context, engine) = (Arc::clone(&self.context), Arc::clone(&self.engine));
        let task =
            AgentTask::new(context, engine, scope.branch.clone(), submission, system, request, turn_type)
                .announced(self.announced.load(Ordering::Relaxed))
                .with_cancel(scope.cancel.clone(), Arc::clone(&scope.progress));
        match &scope.parent {
            Some(parent) => task.child_of(parent.clone()),
            None => task,
        }
    }
}

/// The session of one execution: the conversation with the model, held by the agent loop.
pub(super) struct HandlerSession {
    task: AgentTask,
    started_ms: i64,
}

impl HandlerSession {
    /// Charges what was spent before the session.
    pub(super) fn with_spent(self, spent: Spent) -> Self {
        Self { task: self.task.with_spent(spent), ..self }
    }

    /// Repeats the form of the answer, which the request states, where a flow splits the work into parts.
    pub(super) fn with_answer_form(mut self, form: Option<String>) -> Self {
        self.task.answer_form = form;
        self
    }

    /// Sets what judges the answer.
    pub(super) fn with_answer_handler(self, judge: Arc<dyn AnswerHandler>) -> Self {
        Self { task: self.task.with_answer_handler(judge), ..self }
    }

    /// Sets what rejects an answer once.
    pub(super) fn with_answer_check(self, check: Arc<dyn AnswerCheck>) -> Self {
        Self { task: self.task.with_answer_check(check), ..self }
    }

    /// Lets the model start subtasks.
    pub(super) fn with_subtasks(self, subtasks: Arc<Subtasks>) -> Self {
        Self { task: self.task.with_subtasks(subtasks), ..self }
    }

    /// Runs the session to its end in the flow of its template, with the settings of the run.
    pub(super) async fn run(
        self,
        mode: FlowMode,
        settings: &FlowSettings,
    ) -> Result<TaskOutcome, RunAborted> {
        let Self { task, started_ms } = self;
        if mode != FlowMode::Flat {
            let flow = FlowSettings { mode, stages: Vec::new(), benchmark: None, ..settings.clone() };
            return Box::pin(flow::work(task, &flow, started_ms)).await;
        }
        let task = flow::with_settings(task, settings);
        let FinishedTask { outcome, facts, .. } = task.run_to_end(started_ms).await?;
        task.progress.set_facts(facts);
        Ok(outcome)
    }
}

/// Switches to the requested model. A model named by the request is used or refused; a model named by the
/// template falls back to the run's model with a warning.
fn requested_model(
    context: Session,
    system: &TaskSystem,
    template: &Template,
    request: &SubtaskRequest,
    scope: &TaskScope,
) -> Result<Session, TaskError> {
    // The main task's model was chosen when the run started.
    let Some(parent) = &scope.parent else { return Ok(context) };
    let Some(wanted) = request.model.as_ref().or(template.model.as_ref()) else { return Ok(context) };
    let has = context.model.name();
    if has == wanted {
        return Ok(context);
    }
    if context.stage_models.contains_key(wanted) {
        return Ok(context.with_model(wanted));
    }
    if request.model.is_some() {
        let message =
            format!("`{}` requests the model `{wanted}`, but this run only has `{has}`", template.name);
        return Err(TaskError::failure(Reason::ConfigurationError, message));
    }
    let message = format!(
        "`{}` names the model `{wanted}`, but this run only has `{has}`, which is used instead",
        template.name
    );
    system.engine.emit(parent, Event::Warning { code: "other_model".to_owned(), message });
    Ok(context)
}

/// Merges the limits of a task: configuration, then template, then request, capped by the remaining budget.
pub fn limits(
    base: Limits,
    template: &LimitOverrides,
    request: Option<&LimitOverrides>,
    left: Option<Remaining>,
) -> Limits {
    let mut limits = base;
    for layer in [Some(template), request].into_iter().flatten() {
        limits.max_turns = layer.max_turns.unwrap_or(limits.max_turns);
        // The context window is fixed, so a template can only lower the limit.
        limits.max_tokens = layer.max_tokens.map_or(limits.max_tokens, |most| most.min(limits.max_tokens));
        limits.task_timeout_s = layer.timeout.or(limits.task_timeout_s);
    }
    let Some(left) = left else { return limits };
    limits.max_tokens = limits.max_tokens.min(left.context_tokens.unwrap_or(u64::MAX));
    limits.max_turns = limits.max_turns.min(left.turns);
    limits.budget_usd = left.usd.or(limits.budget_usd);
    if let Some(ms) = left.ms {
        let seconds = ms.div_ceil(1000);
        limits.task_timeout_s = Some(limits.task_timeout_s.map_or(seconds, |own| own.min(seconds)));
    }
    limits
}

/// Reports tool names in a template that look like typos of known tools, before anything starts. A name
/// unlike all others may belong to an MCP server that is not connected yet; [`toolbox`] checks those.
pub fn check_tools(base: &Toolbox, template: &Template) -> Result<(), TaskError> {
    let named = template.allowed_tools.iter().flatten().chain(&template.blocked_tools);
    let slips: Vec<String> = named
        .filter(|name| is_not_control_tool(name) && in_any_case(base, name).is_none())
        .filter_map(|name| {
            let known = base.definitions().map(|definition| definition.name.as_ref());
            Some(format!("`{name}` ({})", suggest::did_you_mean(name, known)?))
        })
        .collect();
    if slips.is_empty() { Ok(()) } else { Err(not_there(template, &slips)) }
}

/// Finds a tool by name or alias, ignoring case.
fn in_any_case<'b>(base: &'b Toolbox, name: &str) -> Option<&'b Arc<dyn Tool>> {
    base.find(name).or_else(|| base.find(&name.to_lowercase()))
}

/// Whether a name is not a control tool; those are always available or offered elsewhere.
fn is_not_control_tool(name: &str) -> bool {
    name != SPAWN_SUBTASK && !control_names().any(|known| known == name)
}

fn not_there(template: &Template, tools: &[String]) -> TaskError {
    let message = format!("`{}` names unknown tools: {}", template.name, tools.join(", "));
    TaskError::invalid(Reason::ConfigurationError, message)
}

/// Returns the tools of a template, resolved by name or alias.
pub fn toolbox(base: &Toolbox, template: &Template) -> Result<Toolbox, TaskError> {
    let mut unknown: Vec<String> = Vec::new();
    let mut resolve = |names: &[String]| -> Vec<String> {
        names
            .iter()
            .filter(|name| is_not_control_tool(name))
            .filter_map(|name| match in_any_case(base, name) {
                Some(tool) => Some(tool.definition().name.to_string()),
                None => {
                    let near = base.nearest(name);
                    let hint =
                        near.first().map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                    unknown.push(format!("`{name}`{hint}"));
                    None
                }
            })
            .collect()
    };
    let allowed = template.allowed_tools.as_deref().map(&mut resolve);
    let blocked = resolve(&template.blocked_tools);
    if !unknown.is_empty() {
        return Err(not_there(template, &unknown));
    }
    let mut chosen = Toolbox::new();
    for tool in base.iter() {
        let name = tool.definition().name.to_string();
        if allowed.as_ref().is_none_or(|allowed| allowed.contains(&name)) && !blocked.contains(&name) {
            // Names are unique in the source toolbox.
            let _ = chosen.insert(Arc::clone(tool));
        }
    }
    Ok(chosen)
}

/// Whether tasks of a template may call `spawn_subtask`; the tool lists apply to it like to any tool.
pub(super) fn may_spawn(template: &Template) -> bool {
    let names = |names: &[String]| names.iter().any(|name| name == SPAWN_SUBTASK);
    template.allowed_tools.as_deref().is_none_or(names) && !names(&template.blocked_tools)
}
