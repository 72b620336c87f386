//! `find_files`: finds files by name or path pattern. `search` searches file contents.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use ignore::WalkState;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use crate::tool::read_file::explain;
use crate::tool::read_tool::{ReadTool, ReadToolAdapter};
use crate::tool::{Access, CallContext, Tool, ToolDefinition, ToolOutput};
use crate::workspace::glob::NamePattern;
use crate::workspace::{OpenedPath, Workspace, WorkspacePath};

/// Maximum hidden and ignored entries visited when nothing else matched.
const MAX_IGNORED_ENTRIES: usize = 50_000;
const MAX_IGNORED_SHOWN: usize = 5;

pub(crate) fn find_files() -> impl Tool {
    ReadToolAdapter::<FindFiles>::new(ToolDefinition {
        name: Cow::Borrowed("find_files"),
        description: Cow::Borrowed("Finds files by glob, such as `*.py`."),
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string", "description": "Glob pattern. Without `/` it is matched against names at any depth (`*.rs`), with `/` against paths (`src/**/*.rs`). Ignored files are skipped, hidden ones too unless the pattern names them (`.github/**`). Up to 200 are shown" },
                "path": { "type": "string", "description": "Directory to look in; the workspace root if left out" }
            },
            "required": ["pattern"],
            "additionalProperties": false
        }),
        category: Access::Read,
        aliases: &["system:find_files", "glob", "file_search", "find"],
        parameter_aliases: &[("glob", "pattern"), ("directory", "path"), ("dir", "path")],
    })
}

struct FindFiles;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
}

impl ReadTool for FindFiles {
    type Arguments = Arguments;

    fn look(arguments: Arguments, context: &CallContext) -> ToolOutput {
        find(&arguments, context).unwrap_or_else(ToolOutput::error)
    }
}

fn find(arguments: &Arguments, context: &CallContext) -> Result<ToolOutput, String> {
    let workspace = &context.workspace;
    let start =
        workspace.locate(arguments.path.as_deref().unwrap_or(".")).map_err(|problem| problem.to_string())?;
    match workspace.open_to_read(&start).map_err(|problem| explain(&problem, context))? {
        OpenedPath::Directory(_) => {}
        _ => return Err(format!("`{start}` is a file. Give the directory to look in as `path`.")),
    }
    let start = workspace.real_directory(&start).map_err(|problem| problem.to_string())?;
    let pattern = NamePattern::parse(&arguments.pattern, workspace.root())?;
    let found = walk(&start, &pattern, context).confined(workspace);
    if context.cancel.is_cancelled() {
        return Ok(ToolOutput::aborted("Cancelled before the walk was complete."));
    }
    if found.total == 0 {
        return Ok(no_match(&start, &pattern, &arguments.pattern, context));
    }
    let mut output = ToolOutput::done(String::new());
    let mut shown = 0;
    for path in &found.first {
        if output.content.len() + path.as_str().len() > context.limits.answer_bytes {
            break;
        }
        let _ = writeln!(output.content, "{path}");
        shown += 1;
    }
    if found.total > shown {
        output.truncated = true;
        let _ = writeln!(
            output.content,
            "[{shown} of {} shown. Narrow it down with a longer pattern or with `path`]",
            found.total
        );
    }
    Ok(output)
}

#[derive(Default)]
struct FoundFiles {
    /// The first results in path order, up to the limit.
    first: BTreeSet<WorkspacePath>,
    total: usize,
}

impl FoundFiles {
    /// Without results that are not in the workspace: a directory may have been swapped for a symlink during the
    /// walk. Nothing is told about what was found then, not even how much.
    fn confined(mut self, workspace: &Workspace) -> Self {
        let before = self.first.len();
        self.first.retain(|path| workspace.stat_no_symlinks(path).is_some());
        if self.first.len() < before {
            self.total = self.first.len();
        }
        self
    }
}

fn walk(start: &WorkspacePath, pattern: &NamePattern, context: &CallContext) -> FoundFiles {
    let root = context.workspace.root();
    let top = root.join(start.as_path());
    let most = context.limits.find_results;
    let found = Mutex::new(FoundFiles::default());
    crate::workspace::walk::builder(&top, pattern.hidden).build_parallel().run(|| {
        Box::new(|entry| {
            if context.cancel.is_cancelled() {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else { return WalkState::Continue };
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            if is_directory != pattern.directories || entry.depth() == 0 {
                return WalkState::Continue;
            }
            let path = entry.path();
            let Ok(from_root) = path.strip_prefix(root) else { return WalkState::Continue };
            let from_start = path.strip_prefix(&top).unwrap_or(from_root);
            if !pattern.matches(entry.file_name(), [from_start, from_root]) {
                return WalkState::Continue;
            }
            let Some(path) = WorkspacePath::from_walk(from_root) else { return WalkState::Continue };
            let mut found = found.lock();
            found.total += 1;
            if found.first.len() < most {
                found.first.insert(path);
            } else if found.first.last().is_some_and(|last| path < *last) {
                found.first.insert(path);
                found.first.pop_last();
            }
            WalkState::Continue
        })
    });
    found.into_inner()
}

/// Answer for no match; lists matches among hidden and ignored files.
fn no_match(start: &WorkspacePath, pattern: &NamePattern, given: &str, context: &CallContext) -> ToolOutput {
    let root = context.workspace.root();
    let top = root.join(start.as_path());
    let mut ignored: Vec<String> = Vec::new();
    let mut builder = crate::workspace::walk::builder(&top, true);
    builder.ignore(false).git_ignore(false).git_exclude(false).parents(false);
    for entry in builder.build().flatten().take(MAX_IGNORED_ENTRIES) {
        if context.cancel.is_cancelled() || ignored.len() == MAX_IGNORED_SHOWN {
            break;
        }
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        if entry.depth() == 0 || is_directory != pattern.directories {
            continue;
        }
        let Ok(from_root) = entry.path().strip_prefix(root) else { continue };
        let from_start = entry.path().strip_prefix(&top).unwrap_or(Path::new(""));
        if pattern.matches(entry.file_name(), [from_start, from_root])
            && let Some(path) = WorkspacePath::from_walk(from_root)
            && context.workspace.stat_no_symlinks(&path).is_some()
        {
            ignored.push(path.to_string());
        }
    }
    let mut answer = format!("No file matches `{given}` in `{start}`.");
    if ignored.is_empty() {
        answer.push_str(" Try a shorter pattern, such as `*part_of_the_name*`, or list_dir.");
    } else {
        ignored.sort();
        let _ = write!(answer, " Among the hidden and ignored there are: {}.", ignored.join(", "));
    }
    ToolOutput::done(answer)
}
