//! Derives Landlock grants from a policy. Landlock cannot exclude a part of what it grants, so the siblings
//! of a hidden path are granted one by one.

use std::path::{Path, PathBuf};

use crate::sandbox::landlock::PathGrant;
use crate::sandbox::policy::Policy;

/// Maximum number of grants. Access checks cost one lookup per parent directory, independent of this number.
const MAX_GRANTS: usize = 4096;

/// Devices that give no access to anything else.
pub(crate) const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Process information; the kernel limits its details to processes that the command could trace.
const PROCESSES: &str = "/proc";

/// POSIX shared memory, which interpreters need for locks between processes. It is the machine's, and
/// Landlock cannot separate its entries, so it is granted only if it is empty.
const SHARED_MEMORY: &str = "/dev/shm";

/// The grants of a policy; `own` are the private directories of the run. Returns a message if a path cannot
/// be granted.
pub(crate) fn for_policy(policy: &Policy, own: &[PathBuf]) -> Result<Vec<(PathBuf, PathGrant)>, String> {
    let hidden: Vec<PathBuf> = policy.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut grants = Vec::new();
    for root in policy.read.iter().chain([&PathBuf::from(PROCESSES)]) {
        // It may have been removed since the policy was made.
        let Ok(root) = root.canonicalize() else { continue };
        readable(&root, &hidden, &mut grants)?;
    }
    for root in &policy.write {
        let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
        if let Some(secret) = hidden.iter().find(|secret| secret.starts_with(&root)) {
            return Err(format!(
                "{} cannot be hidden without namespaces, because it is in {}, which commands can write to",
                secret.display(),
                root.display()
            ));
        }
        grants.push((root, PathGrant::Write));
    }
    grants.extend(own.iter().map(|path| (path.clone(), PathGrant::Write)));
    grants.extend(unused(Path::new(SHARED_MEMORY)).map(|path| (path, PathGrant::Write)));
    grants.extend(DEVICES.iter().map(|path| (PathBuf::from(path), PathGrant::Device)));
    grants.sort();
    grants.dedup();
    Ok(grants)
}

/// The directory, if it exists and is empty.
fn unused(directory: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(directory).ok()?;
    entries.next().is_none().then(|| directory.to_owned())
}

fn readable(root: &Path, hidden: &[PathBuf], grants: &mut Vec<(PathBuf, PathGrant)>) -> Result<(), String> {
    if grants.len() >= MAX_GRANTS {
        return Err(format!("the policy needs more than {MAX_GRANTS} separate Landlock grants"));
    }
    if hidden.iter().any(|secret| secret == root) {
        return Ok(());
    }
    if !hidden.iter().any(|secret| secret.starts_with(root)) {
        grants.push((root.to_owned(), PathGrant::Read));
        return Ok(());
    }
    grants.push((root.to_owned(), PathGrant::List));
    let entries = std::fs::read_dir(root).map_err(|error| format!("{}: {error}", root.display()))?;
    for entry in entries.flatten() {
        // The target of a link is granted by its own path or not at all.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            readable(&entry.path(), hidden, grants)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
