//! Hooks of a task as a whole: when it begins, before its conversation is shortened, and before it ends.

use fusee_journal::RunAborted;
use fusee_journal::event::{ErrorCode, ErrorDetail, Event, TaskStatus};
use serde_json::json;

use super::execution::Execution;
use super::flow::FlowShape;
use super::task::{AgentTask, TaskOutcome};
use super::tool_calls::call_hooks;
use crate::hook::{HookEvent, HookInput, HookOutcome, HookScope};

/// How often hooks can keep a task from ending; after that it ends all the same.
const MAX_OBJECTIONS: u32 = 8;

/// How a session starts.
const STARTUP: &str = "startup";

/// Runs the hooks of the start of a conversation and of a request. The inner error is the outcome of a task that they end.
pub(super) async fn begin(
    main: AgentTask,
    started_ms: i64,
) -> Result<Result<AgentTask, Box<TaskOutcome>>, RunAborted> {
    let hooks = &main.session.hooks;
    let events = [HookEvent::SessionStart, HookEvent::UserPromptSubmit, HookEvent::PreCompact];
    if main.preset_end.is_some() || !events.into_iter().any(|event| hooks.has(event)) {
        return Ok(Ok(main));
    }
    // The start of a task is its first event.
    main.announce(started_ms);
    let main = main.announced(true);
    if main.earlier.compaction(started_ms).is_some() {
        before_compaction(&main, "manual").await?;
    }
    // Each message of a conversation is a run; the session starts with the first.
    let started = match main.session.continues {
        Some(_) => HookOutcome::default(),
        None => {
            let fields = json!({ "source": STARTUP });
            run(&main, HookInput::new(HookEvent::SessionStart, STARTUP, fields)).await?
        }
    };
    let mut context = started.context.clone();
    let mut blocked = started.is_blocked().then(|| call_hooks::stopped(&started));
    if blocked.is_none() {
        let fields = json!({ "prompt": main.request });
        let submitted = run(&main, HookInput::new(HookEvent::UserPromptSubmit, "", fields)).await?;
        blocked = submitted.is_blocked().then(|| match submitted.stops_task() {
            true => call_hooks::stopped(&submitted),
            false => format!("a hook blocked the request: {}", submitted.reason),
        });
        context.extend(submitted.context);
    }
    if let Some(message) = blocked {
        let reason = "blocked_by_hook".to_owned();
        let error = ErrorDetail { code: ErrorCode::TurnFailed, reason, message };
        return Ok(Err(Box::new(main.fail(started_ms, error))));
    }
    Ok(Ok(context.iter().fold(main, |main, text| main.append_request(text))))
}

/// Runs the hooks before the conversation is shortened; they cannot prevent it.
pub(super) async fn before_compaction(task: &AgentTask, trigger: &str) -> Result<(), RunAborted> {
    let fields = json!({ "trigger": trigger, "custom_instructions": "" });
    run(task, HookInput::new(HookEvent::PreCompact, trigger, fields)).await.map(|_| ())
}

/// Runs the hooks before a task ends with this answer. Returns what they say against it.
pub(super) async fn before_end(
    task: &Execution<'_>,
    answer: &str,
    objections: &mut u32,
) -> Result<Option<String>, RunAborted> {
    let task = task.task;
    let rules = &task.rules;
    let is_stage = matches!(rules.shape, FlowShape::Stage(_));
    let event = match rules.parent {
        None => HookEvent::Stop,
        Some(_) if is_stage => return Ok(None),
        Some(_) => HookEvent::SubagentStop,
    };
    if task.preset_end.is_some() || rules.one_answer || !task.session.hooks.has(event) {
        return Ok(None);
    }
    let outcome = run(task, end_input(event, answer, *objections > 0)).await?;
    if !outcome.is_blocked() || outcome.stops_task() {
        return Ok(None);
    }
    *objections += 1;
    if *objections > MAX_OBJECTIONS {
        let message = format!("hooks kept the task from ending {MAX_OBJECTIONS} times; it ends now");
        task.engine.emit(&task.branch, Event::Warning { code: "hook_limit".to_owned(), message });
        return Ok(None);
    }
    Ok(Some(format!("A hook says that the task is not done: {}", outcome.reason)))
}

/// Tells the hooks that a task made of stages ends; its stages are over, so they cannot continue it.
pub(super) async fn at_end(main: &AgentTask, outcome: &TaskOutcome) -> Result<(), RunAborted> {
    if outcome.status != TaskStatus::Completed || main.rules.parent.is_some() {
        return Ok(());
    }
    run(main, end_input(HookEvent::Stop, &outcome.answer, true)).await.map(|_| ())
}

fn end_input(event: HookEvent, answer: &str, active: bool) -> HookInput {
    HookInput::new(event, "", json!({ "stop_hook_active": active, "last_assistant_message": answer }))
}

async fn run(task: &AgentTask, input: HookInput) -> Result<HookOutcome, RunAborted> {
    let scope = HookScope { engine: &*task.engine, branch: &task.branch, cancel: &task.cancel };
    Box::pin(task.session.hooks.run(scope, input)).await
}
