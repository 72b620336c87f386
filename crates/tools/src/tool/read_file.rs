//! `read_file` and `read_files`: file content with line numbers, one page at a time.
//!
//! The answer always says how to get the rest. What was read is reported as seen, with the hash of the entire
//! file, which `edit` requires. Images are shown to models that accept them.

mod content_type;
mod page;
mod whole;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::json;

use crate::tool::image::{ImageDisplay, ImageInfo, ToolImage};
use crate::tool::read_tool::{ReadTool, ReadToolAdapter};
use crate::tool::{Access, CallContext, Tool, ToolDefinition, ToolOutput};
use crate::workspace::content::SeenVersion;
use crate::workspace::{CachedContent, OpenedPath, PathProblem, WorkspacePath};

use page::{FilePage, PageWindow};
pub use whole::{NotShown, WholeFile, read_whole};

pub(crate) fn read_file() -> impl Tool {
    ReadToolAdapter::<ReadFile>::new(ToolDefinition {
        name: Cow::Borrowed("read_file"),
        description: Cow::Borrowed(
            "Reads a text file as numbered lines: number, tab, text. The answer names the `offset` of what is left.",
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "File, relative to the workspace root" },
                "offset": { "type": "integer", "minimum": 0, "description": "First line to show, counted from 1. Without it, the first" },
                "limit": { "type": "integer", "minimum": 1, "description": "Most lines to show. Up to 2000 lines or 50 KB are shown at a time" }
            },
            "required": ["path"],
            "additionalProperties": false
        }),
        category: Access::Read,
        aliases: &["system:read_file", "read", "view_file", "open_file"],
        parameter_aliases: &[
            ("file_path", "path"),
            ("file", "path"),
            ("filename", "path"),
            ("start_line", "offset"),
        ],
    })
}

pub(crate) fn read_files() -> impl Tool {
    ReadToolAdapter::<ReadFiles>::new(ToolDefinition {
        name: Cow::Borrowed("read_files"),
        description: Cow::Borrowed("Reads several text files."),
        parameters: json!({
            "type": "object",
            "properties": {
                "paths": {
                    "type": "array",
                    "items": { "type": "string" },
                    "minItems": 1,
                    "maxItems": 20,
                    "description": "Files, relative to the workspace root. All together up to 50 KB are shown, so read large files one by one"
                }
            },
            "required": ["paths"],
            "additionalProperties": false
        }),
        category: Access::Read,
        aliases: &["system:read_files", "batch_read"],
        parameter_aliases: &[("files", "paths"), ("file_paths", "paths"), ("path", "paths")],
    })
}

struct ReadFile;

#[derive(Deserialize)]
struct ReadFileArguments {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl ReadTool for ReadFile {
    type Arguments = ReadFileArguments;

    fn look(arguments: ReadFileArguments, context: &CallContext) -> ToolOutput {
        let window = PageWindow {
            first: arguments.offset.unwrap_or(1).max(1),
            lines: arguments.limit.unwrap_or(context.limits.read_lines),
            bytes: context.limits.answer_bytes,
            line_characters: context.limits.line_characters,
        };
        match read(&arguments.path, window, context.limits.image_bytes, context) {
            Ok(read) => {
                read.seen.iter().for_each(|seen| context.workspace.record_seen(seen));
                ToolOutput {
                    truncated: read.truncated,
                    seen: read.seen.into_iter().collect(),
                    images: read.image.into_iter().collect(),
                    ..ToolOutput::done(read.text)
                }
            }
            Err(answer) => ToolOutput::error(answer),
        }
    }
}

struct ReadFiles;

#[derive(Deserialize)]
struct ReadFilesArguments {
    paths: Vec<String>,
}

impl ReadTool for ReadFiles {
    type Arguments = ReadFilesArguments;

    fn look(arguments: ReadFilesArguments, context: &CallContext) -> ToolOutput {
        let mut output = ToolOutput::default();
        let mut left = context.limits.answer_bytes;
        let mut left_for_images = context.limits.image_bytes;
        let mut images = Vec::new();
        let mut paths: Vec<&str> = Vec::new();
        for path in arguments.paths.iter().take(context.limits.files_per_read) {
            // A path named twice is shown once.
            if !paths.contains(&path.as_str()) {
                paths.push(path);
            }
        }
        for (at, path) in paths.iter().enumerate() {
            if context.cancel.is_cancelled() {
                output.aborted = true;
                break;
            }
            // Space that small files do not use goes to the later ones.
            let share = left / (paths.len() - at);
            let window = PageWindow {
                first: 1,
                lines: context.limits.read_lines,
                bytes: share,
                line_characters: context.limits.line_characters,
            };
            let text = match read(path, window, left_for_images, context) {
                Ok(read) => {
                    if let Some(image) = read.image {
                        // Keep at least one byte, because 0 means that the model does not accept images.
                        left_for_images = left_for_images.saturating_sub(image.data.len() / 4 * 3).max(1);
                        images.push(image);
                    }
                    read.seen.iter().for_each(|seen| context.workspace.record_seen(seen));
                    output.ok = true;
                    output.truncated |= read.truncated;
                    output.seen.extend(read.seen);
                    read.text
                }
                Err(answer) => answer,
            };
            left = left.saturating_sub(text.len());
            let _ = writeln!(output.content, "==> {path} <==\n{}\n", text.trim_end_matches('\n'));
        }
        output.content.truncate(output.content.trim_end().len());
        output.images = images.into();
        output
    }
}

struct Read {
    text: String,
    truncated: bool,
    /// `None` for a file that is not text or is too large to be edited.
    seen: Option<SeenVersion>,
    /// The image, if the file is one and the model accepts images.
    image: Option<ToolImage>,
}

impl Read {
    /// A description of a file whose content is not shown.
    fn description(text: String) -> Self {
        Self { text, truncated: false, seen: None, image: None }
    }
}

fn read(given: &str, window: PageWindow, image_bytes: usize, context: &CallContext) -> Result<Read, String> {
    let workspace = &context.workspace;
    let path = workspace.locate(given).map_err(|problem| problem.to_string())?;
    let opened = workspace.open_to_read(&path).map_err(|problem| explain(&problem, context))?;
    let (file, size) = match opened {
        OpenedPath::File { file, size } => (file, size),
        OpenedPath::Directory(_) => return Err(PathProblem::Directory { path }.to_string()),
        OpenedPath::Special(kind) => return Err(PathProblem::Special { path, kind }.to_string()),
    };
    let system = |error: std::io::Error| format!("`{path}` cannot be read: {error}.");
    if size > context.limits.file_bytes {
        let page = FilePage::of_stream(file, window, &context.cancel).map_err(system)?;
        return Ok(match page {
            Some(page) => page.into_read(&path, None),
            None => Read::description(binary(&path, size, "binary data")),
        });
    }
    let known = workspace.content(&path, file, size, context.limits.file_bytes).map_err(system)?;
    let Some(CachedContent { bytes: content, hash }) = known else {
        return Err(format!("`{path}` grew while it was read; read it again."));
    };
    let seen = SeenVersion { path: path.as_str().to_owned(), hash };
    if let Some(picture) = ImageInfo::parse(&content) {
        return Ok(image_read(&path, picture, &content, image_bytes));
    }
    if let Some(kind) = content_type::of_binary(&content) {
        return Ok(Read::description(binary(&path, content.len() as u64, kind)));
    }
    let unsaved = workspace.unsaved_text(&path, &content);
    let shown = unsaved.as_ref().map_or(&*content, String::as_bytes);
    let mut read = if shown.is_empty() {
        Read { seen: Some(seen), ..Read::description(format!("`{path}` is empty (0 bytes).")) }
    } else {
        let page = FilePage::of_content(shown, window);
        if page.shown == 0 {
            return Err(format!(
                "`{path}` has {} lines; offset {} is past its end.",
                page.total.unwrap_or(0),
                window.first
            ));
        }
        page.into_read(&path, Some(seen))
    };
    if unsaved.is_some() {
        read.text.insert_str(0, &unsaved_note(&path));
        // What is not on disk cannot be edited.
        read.seen = None;
    }
    Ok(read)
}

/// What is said before text that only the user's editor has.
fn unsaved_note(path: &WorkspacePath) -> String {
    format!("`{path}` has unsaved changes in the user's editor. This is the text there:\n")
}

fn image_read(path: &WorkspacePath, picture: ImageInfo, content: &[u8], image_bytes: usize) -> Read {
    let words = picture.describe(content.len());
    match picture.encode(content, image_bytes) {
        ImageDisplay::Yes(image) => {
            let text = format!("`{path}` ({words}) is shown with this answer.");
            Read { image: Some(image), ..Read::description(text) }
        }
        ImageDisplay::No(why) => {
            Read::description(format!("`{path}` is not text ({words}), and it is not shown: {why}."))
        }
    }
}

fn binary(path: &WorkspacePath, size: u64, kind: &str) -> String {
    format!("`{path}` is not text ({kind}, {size} bytes); its content is not shown.")
}

/// Formats the problem, with suggestions for a missing file.
pub(crate) fn explain(problem: &PathProblem, context: &CallContext) -> String {
    let mut answer = problem.to_string();
    if let PathProblem::Missing { path } | PathProblem::NotADirectory { path } = problem {
        match context.workspace.suggestions(path).as_slice() {
            [] => answer.push_str(" Use find_files or list_dir to see what there is."),
            near => {
                let _ = write!(answer, " Did you mean `{}`?", near.join("`, `"));
            }
        }
    }
    answer
}
