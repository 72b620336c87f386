//! The directory in which a tool works on an exercise. Its path is the same for every trial, because the path is
//! part of prompts and changes what a small model does.

use std::fs;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::suite::Exercise;

/// The one working copy of this machine (of this `TMPDIR`), with a home and a temporary directory for tools.
pub(crate) struct WorkingCopy {
    root: PathBuf,
    /// Held while this process uses the directory.
    _lock: File,
}

impl WorkingCopy {
    /// Claims the directory; fails if another process uses it.
    pub(crate) fn claim() -> Outcome<Self> {
        let root = std::env::temp_dir().join("fusee-eval");
        let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", root.display());
        fs::create_dir_all(root.join("cache")).map_err(|error| fault(&error))?;
        let root = root.canonicalize().map_err(|error| fault(&error))?;
        let lock = File::create(root.join("lock")).map_err(|error| fault(&error))?;
        lock.try_lock().map_err(|error| fault(&format!("in use by another evaluation ({error})")))?;
        Ok(Self { root, _lock: lock })
    }

    /// The directory that tools may write to: the project and everything beside it.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Build cache that is kept between trials.
    pub(crate) fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// Starts over with the files of an exercise, without its instructions and its reference solution.
    pub(crate) fn reset(&self, exercise: &Exercise) -> Outcome {
        for directory in [self.project(), self.home(), self.temporary()] {
            remove(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
            fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        self.copy(exercise, |_| true)
    }

    /// Puts back every file that is not part of the solution, above all the tests.
    pub(crate) fn restore(&self, exercise: &Exercise) -> Outcome {
        self.copy(exercise, |file| !exercise.solution.iter().any(|solution| solution == file))
    }

    /// Replaces the solution files with the reference solution.
    pub(crate) fn install_reference(&self, exercise: &Exercise) -> Outcome {
        for (from, to) in &exercise.reference {
            let (from, to) = (exercise.folder.join(from), self.project().join(to));
            fs::copy(&from, to).map_err(|error| format!("{}: {error}", from.display()))?;
        }
        Ok(())
    }

    fn copy(&self, exercise: &Exercise, wanted: impl Fn(&Path) -> bool) -> Outcome {
        let mut files = Vec::new();
        visible_files(&exercise.folder, Path::new(""), &mut files)
            .and_then(|()| {
                for file in files.iter().filter(|file| wanted(file)) {
                    let target = self.project().join(file);
                    if let Some(parent) = target.parent() {
                        fs::create_dir_all(parent)?;
                    }
                    // A tool may have put a link or a directory here.
                    remove(&target)?;
                    fs::copy(exercise.folder.join(file), target)?;
                }
                Ok(())
            })
            .map_err(|error: io::Error| format!("{}: {error}", exercise.folder.display()))
    }
}

/// Lists files below `root`, leaving out hidden files and directories of the top level (`.meta`, `.docs`).
fn visible_files(root: &Path, below: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if below == Path::new("") && entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            visible_files(root, &path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
