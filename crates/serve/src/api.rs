//! The routes, and the OpenAPI document made from the same list. Every request passes [`Access`](crate::access::Access)
//! before it reaches a route.

mod actions;
mod bench;
mod compare;
mod context;
mod document;
mod events;
mod extract;
mod plan;
mod questions;
mod rewind;
mod runs;
mod session;
mod start;
mod tasks;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use crate::page;
use crate::problem::Problem;
use crate::site::Site;

use document::{Api, Operation};

/// Maximum size of a request's body in bytes.
const BODY: usize = 1 << 20;

/// Where a token is exchanged for a cookie: the one route without a token.
const SESSION: &str = "/api/session";

/// Where the OpenAPI document is.
const OPENAPI: &str = "/api/openapi.json";

/// Path of the Model Context Protocol.
pub const MCP_PATH: &str = "/mcp";

/// The OpenAPI document of the API.
pub fn openapi() -> serde_json::Value {
    api().document()
}

/// The service that answers requests.
pub(crate) fn router(site: Site, mcp: Router) -> Router {
    let api = api();
    let document = api.document().to_string();
    api.router
        .route(OPENAPI, axum::routing::get(async move || json(document.clone())))
        .merge(mcp.with_state(()))
        .fallback(other)
        .layer(DefaultBodyLimit::max(BODY))
        .layer(middleware::from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

fn api() -> Api {
    Api::new()
        .get(
            SESSION,
            session::show,
            Operation::new("Describe this server and its projects").returns::<session::SessionView>(200),
        )
        .post(
            SESSION,
            session::open,
            Operation::new("Exchange the token for a cookie").takes::<session::Token>().empty(204),
        )
        .get(
            "/api/runs",
            runs::list,
            Operation::new("List runs, newest first")
                .query::<runs::ListQuery>()
                .returns::<Vec<runs::RunSummary>>(200),
        )
        .post(
            "/api/runs",
            start::start,
            Operation::new("Start a run").takes::<start::NewRun>().returns::<start::StartedRun>(201).keyed(),
        )
        .get(
            "/api/runs/{run}",
            runs::show,
            Operation::new("Show a run").query::<runs::RunQuery>().returns::<runs::RunDetail>(200),
        )
        .get(
            "/api/runs/{run}/events",
            events::list,
            Operation::new("List events of a run")
                .query::<events::EventsQuery>()
                .returns::<Vec<events::EventView>>(200),
        )
        .get(
            "/api/runs/{run}/stream",
            events::stream,
            Operation::new("Follow the events of a run as server-sent events")
                .query::<events::StreamQuery>()
                .streams("text/event-stream"),
        )
        .get(
            "/api/runs/{run}/index",
            events::index,
            Operation::new("Index of the events of a run")
                .query::<events::IndexQuery>()
                .returns::<events::IndexView>(200),
        )
        .get(
            "/api/runs/{run}/timeline",
            runs::timeline,
            Operation::new("The timeline of a run")
                .query::<runs::RunQuery>()
                .returns::<crate::outline::Timeline>(200),
        )
        .get(
            "/api/runs/{run}/context",
            context::show,
            Operation::new("The model's context in a run")
                .query::<runs::RunQuery>()
                .returns::<context::ContextView>(200),
        )
        .get(
            "/api/runs/{run}/program",
            context::program,
            Operation::new("The program or template of a run, with the calls it made")
                .query::<runs::RunQuery>()
                .returns::<context::ProgramView>(200),
        )
        .get(
            "/api/runs/{run}/export",
            events::export,
            Operation::new("Download a run")
                .query::<events::ExportQuery>()
                .streams("application/octet-stream"),
        )
        .post(
            "/api/runs/{run}/message",
            actions::message,
            Operation::new("Send a message to a run; an ended run is continued by a new one")
                .query::<runs::RunQuery>()
                .takes::<actions::NewMessage>()
                .returns::<start::StartedRun>(201)
                .keyed(),
        )
        .post(
            "/api/runs/{run}/answer",
            questions::answer,
            Operation::new("Answer a question of a run")
                .query::<runs::RunQuery>()
                .takes::<questions::TextAnswer>()
                .returns::<questions::Answered>(200),
        )
        .post(
            "/api/runs/{run}/approve",
            questions::approve,
            Operation::new("Allow or deny a call of a run")
                .query::<runs::RunQuery>()
                .takes::<questions::Approval>()
                .returns::<questions::Answered>(200),
        )
        .post(
            "/api/runs/{run}/stop",
            actions::stop,
            Operation::new("Stop the turn; the run then asks how to continue")
                .query::<runs::RunQuery>()
                .returns::<start::StartedRun>(200),
        )
        .post(
            "/api/runs/{run}/cancel",
            actions::cancel,
            Operation::new("Cancel a run").query::<runs::RunQuery>().returns::<start::StartedRun>(200),
        )
        .post(
            "/api/runs/{run}/resume",
            actions::resume,
            Operation::new("Resume an interrupted run")
                .query::<runs::RunQuery>()
                .returns::<start::StartedRun>(200)
                .keyed(),
        )
        .post(
            "/api/runs/{run}/rewind",
            rewind::rewind,
            Operation::new("Rewind to an earlier turn of a run, as a new run")
                .query::<runs::RunQuery>()
                .takes::<rewind::RewindRequest>()
                .returns::<rewind::RewindView>(200),
        )
        .post(
            "/api/runs/{run}/fork",
            rewind::fork,
            Operation::new("Branch off a new run from an earlier one and continue differently")
                .query::<runs::RunQuery>()
                .takes::<rewind::ForkRequest>()
                .returns::<start::StartedRun>(201)
                .keyed(),
        )
        .post(
            "/api/runs/{run}/undo",
            actions::undo,
            Operation::new("Undo the file changes of a run")
                .query::<actions::UndoQuery>()
                .returns::<actions::UndoView>(200),
        )
        .get(
            "/api/approvals",
            questions::list,
            Operation::new("List the questions that wait for an answer")
                .returns::<Vec<crate::question::QuestionView>>(200),
        )
        .get(
            "/api/templates",
            tasks::list,
            Operation::new("List templates and workflows").returns::<Vec<tasks::TaskView>>(200),
        )
        .get(
            "/api/prompt",
            plan::prompt,
            Operation::new("The system prompt of requests in a project")
                .query::<plan::PromptQuery>()
                .returns::<plan::PromptView>(200),
        )
        .post(
            "/api/plan",
            plan::plan,
            Operation::new("What a run would do; nothing is started")
                .takes::<start::NewRun>()
                .returns::<plan::PlanView>(200),
        )
        .get(
            "/api/compare",
            compare::compare,
            Operation::new("Compare two runs")
                .query::<compare::CompareQuery>()
                .returns::<compare::Comparison>(200),
        )
        .get(
            "/api/bench/jobs",
            bench::list,
            Operation::new("List benchmark jobs").returns::<Vec<bench::JobView>>(200),
        )
        .get(
            "/api/bench/jobs/{job}",
            bench::show,
            Operation::new("The trials of a benchmark job").returns::<bench::JobDetail>(200),
        )
        .get(
            "/api/bench/compare",
            bench::compare,
            Operation::new("Compare two benchmark jobs, paired by case and attempt")
                .query::<bench::JobsQuery>()
                .returns::<fusee_bench::comparison::Comparison>(200),
        )
}

/// Lets a request through to the routes, or refuses it.
async fn guard(State(site): State<Site>, request: Request, next: Next) -> Response {
    let mut response = match admit(&site, request) {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    page::harden(&mut response);
    response
}

fn admit(site: &Site, request: Request) -> Result<Request, Problem> {
    let (parts, body) = request.into_parts();
    site.access.check_source(&parts)?;
    let length =
        parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY as u64) {
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"));
    }
    let path = parts.uri.path();
    let is_exchange = path == SESSION && parts.method == Method::POST;
    if (is_api(path) || path == MCP_PATH) && !is_exchange {
        site.access.check_token(&parts)?;
        let changes = !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if changes && site.read_only {
            return Err(Problem::new(StatusCode::FORBIDDEN, "this server is read-only"));
        }
    }
    Ok(Request::from_parts(parts, body))
}

fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Everything that is not a route: the page, which knows its own paths.
async fn other(request: Request) -> Response {
    if is_api(request.uri().path()) {
        return Problem::not_found("there is no such route").help(OPENAPI).into_response();
    }
    match *request.method() {
        Method::GET | Method::HEAD => page::document(request.headers()),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

fn json(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    let json = axum::http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, json);
    response
}
