//! `@path` in a message attaches the file: text as background of the task, an image as an image. Both become part of the
//! run's settings, which are its first step, so resuming and replaying do not need the file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use fusee::engine::model::Image;
use fusee::engine::prompt;
use fusee::engine::tools::workspace::OpenedPath;
use fusee::engine::tools::{ToolImage, Workspace};

#[cfg(test)]
mod tests;

/// Maximum total size of a message's files in bytes. Files beyond it are reported, and the model can read
/// them.
const MAX_BYTES: u64 = 256 << 10;

/// The files attached to a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AttachedFiles {
    /// The contents of text files, each under its name.
    pub(crate) background: Option<String>,
    /// Images, in the order of the message.
    pub(crate) images: Vec<Image>,
    /// Files that could not be attached, each with the reason.
    pub(crate) problems: Vec<String>,
}

/// Reads the files that a message names. A word that names no file is ignored, since @ has many other uses. `image_bytes`
/// bounds all images together; it is 0 if the model takes none.
pub(crate) fn gather(message: &str, workspace: &Workspace, image_bytes: usize) -> AttachedFiles {
    let (mut text, mut problems, mut names) = (String::new(), Vec::new(), Vec::new());
    let (mut images, mut room) = (Vec::new(), image_bytes);
    for name in names_in(message) {
        // The name may be followed by the full stop of a sentence.
        let name = if is_file(name, workspace) { name } else { name.trim_end_matches('.') };
        if names.contains(&name) {
            continue;
        }
        names.push(name);
        if is_image_name(name) {
            match read_image(name, workspace, image_bytes, room) {
                Some(Ok((image, bytes))) => {
                    room -= bytes;
                    images.push(image);
                }
                Some(Err(problem)) => problems.push(format!("@{name} not attached: {problem}")),
                None => {}
            }
            continue;
        }
        match read(name, workspace, MAX_BYTES.saturating_sub(text.len() as u64)) {
            Some(Ok(content)) => {
                text.push_str(&format!("The file {name}:\n\n{}\n\n", content.trim_end()));
            }
            Some(Err(problem)) => problems.push(problem),
            None => {}
        }
    }
    AttachedFiles { background: (!text.is_empty()).then(|| text.trim_end().to_owned()), images, problems }
}

/// A message to a running task with the files it names, and the problems with them. The message is a step of
/// the run, so the journal contains the files.
pub(crate) fn spoken(words: &str, directory: &Path) -> (String, Vec<String>) {
    let Ok(workspace) = Workspace::open(directory) else { return (words.to_owned(), Vec::new()) };
    let AttachedFiles { background, mut problems, .. } = gather(words, &workspace, 0);
    if names_in(words).any(is_image_name) {
        problems = vec!["images are not attached to a running task; send them with a new message".to_owned()];
    }
    (prompt::request_text(words, background.as_deref()), problems)
}

/// Whether a file is an image, by its name.
pub(crate) fn is_image_name(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
    matches!(extension.as_deref(), Some("png" | "jpg" | "jpeg" | "gif" | "webp"))
}

/// Reads an image. An absolute path may lead out of the workspace: it is the user who names it.
fn read_image(
    name: &str,
    workspace: &Workspace,
    most: usize,
    room: usize,
) -> Option<Result<(Image, usize), String>> {
    let file = match Path::new(name).is_absolute() {
        true => File::open(name).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file())),
        false => file(name, workspace),
    }?;
    if most == 0 {
        return Some(Err("this model does not accept images".to_owned()));
    }
    let mut content = Vec::new();
    if let Err(error) = file.take(room as u64 + 1).read_to_end(&mut content) {
        return Some(Err(error.to_string()));
    }
    if content.len() > room {
        let most = most / 1000;
        return Some(Err(format!("the images of a message are limited to {most} kB in total")));
    }
    let image = ToolImage::of_file(&content, most);
    Some(image.map(|ToolImage { media_type, data }| (Image { media_type, data }, content.len())))
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
