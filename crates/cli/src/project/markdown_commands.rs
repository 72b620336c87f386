//! Commands that are Markdown files: `.fusee/commands/NAME.md` and Claude Code's `.claude/commands/NAME.md`. `/NAME`
//! sends the file's text to the model. It is only text: nothing in it is run.

use std::fs;
use std::path::{Path, PathBuf};

use fusee::engine::dispatch;
use fusee::engine::prompt::front_matter;
use fusee::engine::tools::workspace::bounded_read;

#[cfg(test)]
mod tests;

/// Folders of commands, the first of which has precedence.
const FOLDERS: [&str; 2] = [".fusee/commands", ".claude/commands"];

/// Maximum size of a file in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// Maximum number of commands in a folder.
const MAX_COMMANDS: usize = 200;

/// A command of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkdownCommand {
    pub(crate) name: String,
    /// One line about it: its description, or the first line of its text.
    pub(crate) summary: String,
}

/// The commands of the project that a directory belongs to, by name.
pub(crate) fn list(directory: &Path) -> Vec<MarkdownCommand> {
    let mut found: Vec<MarkdownCommand> = Vec::new();
    for folder in folders(directory) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_COMMANDS);
        for path in entries.map(|entry| entry.path()) {
            let Some(name) =
                command_name(&path).filter(|name| !found.iter().any(|known| known.name == **name))
            else {
                continue;
            };
            if let Some((summary, _)) = read(&path) {
                found.push(MarkdownCommand { name: name.to_owned(), summary });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The request that a line such as `/NAME ARGUMENTS` stands for; `None` if it names no command of the project.
pub(crate) fn expand(line: &str, directory: &Path) -> Option<String> {
    let line = line.trim();
    let (name, arguments) =
        line.strip_prefix('/')?.split_once(char::is_whitespace).unwrap_or((&line[1..], ""));
    if !is_name(name) {
        return None;
    }
    let file =
        folders(directory).map(|folder| folder.join(format!("{name}.md"))).find(|file| file.is_file())?;
    let (_, text) = read(&file)?;
    Some(filled(text.trim(), arguments.trim()))
}

fn folders(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let is_root = |path: &&Path| path.join(".fusee").is_dir() || path.join(".git").exists();
    let root = directory.ancestors().find(is_root).unwrap_or(directory).to_owned();
    FOLDERS.into_iter().map(move |folder| root.join(folder))
}

fn command_name(file: &Path) -> Option<&str> {
    let is_markdown = file.extension().is_some_and(|end| end == "md");
    file.file_stem()?.to_str().filter(|name| is_markdown && is_name(name))
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(plain)
}

/// Summary and text of a file; `None` if it cannot be read or has no text.
fn read(file: &Path) -> Option<(String, String)> {
    let content = bounded_read::read_text(file, MAX_BYTES).ok()?.replace("\r\n", "\n");
    let (fields, text) = front_matter::split(&content);
    let first = || {
        text.lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(|line| line.trim_start_matches(['#', ' ']).to_owned())
    };
    let summary = front_matter::field(fields, "description").or_else(first)?;
    (!text.trim().is_empty()).then(|| (summary, text.to_owned()))
}

/// Puts the arguments in place of `$ARGUMENTS` and `$1` to `$9`, or after the text if it has none of these.
fn filled(text: &str, arguments: &str) -> String {
    let words = dispatch::split(arguments)
        .unwrap_or_else(|_| arguments.split_whitespace().map(str::to_owned).collect());
    let mut filled = String::with_capacity(text.len() + arguments.len());
    let (mut rest, mut used) = (text, false);
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let digit = after.chars().next().and_then(|c| c.to_digit(10)).filter(|digit| *digit > 0);
        let is_number = digit.is_some() && !after[1..].starts_with(|c: char| c.is_ascii_digit());
        if let Some(tail) = after.strip_prefix("ARGUMENTS") {
            filled.push_str(arguments);
            (rest, used) = (tail, true);
        } else if let Some(digit) = digit.filter(|_| is_number) {
            filled.push_str(words.get(digit as usize - 1).map_or("", String::as_str));
            (rest, used) = (&after[1..], true);
        } else {
            filled.push('$');
            rest = after;
        }
    }
    filled.push_str(rest);
    if !used && !arguments.is_empty() {
        filled.push_str(&format!("\n\nArguments: {arguments}"));
    }
    filled
}
