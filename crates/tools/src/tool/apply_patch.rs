//! `apply_patch`: changes several files at once, all or none.
//!
//! The core is pure: [`plan`] computes the new contents from a patch and the current contents. `parse` reads
//! the two formats (`envelope`, `unified`) into sections, `line_match` finds a hunk's lines, `apply` changes
//! one file's content. The tool reads and writes the files through the workspace.

mod apply;
mod envelope;
mod line_match;
mod lines;
mod parse;
mod section;
mod unified;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use serde::Deserialize;
use serde_json::json;

use crate::tool::line_numbers::{self, RegionLimits};
use crate::tool::write_tool::{self, WriteTool, WriteToolAdapter};
use crate::tool::{Access, CallContext, Tool, ToolDefinition};
use crate::workspace::FileWrite;
use crate::workspace::content::{ContentHash, FileChange};

use section::{FileSection, SectionAction};

/// Maximum files of one patch; more than any model's patch touches.
const MAX_FILES: usize = 500;
/// Maximum problems reported at once.
const MAX_PROBLEMS: usize = 5;
/// Maximum lines of each changed region shown in an answer.
const REGION_LINES: usize = 30;

pub(crate) fn apply_patch() -> impl Tool {
    WriteToolAdapter::<ApplyPatch>::new(ToolDefinition {
        name: Cow::Borrowed("apply_patch"),
        description: Cow::Borrowed(
            "Changes several files at once. A unified diff, or:\n\
             *** Begin Patch\n\
             *** Update File: a.py\n\
             @@ def f():\n \
             same\n\
             -old\n\
             +new\n\
             *** Add File: b.py\n\
             +line\n\
             *** Delete File: c.py\n\
             *** End Patch",
        ),
        parameters: json!({
            "type": "object",
            "properties": { "patch": { "type": "string", "minLength": 1, "description": "The patch, applied as a whole or not at all. `@@ LINE` (optional) names a line before the change; about three unchanged lines around each change find its place. `*** Move to: PATH` after an Update header renames the file" } },
            "required": ["patch"],
            "additionalProperties": false
        }),
        category: Access::Write,
        aliases: &["system:apply_patch", "patch", "apply_diff"],
        parameter_aliases: &[("input", "patch"), ("diff", "patch")],
    })
}

/// Provides the file contents for a patch.
pub trait FileSource {
    /// Canonical name of the file that a patch calls `given`.
    fn name(&self, given: &str) -> Result<String, String>;

    /// Content of the named file; `None` if it does not exist.
    fn content(&self, name: &str) -> Result<Option<Vec<u8>>, String>;

    /// Hint for a name that does not exist.
    fn near(&self, _name: &str) -> String {
        String::new()
    }
}

/// Planned change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedChange {
    /// Canonical name of the file.
    pub name: String,
    /// Content before; `None` if the file does not exist.
    pub before: Option<Vec<u8>>,
    /// Content after; `None` if the file is deleted.
    pub after: Option<Vec<u8>>,
    /// The file it was moved from, whose permissions it inherits.
    pub moved_from: Option<String>,
    /// Permissions set by the patch.
    pub mode: Option<u32>,
    changed: Vec<Range<usize>>,
    lenient: bool,
}

/// The files that a patch changes, as it names them; empty if it cannot be parsed.
#[must_use]
pub fn changed_paths(patch: &str) -> Vec<String> {
    let names = |section: FileSection| {
        let moved = match section.action {
            SectionAction::Update { move_to, .. } => move_to,
            SectionAction::Add { .. } | SectionAction::Delete { .. } => None,
        };
        std::iter::once(section.path).chain(moved)
    };
    parse::parse(patch).unwrap_or_default().into_iter().flat_map(names).collect()
}

/// Computes the changes a patch makes. The error lists every problem; in that case nothing may be changed.
pub fn plan(patch: &str, source: &dyn FileSource) -> Result<Vec<PlannedChange>, Vec<String>> {
    let sections = parse::parse(patch).map_err(|error| vec![error.to_string()])?;
    plan_sections(&sections, source)
}

fn plan_sections(
    sections: &[FileSection],
    source: &dyn FileSource,
) -> Result<Vec<PlannedChange>, Vec<String>> {
    if sections.len() > MAX_FILES {
        return Err(vec![format!("the patch touches more than {MAX_FILES} files; make several of it")]);
    }
    let mut files = PatchedFiles { source, files: BTreeMap::new() };
    let mut problems = Vec::new();
    for section in sections {
        if let Err(found) = files.apply(section) {
            // Problems with the path already name it.
            let name = |problem: String| {
                if problem.starts_with('`') { problem } else { format!("`{}`: {problem}", section.path) }
            };
            problems.extend(found.into_iter().map(name));
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(files.files.into_values().filter(|file| file.before != file.after).collect())
}

/// File contents after the sections applied so far.
struct PatchedFiles<'s> {
    source: &'s dyn FileSource,
    files: BTreeMap<String, PlannedChange>,
}

impl PatchedFiles<'_> {
    fn file(&mut self, given: &str) -> Result<&mut PlannedChange, String> {
        let name = self.source.name(given)?;
        if !self.files.contains_key(&name) {
            let before = self.source.content(&name)?;
            let after = before.clone();
            let file = PlannedChange {
                name: name.clone(),
                before,
                after,
                moved_from: None,
                mode: None,
                changed: Vec::new(),
                lenient: false,
            };
            self.files.insert(name.clone(), file);
        }
        self.files.get_mut(&name).ok_or_else(|| "it cannot be read".to_owned())
    }

    fn apply(&mut self, section: &FileSection) -> Result<(), Vec<String>> {
        let one = |problem: String| vec![problem];
        let source = self.source;
        let missing = |name: &str| vec![format!("there is no such file. {}", source.near(name))];
        match &section.action {
            SectionAction::Add { lines, final_newline, mode } => {
                let file = self.file(&section.path).map_err(one)?;
                let mut content = lines.join("\n").into_bytes();
                if *final_newline && !lines.is_empty() {
                    content.push(b'\n');
                }
                match &file.after {
                    Some(there) if *there == content => return Ok(()),
                    Some(_) => {
                        return Err(one("there is a file already; use `*** Update File:`, or delete it in the same patch first".to_owned()));
                    }
                    None => {}
                }
                file.after = Some(content);
                file.mode = *mode;
            }
            SectionAction::Delete { hunks } => {
                let file = self.file(&section.path).map_err(one)?;
                let Some(content) = &file.after else { return Err(missing(&file.name)) };
                if !hunks.is_empty() {
                    let left = apply::apply(content, hunks)?.content;
                    if !left.is_empty() {
                        return Err(one(
                            "the file holds more than the patch removes; it was not deleted".to_owned()
                        ));
                    }
                }
                file.after = None;
            }
            SectionAction::Update { move_to, hunks } => {
                let file = self.file(&section.path).map_err(one)?;
                let Some(content) = &file.after else { return Err(missing(&file.name)) };
                let applied = apply::apply(content, hunks)?;
                let (name, mode) = (file.name.clone(), file.mode);
                let target = match move_to {
                    Some(to) if self.source.name(to).map_err(one)? != name => {
                        let target = self.file(to).map_err(one)?;
                        if target.after.is_some() {
                            return Err(one(format!("cannot be moved: `{to}` exists already")));
                        }
                        target.moved_from = Some(name.clone());
                        target.mode = mode;
                        target
                    }
                    _ => self.file(&section.path).map_err(one)?,
                };
                let moved = target.name != name;
                target.after = Some(applied.content);
                target.changed = applied.changed;
                target.lenient = applied.lenient;
                if moved && let Some(file) = self.files.get_mut(&name) {
                    file.after = None;
                }
            }
        }
        Ok(())
    }
}

struct ApplyPatch;

#[derive(Deserialize)]
struct Arguments {
    patch: String,
}

impl WriteTool for ApplyPatch {
    type Arguments = Arguments;

    fn plan(arguments: Arguments, context: &CallContext) -> Result<write_tool::WritePlan, String> {
        if arguments.patch.len() as u64 > context.limits.file_bytes {
            return Err(format!(
                "The patch has more than {} bytes; make several of it.",
                context.limits.file_bytes
            ));
        }
        let planned = plan(&arguments.patch, &WorkspaceFiles { context }).map_err(refusal)?;
        finished(planned, context)
    }

    fn plan_rest(
        arguments: Arguments,
        done: &[FileChange],
        context: &CallContext,
    ) -> Option<write_tool::WritePlan> {
        let source = WorkspaceFiles { context };
        let is_done = |given: &str| {
            let name = source.name(given).unwrap_or_default();
            done.iter().any(|change| change.path == name)
        };
        let mut sections = parse::parse(&arguments.patch).ok()?;
        // Removals are written last, so only the removal of a move can be missing.
        for section in &mut sections {
            if let SectionAction::Update { move_to: Some(to), .. } = &section.action
                && is_done(to)
                && !is_done(&section.path)
            {
                section.action = SectionAction::Delete { hunks: Vec::new() };
            }
        }
        sections.retain(|section| !is_done(&section.path));
        let planned = plan_sections(&sections, &source).ok()?;
        finished(planned, context).ok()
    }
}

fn finished(planned: Vec<PlannedChange>, context: &CallContext) -> Result<write_tool::WritePlan, String> {
    if planned.is_empty() {
        return Ok(write_tool::WritePlan {
            changes: Vec::new(),
            answer: "The files hold already what the patch would make of them; nothing was changed."
                .to_owned(),
        });
    }
    let most = context.limits.file_bytes;
    if let Some(file) =
        planned.iter().find(|file| file.after.as_ref().is_some_and(|after| after.len() as u64 > most))
    {
        return Err(format!("`{}` would have more than {most} bytes; nothing was changed.", file.name));
    }
    let answer = answer(&planned, context);
    let mut changes = Vec::with_capacity(planned.len());
    for file in planned {
        let path = context.workspace.locate(&file.name).map_err(|problem| problem.to_string())?;
        let mode = match &file.moved_from {
            Some(from) => permissions(from, context),
            None => file.mode,
        };
        changes.push(FileWrite {
            path,
            before: file.before.as_deref().map(ContentHash::of),
            after: file.after,
            mode,
        });
    }
    Ok(write_tool::WritePlan { changes, answer })
}

fn permissions(name: &str, context: &CallContext) -> Option<u32> {
    let path = context.workspace.locate(name).ok()?;
    context.workspace.current(&path, context.limits.file_bytes).ok()?.map(|current| current.mode)
}

/// The workspace as a [`FileSource`].
struct WorkspaceFiles<'c> {
    context: &'c CallContext,
}

impl FileSource for WorkspaceFiles<'_> {
    fn name(&self, given: &str) -> Result<String, String> {
        let path = self.context.workspace.locate(given).map_err(|problem| problem.to_string())?;
        Ok(path.as_str().to_owned())
    }

    fn content(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let workspace = &self.context.workspace;
        let path = workspace.locate(name).map_err(|problem| problem.to_string())?;
        let current = workspace
            .current(&path, self.context.limits.file_bytes)
            .map_err(|problem| problem.to_string())?;
        Ok(current.map(|current| current.content))
    }

    fn near(&self, name: &str) -> String {
        let workspace = &self.context.workspace;
        let mut near = workspace.locate(name).map(|path| workspace.suggestions(&path)).unwrap_or_default();
        // The name itself can be among them if the same patch deleted or moved it.
        near.retain(|near| near != name);
        match near.as_slice() {
            [] => "Use find_files to find it".to_owned(),
            near => format!("Did you mean `{}`?", near.join("`, `")),
        }
    }
}

fn refusal(problems: Vec<String>) -> String {
    let mut answer = String::from("The patch was not applied; no file was changed.");
    for problem in problems.iter().take(MAX_PROBLEMS) {
        let _ = write!(answer, "\n- {}", problem.trim_end_matches('.'));
    }
    if problems.len() > MAX_PROBLEMS {
        let _ = write!(answer, "\n- and {} more problems", problems.len() - MAX_PROBLEMS);
    }
    answer
}

fn answer(planned: &[PlannedChange], context: &CallContext) -> String {
    let limits = RegionLimits {
        lines: REGION_LINES,
        bytes: context.limits.answer_bytes / 16,
        line_characters: context.limits.line_characters / 4,
    };
    // A move is reported as one line, not as an addition and a removal.
    let moved: Vec<&String> = planned.iter().filter_map(|file| file.moved_from.as_ref()).collect();
    let shown: Vec<&PlannedChange> =
        planned.iter().filter(|file| file.after.is_some() || !moved.contains(&&file.name)).collect();
    let mut answer = match shown.len() {
        1 => "Applied.\n".to_owned(),
        several => format!("Applied to {several} files.\n"),
    };
    for file in shown {
        let lenient = if file.lenient { " (found by a lenient reading: check it)" } else { "" };
        let _ = match (&file.before, &file.after, &file.moved_from) {
            (_, Some(_), Some(from)) => writeln!(answer, "moved `{from}` to `{}`{lenient}", file.name),
            (None, Some(after), None) => {
                let lines = line_numbers::lines(&String::from_utf8_lossy(after)).count();
                writeln!(answer, "added `{}` ({lines} line{})", file.name, if lines == 1 { "" } else { "s" })
            }
            (_, None, _) => writeln!(answer, "deleted `{}`", file.name),
            (Some(_), Some(after), None) if after.is_empty() => {
                writeln!(answer, "changed `{}`, which is empty now", file.name)
            }
            (Some(_), Some(_), None) => writeln!(answer, "changed `{}`{lenient}", file.name),
        };
        let Some(after) = &file.after else { continue };
        let text = String::from_utf8_lossy(after);
        for (at, region) in merged(&file.changed, 2).into_iter().enumerate() {
            if answer.len() > context.limits.answer_bytes / 2 {
                answer.push_str("[… further regions are not shown]\n");
                break;
            }
            if at > 0 {
                answer.push_str("…\n");
            }
            answer.push_str(&line_numbers::region(&text, region, 2, limits));
        }
    }
    answer.truncate(answer.trim_end().len());
    answer
}

/// Merges regions that would overlap when shown with their context.
fn merged(regions: &[Range<usize>], around: usize) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for region in regions {
        match out.last_mut() {
            Some(last) if region.start <= last.end + 2 * around => last.end = last.end.max(region.end),
            _ => out.push(region.clone()),
        }
    }
    out
}
