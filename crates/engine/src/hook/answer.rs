//! Answers of hooks: the exit code and the JSON on standard output.

use fusee_journal::event::HookDecision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HookEvent;
use super::process::HookEnd;

/// Maximum bytes of a text that is passed on: a reason, a message or context.
const MAX_TEXT: usize = 32 * 1024;

/// The answer of one hook, as stored in the journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct HookAnswer {
    pub(super) decision: HookDecision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// For the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// For the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<String>,
    /// Arguments that replace those of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) updated_input: Option<Value>,
}

/// The JSON that a hook may write.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Output {
    #[serde(rename = "continue")]
    go_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<Specific>,
}

/// Its part for one event.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Specific {
    hook_event_name: Option<String>,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
    decision: Option<Permission>,
}

/// The decision about an approval.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Permission {
    behavior: String,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    updated_input: Option<Value>,
    #[serde(default)]
    interrupt: bool,
}

impl HookAnswer {
    /// A hook that gave no answer.
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self { decision: HookDecision::Failed, reason: text(reason.into()), ..Self::default() }
    }

    /// A refusal that does not come from the hook itself.
    pub(super) fn blocked(event: HookEvent, reason: impl Into<String>) -> Self {
        let decision = if event.can_block() { HookDecision::Block } else { HookDecision::Failed };
        Self { decision, reason: text(reason.into()), ..Self::default() }
    }

    /// Reads the answer of a hook that exited.
    pub(super) fn read(event: HookEvent, end: &HookEnd) -> Self {
        let said = end.errors.trim();
        match end.code {
            0 => Self::read_output(event, end.output.trim()),
            2 => {
                let reason = if said.is_empty() { "it gave no reason" } else { said };
                Self::blocked(event, reason)
            }
            code => {
                let colon = if said.is_empty() { "" } else { ": " };
                Self::failed(format!("it ended with code {code}{colon}{said}"))
            }
        }
    }

    fn read_output(event: HookEvent, output: &str) -> Self {
        if !output.starts_with('{') {
            let context = text(output.to_owned()).filter(|_| event.takes_plain_context());
            return Self { context, ..Self::default() };
        }
        match serde_json::from_str::<Output>(output) {
            Ok(output) => output.interpret(event).unwrap_or_else(Self::failed),
            Err(error) => Self::failed(format!("its output is not as expected: {error}")),
        }
    }
}

impl Output {
    /// The answer, or what is wrong with the output.
    fn interpret(self, event: HookEvent) -> Result<HookAnswer, String> {
        let specific = self.hook_specific_output.unwrap_or_default();
        if let Some(name) = specific.hook_event_name.as_deref().filter(|name| *name != event.name()) {
            return Err(format!("its answer is for the event {name}, but this is {}", event.name()));
        }
        let mut answer = HookAnswer {
            message: self.system_message.and_then(text),
            context: specific.additional_context.and_then(text),
            updated_input: specific.updated_input,
            ..HookAnswer::default()
        };
        let mut reason = self.reason;
        answer.decision = match self.decision.as_deref() {
            None => HookDecision::None,
            Some("approve" | "allow") => HookDecision::Allow,
            Some("block" | "deny") => HookDecision::Block,
            Some("ask") => HookDecision::Ask,
            Some(other) => return Err(format!("unknown decision `{other}`")),
        };
        if let Some(word) = specific.permission_decision.as_deref() {
            answer.decision = match word {
                "allow" => HookDecision::Allow,
                "deny" => HookDecision::Deny,
                // A deferred call waits for whoever answers, which is what asking does.
                "ask" | "defer" => HookDecision::Ask,
                other => return Err(format!("unknown permissionDecision `{other}`")),
            };
            reason = specific.permission_decision_reason.or(reason);
        }
        if let Some(permission) = specific.decision {
            answer.decision = match permission.behavior.as_str() {
                "allow" => HookDecision::Allow,
                "deny" if permission.interrupt => HookDecision::Stop,
                "deny" => HookDecision::Deny,
                other => return Err(format!("unknown behavior `{other}`")),
            };
            reason = permission.message.or(reason);
            answer.updated_input = permission.updated_input.or(answer.updated_input);
        }
        if answer.decision > HookDecision::Allow && !event.can_block() {
            answer.decision = HookDecision::None;
        }
        if self.go_on == Some(false) {
            answer.decision = HookDecision::Stop;
            reason = self.stop_reason.or(reason);
        }
        answer.reason = reason.and_then(text);
        Ok(answer)
    }
}

/// A text within its bound; `None` if it is empty.
fn text(mut text: String) -> Option<String> {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push_str(" [cut]");
    }
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
