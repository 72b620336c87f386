//! `edit_file`: replaces a piece of text in a file that the run has seen.
//!
//! The text must match exactly, and only once unless `all` is set. A miss is answered with the most similar
//! passage (`closest_match`), so that the model can get it right on the second try.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::json;

use crate::tool::closest_match;
use crate::tool::line_numbers::{self, RegionLimits};
use crate::tool::read_file::explain;
use crate::tool::write_file::require_fresh_view;
use crate::tool::write_tool::{WritePlan, WriteTool, WriteToolAdapter};
use crate::tool::{Access, CallContext, Tool, ToolDefinition};
use crate::workspace::content::ContentHash;
use crate::workspace::line_endings;
use crate::workspace::{FileWrite, PathProblem, WorkspacePath};

/// Maximum lines of each changed region shown in an answer.
const REGION_LINES: usize = 40;
/// Maximum regions shown when all occurrences were replaced.
const REGIONS: usize = 3;
/// Maximum line numbers listed when the text occurs several times.
const NAMED_LINES: usize = 10;

pub(crate) fn edit_file() -> impl Tool {
    WriteToolAdapter::<EditFile>::new(ToolDefinition {
        name: Cow::Borrowed("edit_file"),
        description: Cow::Borrowed(
            "Replaces the exact text `old` (no line numbers; unique unless `all`) in a file that you have read.",
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "File, relative to the workspace root" },
                "old": { "type": "string", "description": "The text to replace, with enough lines around it to be unique" },
                "new": { "type": "string", "description": "The text to put in its place" },
                "all": { "type": "boolean", "description": "Replace every occurrence" }
            },
            "required": ["path", "old", "new"],
            "additionalProperties": false
        }),
        category: Access::Write,
        aliases: &["system:edit_file", "edit", "str_replace", "replace_in_file", "replace"],
        parameter_aliases: &[
            ("old_string", "old"),
            ("old_str", "old"),
            ("old_text", "old"),
            ("new_string", "new"),
            ("new_str", "new"),
            ("new_text", "new"),
            ("replace_all", "all"),
            ("file_path", "path"),
            ("file", "path"),
        ],
    })
}

struct EditFile;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

impl WriteTool for EditFile {
    type Arguments = Arguments;

    fn plan(arguments: Arguments, context: &CallContext) -> Result<WritePlan, String> {
        let workspace = &context.workspace;
        let path = workspace.locate(&arguments.path).map_err(|problem| problem.to_string())?;
        let current =
            workspace.current(&path, context.limits.file_bytes).map_err(|problem| problem.to_string())?;
        let Some(current) = current else {
            // If a similar name exists, the model probably meant that one.
            let creating =
                if workspace.suggestions(&path).is_empty() { " To create it use write_file." } else { "" };
            return Err(format!("{}{creating}", explain(&PathProblem::Missing { path }, context)));
        };
        let before = ContentHash::of(&current.content);
        require_fresh_view(&path, before, context)?;
        if arguments.old.is_empty() {
            return Err(format!(
                "`old` is empty. Give the text to replace; to write the whole of `{path}` use write_file."
            ));
        }
        if arguments.old == arguments.new {
            return Err(format!("`old` and `new` are the same; `{path}` was not changed."));
        }
        let edit = EditMatches::find(&current.content, &arguments)
            .ok_or_else(|| not_found(&path, &current.content, &arguments.old, context))?;
        if edit.places.len() > 1 && !arguments.all {
            return Err(several(&path, &current.content, &edit.places));
        }
        let (content, starts) = edit.apply(&current.content);
        if content.len() as u64 > context.limits.file_bytes {
            return Err(format!(
                "`{path}` would have {} bytes; at most {} can be written.",
                content.len(),
                context.limits.file_bytes
            ));
        }
        let answer = edit.answer(&path, &content, &starts, context);
        Ok(WritePlan {
            changes: vec![FileWrite { path, before: Some(before), after: Some(content), mode: None }],
            answer,
        })
    }
}

/// Byte offsets of the matches, and the replacement.
struct EditMatches {
    places: Vec<usize>,
    old: String,
    new: String,
    /// Added to the answer when the model's text was not used literally.
    note: &'static str,
}

impl EditMatches {
    fn find(content: &[u8], arguments: &Arguments) -> Option<Self> {
        let (old, new) = (&arguments.old, &arguments.new);
        let attempt = |old: String, new: String, note: &'static str| {
            let places = occurrences(content, old.as_bytes());
            (!places.is_empty()).then_some(Self { places, old, new, note })
        };
        // In a file with CRLF line endings, a line feed in the arguments stands for CRLF.
        if line_endings::is_crlf(content) {
            return attempt(line_endings::to_crlf(old), line_endings::to_crlf(new), "").or_else(|| {
                let (old, new) = (without_numbers(old)?, without_numbers(new).unwrap_or_else(|| new.clone()));
                attempt(line_endings::to_crlf(&old), line_endings::to_crlf(&new), NUMBERS_REMOVED)
            });
        }
        attempt(old.clone(), new.clone(), "")
            // In a file with mixed line endings the matched lines may end with CRLF.
            .or_else(|| {
                old.contains('\n')
                    .then(|| attempt(line_endings::to_crlf(old), line_endings::to_crlf(new), ""))?
            })
            .or_else(|| {
                let (old, new) = (without_numbers(old)?, without_numbers(new).unwrap_or_else(|| new.clone()));
                attempt(old, new, NUMBERS_REMOVED)
            })
    }

    /// Returns the new content and the offsets of the replacements in it.
    fn apply(&self, content: &[u8]) -> (Vec<u8>, Vec<usize>) {
        let mut out = Vec::with_capacity(content.len() + self.new.len());
        let mut starts = Vec::with_capacity(self.places.len());
        let mut from = 0;
        for &place in &self.places {
            out.extend_from_slice(&content[from..place]);
            starts.push(out.len());
            out.extend_from_slice(self.new.as_bytes());
            from = place + self.old.len();
        }
        out.extend_from_slice(&content[from..]);
        (out, starts)
    }

    fn answer(
        &self,
        path: &WorkspacePath,
        content: &[u8],
        starts: &[usize],
        context: &CallContext,
    ) -> String {
        let limits = RegionLimits {
            lines: REGION_LINES,
            bytes: context.limits.answer_bytes / 8,
            line_characters: context.limits.line_characters / 4,
        };
        let text = String::from_utf8_lossy(content);
        let count = match starts.len() {
            1 => String::new(),
            several => format!(", {several} places"),
        };
        let mut answer = format!("Edited `{path}`{count}{}. The changed region is now:\n", self.note);
        for (at, &start) in starts.iter().take(REGIONS).enumerate() {
            if at > 0 {
                answer.push_str("…\n");
            }
            let first = line_of(content, start);
            let last = line_of(content, start + self.new.trim_end_matches('\n').len());
            // The lossy conversion does not change the number of lines.
            answer.push_str(&line_numbers::region(&text, first..last + 1, 3, limits));
        }
        if starts.len() > REGIONS {
            let _ = writeln!(answer, "[… and {} more places]", starts.len() - REGIONS);
        }
        answer
    }
}

const NUMBERS_REMOVED: &str = " (line numbers were taken off `old`; leave them out)";

/// Strips line numbers in the format of `read_file`; `None` unless every line has one.
fn without_numbers(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (number, rest) = line.split_once('\t')?;
        number.trim_start().parse::<usize>().ok()?;
        out.push_str(rest);
    }
    Some(out)
}

/// Offsets of the non-overlapping matches of `wanted` in `content`.
fn occurrences(content: &[u8], wanted: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(content, wanted).collect()
}

/// Zero-based line number of a byte offset.
fn line_of(content: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &content[..at.min(content.len())]).count()
}

fn several(path: &WorkspacePath, content: &[u8], places: &[usize]) -> String {
    let lines: Vec<String> =
        places.iter().take(NAMED_LINES).map(|place| (line_of(content, *place) + 1).to_string()).collect();
    let more = if places.len() > NAMED_LINES { ", …" } else { "" };
    format!(
        "`old` occurs {} times in `{path}`, at lines {}{more}. Add lines around it until it is unique, or set `all` to true to replace every one.",
        places.len(),
        lines.join(", ")
    )
}

fn not_found(path: &WorkspacePath, content: &[u8], old: &str, context: &CallContext) -> String {
    let text = String::from_utf8_lossy(content);
    let mut answer = format!("`old` is not in `{path}`; nothing was changed.");
    match closest_match::find(&text, old) {
        Some(place) => {
            answer.push(' ');
            answer.push_str(&place.describe(context.limits.line_characters / 4));
        }
        None => answer.push_str(" Nothing in the file is like it; read the file again."),
    }
    answer
}
