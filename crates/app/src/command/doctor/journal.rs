//! Checks the journal: location, size, integrity, write access.

use std::fs;
use std::path::Path;

use super::{Finding, State};
use crate::face::words;
use crate::project::Project;

/// Runs the checks.
pub(crate) fn look(project: &Project) -> Vec<Finding> {
    let path = &project.journal;
    let mut findings = vec![place(path)];
    if path.exists() {
        findings.push(content(project));
    }
    findings
}

/// Whether the journal can be written or created.
fn place(path: &Path) -> Finding {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::access(existing, rustix::fs::Access::WRITE_OK) {
        Ok(()) if path.exists() => {
            let size = fs::metadata(path).map_or(0, |metadata| metadata.len());
            Finding::new("place", State::Ready, format!("{} · {}", path.display(), words::bytes(size)))
        }
        Ok(()) => Finding::new("place", State::Ready, format!("{} · created by the first run", path.display())),
        Err(error) => {
            let detail = format!("cannot write {}: {error}", path.display());
            Finding::new("place", State::Broken, detail)
        }
    }
}

fn content(project: &Project) -> Finding {
    let name = "content";
    let journal = match project.read_journal() {
        Ok(Some(journal)) => journal,
        Ok(None) => return Finding::new(name, State::Absent, "no runs yet"),
        Err(failure) => return Finding::new(name, State::Broken, failure.message),
    };
    match (journal.check(), journal.runs()) {
        (Ok(problems), Ok(runs)) if problems.is_empty() => {
            Finding::new(name, State::Ready, format!("{}, intact", words::count(runs.len() as u64, "run")))
        }
        (Ok(problems), _) if !problems.is_empty() => Finding::new(name, State::Broken, problems.join("; ")),
        (Err(error), _) | (_, Err(error)) => Finding::new(name, State::Broken, error.to_string()),
        (Ok(_), Ok(_)) => Finding::new(name, State::Ready, "intact"),
    }
}
