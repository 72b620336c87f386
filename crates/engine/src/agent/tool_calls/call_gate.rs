//! Decides whether a call may run: hooks first, then review restrictions and the user's approval policy, then the
//! user. `call_hooks` does the asking.

use fusee_journal::RunAborted;
use fusee_journal::event::HookDecision;
use fusee_model::ToolCall;
use fusee_tools::{RetrySafety, Tool};
use serde_json::Value;

use super::call_hooks::{self, Admission};
use crate::agent::execution::Execution;
use crate::agent::review_policy::ReviewRuling;
use crate::approval::{ApprovalDecision, ApprovalMode};
use crate::hook::HookOutcome;

/// Progress of the task that the gate decides by.
#[derive(Clone, Copy)]
pub(crate) struct CallHistory<'a> {
    /// Number of calls so far.
    pub(crate) calls: u32,
    /// The text of the reply that makes the call.
    pub(crate) explanation: Option<&'a str>,
}

/// Applies hooks and policies, asking the user if required.
pub(crate) async fn admit(
    run: &mut Execution<'_>,
    history: CallHistory<'_>,
    call: &ToolCall,
    tool: &dyn Tool,
    arguments: Value,
) -> Result<Admission, RunAborted> {
    let admission = {
        let run: &Execution<'_> = run;
        let decide = |arguments: &Value, hooks: &HookOutcome| decide(run, history, tool, arguments, hooks);
        let executor = run.executor();
        Box::pin(call_hooks::admit(&executor, &call.id, tool, arguments, &decide)).await?
    };
    if let Admission::Run { lasting, .. } = &admission {
        lasting.iter().for_each(|rule| run.approvals.add(rule.clone()));
    }
    Ok(admission)
}

fn decide(
    run: &Execution<'_>,
    history: CallHistory<'_>,
    tool: &dyn Tool,
    arguments: &Value,
    hooks: &HookOutcome,
) -> ApprovalDecision {
    let decision = judge_unhooked(run, history, tool, arguments, hooks.decision);
    decision.asked_by_hook(hooks, run.policy.approve)
}

fn judge_unhooked(
    run: &Execution<'_>,
    history: CallHistory<'_>,
    tool: &dyn Tool,
    arguments: &Value,
    hook: HookDecision,
) -> ApprovalDecision {
    let (definition, approve) = (tool.definition(), run.policy.approve);
    let decided = run.approvals.decide(&definition.name, arguments);
    let never = tool.repeat() == RetrySafety::Never;
    let policy = run.policy.decide(definition.category, never).allowed_by_hook(hook);
    let policy = policy.with_rules(decided, approve);
    let Some(review) = &run.session().review else { return policy };
    match review.decide(&definition.name, definition.category, history.calls) {
        ReviewRuling::Allowed => policy,
        ReviewRuling::AskFirst if review.require_explanations && history.explanation.is_none() => {
            ApprovalDecision::Deny(
                "say in words what this call is for, and make it again in the same reply".to_owned(),
            )
        }
        ReviewRuling::AskFirst => match approve {
            ApprovalMode::Never => ApprovalDecision::Deny("a review or plan mode changes nothing".to_owned()),
            ApprovalMode::Auto | ApprovalMode::Ask => {
                let words = history.explanation.map(|words| format!("; the model says: {words}"));
                let reason = "a review is read-only; other calls need approval";
                ApprovalDecision::Ask(format!("{reason}{}", words.unwrap_or_default()))
            }
        },
        ReviewRuling::NotInReview => {
            ApprovalDecision::Deny("a review or plan mode changes nothing".to_owned())
        }
        ReviewRuling::TooMany => ApprovalDecision::Deny(format!(
            "the review has used its {}; answer now with what you found",
            fusee_text::count(review.max_tool_calls.into(), "call")
        )),
    }
}
