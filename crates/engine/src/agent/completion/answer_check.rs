//! Validates the final answer. The check runs as a journal step because it may read files. `machine.rs` gives a
//! rejected answer one more turn.

use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_tools::Workspace;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::task::AgentTask;

/// Maximum number of validation problems reported at once; the model sees the rest after fixing these.
const MAX_PROBLEMS: usize = 8;

/// Validates final answers.
pub trait AnswerCheck: Send + Sync {
    /// Returns the normalized answer, or a description of the problem worded for the model.
    fn check(&self, answer: &str, workspace: &Workspace) -> Result<AcceptedAnswer, String>;

    /// Validates the second and last answer. Because there is no third attempt, it may keep the valid part.
    fn check_last(&self, answer: &str, workspace: &Workspace) -> Result<AcceptedAnswer, String> {
        self.check(answer, workspace)
    }
}

/// An answer that passed validation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedAnswer {
    /// The normalized answer.
    pub answer: String,
    /// Whether the answer makes the run fail, as a review with severe findings does.
    #[serde(default, rename = "objects", skip_serializing_if = "std::ops::Not::not")]
    pub fails_run: bool,
}

/// Checks that an answer is JSON that matches a schema.
pub struct JsonAnswer(jsonschema::Validator);

impl JsonAnswer {
    /// Compiles a JSON Schema; the error says why the schema is invalid.
    pub fn new(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Parses an answer and validates it against the schema.
    pub fn read(&self, answer: &str) -> Result<Value, String> {
        let value: Value =
            serde_json::from_str(unfenced(answer)).map_err(|error| format!("it is not JSON ({error})"))?;
        let problems = self.0.iter_errors(&value).map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("at `{path}`: {error}"),
        });
        let problems: Vec<String> = problems.take(MAX_PROBLEMS).collect();
        if problems.is_empty() { Ok(value) } else { Err(problems.join("; ")) }
    }
}

impl AnswerCheck for JsonAnswer {
    fn check(&self, answer: &str, _workspace: &Workspace) -> Result<AcceptedAnswer, String> {
        self.read(answer).map(|_| AcceptedAnswer { answer: unfenced(answer).to_owned(), fails_run: false })
    }
}

/// The instruction appended to the request, asking the model for JSON of this schema.
pub fn json_wanted(schema: &Value) -> String {
    format!(
        "When you are done, answer with nothing but JSON that fits this JSON Schema, without a fence and without \
         words around it:\n{schema}"
    )
}

/// Strips a code fence around the whole answer, or else returns the JSON between the first opening and the
/// last closing bracket: models like to introduce their answer.
fn unfenced(answer: &str) -> &str {
    let text = answer.trim();
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    if let Some(inner) = fenced.and_then(|text| text.split_once('\n')) {
        return inner.1.trim();
    }
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        return text;
    }
    let inside = |open: char, close: char| {
        let (from, to) = (text.find(open)?, text.rfind(close)?);
        text.get(from..=to)
    };
    let candidates = [inside('{', '}'), inside('[', ']')];
    let is_json = |text: &&str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    candidates.into_iter().flatten().find(is_json).unwrap_or(text)
}

/// Verdict of a check, as stored in the journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnswerVerdict {
    Accepted(AcceptedAnswer),
    #[serde(rename = "complaint")]
    Rejected(String),
}

/// Checks an answer that would end the task; a task without a check accepts any.
pub(crate) async fn check(
    task: &AgentTask,
    answer: String,
    last: bool,
) -> Result<Result<AcceptedAnswer, String>, RunAborted> {
    let Some(check) = &task.check else { return Ok(Ok(AcceptedAnswer { answer, fails_run: false })) };
    let call = StepRequest::new(&task.branch, StepKind::Environment, "answer");
    let workspace = &task.session.workspace;
    let body = async move {
        let checked =
            if last { check.check_last(&answer, workspace) } else { check.check(&answer, workspace) };
        checked.map_or_else(AnswerVerdict::Rejected, AnswerVerdict::Accepted)
    };
    Ok(match task.engine.step(call, body).await?.value {
        AnswerVerdict::Accepted(accepted) => Ok(accepted),
        AnswerVerdict::Rejected(problem) => Err(problem),
    })
}

#[cfg(test)]
mod tests;
