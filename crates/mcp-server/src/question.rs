//! Questions of a run and their answers: approvals of calls, and questions of the model to the user.

use fusee::approval::{ApprovalAnswer, ApprovalExtent, ApprovalScope, OutsideAnswer, signal_name};
use fusee::journal::Branch;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// Tool whose call is a question to the user.
const ASK_USER: &str = "ask_user";

/// Characters of a call's arguments in a description.
const MAX_SHOWN: usize = 120;

/// Reason given to the model for a refusal without one.
const REFUSED: &str = "the user refused";

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct OpenQuestion {
    /// Id of the call it is about; pass it to fusee_answer
    pub(crate) call: String,
    /// What kind of answer it takes
    pub(crate) kind: QuestionKind,
    /// Tool that is called
    pub(crate) tool: String,
    /// Arguments of the call
    pub(crate) arguments: Value,
    /// Why it is asked, or the text of the question
    pub(crate) reason: String,
    /// Task that asks
    #[serde(skip)]
    pub(crate) task: String,
}

/// Kind of answer that a question takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuestionKind {
    /// Whether a call may run.
    Approval,
    /// Free text, sent to the client as a string field.
    Text,
}

impl OpenQuestion {
    /// A question as its event states it.
    pub(crate) fn new(task: &Branch, call: &str, tool: &str, arguments: &Value, reason: &str) -> Self {
        let kind = if tool == ASK_USER { QuestionKind::Text } else { QuestionKind::Approval };
        let asked = arguments.get("question").and_then(Value::as_str).filter(|_| kind == QuestionKind::Text);
        Self {
            call: call.to_owned(),
            kind,
            tool: tool.to_owned(),
            arguments: arguments.clone(),
            reason: asked.unwrap_or(reason).to_owned(),
            task: task.to_string(),
        }
    }

    /// Name of the signal that answers it from another process.
    pub(crate) fn signal(&self) -> String {
        signal_name(&Branch::from(self.task.as_str()), &self.call)
    }

    /// The question in words.
    pub(crate) fn describe(&self) -> String {
        match self.kind {
            QuestionKind::Approval => format!(
                "- approval of call {}: {} {} ({})",
                self.call,
                self.tool,
                shown(&self.arguments),
                self.reason
            ),
            QuestionKind::Text => format!("- question of call {}: {}", self.call, self.reason),
        }
    }

    /// The question as a form.
    pub(crate) fn form(&self) -> Option<ElicitRequestParams> {
        let (message, schema) = match self.kind {
            QuestionKind::Approval => (
                format!("Fusee asks for approval: {} {}\n{}", self.tool, shown(&self.arguments), self.reason),
                json!({
                    "type": "object",
                    "properties": {
                        "decision": {
                            "type": "string",
                            "title": "Decision",
                            "description": "once: this call only; run: also later calls like it in this run",
                            "enum": ["once", "run", "refuse"],
                        },
                        "reason": {
                            "type": "string",
                            "title": "Reason",
                            "description": "Reason of a refusal, for the model",
                        },
                    },
                    "required": ["decision"],
                }),
            ),
            QuestionKind::Text => (
                self.reason.clone(),
                json!({
                    "type": "object",
                    "properties": { "answer": { "type": "string", "title": "Answer" } },
                    "required": ["answer"],
                }),
            ),
        };
        let Value::Object(schema) = schema else { return None };
        let requested_schema = ElicitationSchema::from_json_schema(schema).ok()?;
        Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
    }

    /// The answer that a filled-in form gives; `None` if it leaves the question open.
    pub(crate) fn answer_of_form(&self, result: &ElicitResult) -> Option<OutsideAnswer> {
        let field = |name: &str| {
            let content = result.content.as_ref()?;
            content.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        match (&result.action, self.kind) {
            (ElicitationAction::Accept, QuestionKind::Text) => field("answer").map(OutsideAnswer::Text),
            (ElicitationAction::Accept, QuestionKind::Approval) => {
                let decision = field("decision")?;
                Some(approval(&decision, field("reason").filter(|reason| !reason.is_empty())))
            }
            (ElicitationAction::Decline, QuestionKind::Approval) => {
                Some(OutsideAnswer::Approval(ApprovalAnswer::no(REFUSED)))
            }
            _ => None,
        }
    }
}

fn approval(decision: &str, reason: Option<String>) -> OutsideAnswer {
    OutsideAnswer::Approval(match decision {
        "once" => ApprovalAnswer::yes(),
        "run" => ApprovalAnswer {
            lasts: ApprovalScope::Session,
            extent: ApprovalExtent::Wider,
            ..ApprovalAnswer::yes()
        },
        _ => ApprovalAnswer::no(reason.unwrap_or_else(|| REFUSED.to_owned())),
    })
}

/// The answer that `fusee_answer` gives to a question, or what is missing.
pub(crate) fn given_answer(
    question: &OpenQuestion,
    approve: Option<bool>,
    text: Option<String>,
) -> Result<OutsideAnswer, String> {
    match (question.kind, approve, text) {
        (QuestionKind::Text, None, Some(text)) => Ok(OutsideAnswer::Text(text)),
        (QuestionKind::Text, ..) => Err("this question takes `text`".to_owned()),
        (QuestionKind::Approval, Some(true), _) => Ok(OutsideAnswer::Approval(ApprovalAnswer::yes())),
        (QuestionKind::Approval, Some(false), reason) => {
            Ok(OutsideAnswer::Approval(ApprovalAnswer::no(reason.unwrap_or_else(|| REFUSED.to_owned()))))
        }
        (QuestionKind::Approval, None, _) => Err("this approval takes `approve`: true or false".to_owned()),
    }
}

/// Arguments of a call on one line, shortened.
pub(crate) fn shown(arguments: &Value) -> String {
    let text = match arguments {
        Value::Object(fields) if fields.len() == 1 => {
            fields.values().next().map_or_else(String::new, |value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
        }
        other => other.to_string(),
    };
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
