//! The source files that `check` and `fmt` work on: named individually, or found in directories.

use std::path::{Path, PathBuf};

use fusee::engine::tools::workspace::walk;

/// The given files, and the `wanted` files in the given directories that are not ignored, sorted by name.
/// Paths stay relative to `here` if they were given so.
pub(crate) fn files(here: &Path, given: &[PathBuf], wanted: fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in given {
        if here.join(path).is_dir() {
            found.extend(below(here, path, wanted));
        } else {
            found.push(path.clone());
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.clone()));
    found
}

fn below(here: &Path, directory: &Path, wanted: fn(&Path) -> bool) -> Vec<PathBuf> {
    let start = here.join(directory);
    // Enter hidden folders: `.fusee` is one, and others do not contain such files.
    let mut walk = ignore::WalkBuilder::new(&start);
    walk.hidden(false).filter_entry(|entry| entry.file_name() != ".git" && walk::may_enter(entry));
    walk::bound_ignore_files(&mut walk, &start);
    let mut found: Vec<PathBuf> = walk
        .build()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(ignore::DirEntry::into_path)
        .filter(|path| wanted(path))
        .map(|path| {
            let inner = path.strip_prefix(&start).unwrap_or(&path).to_owned();
            if directory == Path::new(".") { inner } else { directory.join(inner) }
        })
        .collect();
    found.sort();
    found
}
