//! What routes take from a request. Invalid requests are answered in the same form as every other problem.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// Time for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// The parameters of the query.
pub(super) struct Params<T>(pub(super) T);

/// The JSON body.
pub(super) struct Input<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(query)) => Ok(Self(query)),
            Err(rejected) => Err(Problem::bad_request(rejected.body_text())),
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Input<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match tokio::time::timeout(BODY_TIMEOUT, Json::<T>::from_request(request, state)).await {
            Ok(Ok(Json(body))) => Ok(Self(body)),
            Ok(Err(rejected)) => Err(problem(&rejected)),
            Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
        }
    }
}

fn problem(rejected: &JsonRejection) -> Problem {
    Problem::new(rejected.status(), rejected.body_text())
}
