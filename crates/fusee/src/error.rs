//! Why an agent could not be built, or a run not started or finished.

use fusee_engine::journal::{JournalError, RunAborted, RunId};
use fusee_engine::model::{OpenError, ResolveError};
use fusee_engine::run::StartError;

use crate::Outcome;

/// An error of the library. A task that fails is not one: its [`Outcome`] says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model name could not be resolved, or its key is missing.
    #[error(transparent)]
    Model(#[from] ResolveError),
    /// The model could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run could not be started or resumed.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A tool cannot be offered to a model.
    #[error("invalid tool `{name}`: {problem}")]
    Tool {
        /// Name of the tool.
        name: String,
        /// Description of the problem.
        problem: String,
    },
    /// The display cannot be used.
    #[error("{0}")]
    Display(String),
    /// A workflow has mistakes; the text lists them with their source lines.
    #[error("invalid workflow:\n{0}")]
    Workflow(String),
    /// A template has mistakes, or its inputs do not fit.
    #[error("invalid template: {0}")]
    Template(String),
    /// A run id is malformed.
    #[error("{0}")]
    RunId(String),
    /// The task has no request, or its last input item is not a message of the user.
    #[error("the task has no request: its last input item must be a user message")]
    NoRequest,
    /// An [`AgentTask`](crate::AgentTask) runs once.
    #[error("task {0} has already run")]
    AlreadyRun(RunId),
    /// The journal failed during the run, or does not match it. The run stays open and can be resumed.
    #[error(transparent)]
    Stopped(RunAborted),
    /// The run panicked. All committed steps are kept.
    #[error("internal error: the run panicked: {0}")]
    Panicked(String),
    /// The task of [`Agent::ask`](crate::Agent::ask) did not complete, so there is no answer.
    #[error("the task did not complete: {}", failure(.0))]
    NoAnswer(Box<Outcome>),
    /// The answer does not have the type that was asked for.
    #[error("the answer does not have the requested type: {problem}")]
    WrongAnswer {
        /// What the model answered instead.
        answer: String,
        /// How it differs.
        problem: String,
    },
}

fn failure(outcome: &Outcome) -> String {
    outcome.error.as_ref().map_or_else(|| "it was cancelled".to_owned(), |error| error.message.clone())
}
