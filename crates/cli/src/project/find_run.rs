//! Finds a run: by id, by a unique prefix of it, by its age (`last`, `last~1`), or the newest open one.

use std::path::Path;

use fusee::engine::journal::{Journal, JournalError, RunRow, RunStatus};
use fusee::engine::run::{self, RunSpec};
use fusee::engine::text;

use crate::process::error::CliError;

#[cfg(test)]
mod tests;

/// Maximum number of candidates listed.
const SHOWN: usize = 5;

/// The name of the newest run; `last~1` is the one before it.
const LAST: &str = "last";

/// The run with this name, or the newest one.
pub(crate) fn named_or_newest(journal: &Journal, name: Option<&str>) -> Result<RunRow, CliError> {
    named(journal, name.unwrap_or(LAST))
}

/// How many runs before the newest one `last` or `last~N` names.
fn back(name: &str) -> Option<usize> {
    match name.strip_prefix(LAST)? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// The run with this id or unique prefix, or the newest one for `last` and the N-th before it for `last~N`.
pub(crate) fn named(journal: &Journal, name: &str) -> Result<RunRow, CliError> {
    let missing = match journal.run(name) {
        Err(missing @ JournalError::NoSuchRun { .. }) => missing,
        other => return Ok(other?),
    };
    let mut candidates: Vec<RunRow> = journal.runs()?;
    if let Some(back) = back(name) {
        let count = candidates.len();
        return candidates.into_iter().nth(back).ok_or_else(|| {
            let verb = if count == 1 { "is" } else { "are" };
            let known = text::count(count as u64, "run");
            CliError::usage(format!("no run `{name}`: there {verb} {known} here"))
                .help("`fusee runs` lists them")
        });
    }
    candidates.retain(|run| !name.is_empty() && run.id.as_str().starts_with(name));
    match candidates.len() {
        0 => Err(missing.into()),
        1 => Ok(candidates.remove(0)),
        count => {
            let mut help: Vec<String> =
                candidates.iter().take(SHOWN).map(|run| format!("{}  {}", run.id, run.title)).collect();
            if count > SHOWN {
                help.push(format!("and {} more", count - SHOWN));
            }
            let message = format!("`{name}` is ambiguous: {count} runs have this prefix");
            Err(CliError::usage(message).help(help.join("\n")))
        }
    }
}

/// The newest finished run in this directory that satisfies `wanted`.
pub(crate) fn newest_ended(
    journal: &Journal,
    directory: &Path,
    wanted: impl Fn(&RunSpec) -> bool,
) -> Result<RunRow, CliError> {
    for row in journal.runs()? {
        // Skip runs that cannot be read.
        if run::settings_of(journal, &row.id).is_ok_and(|settings| {
            can_continue(&row, &settings) && settings.workspace == directory && wanted(&settings)
        }) {
            return Ok(row);
        }
    }
    Err(CliError::usage(format!("no finished run in {} to continue", directory.display()))
        .help("start one with `fusee run REQUEST`; `fusee runs` lists all runs"))
}

/// Whether the conversation of a run can be continued: it has ended, or it was rewound and nobody works on it.
fn can_continue(row: &RunRow, settings: &RunSpec) -> bool {
    row.status != RunStatus::Open || settings.origin.is_some()
}

/// The newest open run, if possible one that is not active.
pub(crate) fn newest_open(journal: &Journal) -> Result<RunRow, CliError> {
    let mut runs = journal.runs()?;
    let (live, interrupted): (Vec<&RunRow>, Vec<&RunRow>) =
        runs.iter().filter(|run| run.status == RunStatus::Open).partition(|run| journal.is_active(&run.id));
    for open in interrupted.into_iter().chain(live) {
        // A run that was killed before it started cannot be resumed; the next run removes it.
        if !journal.is_unstarted(open)? {
            return Ok(open.clone());
        }
    }
    runs.retain(|run| run.status != RunStatus::Open);
    Err(match runs.first() {
        None => CliError::usage("no runs here yet").help("start one with `fusee run REQUEST`"),
        Some(newest) => CliError::usage(format!(
            "no open run here: the newest run, {}, has ended ({})",
            newest.id, newest.status
        ))
        .help(format!("`fusee resume {}` repeats its result, `fusee runs` lists all", newest.id)),
    })
}

/// The newest active run.
pub(crate) fn newest_worked_on(journal: &Journal) -> Result<RunRow, CliError> {
    let is_live = |run: &RunRow| run.status == RunStatus::Open && journal.is_active(&run.id);
    journal.runs()?.into_iter().find(is_live).ok_or_else(|| {
        CliError::usage("no active run here")
            .help("`fusee runs` lists all runs; `fusee run --detach REQUEST` starts one in the background")
    })
}

/// The length to which ids can be shortened so that each still names one run.
pub(crate) fn short_length(rows: &[RunRow]) -> usize {
    let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    ids.sort_unstable();
    let common = |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(common).max().map_or(SHORTEST, |longest| SHORTEST.max(longest + 1))
}

/// The least number of characters of a shortened id.
const SHORTEST: usize = 8;
