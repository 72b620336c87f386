//! Parses edits that a model gives in its answer instead of by tool calls: entire files in fenced blocks, or
//! search-and-replace blocks. The runtime applies them through the regular edit tools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::preload::is_source;
use super::settings::FlowEditFormat;

/// Maximum number of edits in one answer; more are treated as a mistake.
const MAX_EDITS: usize = 50;

/// One edit, as a call to the tool that applies it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AnswerEdit {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
}

/// A fenced block and its context.
#[derive(Debug, PartialEq)]
struct FencedBlock<'a> {
    /// The info string after the opening fence.
    info: &'a str,
    /// The last non-empty line before the fence.
    before: &'a str,
    body: String,
}

impl FencedBlock<'_> {
    /// Whether it shows commands or their output.
    fn is_for_terminal(&self) -> bool {
        const TERMINAL: &[&str] =
            &["bash", "sh", "shell", "console", "terminal", "text", "plaintext", "output"];
        TERMINAL.contains(&self.info.to_ascii_lowercase().as_str())
    }
}

/// The path that a block is for.
#[derive(Debug, PartialEq)]
struct NamedPath {
    path: String,
    /// Whether the path stands alone, and not in a sentence.
    is_heading: bool,
}

/// Extracts the edits from an answer. `targets` are the files the task is about: if there is only one,
/// unnamed blocks apply to it. The error is worded for the model.
pub(crate) fn edits(
    answer: &str,
    format: FlowEditFormat,
    targets: &[String],
) -> Result<Vec<AnswerEdit>, String> {
    let edits = match format {
        FlowEditFormat::Tools => return Ok(Vec::new()),
        FlowEditFormat::Whole => whole(answer, targets)?,
        FlowEditFormat::Blocks => blocks(answer, targets)?,
    };
    if edits.len() > MAX_EDITS {
        return Err(format!("The answer holds {} edits; at most {MAX_EDITS} are taken.", edits.len()));
    }
    Ok(edits)
}

/// The files of an answer that may go on: path and content. `None` while a block is open.
pub(super) fn finished_files(answer: &str, targets: &[String]) -> Option<Vec<(String, String)>> {
    let last = answer.trim_end().rsplit('\n').next()?.trim();
    if !last.starts_with("```") && !last.starts_with("~~~") || fenced(answer).1 {
        return None;
    }
    let text = |edit: &AnswerEdit, name: &str| edit.arguments[name].as_str().unwrap_or_default().to_owned();
    let edits = whole(answer, targets).ok()?;
    Some(edits.iter().map(|edit| (text(edit, "path"), text(edit, "content"))).collect())
}

fn whole(answer: &str, targets: &[String]) -> Result<Vec<AnswerEdit>, String> {
    let (blocks, _) = fenced(answer);
    if blocks.is_empty() {
        return Err(
            "The answer holds no fenced block. Answer with the complete new content of the file in a block \
                    between lines of three backticks, with the file's path on the line before it."
                .to_owned(),
        );
    }
    let named: Vec<(Option<NamedPath>, &FencedBlock<'_>)> =
        blocks.iter().map(|block| (path_of(block, targets), block)).collect();
    if let [target] = targets
        && named.iter().all(|(path, _)| path.is_none())
    {
        // Models add small explanatory blocks next to the large one.
        let largest = blocks.iter().max_by_key(|block| (!block.is_for_terminal(), block.body.len()));
        return largest.map(|block| vec![write(target, &block.body)]).ok_or_else(unclear);
    }
    let mut files: Vec<(NamedPath, &FencedBlock<'_>)> = Vec::new();
    for (path, block) in named.into_iter().filter_map(|(path, block)| Some((path?, block))) {
        match files.iter_mut().find(|(known, _)| known.path == path.path) {
            None => files.push((path, block)),
            // A later version replaces an earlier one; an example of its use does not.
            Some((known, kept)) => {
                let is_version =
                    path.is_heading >= known.is_heading && block.body.len() * 2 >= kept.body.len();
                if is_version || (path.is_heading && !known.is_heading) {
                    (*known, *kept) = (path, block);
                }
            }
        }
    }
    if files.is_empty() {
        return Err(unclear());
    }
    Ok(files.iter().map(|(path, block)| write(&path.path, &block.body)).collect())
}

/// The edits of an answer whose blocks are not named, by what they have in common with the files that the model was
/// shown: path and text of each. `None` if that does not tell.
pub(crate) fn unnamed_edits(answer: &str, shown: &[(&str, &str)]) -> Option<Vec<AnswerEdit>> {
    let mut edits: Vec<AnswerEdit> = Vec::new();
    for block in fenced(answer).0.iter().filter(|block| !block.is_for_terminal()) {
        let mut scores: Vec<(usize, &str)> =
            shown.iter().map(|(path, text)| (common_lines(&block.body, text), *path)).collect();
        scores.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        if let [(best, path), rest @ ..] = scores.as_slice()
            && *best >= MIN_COMMON
            && rest.first().is_none_or(|(second, _)| best > second)
            && edits.iter().all(|edit| edit.arguments["path"] != *path)
        {
            edits.push(write(path, &block.body));
        }
    }
    (!edits.is_empty()).then_some(edits)
}

/// Lines that a block and a file must have in common for the block to be a version of the file.
const MIN_COMMON: usize = 2;

/// Number of different lines of some length that two texts have in common.
fn common_lines(one: &str, other: &str) -> usize {
    fn lines(text: &str) -> BTreeSet<&str> {
        text.lines().map(str::trim).filter(|line| line.len() >= 8).collect()
    }
    lines(one).intersection(&lines(other)).count()
}

fn unclear() -> String {
    "It is not clear which file a block is for: put the path on the line before the block.".to_owned()
}

fn write(path: &str, content: &str) -> AnswerEdit {
    AnswerEdit { tool: "write_file", arguments: json!({ "path": path, "content": content }) }
}

fn blocks(answer: &str, targets: &[String]) -> Result<Vec<AnswerEdit>, String> {
    let mut edits = Vec::new();
    let mut path: Option<String> = None;
    let mut lines = answer.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let text = line.trim_end();
        if !text.trim_start().starts_with("<<<<<<<") {
            path = path_in(text, targets).or(path);
            continue;
        }
        let old = until(&mut lines, "=======").ok_or("A search block has no line of ======= in it.")?;
        let new = until(&mut lines, ">>>>>>>").ok_or("A search block has no line of >>>>>>> at its end.")?;
        let target = path.clone().or_else(|| match targets {
            [only] => Some(only.clone()),
            _ => None,
        });
        let path =
            target.ok_or("It is not clear which file a block is for: put the path on the line before it.")?;
        edits.push(if old.is_empty() {
            write(&path, &new)
        } else {
            AnswerEdit { tool: "edit_file", arguments: json!({ "path": path, "old": old, "new": new }) }
        });
    }
    if edits.is_empty() {
        return Err(
            "The answer holds no edit. Write each as: the file's path, then <<<<<<< SEARCH, the old lines, \
                    =======, the new lines, >>>>>>> REPLACE, each mark on a line of its own."
                .to_owned(),
        );
    }
    Ok(edits)
}

fn until<'a>(lines: &mut impl Iterator<Item = &'a str>, mark: &str) -> Option<String> {
    let mut text = String::new();
    for line in lines {
        if line.trim_start().starts_with(mark) {
            return Some(text);
        }
        text.push_str(line);
    }
    None
}

/// Parses the fenced blocks of a text. A fence is closed by one at least as long; the last one may be left
/// open by a model that stopped there: then the second value is true. A block that contains only a path and is
/// immediately followed by another names that one.
fn fenced(text: &str) -> (Vec<FencedBlock<'_>>, bool) {
    let mut blocks = Vec::new();
    let mut before = "";
    let mut label: Option<(&str, FencedBlock<'_>)> = None;
    let mut open: Option<UnclosedBlock<'_>> = None;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let mark = trimmed.chars().next().filter(|mark| ['`', '~'].contains(mark));
        let length = mark.map_or(0, |mark| trimmed.chars().take_while(|c| *c == mark).count());
        if let Some(block) = &mut open {
            if mark == Some(block.mark) && length >= block.length && trimmed.chars().count() == length {
                // A line names only the block that follows it.
                before = "";
                match open.take().map(|open| (open.path(), open.block())) {
                    Some((Some(path), block)) => label = Some((path, block)),
                    closed => blocks.extend(closed.map(|(_, block)| block)),
                }
            } else {
                block.lines.push(line);
            }
        } else if let Some(mark) = mark.filter(|_| length >= 3) {
            let info = trimmed.trim_start_matches(['`', '~']).trim();
            let before = label.take().map_or(before, |(path, _)| path);
            open = Some(UnclosedBlock { mark, length, info, before, lines: Vec::new() });
        } else if !trimmed.is_empty() {
            blocks.extend(label.take().map(|(_, block)| block));
            before = trimmed;
        }
    }
    blocks.extend(label.map(|(_, block)| block));
    let is_open = open.is_some();
    blocks.extend(open.map(UnclosedBlock::block).filter(|block| !block.body.trim().is_empty()));
    (blocks, is_open)
}

/// A block that is not closed yet.
struct UnclosedBlock<'a> {
    mark: char,
    length: usize,
    info: &'a str,
    before: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> UnclosedBlock<'a> {
    /// The path, if that is its only content.
    fn path(&self) -> Option<&'a str> {
        let [only] = self.lines.as_slice() else { return None };
        let only = only.trim();
        (!only.contains(char::is_whitespace) && path_in(only, &[]).is_some()).then_some(only)
    }

    fn block(self) -> FencedBlock<'a> {
        FencedBlock { info: self.info, before: self.before, body: self.lines.concat() }
    }
}

/// The file a block is for: named in its info string, on the line before it, or in a comment on its first line.
fn path_of(block: &FencedBlock<'_>, targets: &[String]) -> Option<NamedPath> {
    if let Some(path) = path_in(block.info, targets) {
        return Some(NamedPath { path, is_heading: true });
    }
    let before = path_in(block.before, targets).filter(|_| {
        // A command line is no file, even below a sentence that names one.
        words(block.before).count() == 1 || !block.is_for_terminal()
    });
    let is_heading = before.is_some() && words(block.before).count() == 1;
    if !is_heading && let Some(path) = path_in_comment(&block.body, targets) {
        return Some(NamedPath { path, is_heading: true });
    }
    before.map(|path| NamedPath { path, is_heading })
}

/// The target that a comment on the first line names, if the comment says nothing else.
fn path_in_comment(body: &str, targets: &[String]) -> Option<String> {
    const MARKERS: &[&str] = &["//", "#", "--", ";", "/*", "<!--", "%"];
    let line = body.lines().next()?.trim();
    let text = MARKERS.iter().find_map(|marker| line.strip_prefix(marker))?;
    let text = text.trim_end_matches("*/").trim_end_matches("-->");
    let text = text.trim().trim_start_matches(['/', '#']).trim();
    let text = text.strip_prefix("File:").or_else(|| text.strip_prefix("file:")).unwrap_or(text);
    let [only] = words(text).collect::<Vec<_>>()[..] else { return None };
    targets.iter().find(|target| is_path_to(target, only)).cloned()
}

/// The words of a line, without quotes and marks.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || "`*\"'()=:,".contains(c))
        .map(|word| word.trim_start_matches('#').trim_end_matches('.').trim_start_matches("./"))
        .filter(|word| !word.is_empty())
}

/// Whether a word is the path of a target. A model may use the full path of a file it was given by name.
fn is_path_to(target: &str, word: &str) -> bool {
    word.strip_suffix(target).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// The path in a line: one of the targets, or the only word that looks like a path.
fn path_in(line: &str, targets: &[String]) -> Option<String> {
    let words: Vec<&str> = words(line).collect();
    if let Some(known) = targets.iter().find(|target| words.iter().any(|word| is_path_to(target, word))) {
        return Some(known.clone());
    }
    let looks = |word: &&&str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        // Numbers, methods and abbreviations have dots, too.
        let is_known = is_source(name) || has_text_extension(name) || word.contains('/');
        name.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty() && (1..=8).contains(&end.len()) && end.chars().all(|c| c.is_ascii_alphanumeric())
        }) && is_known
            && word.chars().all(|c| c.is_alphanumeric() || "._-/+".contains(c))
            && !word.contains("//")
    };
    match words.iter().filter(looks).collect::<Vec<_>>().as_slice() {
        [only] if words.len() <= 6 => Some((**only).to_owned()),
        _ => None,
    }
}

/// Whether a file is text other than source code, by its extension.
fn has_text_extension(name: &str) -> bool {
    const ENDS: &[&str] = &[
        "bat",
        "cfg",
        "cmake",
        "conf",
        "css",
        "csv",
        "env",
        "gradle",
        "html",
        "ini",
        "json",
        "jsonl",
        "less",
        "lock",
        "md",
        "mod",
        "properties",
        "proto",
        "rst",
        "scss",
        "svg",
        "toml",
        "tsv",
        "txt",
        "xml",
        "yaml",
        "yml",
    ];
    name.rsplit_once('.').is_some_and(|(_, end)| ENDS.contains(&end.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests;
