//! The directory in which a trial works, and the copy of it in which the work is scored.
//!
//! A working copy holds the files of its case and nothing else: no instructions, no reference solution. Scoring works
//! on a copy, so that build results and files that tests write do not reach the next try.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::case::{Case, CaseFile, Reference};
use crate::language::Language;

/// Maximum number of files that are copied for scoring; a solution that creates more is not scored.
const MAX_FILES: usize = 50_000;

/// Maximum number of bytes that are copied for scoring.
const MAX_BYTES: u64 = 1 << 30;

/// The directories of one trial.
#[derive(Clone, Debug)]
pub(crate) struct WorkingCopy {
    root: PathBuf,
}

impl WorkingCopy {
    /// The directories of the trial below `root`, which may not exist yet.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where the model works.
    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Where the work is scored.
    pub(crate) fn scored(&self) -> PathBuf {
        self.root.join("scored")
    }

    /// Where tests write their logs and rewards.
    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The generation of runs that the working copy was laid out for; `None` if it was not laid out completely.
    pub(crate) fn generation(&self) -> Option<u32> {
        fs::read_to_string(self.root.join("complete")).ok()?.trim().parse().ok()
    }

    /// Lays out the files of a case, replacing whatever is there.
    pub(crate) fn write_files(&self, case: &Case, generation: u32) -> io::Result<()> {
        remove(&self.root)?;
        fs::create_dir_all(self.project())?;
        for file in &case.files {
            put(case, file, &self.project())?;
        }
        // The last write: a kill before it leaves a copy that is laid out again.
        fs::write(self.root.join("complete"), generation.to_string())
    }

    /// Copies the work for scoring, with every test as it was.
    pub(crate) fn copy_for_scoring(&self, case: &Case) -> io::Result<()> {
        let scored = self.scored();
        remove(&scored)?;
        remove(&self.logs())?;
        fs::create_dir_all(self.logs().join("verifier"))?;
        let mut budget = Budget { files: MAX_FILES, bytes: MAX_BYTES };
        copy_tree(&self.project(), &scored, &mut budget)?;
        // Restores what the model may not change: the tests, and every file that is not part of the solution where
        // the suite says what the solution is.
        let restored = |file: &&CaseFile| {
            case.is_test(&file.path) || (!case.solution.is_empty() && !case.solution.contains(&file.path))
        };
        case.files.iter().filter(restored).try_for_each(|file| put(case, file, &scored))
    }

    /// Lays the files of a reference solution over the working copy.
    pub(crate) fn put_reference(&self, reference: &Reference) -> io::Result<()> {
        let Reference::Files(files) = reference else { return Ok(()) };
        for file in files {
            let target = self.project().join(&file.path);
            make_parent(&target)?;
            remove(&target)?;
            fs::copy(&file.source, target).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", file.source.display()))
            })?;
        }
        Ok(())
    }

    /// Removes everything.
    pub(crate) fn remove(&self) -> io::Result<()> {
        remove(&self.root)
    }
}

struct Budget {
    files: usize,
    bytes: u64,
}

/// Puts one file of a case into a directory. What the model put in its place is removed, be it a link or a folder.
fn put(case: &Case, file: &CaseFile, directory: &Path) -> io::Result<()> {
    let target = directory.join(&file.path);
    remove_obstructions(directory, &file.path)?;
    make_parent(&target)?;
    remove(&target)?;
    let language = Language::from_path(&file.path).filter(|_| case.is_test(&file.path));
    match language {
        Some(language) => {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", file.source.display()))
            };
            fs::write(&target, language.with_all_tests(fs::read(&file.source).map_err(named)?))?;
            fs::set_permissions(&target, fs::metadata(&file.source)?.permissions())
        }
        None => {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", file.source.display()))
            };
            fs::copy(&file.source, &target).map(drop).map_err(named)
        }
    }
}

/// Removes links and files that stand where the folders of a path have to be.
fn remove_obstructions(directory: &Path, path: &Path) -> io::Result<()> {
    let mut way = directory.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        way.push(part);
        match fs::symlink_metadata(&way) {
            Ok(found) if !found.is_dir() => fs::remove_file(&way)?,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Copies a tree without following links; links are copied as links. Sockets and pipes are left out.
fn copy_tree(from: &Path, to: &Path, budget: &mut Budget) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        budget.files = budget.files.checked_sub(1).ok_or_else(|| too_much("files"))?;
        if kind.is_dir() {
            copy_tree(&entry.path(), &target, budget)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else if kind.is_file() {
            let bytes = entry.metadata()?.len();
            budget.bytes = budget.bytes.checked_sub(bytes).ok_or_else(|| too_much("bytes"))?;
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn too_much(what: &str) -> io::Error {
    io::Error::other(format!("the working copy has too many {what} to be scored"))
}

/// Removes a file, a link or a tree; nothing if there is none.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
