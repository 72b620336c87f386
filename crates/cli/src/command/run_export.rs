//! Runs in formats of other tools: cassettes (the module `cassette`) and Harbor's trajectories.

pub(crate) mod cassette;

use fusee::engine::journal::{Journal, RunId};
use fusee::engine::run;
use fusee_bench::atif;

use crate::process::error::CliError;

/// The trajectory of a run and of those that it continues.
pub(crate) fn trajectory(journal: &Journal, run: &RunId) -> Result<String, CliError> {
    pretty(&atif::trajectory(journal, &conversation(journal, run))?)
}

/// The runs of a conversation up to this one, oldest first.
fn conversation(journal: &Journal, run: &RunId) -> Vec<RunId> {
    let mut runs = vec![run.clone()];
    while let Some(earlier) = runs.last().and_then(|run| run::settings_of(journal, run).ok()?.continues) {
        if runs.contains(&earlier) {
            break;
        }
        runs.push(earlier);
    }
    runs.reverse();
    runs
}

/// A value as indented JSON.
pub(crate) fn pretty(value: &impl serde::Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(format!("{text}\n"))
}
