//! What a fence grants, from a policy. A fence cannot take back a part of what it grants, so around something hidden
//! its neighbours are granted one by one.

use std::path::{Path, PathBuf};

use crate::sandbox::landlock::Grant;
use crate::sandbox::policy::Policy;

/// Most grants. A command's path is checked against each directory above it, not against all of these.
const MOST: usize = 4096;

/// Devices that are no way to anything.
pub(super) const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// What commands see of processes, and only as far as they could trace them.
const PROCESSES: &str = "/proc";

/// Shared memory by name, which interpreters want for locks between their processes. It is the machine's, and a fence
/// cannot keep what is in it apart: so only where there is nothing.
const SHARED_MEMORY: &str = "/dev/shm";

/// The grants of a policy; `own` are directories of the run's own. In words, what cannot be granted so.
pub(super) fn of(policy: &Policy, own: &[PathBuf]) -> Result<Vec<(PathBuf, Grant)>, String> {
    let hidden: Vec<PathBuf> = policy.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut grants = Vec::new();
    for root in policy.read.iter().chain([&PathBuf::from(PROCESSES)]) {
        // It may be gone since the policy was made.
        let Ok(root) = root.canonicalize() else { continue };
        readable(&root, &hidden, &mut grants)?;
    }
    for root in &policy.write {
        let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
        if let Some(secret) = hidden.iter().find(|secret| secret.starts_with(&root)) {
            return Err(format!(
                "{} lies in {}, which commands can change, and without namespaces it cannot be hidden there",
                secret.display(),
                root.display()
            ));
        }
        grants.push((root, Grant::Write));
    }
    grants.extend(own.iter().map(|path| (path.clone(), Grant::Write)));
    grants.extend(unused(Path::new(SHARED_MEMORY)).map(|path| (path, Grant::Write)));
    grants.extend(DEVICES.iter().map(|path| (PathBuf::from(path), Grant::Device)));
    grants.sort();
    grants.dedup();
    Ok(grants)
}

/// A directory that nobody has put anything into.
fn unused(directory: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(directory).ok()?;
    entries.next().is_none().then(|| directory.to_owned())
}

fn readable(root: &Path, hidden: &[PathBuf], grants: &mut Vec<(PathBuf, Grant)>) -> Result<(), String> {
    if grants.len() >= MOST {
        return Err(format!("more than {MOST} places would have to be granted one by one"));
    }
    if hidden.iter().any(|secret| secret == root) {
        return Ok(());
    }
    if !hidden.iter().any(|secret| secret.starts_with(root)) {
        grants.push((root.to_owned(), Grant::Read));
        return Ok(());
    }
    grants.push((root.to_owned(), Grant::List));
    let entries = std::fs::read_dir(root).map_err(|error| format!("{}: {error}", root.display()))?;
    for entry in entries.flatten() {
        // Where a link leads is granted there or not at all.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            readable(&entry.path(), hidden, grants)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
