//! Invariant checked on every request of every test: each tool call has exactly one result, in all three
//! formats.

use serde_json::Value;

/// Describes the violation in a request; `None` if it is valid.
pub(super) fn fault(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for item in list(&body["messages"]).chain(list(&body["input"])) {
        asked.extend(list(&item["tool_calls"]).map(|call| text(&call["id"])));
        answered.extend(item["tool_call_id"].as_str().map(str::to_owned));
        for part in list(&item["content"]).chain([item]) {
            match part["type"].as_str() {
                Some("tool_use") => asked.push(text(&part["id"])),
                Some("tool_result") => answered.push(text(&part["tool_use_id"])),
                Some("function_call") => asked.push(text(&part["call_id"])),
                Some("function_call_output") => answered.push(text(&part["call_id"])),
                _ => {}
            }
        }
    }
    asked.sort();
    answered.sort();
    (asked != answered).then(|| format!("the calls {asked:?} have the answers {answered:?}"))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
