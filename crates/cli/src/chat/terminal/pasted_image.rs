//! Images that are pasted into the input: ctrl-v takes one from the clipboard, and the path of an image file that the
//! terminal pastes becomes a mention of it.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fusee::engine::tools::CallLimits;
use fusee::system;

use crate::process::environment::Environment;
use crate::project::file_mentions;

/// Programs that print the image in the clipboard, each with the variable that says whether it can.
const PROGRAMS: [(&str, &str, &[&str]); 2] = [
    ("WAYLAND_DISPLAY", "wl-paste", &["--type", "image/png"]),
    ("DISPLAY", "xclip", &["-selection", "clipboard", "-t", "image/png", "-o"]),
];

/// Writes the image in the clipboard to a file and returns the mention of it; an error says why there is none.
pub(super) fn from_clipboard(environment: &Environment) -> Result<String, String> {
    let mut problem = "no clipboard can be read here: neither WAYLAND_DISPLAY nor DISPLAY is set".to_owned();
    for (variable, program, arguments) in PROGRAMS {
        if environment.variable(variable).is_none() {
            continue;
        }
        match output_of(program, arguments) {
            Ok(image) if image.is_empty() => problem = "there is no image in the clipboard".to_owned(),
            Ok(image) => return keep(&image, "png", environment),
            Err(error) => problem = format!("{program}: {error}"),
        }
    }
    Err(problem)
}

#[expect(clippy::disallowed_methods, reason = "the user's own clipboard, at the user's key press")]
fn output_of(program: &str, arguments: &[&str]) -> Result<Vec<u8>, std::io::Error> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut image = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(CallLimits::IMAGE_BYTES as u64 + 1).read_to_end(&mut image)?;
    }
    child.kill()?;
    child.wait()?;
    Ok(image)
}

/// The mention of an image whose path was pasted; `None` if the text is something else. Terminals quote such paths, or
/// escape their spaces.
pub(super) fn mention(text: &str, environment: &Environment) -> Option<String> {
    let text = text.trim();
    let bare = text.strip_prefix("file://").unwrap_or(text);
    let bare = bare.trim_matches(['\'', '"']).replace("\\ ", " ");
    let path = Path::new(&bare);
    if bare.contains('\n') || !path.is_absolute() || !file_mentions::is_image_name(&bare) || !path.is_file() {
        return None;
    }
    if !bare.contains(char::is_whitespace) {
        return Some(format!("@{bare} "));
    }
    // A mention ends at a space.
    let extension = path.extension()?.to_str()?;
    keep(&std::fs::read(path).ok()?, extension, environment).ok()
}

/// Keeps an image in the user's state folder; returns the mention of it.
fn keep(image: &[u8], extension: &str, environment: &Environment) -> Result<String, String> {
    if image.len() > CallLimits::IMAGE_BYTES {
        return Err(format!("the image has more than {} kB", CallLimits::IMAGE_BYTES / 1000));
    }
    let folder = environment.state_folder().ok_or("HOME is not set")?.join("pasted");
    let file: PathBuf = folder.join(format!("{}.{extension}", system::new_run_id()?));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&file, image))
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    Ok(format!("@{} ", file.display()))
}
