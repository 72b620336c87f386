//! Decides whether a call may run: review restrictions first, then the user's approval policy, then the user.

use fusee_journal::RunAborted;
use fusee_model::ToolCall;
use fusee_tools::{RetrySafety, Tool};
use serde_json::Value;

use super::tool_executor::CallRecord;
use crate::agent::execution::Execution;
use crate::agent::review_policy::ReviewRuling;
use crate::approval::{ApprovalDecision, ApprovalMode, ApprovalQuestion};

/// Progress of the task that the gate decides by.
#[derive(Clone, Copy)]
pub(crate) struct CallHistory<'a> {
    /// Number of calls so far.
    pub(crate) calls: u32,
    /// The text of the reply that makes the call.
    pub(crate) explanation: Option<&'a str>,
}

/// Applies the policies, asking the user if required. Returns the result of a refused call.
pub(crate) async fn admit(
    run: &mut Execution<'_>,
    history: CallHistory<'_>,
    call: &ToolCall,
    tool: &dyn Tool,
    arguments: &Value,
) -> Result<Option<CallRecord>, RunAborted> {
    let reason = match judge(run, history, tool, arguments) {
        ApprovalDecision::Open => return Ok(None),
        ApprovalDecision::Shut(reason) => return Ok(Some(CallRecord::refused(&reason))),
        ApprovalDecision::Ask(reason) => reason,
    };
    let (call_id, name) = (call.id.clone(), call.name.clone());
    let question = ApprovalQuestion { call_id, name, arguments: arguments.clone(), reason };
    let (refusal, lasting) = run.executor().ask_for_longer(question).await?;
    lasting.into_iter().for_each(|rule| run.approvals.add(rule));
    Ok(refusal)
}

fn judge(
    run: &Execution<'_>,
    history: CallHistory<'_>,
    tool: &dyn Tool,
    arguments: &Value,
) -> ApprovalDecision {
    let (definition, approve) = (tool.definition(), run.policy.approve);
    let decided = run.approvals.decide(&definition.name, arguments);
    let never = tool.repeat() == RetrySafety::Never;
    let policy = run.policy.judge(definition.category, never).with_rules(decided, approve);
    let Some(review) = &run.session().review else { return policy };
    match review.judge(&definition.name, definition.category, history.calls) {
        ReviewRuling::Allowed => policy,
        ReviewRuling::AskFirst if review.require_explanations && history.explanation.is_none() => {
            ApprovalDecision::Shut(
                "say in words what this call is for, and make it again in the same reply".to_owned(),
            )
        }
        ReviewRuling::AskFirst => match approve {
            ApprovalMode::Never => ApprovalDecision::Shut("a review only looks".to_owned()),
            ApprovalMode::Auto | ApprovalMode::Ask => {
                let words = history.explanation.map(|words| format!("; the model says: {words}"));
                let reason = "a review is read-only; other calls need approval";
                ApprovalDecision::Ask(format!("{reason}{}", words.unwrap_or_default()))
            }
        },
        ReviewRuling::NotInReview => ApprovalDecision::Shut("a review only looks".to_owned()),
        ReviewRuling::TooMany => ApprovalDecision::Shut(format!(
            "the review has used its {} calls; answer now with what you found",
            review.max_tool_calls
        )),
    }
}
