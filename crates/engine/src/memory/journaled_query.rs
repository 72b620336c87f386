//! Queries the index as a journaled step, so that a replay gets the same result after the files have changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use fusee_journal::{Branch, DurableRun, RunAborted, StepKind, StepMeta, StepRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{MemoryAnswer, MemoryQuery, MemorySystem};

/// Maximum number of symbols listed per file.
const SYMBOLS: usize = 12;

/// Whether descriptions of the files are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Details {
    Omit,
    Include,
}

/// The result, with a description per file if requested.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct QueryRecord {
    pub(crate) found: MemoryAnswer,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) about: BTreeMap<String, String>,
}

/// Runs the query as a step; the inner error says why the index could not answer.
pub(crate) async fn asked(
    memory: &Arc<MemorySystem>,
    engine: &dyn DurableRun,
    branch: &Branch,
    query: MemoryQuery,
    details: Details,
) -> Result<(Result<QueryRecord, String>, StepMeta), RunAborted> {
    let mut args = json!(query);
    if details == Details::Include {
        args["details"] = true.into();
    }
    let call = StepRequest {
        branch: branch.clone(),
        kind: StepKind::Environment,
        callee: "memory".to_owned(),
        args,
    };
    let memory = Arc::clone(memory);
    let body = async move {
        match tokio::task::spawn_blocking(move || query_record(&memory, &query, details)).await {
            Ok(Ok(record)) => json!(record),
            Ok(Err(problem)) => json!({ "problem": problem }),
            Err(lost) => json!({ "problem": lost.to_string() }),
        }
    };
    let (value, recorded) = engine.step::<Value>(call, body).await?.split();
    if let Some(problem) = value.get("problem").and_then(Value::as_str) {
        return Ok((Err(problem.to_owned()), recorded));
    }
    let record = serde_json::from_value(value).map_err(|error| RunAborted::Unreadable(error.to_string()))?;
    Ok((Ok(record), recorded))
}

fn query_record(memory: &MemorySystem, query: &MemoryQuery, details: Details) -> Result<QueryRecord, String> {
    let found = memory.relevant_context_for(query)?;
    let mut about = BTreeMap::new();
    if details == Details::Include {
        for path in found.matches.iter().map(|found| &found.path) {
            let Some(entry) = memory.entry(path)? else { continue };
            let symbols: Vec<&str> = entry.symbols.iter().take(SYMBOLS).map(String::as_str).collect();
            about.insert(path.clone(), format!("{} [{}]", entry.summary, symbols.join(" ")));
        }
    }
    Ok(QueryRecord { found, about })
}
