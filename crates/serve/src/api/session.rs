//! The exchange of the token for a cookie, and what the page has to know about the server.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Input;
use crate::access::unauthorized;
use crate::problem::Problem;
use crate::site::Site;

/// The token of the printed URL.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Token {
    token: String,
}

/// The server and its projects.
#[derive(Serialize, JsonSchema)]
pub(super) struct SessionView {
    /// Version of fusee.
    version: &'static str,
    /// Directory that new runs work in.
    directory: String,
    /// Directories of all projects whose runs are listed.
    projects: Vec<String>,
    /// Whether nothing can be started, answered or changed.
    read_only: bool,
}

pub(super) async fn open(State(site): State<Site>, Input(Token { token }): Input<Token>) -> Response {
    if !site.access.can_exchange(&token) {
        return unauthorized("invalid token").into_response();
    }
    (StatusCode::NO_CONTENT, [(SET_COOKIE, site.access.set_cookie())]).into_response()
}

pub(super) async fn show(State(site): State<Site>) -> Result<Json<SessionView>, Problem> {
    let projects = site.read(|site| Ok(site.projects())).await?;
    Ok(Json(SessionView {
        version: env!("CARGO_PKG_VERSION"),
        directory: site.launcher.directory().display().to_string(),
        projects: projects.iter().map(|project| project.display().to_string()).collect(),
        read_only: site.read_only,
    }))
}
