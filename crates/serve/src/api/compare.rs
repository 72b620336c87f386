//! The comparison of two runs.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use fusee::engine::run::{self, RunSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;

use super::context::newest_prompt;
use super::extract::Params;
use crate::action_sequence::{ActionSequence, AlignedActions, align};
use crate::outline::{RunEnd, Totals};
use crate::problem::Problem;
use crate::site::{FoundRun, Site, SiteState};

/// Maximum number of bytes of a prompt's diff.
const DIFF: usize = 100_000;

/// Settings that differ between any two runs, or are compared elsewhere.
const IGNORED_SETTINGS: &[&str] = &["work", "request", "prompt", "mcp", "version"];

/// Which runs to compare.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareQuery {
    /// Id of the first run.
    a: String,
    /// Id of the second run.
    b: String,
}

/// Two runs side by side.
#[derive(Serialize, JsonSchema)]
pub(super) struct Comparison {
    /// The first run.
    a: Side,
    /// The second run.
    b: Side,
    /// Actions, aligned.
    actions: Vec<AlignedActions>,
    /// Index of the first row that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_difference: Option<usize>,
    /// Settings that differ.
    settings: Vec<SettingDifference>,
    /// Unified diff of the system prompts; empty if they are the same.
    prompt_diff: String,
    /// Tools that only the first run's model was offered.
    only_a: Vec<String>,
    /// Tools that only the second run's model was offered.
    only_b: Vec<String>,
}

/// One of the two runs.
#[derive(Serialize, JsonSchema)]
struct Side {
    /// Id.
    run: String,
    /// Shortened request.
    title: String,
    /// Model as named by the user.
    model: String,
    /// Time from start to end in milliseconds, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<i64>,
    /// Counts.
    totals: Totals,
    /// Status and exit code; absent while the run is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<RunEnd>,
}

/// A setting with different values.
#[derive(Serialize, JsonSchema)]
struct SettingDifference {
    /// Tool name as offered to the model.
    name: String,
    /// Value in the first run.
    a: Value,
    /// Value in the second run.
    b: Value,
}

pub(super) async fn compare(
    State(site): State<Site>,
    Params(query): Params<CompareQuery>,
) -> Result<Json<Comparison>, Problem> {
    site.read(move |site| {
        let (a, b) = (site.find(&query.a, None)?, site.find(&query.b, None)?);
        let actions = align(&sequence(&a)?, &sequence(&b)?);
        let (settings_a, settings_b) = (settings(&a), settings(&b));
        let (prompt_a, prompt_b) = (newest_prompt(&a)?, newest_prompt(&b)?);
        let tools = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
        let (tools_a, tools_b) = (tools(&prompt_a.tools), tools(&prompt_b.tools));
        Ok(Json(Comparison {
            first_difference: actions.iter().position(|row| !row.same),
            settings: differences(settings_a.as_ref(), settings_b.as_ref()),
            prompt_diff: prompt_diff(&prompt_a.system, &prompt_b.system, (a.id().as_str(), b.id().as_str())),
            only_a: tools_a.difference(&tools_b).cloned().collect(),
            only_b: tools_b.difference(&tools_a).cloned().collect(),
            a: side(site, &a)?,
            b: side(site, &b)?,
            actions,
        }))
    })
    .await
}

fn side(site: &SiteState, run: &FoundRun) -> Result<Side, Problem> {
    let outline = site.outline(run)?;
    let outline = outline.lock();
    Ok(Side {
        run: run.id().to_string(),
        title: run.row.title.clone(),
        model: outline.start.as_ref().map(|start| start.model.clone()).unwrap_or_default(),
        took_ms: run.row.ended_ms.map(|ended| ended - run.row.started_ms),
        totals: outline.totals.clone(),
        end: outline.end.clone(),
    })
}

fn sequence(run: &FoundRun) -> Result<ActionSequence, Problem> {
    let (mut sequence, mut after) = (ActionSequence::default(), 0);
    loop {
        let events = run.journal.events(run.id(), after, u64::MAX, 500)?;
        let Some(last) = events.last() else { return Ok(sequence) };
        after = last.seq;
        if !events.iter().all(|event| sequence.add(event)) {
            return Ok(sequence);
        }
    }
}

/// The settings as JSON; `None` if another version wrote them.
fn settings(run: &FoundRun) -> Option<Value> {
    let settings: RunSpec = run::settings_of(&run.journal, run.id()).ok()?;
    serde_json::to_value(settings).ok()
}

fn differences(a: Option<&Value>, b: Option<&Value>) -> Vec<SettingDifference> {
    let (Some(Value::Object(a)), Some(Value::Object(b))) = (a, b) else { return Vec::new() };
    let names: BTreeSet<&String> =
        a.keys().chain(b.keys()).filter(|name| !IGNORED_SETTINGS.contains(&name.as_str())).collect();
    let value =
        |side: &serde_json::Map<String, Value>, name: &str| side.get(name).cloned().unwrap_or_default();
    let pairs = names.into_iter().map(|name| (name, value(a, name), value(b, name)));
    let differing = pairs.filter(|(_, a, b)| a != b);
    differing.map(|(name, a, b)| SettingDifference { name: name.clone(), a, b }).collect()
}

fn prompt_diff(a: &str, b: &str, names: (&str, &str)) -> String {
    if a == b {
        return String::new();
    }
    let mut diff =
        TextDiff::from_lines(a, b).unified_diff().context_radius(2).header(names.0, names.1).to_string();
    if diff.len() > DIFF {
        let end = (0..=DIFF).rev().find(|at| diff.is_char_boundary(*at)).unwrap_or_default();
        diff.truncate(end);
        diff.push_str("\n…\n");
    }
    diff
}
