//! Programs that commands may not execute at all: their files are hidden, so that it does not matter how a command
//! gets to them.

use std::path::{Path, PathBuf};

use super::{Policy, is_plain};
use crate::sandbox::CommandEnvironment;

/// Where programs are, besides the directories of the PATH.
const USUAL: [&str; 6] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The shell that runs every command.
const SHELL: &str = "/bin/sh";

impl Policy {
    /// Hides the files of these programs. A program whose file has other names as well, such as one of busybox,
    /// stays, and so does one that commands could write themselves.
    #[must_use]
    pub fn without_programs(mut self, names: &[String], environment: &CommandEnvironment) -> Self {
        let path = environment.value("PATH").and_then(std::ffi::OsStr::to_str).unwrap_or_default().to_owned();
        let folders: Vec<PathBuf> = path.split(':').chain(USUAL).map(PathBuf::from).collect();
        let shell = Path::new(SHELL).canonicalize().ok();
        for name in names.iter().filter(|name| !name.is_empty() && !name.contains('/')) {
            for folder in &folders {
                let Ok(file) = folder.join(name).canonicalize() else { continue };
                let is_named = file
                    .file_name()
                    .and_then(|file| file.to_str())
                    .is_some_and(|file| file.starts_with(name.as_str()));
                let is_writable = self.write.iter().any(|tree| file.starts_with(tree));
                let is_fit = file.is_file() && is_plain(&file) && is_named && !is_writable;
                if is_fit && Some(&file) != shell.as_ref() && !self.hidden.contains(&file) {
                    self.hidden.push(file);
                }
            }
        }
        self
    }
}
