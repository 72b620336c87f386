//! The state of a run as the result of a tool call.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::run_state::{RunProgress, RunState};

/// The state of a run as the result of a call.
pub(crate) fn result(state: &RunState, has_output: bool) -> CallToolResult {
    let description = ContentBlock::text(state.describe());
    let content = match &state.answer {
        Some(answer) => vec![ContentBlock::text(answer.clone()), description],
        None => vec![description],
    };
    let mut structured = serde_json::to_value(state).unwrap_or_default();
    if let (true, Some(answer), Value::Object(fields)) = (has_output, &state.answer, &mut structured)
        && let Ok(output) = serde_json::from_str::<Value>(answer)
    {
        fields.insert("output".to_owned(), output);
    }
    let mut result = match state.status {
        RunProgress::Failed | RunProgress::Cancelled => CallToolResult::error(content),
        _ => CallToolResult::success(content),
    };
    result.structured_content = Some(structured);
    result
}
