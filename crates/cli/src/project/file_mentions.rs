//! `@path` in a message attaches the file as background of the task. The text becomes part of the run's
//! settings, which are its first step, so resuming and replaying do not need the file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use fusee::engine::prompt;
use fusee::engine::tools::Workspace;
use fusee::engine::tools::workspace::OpenedPath;

#[cfg(test)]
mod tests;

/// Maximum total size of a message's files in bytes. Files beyond it are reported, and the model can read
/// them.
const MAX_BYTES: u64 = 256 << 10;

/// The files attached to a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AttachedFiles {
    /// The files' contents, each under its name.
    pub(crate) background: Option<String>,
    /// Files that could not be attached, each with the reason.
    pub(crate) problems: Vec<String>,
}

/// Reads the files that a message names. A word that names no file is ignored, since @ has many other uses.
pub(crate) fn gather(message: &str, workspace: &Workspace) -> AttachedFiles {
    let (mut text, mut problems, mut names) = (String::new(), Vec::new(), Vec::new());
    for name in names_in(message) {
        // The name may be followed by the full stop of a sentence.
        let name = if is_file(name, workspace) { name } else { name.trim_end_matches('.') };
        if names.contains(&name) {
            continue;
        }
        names.push(name);
        match read(name, workspace, MAX_BYTES.saturating_sub(text.len() as u64)) {
            Some(Ok(content)) => {
                text.push_str(&format!("The file {name}:\n\n{}\n\n", content.trim_end()));
            }
            Some(Err(problem)) => problems.push(problem),
            None => {}
        }
    }
    AttachedFiles { background: (!text.is_empty()).then(|| text.trim_end().to_owned()), problems }
}

/// A message to a running task with the files it names, and the problems with them. The message is a step of
/// the run, so the journal contains the files.
pub(crate) fn spoken(words: &str, directory: &Path) -> (String, Vec<String>) {
    let Ok(workspace) = Workspace::open(directory) else { return (words.to_owned(), Vec::new()) };
    let AttachedFiles { background, problems } = gather(words, &workspace);
    (prompt::request_text(words, background.as_deref()), problems)
}

fn names_in(message: &str) -> impl Iterator<Item = &str> {
    let words = message.split_whitespace().filter_map(|word| word.strip_prefix('@'));
    words.map(|name| name.trim_end_matches([',', ';', ':', '!', '?', ')'])).filter(|name| !name.is_empty())
}

fn is_file(name: &str, workspace: &Workspace) -> bool {
    file(name, workspace).is_some()
}

fn file(name: &str, workspace: &Workspace) -> Option<File> {
    let path = workspace.locate(name).ok()?;
    match workspace.open_to_read(&path) {
        Ok(OpenedPath::File { file, .. }) => Some(file),
        _ => None,
    }
}

fn read(name: &str, workspace: &Workspace, room: u64) -> Option<Result<String, String>> {
    let file = file(name, workspace)?;
    let mut bytes = Vec::new();
    if let Err(error) = file.take(room + 1).read_to_end(&mut bytes) {
        return Some(Err(format!("cannot read @{name}: {error}")));
    }
    if bytes.len() as u64 > room {
        let most = MAX_BYTES >> 10;
        return Some(Err(format!(
            "@{name} not attached: a message's files are limited to {most} kB in total"
        )));
    }
    Some(String::from_utf8(bytes).map_err(|_| format!("@{name} not attached: not a text file")))
}
