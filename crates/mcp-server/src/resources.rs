//! Runs as resources: their state, events, report and diff.

use fusee::engine::run::settings_of;
use fusee::journal::{Journal, RunId};
use fusee::tools::Workspace;
use fusee::undo::UndoPlan;
use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use similar::TextDiff;

use crate::runs::{Runs, find_row, read_state};

/// Runs that are listed.
const MAX_LISTED: usize = 50;
/// Bytes of one resource; longer ones are cut and say so.
const MAX_BYTES: usize = 4 << 20;
/// Events read from the journal at a time.
const PAGE: usize = 256;

const RUNS: &str = "fusee://runs";

/// The newest runs.
pub(crate) fn list(runs: &Runs) -> Result<Vec<Resource>, ErrorData> {
    let listed = runs.list(None, MAX_LISTED).map_err(internal)?;
    let all = Resource::new(RUNS, "runs").with_description("The runs of the project").with_mime_type(JSON);
    let each = listed.into_iter().map(|run| {
        Resource::new(format!("{RUNS}/{}", run.run), run.run)
            .with_title(run.title)
            .with_description("State and result of a run")
            .with_mime_type(JSON)
    });
    Ok(std::iter::once(all).chain(each).collect())
}

const JSON: &str = "application/json";
const JSON_LINES: &str = "application/jsonl";
const DIFF: &str = "text/x-diff";

/// What can be read of each run.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |path: &str, name: &str, description: &str, mime: &str| {
        ResourceTemplate::new(format!("{RUNS}/{{run}}{path}"), name)
            .with_description(description)
            .with_mime_type(mime)
    };
    vec![
        template("", "run", "State and result of a run", JSON),
        template("/events", "events", "Events of a run, one JSON object per line", JSON_LINES),
        template("/report", "report", "The runtime's report on a run", JSON),
        template("/diff", "diff", "What the run changed in files that still are as it left them", DIFF),
    ]
}

/// Reads a resource.
pub(crate) fn read(runs: &Runs, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let unknown = || ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })));
    let (text, mime) = if uri == RUNS {
        let listed = runs.list(None, MAX_LISTED).map_err(internal)?;
        (pretty(&listed), JSON)
    } else {
        let path = uri.strip_prefix(RUNS).and_then(|rest| rest.strip_prefix('/')).ok_or_else(unknown)?;
        let (name, part) = path.split_once('/').unwrap_or((path, ""));
        let journal = runs.journal(runs.launcher().directory()).map_err(|_| unknown())?;
        let row = find_row(&journal, name).map_err(|_| unknown())?;
        match part {
            "" => (pretty(&read_state(&journal, &row).map_err(internal)?.0), JSON),
            "events" => (events(&journal, &row.id)?, JSON_LINES),
            "report" => {
                let state = read_state(&journal, &row).map_err(internal)?.0;
                (pretty(&state.report.ok_or_else(unknown)?), JSON)
            }
            "diff" => (diff(&journal, &row.id)?, DIFF),
            _ => return Err(unknown()),
        }
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(mime)]))
}

fn events(journal: &Journal, run: &RunId) -> Result<String, ErrorData> {
    let (mut text, mut after) = (String::new(), 0);
    loop {
        let page = journal.events(run, after, u64::MAX, PAGE).map_err(|error| internal(error.to_string()))?;
        for record in &page {
            let line = serde_json::to_string(record).unwrap_or_default();
            if text.len() + line.len() > MAX_BYTES {
                text.push_str("{\"type\":\"truncated\"}\n");
                return Ok(text);
            }
            text.push_str(&line);
            text.push('\n');
            after = record.seq;
        }
        if page.len() < PAGE {
            return Ok(text);
        }
    }
}

/// Changes of a run: the content before it against the files as they are. Files that changed again are left out.
fn diff(journal: &Journal, run: &RunId) -> Result<String, ErrorData> {
    let spec = settings_of(journal, run).map_err(|error| internal(error.to_string()))?;
    let workspace = Workspace::open(&spec.workspace).map_err(|error| internal(error.to_string()))?;
    let plan = UndoPlan::plan(journal, run, &workspace).map_err(|error| internal(error.to_string()))?;
    let mut text = String::new();
    for file in &plan.files {
        let now = std::fs::read(spec.workspace.join(&file.path)).unwrap_or_default();
        let before = file.before.as_ref().map(|(content, _)| content.as_slice()).unwrap_or_default();
        if now.len() + before.len() + text.len() > MAX_BYTES {
            text.push_str(&format!("# {}: too large to show\n", file.path));
            continue;
        }
        let (before, now) = (String::from_utf8_lossy(before), String::from_utf8_lossy(&now));
        let (old, new) = (format!("a/{}", file.path), format!("b/{}", file.path));
        text.push_str(&TextDiff::from_lines(&*before, &*now).unified_diff().header(&old, &new).to_string());
    }
    for (path, why) in &plan.left {
        text.push_str(&format!("# {path}: {why}\n"));
    }
    Ok(text)
}

fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn internal(message: String) -> ErrorData {
    ErrorData::internal_error(message, None)
}
