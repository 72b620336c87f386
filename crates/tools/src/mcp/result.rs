//! Converts a server's result into a tool output: its texts, images if the model accepts them, and a short
//! placeholder for everything else.

use serde_json::Value;

use crate::tool::image::{self, ImageDisplay, ImageInfo, ToolImage};
use crate::tool::{CallLimits, ToolOutput};

/// Converts the `result` of a `tools/call` response.
pub(super) fn answer(result: &Value, limits: &CallLimits) -> ToolOutput {
    let mut images = ResultImages { left: limits.image_bytes, taken: Vec::new() };
    let given = result.get("content").and_then(Value::as_array).into_iter().flatten();
    let mut parts: Vec<String> = given.filter_map(|given| part(given, &mut images)).collect();
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
    ToolOutput { ok: !failed, content, truncated, images: images.taken.into(), ..ToolOutput::default() }
}

/// Images collected from one result.
struct ResultImages {
    /// Remaining byte budget; 0 if the model does not accept images.
    left: usize,
    taken: Vec<ToolImage>,
}

impl ResultImages {
    /// Adds an image if the model can be shown it; returns whether it was added.
    fn take(&mut self, data: &str) -> bool {
        if self.left == 0 {
            return false;
        }
        let Some(content) = image::decoded(data) else { return false };
        match ImageInfo::parse(&content).map(|picture| picture.encode(&content, self.left)) {
            Some(ImageDisplay::Yes(image)) => {
                self.left -= content.len();
                self.taken.push(image);
                true
            }
            Some(ImageDisplay::No(_)) | None => false,
        }
    }
}

fn part(part: &Value, images: &mut ResultImages) -> Option<String> {
    let text = |name: &str| part.get(name).and_then(Value::as_str);
    let media = |kind: &str, shown: bool| {
        let bytes = text("data").map_or(0, |data| data.len() / 4 * 3);
        let shown = if shown { "shown with this answer" } else { "not shown" };
        format!("[{kind}, {}, about {bytes} bytes, {shown}]", text("mimeType").unwrap_or("of unknown type"))
    };
    match text("type")? {
        "text" => text("text").map(str::to_owned),
        "image" => {
            let shown = text("data").is_some_and(|data| images.take(data));
            Some(media("an image", shown))
        }
        "audio" => Some(media("a sound", false)),
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
