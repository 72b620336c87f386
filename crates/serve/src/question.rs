//! An open question of a run: a call that waits for approval, or a text that the model, a workflow or a stopped turn waits
//! for.

use fusee::journal::{Branch, RunId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Step name of the questions whose answer is text.
const ASK_USER: &str = "ask_user";

/// Start of the ids of questions about stopped turns.
const STOPPED: &str = "stopped-";

/// What kind of answer a question waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuestionKind {
    /// Whether a call may run.
    Approval,
    /// A text.
    Question,
    /// How to continue after a turn was stopped: a text, which may be empty.
    Stopped,
}

/// A question as recorded.
#[derive(Clone, Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) task: Branch,
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) reason: String,
    pub(crate) asked_ms: i64,
    pub(crate) seq: u64,
}

impl OpenQuestion {
    /// What kind of answer it waits for.
    pub(crate) fn kind(&self) -> QuestionKind {
        match (self.tool == ASK_USER, self.id.starts_with(STOPPED)) {
            (true, true) => QuestionKind::Stopped,
            (true, false) => QuestionKind::Question,
            (false, _) => QuestionKind::Approval,
        }
    }

    /// The question as it is listed.
    pub(crate) fn view(
        &self,
        run: &RunId,
        project: &str,
        title: &str,
        sandbox: &str,
        working: bool,
    ) -> QuestionView {
        QuestionView {
            run: run.to_string(),
            project: project.to_owned(),
            title: title.to_owned(),
            id: self.id.clone(),
            kind: self.kind(),
            tool: self.tool.clone(),
            task: self.task.to_string(),
            arguments: self.arguments.clone(),
            reason: self.reason.clone(),
            sandbox: sandbox.to_owned(),
            asked_ms: self.asked_ms,
            seq: self.seq,
            working,
        }
    }
}

/// A question that waits for an answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Question")]
pub(crate) struct QuestionView {
    /// Run that asks.
    run: String,
    /// Directory of the run's project.
    project: String,
    /// Shortened request of the run.
    title: String,
    /// Id of the question, unique within its run.
    id: String,
    /// What kind of answer it waits for.
    kind: QuestionKind,
    /// Name of the tool.
    tool: String,
    /// Task that asks.
    task: String,
    /// Arguments of the call; `question` for a question.
    arguments: Value,
    /// Why it is asked.
    reason: String,
    /// What confines commands: `off`, or the active layers.
    sandbox: String,
    /// When it was asked, in milliseconds since the Unix epoch.
    asked_ms: i64,
    /// Number of the event.
    seq: u64,
    /// Whether a process works on the run. If not, the answer is used when the run is resumed.
    working: bool,
}
