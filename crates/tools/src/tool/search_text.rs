//! `search_text`: finds lines that match a pattern in all or some files, with ripgrep's searcher.
//!
//! Files are searched in parallel, yet the answer is deterministic: the first matches in order of path and
//! line (`matches`). `find` searches names instead.

mod matches;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Write;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::WalkState;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use crate::tool::read_file::explain;
use crate::tool::read_tool::{ReadTool, ReadToolAdapter};
use crate::tool::{Access, CallContext, Tool, ToolDefinition, ToolOutput};
use crate::workspace::glob::NamePattern;
use crate::workspace::{OpenedPath, PathProblem, WorkspacePath};

use matches::{CollectedMatches, FileMatches};

/// Files with a longer line are skipped: they are not readable text.
const LONGEST_LINE: usize = 8 * 1024 * 1024;

pub(crate) fn search_text() -> impl Tool {
    ReadToolAdapter::<SearchText>::new(ToolDefinition {
        name: Cow::Borrowed("search_text"),
        description: Cow::Borrowed(
            "Searches files (`include`: a glob) for a regular expression, or plain text if `literal`.",
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string", "minLength": 1, "description": "Regular expression (Rust syntax, case sensitive; `(?i)` at its start ignores case), or plain text if `literal` is true" },
                "path": { "type": "string", "description": "File or directory to search; the workspace root if left out" },
                "include": { "type": "string", "description": "Glob pattern of the files to search, such as `*.rs`" },
                "literal": { "type": "boolean", "description": "Take the pattern as plain text" },
                "max_results": { "type": "integer", "minimum": 1, "maximum": 1000, "description": "Most matches to show, 100 if left out. Ignored, hidden and binary files are skipped" }
            },
            "required": ["pattern"],
            "additionalProperties": false
        }),
        category: Access::Read,
        aliases: &["system:search_text", "grep", "grep_search", "search", "search_files", "ripgrep"],
        parameter_aliases: &[
            ("query", "pattern"),
            ("regex", "pattern"),
            ("directory", "path"),
            ("glob", "include"),
            ("file_pattern", "include"),
            ("limit", "max_results"),
        ],
    })
}

struct SearchText;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    include: Option<String>,
    #[serde(default)]
    literal: bool,
    max_results: Option<usize>,
}

impl ReadTool for SearchText {
    type Arguments = Arguments;

    fn look(arguments: Arguments, context: &CallContext) -> ToolOutput {
        search(&arguments, context).unwrap_or_else(ToolOutput::error)
    }
}

fn search(arguments: &Arguments, context: &CallContext) -> Result<ToolOutput, String> {
    let workspace = &context.workspace;
    let start =
        workspace.locate(arguments.path.as_deref().unwrap_or(".")).map_err(|problem| problem.to_string())?;
    let opened = workspace.open_to_read(&start).map_err(|problem| explain(&problem, context))?;
    let include = arguments
        .include
        .as_deref()
        .filter(|include| !include.trim().is_empty())
        .map(|include| NamePattern::parse(include, workspace.root()))
        .transpose()?;
    let search = Search::new(arguments)?;
    let most =
        arguments.max_results.unwrap_or(context.limits.search_results).min(context.limits.max_search_results);
    let collected = match opened {
        OpenedPath::Special(kind) => return Err(PathProblem::Special { path: start, kind }.to_string()),
        OpenedPath::File { file, .. } => {
            let mut collected = CollectedMatches::new(most);
            if let Some(found) = search.file(&mut search.searcher(), &file, most) {
                collected.add(start.clone(), found);
            }
            collected
        }
        OpenedPath::Directory(_) => {
            let start = workspace.real_directory(&start).map_err(|problem| problem.to_string())?;
            walk(&start, include.as_ref(), &search, most, context)
        }
    };
    if context.cancel.is_cancelled() {
        return Ok(ToolOutput::aborted("Cancelled before the search was complete."));
    }
    Ok(answer(arguments, &start, &collected, context))
}

/// A compiled pattern.
struct Search {
    matcher: RegexMatcher,
    /// Whether a match may span several lines.
    several_lines: bool,
}

impl Search {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let pattern = &arguments.pattern;
        let several_lines = pattern.contains('\n') || (!arguments.literal && pattern.contains(r"\n"));
        let mut builder = RegexMatcherBuilder::new();
        builder.fixed_strings(arguments.literal).multi_line(true);
        if !several_lines {
            builder.line_terminator(Some(b'\n'));
        }
        let matcher = builder.build(pattern).map_err(|error| {
            let words = error.to_string();
            let last = words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("`{pattern}` is not a valid regular expression: {last}. To search for this very text, set `literal` to true.")
        })?;
        Ok(Self { matcher, several_lines })
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_number(true)
            .multi_line(self.several_lines)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LONGEST_LINE))
            .build()
    }

    /// Returns the first matches of a file; `None` if there are none or the file cannot be read to its end.
    fn file(&self, searcher: &mut Searcher, file: &std::fs::File, most: usize) -> Option<FileMatches<'_>> {
        let mut found = FileMatches::new(&self.matcher, most);
        searcher.search_file(&self.matcher, file, &mut found).ok()?;
        found.finished()
    }
}

fn walk(
    start: &WorkspacePath,
    include: Option<&NamePattern>,
    search: &Search,
    most: usize,
    context: &CallContext,
) -> CollectedMatches {
    let workspace = &context.workspace;
    let root = workspace.root();
    let top = root.join(start.as_path());
    let collected = Mutex::new(CollectedMatches::new(most));
    let hidden = include.is_some_and(|include| include.hidden);
    crate::workspace::walk::builder(&top, hidden).build_parallel().run(|| {
        let mut searcher = search.searcher();
        let (collected, top) = (&collected, &top);
        Box::new(move |entry| {
            if context.cancel.is_cancelled() {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else { return WalkState::Continue };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                return WalkState::Continue;
            }
            let path = entry.path();
            let Ok(from_root) = path.strip_prefix(root) else { return WalkState::Continue };
            if let Some(include) = include {
                let from_start = path.strip_prefix(top).unwrap_or(from_root);
                if !include.matches(entry.file_name(), [from_start, from_root]) {
                    return WalkState::Continue;
                }
            }
            let Some(path) = WorkspacePath::from_walk(from_root) else { return WalkState::Continue };
            if collected.lock().is_past(&path) {
                return WalkState::Continue;
            }
            if let Ok(OpenedPath::File { file, .. }) = workspace.open_to_read(&path)
                && let Some(found) = search.file(&mut searcher, &file, most)
            {
                collected.lock().add(path, found);
            }
            WalkState::Continue
        })
    });
    collected.into_inner()
}

fn answer(
    arguments: &Arguments,
    start: &WorkspacePath,
    collected: &CollectedMatches,
    context: &CallContext,
) -> ToolOutput {
    if collected.is_empty() {
        let mut answer = format!("Nothing matches `{}` in `{start}`", arguments.pattern);
        if let Some(include) = &arguments.include {
            let _ = write!(answer, ", files `{include}`");
        }
        answer.push('.');
        let meta = r".^$*+?()[]{}|\";
        if !arguments.literal && arguments.pattern.contains(|character| meta.contains(character)) {
            answer.push_str(" Set `literal` to true if this is plain text.");
        } else {
            answer.push_str(" Try a shorter pattern, or `(?i)` before it to ignore case.");
        }
        return ToolOutput::done(answer);
    }
    let mut output = ToolOutput::done(String::new());
    let (shown, complete) = collected.render(&mut output.content, context.limits.answer_bytes);
    if !complete {
        output.truncated = true;
        let _ = writeln!(
            output.content,
            "[the first {shown} matches; there are more. Narrow it down with `path` or `include`]"
        );
    }
    output
}
