//! A server's result as a model reads it: its texts, and a word about what is no text.

use serde_json::Value;

use crate::tool::{Limits, ToolOutput};

/// The answer to a call, from the result as the protocol has it.
pub(super) fn answer(result: &Value, limits: &Limits) -> ToolOutput {
    let mut parts: Vec<String> =
        result.get("content").and_then(Value::as_array).into_iter().flatten().filter_map(part).collect();
    if parts.is_empty()
        && let Some(structured) = result.get("structuredContent")
    {
        parts.push(structured.to_string());
    }
    let mut content = parts.join("\n");
    if content.is_empty() {
        content.push_str("(no content)");
    }
    let truncated = content.len() > limits.answer_bytes;
    if truncated {
        let whole = content.len();
        let end =
            (0..=limits.answer_bytes).rev().find(|at| content.is_char_boundary(*at)).unwrap_or_default();
        content.truncate(end);
        content.push_str(&format!("\n[… {} bytes cut …]", whole - end));
    }
    let failed = result.get("isError").and_then(Value::as_bool) == Some(true);
    ToolOutput { ok: !failed, content, truncated, ..ToolOutput::default() }
}

fn part(part: &Value) -> Option<String> {
    let text = |name: &str| part.get(name).and_then(Value::as_str);
    let media = |kind: &str| {
        let bytes = text("data").map_or(0, |data| data.len() / 4 * 3);
        format!("[{kind}, {}, about {bytes} bytes, not shown]", text("mimeType").unwrap_or("of unknown type"))
    };
    match text("type")? {
        "text" => text("text").map(str::to_owned),
        "image" => Some(media("an image")),
        "audio" => Some(media("a sound")),
        "resource" => {
            let resource = part.get("resource")?;
            let inner = |name: &str| resource.get(name).and_then(Value::as_str);
            let uri = inner("uri").unwrap_or("a resource");
            Some(inner("text").map_or_else(|| format!("[{uri}, not text]"), |text| format!("{uri}\n{text}")))
        }
        "resource_link" => Some(format!("[see {}]", text("uri").unwrap_or("a resource"))),
        other => Some(format!("[{other}, not shown]")),
    }
}

#[cfg(test)]
mod tests;
