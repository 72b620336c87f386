//! `write_file`: creates or replaces an entire file. `edit` changes a part of one.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;

use crate::tool::line_numbers::{self, RegionLimits};
use crate::tool::write_tool::{WritePlan, WriteTool, WriteToolAdapter};
use crate::tool::{Access, CallContext, Tool, ToolDefinition};
use crate::workspace::content::ContentHash;
use crate::workspace::line_endings;
use crate::workspace::{FileWrite, WorkspacePath};

/// Maximum lines of the changed region shown in an answer.
const REGION_LINES: usize = 40;

pub(crate) fn write_file() -> impl Tool {
    WriteToolAdapter::<WriteFile>::new(ToolDefinition {
        name: Cow::Borrowed("write_file"),
        description: Cow::Borrowed("Creates a file, or replaces all of one that you have read."),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "File, relative to the workspace root" },
                "content": { "type": "string", "description": "The whole new content. Missing directories are created" }
            },
            "required": ["path", "content"],
            "additionalProperties": false
        }),
        category: Access::Write,
        aliases: &["system:write_file", "create_file", "write"],
        parameter_aliases: &[
            ("file_path", "path"),
            ("file", "path"),
            ("filename", "path"),
            ("contents", "content"),
            ("text", "content"),
        ],
    })
}

struct WriteFile;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

impl WriteTool for WriteFile {
    type Arguments = Arguments;

    fn plan(arguments: Arguments, context: &CallContext) -> Result<WritePlan, String> {
        let workspace = &context.workspace;
        let path = workspace.locate(&arguments.path).map_err(|problem| problem.to_string())?;
        let most = context.limits.file_bytes;
        if arguments.content.len() as u64 > most {
            return Err(format!(
                "The content has {} bytes; at most {most} can be written at once.",
                arguments.content.len()
            ));
        }
        let Some(current) = workspace.current(&path, most).map_err(|problem| problem.to_string())? else {
            let answer = format!("Created `{path}` ({}).", measure(&arguments.content));
            let after = Some(arguments.content.into_bytes());
            return Ok(WritePlan {
                changes: vec![FileWrite { path, before: None, after, mode: None }],
                answer,
            });
        };
        let before = ContentHash::of(&current.content);
        let content = line_endings::with_line_endings_of(&current.content, &arguments.content).into_owned();
        if content.as_bytes() == current.content {
            workspace.record_seen(&crate::SeenVersion { path: path.as_str().to_owned(), hash: before });
            return Ok(WritePlan {
                changes: Vec::new(),
                answer: format!(
                    "`{path}` already holds exactly this; nothing was changed. If a change was meant, it is missing in this text."
                ),
            });
        }
        require_fresh_view(&path, before, context)?;
        let answer = replaced(&path, &String::from_utf8_lossy(&current.content), &content, context);
        let after = Some(content.into_bytes());
        Ok(WritePlan { changes: vec![FileWrite { path, before: Some(before), after, mode: None }], answer })
    }
}

/// Fails unless the run has seen the current content: it must not overwrite what it has not seen.
pub(crate) fn require_fresh_view(
    path: &WorkspacePath,
    now: ContentHash,
    context: &CallContext,
) -> Result<(), String> {
    match context.workspace.last_seen(path) {
        Some(seen) if seen == now => Ok(()),
        Some(_) => Err(format!(
            "`{path}` has changed since you last saw it. Read it again with read_file, then repeat the call."
        )),
        None => Err(format!(
            "`{path}` exists and you have not seen what it holds. Read it with read_file first, then repeat the call."
        )),
    }
}

fn measure(content: &str) -> String {
    let lines = line_numbers::lines(content).count();
    format!("{lines} line{}, {} bytes", if lines == 1 { "" } else { "s" }, content.len())
}

fn replaced(path: &WorkspacePath, old: &str, new: &str, context: &CallContext) -> String {
    let changed = differing_lines(old, new);
    let limits = RegionLimits {
        lines: REGION_LINES,
        bytes: context.limits.answer_bytes / 4,
        line_characters: context.limits.line_characters / 4,
    };
    format!(
        "Replaced `{path}` ({}). The changed region is now:\n{}",
        measure(new),
        line_numbers::region(new, changed, 2, limits)
    )
}

/// Lines of `new` between the common prefix and suffix of both texts.
pub(crate) fn differing_lines(old: &str, new: &str) -> std::ops::Range<usize> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let same_start = old.iter().zip(&new).take_while(|(left, right)| left == right).count();
    let most_end = old.len().min(new.len()) - same_start;
    let same_end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most_end)
        .take_while(|(left, right)| left == right)
        .count();
    same_start..new.len() - same_end
}
