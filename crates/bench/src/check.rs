//! Checks a suite on this machine: every reference solution passes its tests, every stub fails them.

use std::path::Path;

use futures_util::StreamExt as _;
use serde::Serialize;

use crate::case::{Case, Reference};
use crate::machine::HostMachine;
use crate::score::{Score, Scorer};
use crate::working_copy::WorkingCopy;

/// What a check found out about a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedCase {
    /// Folder name of the checked case.
    pub case: String,
    /// Verdict on it.
    #[serde(flatten)]
    pub state: CaseState,
}

/// Verdict on a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", content = "reason", rename_all = "snake_case")]
pub enum CaseState {
    /// The reference passes and the stub fails.
    Usable,
    /// The stub fails, and there is no reference to check.
    Unverified,
    /// This machine cannot run it.
    Skipped(String),
    /// It cannot measure anything.
    Broken(String),
}

/// Checks cases, several at a time; `each` is called as they are done. Working copies are made in `scratch`.
pub async fn check(
    cases: &[Case],
    machine: &HostMachine,
    scorer: &Scorer,
    scratch: &Path,
    concurrent: usize,
    mut each: impl FnMut(&CheckedCase),
) -> Vec<CheckedCase> {
    let numbered = cases.iter().enumerate();
    let checks = numbered.map(|(number, case)| async move {
        let state = match case.skip_reason(machine) {
            Some(reason) => CaseState::Skipped(reason),
            None => {
                let copy = WorkingCopy::at(scratch.join(number.to_string()));
                let state = check_case(case, scorer, &copy).await.unwrap_or_else(|reason| {
                    CaseState::Broken(format!("{}: {reason}", case.origin.display()))
                });
                // What stays behind is removed with the scratch folder.
                let _ = copy.remove();
                state
            }
        };
        (number, CheckedCase { case: case.name.clone(), state })
    });
    let mut checks = futures_util::stream::iter(checks).buffer_unordered(concurrent.max(1));
    let mut done = Vec::new();
    while let Some((number, checked)) = checks.next().await {
        each(&checked);
        done.push((number, checked));
    }
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, checked)| checked).collect()
}

async fn check_case(case: &Case, scorer: &Scorer, copy: &WorkingCopy) -> Result<CaseState, String> {
    if let Some(reference) = &case.reference {
        if let Reference::Files(files) = reference
            && let Some(missing) =
                case.solution.iter().find(|path| !files.iter().any(|file| file.path == **path))
        {
            return Err(format!("the reference solution has no {}", missing.display()));
        }
        copy.write_files(case, 0).map_err(|error| error.to_string())?;
        scorer.solve(case, reference, copy).await?;
        match scorer.score(case, copy).await {
            Score::Graded(grade) if grade.passed => {}
            Score::Graded(grade) if grade.timed_out => {
                return Err(format!(
                    "the tests do not end within {} s with the reference solution",
                    case.test.timeout_s
                ));
            }
            Score::Graded(grade) => {
                return Err(format!(
                    "the reference solution fails (reward {}):\n{}",
                    grade.reward, grade.feedback
                ));
            }
            Score::Failed(class, message) => return Err(format!("{class}: {message}")),
        }
    }
    copy.write_files(case, 0).map_err(|error| error.to_string())?;
    match scorer.score(case, copy).await {
        Score::Graded(grade) if grade.passed => Err("passes without any work".to_owned()),
        Score::Graded(grade) if grade.timed_out => {
            Err(format!("the tests do not end within {} s without any work", case.test.timeout_s))
        }
        Score::Graded(_) if case.reference.is_none() => Ok(CaseState::Unverified),
        Score::Graded(_) => Ok(CaseState::Usable),
        Score::Failed(class, message) => Err(format!("{class}: {message}")),
    }
}
