//! Hooks around a tool call: before it, when the user would be asked about it, and after it. The model's calls and
//! those of a workflow take the same path.

use fusee_journal::RunAborted;
use fusee_journal::event::CallFate;
use fusee_tools::tool::arguments;
use fusee_tools::{Tool, ToolOutput};
use serde_json::{Value, json};

use super::tool_executor::{CallRecord, ToolExecutor};
use crate::approval::rules::ApprovalRule;
use crate::approval::{ApprovalDecision, ApprovalQuestion};
use crate::hook::{HookEvent, HookInput, HookOutcome, HookScope};

/// Whether a call runs.
pub(crate) enum Admission {
    /// It runs, with these arguments.
    Run {
        arguments: Value,
        /// What hooks tell the model, to be added to the result.
        context: Vec<String>,
        /// Rules that a lasting approval adds.
        lasting: Vec<ApprovalRule>,
    },
    /// It is refused with this result.
    Refused(CallRecord),
}

/// Decides about a call with these arguments, given what the hooks decided.
pub(crate) type CallJudge<'a> = dyn Fn(&Value, &HookOutcome) -> ApprovalDecision + Sync + 'a;

/// Admits a call: hooks first, then the policy, then the hooks that answer for the user, then the user. Arguments
/// that a hook has changed are checked like those of the model.
pub(crate) async fn admit(
    executor: &ToolExecutor<'_>,
    call_id: &str,
    tool: &dyn Tool,
    mut arguments: Value,
    decide: &CallJudge<'_>,
) -> Result<Admission, RunAborted> {
    let name = &*tool.definition().name;
    let mut before = run(executor, HookEvent::PreToolUse, tool, &arguments, call_id).await?;
    if before.is_blocked() {
        return Ok(Admission::Refused(refusal(&before)));
    }
    match updated(&mut before, tool) {
        Ok(Some(new)) => arguments = new,
        Ok(None) => {}
        Err(problem) => return Ok(Admission::Refused(misfit(&problem))),
    }
    let mut decision = decide(&arguments, &before);
    if matches!(decision, ApprovalDecision::Ask(_)) {
        let mut asked = run(executor, HookEvent::PermissionRequest, tool, &arguments, call_id).await?;
        if asked.is_blocked() {
            return Ok(Admission::Refused(refusal(&asked)));
        }
        match updated(&mut asked, tool) {
            Ok(Some(new)) => {
                arguments = new;
                decision = decide(&arguments, &asked);
            }
            Ok(None) => decision = decision.allowed_by_hook(asked.decision),
            Err(problem) => return Ok(Admission::Refused(misfit(&problem))),
        }
    }
    let reason = match decision {
        ApprovalDecision::Allow => {
            return Ok(Admission::Run { arguments, context: before.context, lasting: Vec::new() });
        }
        ApprovalDecision::Deny(reason) => return Ok(Admission::Refused(CallRecord::refused(&reason))),
        ApprovalDecision::Ask(reason) => reason,
    };
    let (call_id, name) = (call_id.to_owned(), name.to_owned());
    let question = ApprovalQuestion { call_id, name, arguments: arguments.clone(), reason };
    let (refusal, lasting) = executor.ask_with_rules(question).await?;
    Ok(match refusal {
        Some(refusal) => Admission::Refused(refusal),
        None => Admission::Run { arguments, context: before.context, lasting },
    })
}

/// Runs the hooks after a call that was made, and adds what they say to its result.
pub(crate) async fn after(
    executor: &ToolExecutor<'_>,
    call_id: &str,
    tool: &dyn Tool,
    arguments: &Value,
    called: &mut CallRecord,
    mut context: Vec<String>,
) -> Result<(), RunAborted> {
    if called.fate.is_none() && !called.output.aborted && executor.session.hooks.has(HookEvent::PostToolUse) {
        let ToolOutput { ok, content, exit_code, .. } = &called.output;
        let response = json!({ "ok": ok, "success": ok, "content": content, "exit_code": exit_code });
        let input = HookInput::about_call(HookEvent::PostToolUse, tool, arguments, call_id)
            .with("tool_response", response);
        let outcome = Box::pin(executor.session.hooks.run(scope(executor), input)).await?;
        if outcome.is_blocked() {
            context.push(outcome.reason.clone());
        }
        context.extend(outcome.context.iter().cloned());
        called.output.stops_task |= outcome.stops_task();
        if outcome.stops_task() {
            context.push(stopped(&outcome));
        }
    }
    for text in context {
        called.output.content.push_str(&format!("\n\n[hook] {text}"));
    }
    Ok(())
}

/// Tells the hooks that the user is needed.
pub(crate) async fn notify(
    executor: &ToolExecutor<'_>,
    question: &ApprovalQuestion,
) -> Result<(), RunAborted> {
    let message = format!("approval needed for {}: {}", question.name, question.reason);
    let fields = json!({ "message": message, "notification_type": "permission_prompt" });
    let input = HookInput::new(HookEvent::Notification, "permission_prompt", fields);
    Box::pin(executor.session.hooks.run(scope(executor), input)).await.map(|_| ())
}

async fn run(
    executor: &ToolExecutor<'_>,
    event: HookEvent,
    tool: &dyn Tool,
    arguments: &Value,
    call_id: &str,
) -> Result<HookOutcome, RunAborted> {
    let input = HookInput::about_call(event, tool, arguments, call_id);
    Box::pin(executor.session.hooks.run(scope(executor), input)).await
}

fn scope<'a>(executor: &ToolExecutor<'a>) -> HookScope<'a> {
    HookScope { engine: &**executor.engine, branch: executor.branch, cancel: executor.cancel }
}

/// The arguments that hooks put in place of the model's, or why they do not fit the tool.
fn updated(hooks: &mut HookOutcome, tool: &dyn Tool) -> Result<Option<Value>, String> {
    let Some(new) = hooks.updated_input.take() else { return Ok(None) };
    arguments::parse(&new.to_string(), tool.definition()).map(Some)
}

/// The result of a call whose new arguments do not fit.
fn misfit(problem: &str) -> CallRecord {
    let text = format!("Not run: a hook changed the arguments, and they do not fit the tool: {problem}");
    CallRecord::ended(ToolOutput::error(text), CallFate::Refused)
}

fn refusal(hooks: &HookOutcome) -> CallRecord {
    let reason = if hooks.reason.is_empty() { "it gave no reason" } else { hooks.reason.as_str() };
    let mut output = ToolOutput::error(format!("Not run: refused by a hook: {reason}"));
    if hooks.stops_task() {
        output.stops_task = true;
        output.content.push_str(&format!("\n{}", stopped(hooks)));
    }
    CallRecord::ended(output, CallFate::Refused)
}

/// The reason of a task that a hook ends.
pub(crate) fn stopped(hooks: &HookOutcome) -> String {
    match hooks.reason.is_empty() {
        true => "a hook ended the task".to_owned(),
        false => format!("a hook ended the task: {}", hooks.reason.lines().next().unwrap_or_default()),
    }
}
