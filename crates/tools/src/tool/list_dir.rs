//! `list_dir`: lists a directory as a tree, with as many levels as fit.
//!
//! A model that sees an entire small project in its first call needs no second one, so the listing opens
//! directories level by level while everything fits. `find` searches names, `search` file contents.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use rustix::fs::{Dir, FileType};
use serde::Deserialize;
use serde_json::json;

use crate::tool::read_file::explain;
use crate::tool::read_tool::{ReadTool, ReadToolAdapter};
use crate::tool::{Access, CallContext, Tool, ToolDefinition, ToolOutput};
use crate::workspace::{OpenedPath, PathProblem, WorkspacePath};

/// Maximum hidden and ignored names in each closing line.
const MAX_UNLISTED: usize = 20;

pub(crate) fn list_dir() -> impl Tool {
    ReadToolAdapter::<ListDir>::new(ToolDefinition {
        name: Cow::Borrowed("list_dir"),
        description: Cow::Borrowed("Lists a directory as a tree."),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "Directory, relative to the workspace root; the root if left out. Up to three levels are opened while all fits in 200 entries; a directory marked `…` was not opened; hidden and ignored entries are only named at the end" }
            },
            "additionalProperties": false
        }),
        category: Access::Read,
        aliases: &["system:list_dir", "list_directory", "list_files", "ls"],
        parameter_aliases: &[("directory", "path"), ("dir", "path")],
    })
}

struct ListDir;

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
}

impl ReadTool for ListDir {
    type Arguments = Arguments;

    fn look(arguments: Arguments, context: &CallContext) -> ToolOutput {
        list(arguments.path.as_deref().unwrap_or("."), context).unwrap_or_else(ToolOutput::error)
    }
}

/// Listed entries by path relative to the listed directory. Paths compare component by component, which gives
/// tree order.
type DirectoryEntries = BTreeMap<PathBuf, EntryKind>;

enum EntryKind {
    Directory,
    Other,
}

fn list(given: &str, context: &CallContext) -> Result<ToolOutput, String> {
    let workspace = &context.workspace;
    let start = workspace.locate(given).map_err(|problem| problem.to_string())?;
    let directory = match workspace.open_to_read(&start).map_err(|problem| explain(&problem, context))? {
        OpenedPath::Directory(directory) => directory,
        OpenedPath::File { size, .. } => {
            return Err(format!("`{start}` is a file of {}. Use read_file to read it.", size_words(size)));
        }
        OpenedPath::Special(kind) => return Err(PathProblem::Special { path: start, kind }.to_string()),
    };
    let start = workspace.real_directory(&start).map_err(|problem| problem.to_string())?;
    let mut all_names: BTreeSet<String> = BTreeSet::new();
    for entry in
        Dir::read_from(&directory).map_err(|error| format!("`{start}` cannot be listed: {error}."))?
    {
        let entry = entry.map_err(|error| format!("`{start}` cannot be listed: {error}."))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            all_names.insert(name);
        }
    }
    if all_names.is_empty() {
        return Ok(ToolOutput::done(format!("`{start}` is empty.")));
    }
    let (entries, depth) = opened_levels(&start, context);
    for entry in entries.keys() {
        if let Some(name) = entry.iter().next() {
            all_names.remove(&*name.to_string_lossy());
        }
    }
    Ok(render(&start, &entries, depth, &all_names, context))
}

/// Returns the entries of as many levels as fit, and the number of levels.
fn opened_levels(start: &WorkspacePath, context: &CallContext) -> (DirectoryEntries, usize) {
    let most = context.limits.list_entries;
    let mut best = (DirectoryEntries::new(), 0);
    for depth in 1..=context.limits.list_depth.max(1) {
        let mut entries = DirectoryEntries::new();
        let top = context.workspace.root().join(start.as_path());
        for entry in crate::workspace::walk::builder(&top, false).max_depth(Some(depth)).build().flatten() {
            let Ok(path) = entry.path().strip_prefix(&top) else { continue };
            if path.as_os_str().is_empty() {
                continue;
            }
            let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            entries.insert(path.to_owned(), if directory { EntryKind::Directory } else { EntryKind::Other });
            if (depth > 1 && entries.len() > most) || context.cancel.is_cancelled() {
                return best;
            }
        }
        let grew = entries.len() > best.0.len();
        best = (entries, depth);
        if !grew {
            break;
        }
    }
    best
}

fn render(
    start: &WorkspacePath,
    entries: &DirectoryEntries,
    depth: usize,
    unlisted: &BTreeSet<String>,
    context: &CallContext,
) -> ToolOutput {
    let mut output = ToolOutput::done(String::new());
    let (mut shown, mut unopened) = (0, false);
    for (path, kind) in entries {
        if shown == context.limits.list_entries || output.content.len() > context.limits.answer_bytes {
            output.truncated = true;
            let _ = writeln!(
                output.content,
                "[… {} more entries. Use find_files with a pattern to narrow it down]",
                entries.len() - shown
            );
            break;
        }
        let level = path.iter().count();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let indent = "  ".repeat(level - 1);
        let within = WorkspacePath::from_walk(path)
            .map(|inner| inner.as_str().split('/').fold(start.clone(), |path, name| path.join(name)));
        // A directory may be swapped for a symlink during the walk, so each entry is checked again. Names
        // that are not UTF-8 are left out: a model could not look them up.
        let Some(within) = within else { continue };
        let Some(status) = context.workspace.stat_no_symlinks(&within) else { continue };
        let _ = match (kind, FileType::from_raw_mode(status.st_mode)) {
            (EntryKind::Directory, _) if level == depth => {
                unopened = true;
                writeln!(output.content, "{indent}{name}/ …")
            }
            (EntryKind::Directory, _) => writeln!(output.content, "{indent}{name}/"),
            (EntryKind::Other, FileType::Symlink) => {
                let target = context.workspace.link_text(&within).unwrap_or_default();
                writeln!(output.content, "{indent}{name} -> {target}")
            }
            (EntryKind::Other, FileType::RegularFile) => {
                writeln!(output.content, "{indent}{name}  {}", size_words(status.st_size as u64))
            }
            (EntryKind::Other, _) => writeln!(output.content, "{indent}{name}"),
        };
        shown += 1;
    }
    if unopened {
        let _ = writeln!(output.content, "[directories marked … were not opened; list them for more]");
    }
    push_unlisted(&mut output.content, unlisted);
    output
}

fn push_unlisted(out: &mut String, unlisted: &BTreeSet<String>) {
    let (hidden, ignored): (Vec<&String>, Vec<&String>) =
        unlisted.iter().partition(|name| name.starts_with('.'));
    for (what, names) in [("hidden", hidden), ("ignored", ignored)] {
        if names.is_empty() {
            continue;
        }
        let listed: Vec<&str> = names.iter().take(MAX_UNLISTED).map(|name| name.as_str()).collect();
        let more = if names.len() > MAX_UNLISTED {
            format!(" and {} more", names.len() - MAX_UNLISTED)
        } else {
            String::new()
        };
        let _ = writeln!(out, "[{what}: {}{more}]", listed.join(", "));
    }
}

fn size_words(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}
