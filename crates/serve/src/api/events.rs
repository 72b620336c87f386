//! Events of a run: pages, a stream, and downloads.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use fusee::journal::EventRecord;
use fusee::launch::RunExport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use crate::action_sequence;
use crate::event_feed::EventFeed;
use crate::event_filter::{EventFilter, EventKind};
use crate::problem::Problem;
use crate::site::{FoundRun, Site};

/// Maximum number of events in a page.
const MOST: usize = 1_000;

/// Number of events in a page unless a number is given.
const DEFAULT_LIMIT: usize = 200;

/// Events that a filter looks at for one page.
const SCANNED: usize = 20_000;

/// Events read at a time.
const PAGE: usize = 500;

/// Header with the number from which the next page starts.
const NEXT: &str = "fusee-next";

/// Which events to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// Number of the first event [default: 0].
    #[serde(default)]
    from: Option<u64>,
    /// Maximum number of events, up to 1000 [default: 200].
    #[serde(default)]
    limit: Option<usize>,
    /// `all`, `failed`, `edits`, `commands`, `messages` or `tool:NAME` [default: all].
    #[serde(default)]
    kind: Option<String>,
    /// Text that the event contains, without regard to case.
    #[serde(default)]
    text: Option<String>,
    /// Path of the task.
    #[serde(default)]
    task: Option<String>,
    /// Directory of the project, if several have a run of this id.
    #[serde(default)]
    project: Option<String>,
}

/// Where a stream starts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    /// Number of the first event [default: 0].
    #[serde(default)]
    from: Option<u64>,
    /// Directory of the project, if several have a run of this id.
    #[serde(default)]
    project: Option<String>,
}

/// Granularity of an index.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexQuery {
    /// Distance of the events whose numbers are listed, at least 10 [default: 200].
    #[serde(default)]
    every: Option<u64>,
    /// Directory of the project, if several have a run of this id.
    #[serde(default)]
    project: Option<String>,
}

/// What to download.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportQuery {
    /// File format of the download.
    format: ExportFormat,
    /// Directory of the project, if several have a run of this id.
    #[serde(default)]
    project: Option<String>,
}

/// Format of a download.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ExportFormat {
    /// Events, one JSON object per line.
    Events,
    /// A document to read.
    Markdown,
    /// The model's replies, for `--model replay:FILE`.
    Cassette,
    /// Trajectory of Harbor (ATIF).
    Atif,
}

/// Index of the events of a run.
#[derive(Serialize, JsonSchema)]
pub(super) struct IndexView {
    /// Number of events.
    count: u64,
    /// Number of the last event; 0 if there is none.
    last: u64,
    /// Distance of the listed events.
    every: u64,
    /// Numbers of the listed events, the first included.
    starts: Vec<u64>,
}

/// An event; `schema/events.schema.json` has every type and field.
#[derive(JsonSchema)]
#[schemars(rename = "Event")]
#[expect(dead_code, reason = "describes the answer; events write themselves")]
pub(super) struct EventView {
    /// Strictly increasing within a run.
    seq: u64,
    /// Time, RFC 3339 in UTC.
    ts: String,
    /// Run id from the URL.
    run: String,
    /// Branch of the task, as in the events.
    task: String,
    /// Type of the event.
    #[schemars(rename = "type")]
    kind: String,
}

pub(super) async fn list(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<EventsQuery>,
) -> Result<Response, Problem> {
    let kind = query.kind.as_deref().unwrap_or_default();
    let kind = EventKind::parse(kind).ok_or_else(|| {
        Problem::bad_request(format!("unknown kind `{}`", kind.escape_default()))
            .help("known: all, failed, edits, commands, messages, tool:NAME")
    })?;
    let filter = EventFilter::new(kind, query.text.as_deref().unwrap_or_default(), query.task);
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MOST);
    let after = query.from.unwrap_or_default().saturating_sub(1);
    let (events, next) = site
        .read(move |site| {
            let run = site.find(&run, query.project.as_deref())?;
            page(&run, after, limit, filter)
        })
        .await?;
    let mut response = Json(events).into_response();
    if let Some(next) = next {
        response.headers_mut().insert(NEXT, HeaderValue::from(next));
    }
    Ok(response)
}

/// At most `limit` events after number `after`, and where the next page starts if there may be more.
fn page(
    run: &FoundRun,
    mut after: u64,
    limit: usize,
    mut filter: EventFilter,
) -> Result<(Vec<EventRecord>, Option<u64>), Problem> {
    let mut found = Vec::new();
    let mut scanned = 0;
    let size = if filter.is_open() { limit } else { PAGE };
    loop {
        let events = run.journal.events(run.id(), after, u64::MAX, size)?;
        let all = events.len() < size;
        scanned += events.len();
        for event in events {
            after = event.seq;
            if filter.takes(&event) {
                found.push(event);
            }
            if found.len() == limit {
                return Ok((found, Some(after + 1)));
            }
        }
        if all {
            return Ok((found, None));
        }
        if scanned >= SCANNED {
            return Ok((found, Some(after + 1)));
        }
    }
}

pub(super) async fn index(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<IndexQuery>,
) -> Result<Json<IndexView>, Problem> {
    site.read(move |site| {
        let run = site.find(&run, query.project.as_deref())?;
        let every = query.every.unwrap_or(DEFAULT_LIMIT as u64).max(10);
        let index = run.journal.event_index(run.id(), every)?;
        Ok(Json(IndexView { count: index.count, last: index.last, every, starts: index.starts }))
    })
    .await
}

pub(super) async fn stream(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = site.read(move |site| site.find(&run, query.project.as_deref())).await?;
    let slot = std::sync::Arc::clone(&site.streams).try_acquire_owned().map_err(|_| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open").help("close some pages")
    })?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let after = last.unwrap_or_else(|| query.from.unwrap_or_default().saturating_sub(1));
    let feed = EventFeed::new(site, run, after, slot);
    let events = futures_util::stream::unfold(feed, |mut feed| async move {
        let chunk = feed.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), feed))
    });
    let mut response = Response::new(Body::from_stream(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

pub(super) async fn export(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<ExportQuery>,
) -> Result<Response, Problem> {
    let run = site.read(move |site| site.find(&run, query.project.as_deref())).await?;
    let id = run.id().to_string();
    let (body, end) = match query.format {
        ExportFormat::Events => (pages(site, run, event_line), "events.jsonl"),
        ExportFormat::Markdown => (pages(site, run, action_sequence::markdown), "md"),
        ExportFormat::Cassette => (whole(&site, run, RunExport::Cassette).await?, "cassette.jsonl"),
        ExportFormat::Atif => (whole(&site, run, RunExport::Atif).await?, "atif.json"),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{id}.{end}\"")) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// A run in a format that needs all of it.
async fn whole(site: &Site, run: FoundRun, format: RunExport) -> Result<Body, Problem> {
    let text = site.read(move |site| Ok(site.launcher.export(&run.project, run.id(), format)?)).await?;
    Ok(Body::from(text))
}

/// The events of a run, page by page.
fn pages(site: Site, run: FoundRun, write: fn(&EventRecord) -> String) -> Body {
    let pages = futures_util::stream::unfold(Some((run, 0)), move |state| {
        let site = site.clone();
        async move {
            let (run, after) = state?;
            let read = site
                .read(move |_| {
                    let events = run.journal.events(run.id(), after, u64::MAX, PAGE)?;
                    Ok((events, run))
                })
                .await;
            // The head of the answer has been sent; breaking off is what is left.
            let (events, run) = match read {
                Ok(read) => read,
                Err(problem) => {
                    return Some((Err(std::io::Error::other(problem.message().to_owned())), None));
                }
            };
            let last = events.last()?.seq;
            let text: String = events.iter().map(write).collect();
            Some((Ok(Bytes::from(text)), Some((run, last))))
        }
    });
    Body::from_stream(pages)
}

fn event_line(event: &EventRecord) -> String {
    serde_json::to_string(event).unwrap_or_default() + "\n"
}
