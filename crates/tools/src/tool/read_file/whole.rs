//! Reads entire files that a user refers to in a prompt: no pages, up to a limit set by the caller. Errors
//! are worded for the user, not for a model.

use super::page::{FilePage, PageWindow};
use super::{binary, content_type, unsaved_note};
use crate::tool::image::ImageInfo;
use crate::tool::read_tool::run_blocking;
use crate::tool::{CallContext, ToolOutput};
use crate::workspace::content::SeenVersion;
use crate::workspace::{CachedContent, OpenedPath, PathProblem, WorkspacePath};

/// Content of an entire file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeFile {
    /// The numbered lines, in the format of `read_file`.
    pub text: String,
    /// The file version that the run has now seen.
    pub seen: SeenVersion,
}

/// Reason why a file is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotShown {
    /// The file is not text; the message describes it.
    NotText(String),
    /// The file exceeds the limit; its size in bytes.
    TooLarge(u64),
    /// The file cannot be read; the message says why.
    Unread(String),
}

/// Reads an entire file of at most `most` bytes and records it as seen.
pub async fn read_whole(path: &str, most: u64, context: &CallContext) -> Result<WholeFile, NotShown> {
    let given = path.to_owned();
    let read = run_blocking(context, move |context| Ok(look(&given, most, context))).await;
    read.unwrap_or_else(|failed: ToolOutput| Err(NotShown::Unread(failed.content)))
}

fn look(given: &str, most: u64, context: &CallContext) -> Result<WholeFile, NotShown> {
    let workspace = &context.workspace;
    let path = workspace.locate(given).map_err(|problem| NotShown::Unread(problem.to_string()))?;
    let opened =
        workspace.open_to_read(&path).map_err(|problem| NotShown::Unread(explain(&problem, context)))?;
    let (file, size) = match opened {
        OpenedPath::File { file, size } => (file, size),
        OpenedPath::Directory(_) => return Err(NotShown::Unread(format!("`{path}` is a directory"))),
        OpenedPath::Special(kind) => {
            return Err(NotShown::Unread(PathProblem::Special { path, kind }.to_string()));
        }
    };
    let most = most.min(context.limits.file_bytes);
    if size > most {
        return Err(NotShown::TooLarge(size));
    }
    let known = workspace
        .content(&path, file, size, most)
        .map_err(|error| NotShown::Unread(format!("`{path}` cannot be read: {error}")))?;
    let Some(CachedContent { bytes, hash }) = known else {
        return Err(NotShown::Unread(format!("`{path}` grew while it was read")));
    };
    if let Some(picture) = ImageInfo::parse(&bytes) {
        return Err(NotShown::NotText(format!("`{path}` is not text ({})", picture.describe(bytes.len()))));
    }
    if let Some(kind) = content_type::of_binary(&bytes).or_else(|| mostly_unreadable(&bytes)) {
        return Err(NotShown::NotText(binary(&path, size, kind)));
    }
    let seen = SeenVersion { path: path.as_str().to_owned(), hash };
    context.workspace.record_seen(&seen);
    let text = match workspace.unsaved_text(&path, &bytes) {
        Some(text) => unsaved_note(&path) + &shown(&path, text.as_bytes(), &seen),
        None => shown(&path, &bytes, &seen),
    };
    Ok(WholeFile { text, seen })
}

fn shown(path: &WorkspacePath, bytes: &[u8], seen: &SeenVersion) -> String {
    if bytes.is_empty() {
        return format!("`{path}` is empty (0 bytes).");
    }
    let window = PageWindow { first: 1, lines: usize::MAX, bytes: usize::MAX, line_characters: usize::MAX };
    FilePage::of_content(bytes, window).into_read(path, Some(seen.clone())).text
}

/// Detects binary data without a NUL near its start. Text in a legacy encoding has only some bytes that are
/// not UTF-8.
fn mostly_unreadable(bytes: &[u8]) -> Option<&'static str> {
    if bytes.contains(&0) {
        return Some("binary data");
    }
    let (mut characters, mut odd) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        odd += usize::from(!chunk.invalid().is_empty());
        characters += chunk.valid().chars().count();
    }
    (odd * 10 > characters + odd).then_some("neither UTF-8 nor close to it")
}

/// Formats the problem for the user, with suggestions for a missing file.
fn explain(problem: &PathProblem, context: &CallContext) -> String {
    let said = match problem {
        PathProblem::Directory { path } => format!("`{path}` is a directory"),
        other => other.to_string().trim_end_matches('.').to_owned(),
    };
    let (PathProblem::Missing { path } | PathProblem::NotADirectory { path }) = problem else { return said };
    match context.workspace.suggestions(path).as_slice() {
        [] => said,
        near => format!("{said}; did you mean `{}`?", near.join("`, `")),
    }
}
