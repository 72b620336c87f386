//! Checks the journal: location, size, integrity, write access.

use std::fs;
use std::path::Path;

use super::{CheckState, DoctorCheck};
use crate::project::Project;
use crate::ui::format;

/// Runs the checks.
pub(crate) fn check(project: &Project) -> Vec<DoctorCheck> {
    let path = &project.journal;
    let mut findings = vec![place(path)];
    if path.exists() {
        findings.push(content(project));
    }
    findings
}

/// Whether the journal can be written or created.
fn place(path: &Path) -> DoctorCheck {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::access(existing, rustix::fs::Access::WRITE_OK) {
        Ok(()) if path.exists() => {
            // The newest commits are in the write-ahead log.
            let size = ["", "-wal"].map(|end| {
                let mut file = path.as_os_str().to_owned();
                file.push(end);
                fs::metadata(&file).map_or(0, |metadata| metadata.len())
            });
            let size = size.iter().sum();
            DoctorCheck::new(
                "place",
                CheckState::Ready,
                format!("{} · {}", path.display(), format::bytes(size)),
            )
        }
        Ok(()) => DoctorCheck::new(
            "place",
            CheckState::Ready,
            format!("{} · created by the first run", path.display()),
        ),
        Err(error) => {
            let detail = format!("cannot write {}: {error}", path.display());
            DoctorCheck::new("place", CheckState::Broken, detail)
        }
    }
}

fn content(project: &Project) -> DoctorCheck {
    let name = "content";
    let journal = match project.read_journal() {
        Ok(Some(journal)) => journal,
        Ok(None) => return DoctorCheck::new(name, CheckState::Absent, "no runs yet"),
        Err(failure) => return DoctorCheck::new(name, CheckState::Broken, failure.message),
    };
    match (journal.check(), journal.runs()) {
        (Ok(problems), Ok(runs)) if problems.is_empty() => DoctorCheck::new(
            name,
            CheckState::Ready,
            format!("{}, intact", format::count(runs.len() as u64, "run")),
        ),
        (Ok(problems), _) if !problems.is_empty() => {
            DoctorCheck::new(name, CheckState::Broken, problems.join("; "))
        }
        (Err(error), _) | (_, Err(error)) => DoctorCheck::new(name, CheckState::Broken, error.to_string()),
        (Ok(_), Ok(_)) => DoctorCheck::new(name, CheckState::Ready, "intact"),
    }
}
