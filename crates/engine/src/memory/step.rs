//! Asking the index as a step of a run: what was found once is what was found, also after the files have changed.

use std::sync::Arc;

use fusee_journal::{Body, BoxFuture, Branch, Call, Engine, Kind, Recorded, Stop};
use serde_json::{Value, json};

use super::{Answer, Memory, Query};

/// What fits a query, or why nothing can be said; with the step that says it.
pub(crate) async fn asked(
    memory: &Arc<Memory>,
    engine: &dyn Engine,
    branch: &Branch,
    query: Query,
) -> Result<(Result<Answer, String>, Recorded), Stop> {
    let call = Call {
        branch: branch.clone(),
        kind: Kind::Environment,
        callee: "memory".to_owned(),
        args: json!(query),
    };
    let memory = Arc::clone(memory);
    let body: Body<'_> = Box::new(move || {
        let ask = async move {
            match tokio::task::spawn_blocking(move || memory.relevant(&query)).await {
                Ok(Ok(answer)) => json!({ "found": answer }),
                Ok(Err(problem)) => json!({ "problem": problem }),
                Err(lost) => json!({ "problem": lost.to_string() }),
            }
        };
        Box::pin(ask) as BoxFuture<'_, Value>
    });
    let mut recorded = engine.step(call, body).await?;
    if let Some(problem) = recorded.value.get("problem").and_then(Value::as_str) {
        return Ok((Err(problem.to_owned()), recorded));
    }
    let found = recorded.value.get_mut("found").map(Value::take).unwrap_or_default();
    let answer = serde_json::from_value(found).map_err(|error| Stop::Unreadable(error.to_string()))?;
    Ok((Ok(answer), recorded))
}
