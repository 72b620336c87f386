//! The error answer of the API: a status, what is wrong, and what to do.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use fusee::engine::run::StartError;
use fusee::journal::JournalError;
use fusee::launch::{LaunchError, LaunchErrorKind};
use schemars::JsonSchema;
use serde::Serialize;

/// An error answer.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    body: ProblemBody,
}

/// Body of every answer that is not a success.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemBody {
    error: ProblemText,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ProblemText {
    /// What is wrong.
    message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    /// Inputs that are wrong, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let error = ProblemText { message: message.into(), help: None, fields: BTreeMap::new() };
        Self { status, body: ProblemBody { error } }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Inputs that are wrong.
    pub(crate) fn fields(fields: BTreeMap<String, String>) -> Self {
        let mut problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "some inputs are wrong");
        problem.body.error.fields = fields;
        problem
    }

    /// What is wrong.
    pub(crate) fn message(&self) -> &str {
        &self.body.error.message
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.body.error.help = Some(help.into());
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::NoSuchRun { .. } => Self::not_found(error.to_string()),
            JournalError::Locked { .. } | JournalError::RunExists(_) => Self::conflict(error.to_string()),
            // The journal is the user's file: what is wrong with it is theirs to see, and no fault of the server.
            other => Self::new(StatusCode::SERVICE_UNAVAILABLE, other.to_string()),
        }
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Journal(error) => error.into(),
            other => Self::conflict(other.to_string()),
        }
    }
}

impl From<LaunchError> for Problem {
    fn from(error: LaunchError) -> Self {
        let status = match error.kind {
            LaunchErrorKind::Usage => StatusCode::UNPROCESSABLE_ENTITY,
            LaunchErrorKind::Unreachable => StatusCode::BAD_GATEWAY,
            LaunchErrorKind::Failed => StatusCode::CONFLICT,
        };
        let problem = Self::new(status, error.message);
        match error.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }
}
