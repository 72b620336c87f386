//! Whether an answer is as it was asked for: checked when the task would end, mended in one more turn, and a failure
//! after that. What is looked at for it is a step, since a check may look at files.

use std::sync::Arc;

use fusee_journal::event::{ErrorCode, TaskError};
use fusee_journal::{BoxFuture, Call, Kind, Stop};
use fusee_tools::Workspace;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::driver::{Driver, to_value};
use super::turns::Ending;

/// Problems told at once; a model mends the rest when it sees them.
const TOLD: usize = 8;

/// Judges answers.
pub trait AnswerCheck: Send + Sync {
    /// The answer as it is kept, or what is wrong with it, in words for the model.
    fn check(&self, answer: &str, workspace: &Workspace) -> Result<Accepted, String>;

    /// The same for the answer after a complaint: there is no third, so what is good of it may be kept.
    fn check_last(&self, answer: &str, workspace: &Workspace) -> Result<Accepted, String> {
        self.check(answer, workspace)
    }
}

/// An answer that is as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The answer as it is kept.
    pub answer: String,
    /// Whether it is one that makes the run fail, as a review with severe findings does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub objects: bool,
}

/// An answer that is JSON and fits a schema.
pub struct JsonAnswer(jsonschema::Validator);

impl JsonAnswer {
    /// Answers of this JSON Schema; the error says why it is none.
    pub fn new(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    /// The value in an answer, if it fits.
    pub fn read(&self, answer: &str) -> Result<Value, String> {
        let value: Value =
            serde_json::from_str(unfenced(answer)).map_err(|error| format!("it is not JSON ({error})"))?;
        let problems = self.0.iter_errors(&value).map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("at `{path}`: {error}"),
        });
        let problems: Vec<String> = problems.take(TOLD).collect();
        if problems.is_empty() { Ok(value) } else { Err(problems.join("; ")) }
    }
}

impl AnswerCheck for JsonAnswer {
    fn check(&self, answer: &str, _workspace: &Workspace) -> Result<Accepted, String> {
        self.read(answer).map(|_| Accepted { answer: unfenced(answer).to_owned(), objects: false })
    }
}

/// What is asked of the model along with its request.
pub fn json_wanted(schema: &Value) -> String {
    format!(
        "When you are done, answer with nothing but JSON that fits this JSON Schema, without a fence and without \
         words around it:\n{schema}"
    )
}

/// The text inside a fence that surrounds the whole of it, or else from the first brace to the last: models like to
/// introduce what they answer.
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

/// What a check said, as the journal keeps it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Accepted(Accepted),
    Complaint(String),
}

/// How a task goes on after its answer was judged.
pub(crate) enum Judged {
    Ends(Ending),
    /// The model was told what is wrong and is asked again.
    Again,
}

impl Driver<'_> {
    /// Judges an answer that would end the task.
    pub(crate) async fn judge_answer(&mut self, answer: String) -> Result<Judged, Stop> {
        let Some(check) = self.task.check.as_ref().map(Arc::clone) else {
            return Ok(Judged::Ends(Ending::Completed { answer }));
        };
        let call = Call {
            branch: self.task.branch.clone(),
            kind: Kind::Environment,
            callee: "answer".to_owned(),
            args: Value::Null,
        };
        let (workspace, last) = (&self.session().workspace, self.answer_judged);
        let body = Box::new(move || {
            let judge = async move {
                let checked =
                    if last { check.check_last(&answer, workspace) } else { check.check(&answer, workspace) };
                to_value(&match checked {
                    Ok(accepted) => Verdict::Accepted(accepted),
                    Err(complaint) => Verdict::Complaint(complaint),
                })
            };
            Box::pin(judge) as BoxFuture<'_, Value>
        });
        let verdict: Verdict = self.engine().step(call, body).await?.read()?;
        match verdict {
            Verdict::Accepted(Accepted { answer, objects }) => {
                self.answer_objects = objects;
                Ok(Judged::Ends(Ending::Completed { answer }))
            }
            Verdict::Complaint(complaint) if !self.answer_judged => {
                self.answer_judged = true;
                self.facts.fed_back("output_format");
                self.say(&format!(
                    "Your answer is not as it was asked for: {complaint}. Answer again, all of it."
                ));
                Ok(Judged::Again)
            }
            Verdict::Complaint(complaint) => {
                let message = format!("the answer is not as it was asked for: {complaint}");
                let reason = "output_format_failure".to_owned();
                let error = TaskError { code: ErrorCode::TurnFailed, reason, message };
                Ok(Judged::Ends(Ending::Failed { error, unreachable: false }))
            }
        }
    }
}

#[cfg(test)]
mod tests;
