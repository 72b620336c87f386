//! The commands `/status`, `/cost` and `/undo` for the runs of a session.

use std::fmt::Write as _;
use std::path::Path;

use fusee::engine::run::settings_of;
use fusee::journal::event::{Event, TaskComplete};
use fusee::journal::{Journal, JournalError, RunId};
use fusee::launch::Launcher;
use fusee::tools::Workspace;
use fusee::undo::UndoPlan;

/// A command that reports on the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionReport {
    Status,
    Cost,
    Undo,
}

/// Turns, tokens and cost of runs.
pub(crate) fn cost(journal: &Journal, runs: &[RunId]) -> Result<String, JournalError> {
    let (mut turns, mut tokens, mut cached, mut usd, mut unpriced) = (0, 0, 0, 0.0, 0);
    for run in runs {
        let Some(end) = end_of(journal, run)? else { continue };
        turns += u64::from(end.total_turns);
        tokens += end.total_tokens;
        cached += end.cached_tokens;
        match end.cost_usd {
            Some(cost) => usd += cost,
            None => unpriced += 1,
        }
    }
    let mut text = format!(
        "Messages: {}. Model replies: {turns}. Tokens: {tokens}, {cached} of them cached.",
        runs.len()
    );
    // Writing to a string cannot fail.
    let _ = match unpriced {
        0 => write!(text, " Cost: ${usd:.4}."),
        _ if usd > 0.0 => write!(text, " Cost: ${usd:.4}, and {unpriced} messages without a known price."),
        _ => write!(text, " The price of the model is not known."),
    };
    Ok(text)
}

fn end_of(journal: &Journal, run: &RunId) -> Result<Option<TaskComplete>, JournalError> {
    let last = journal.event_index(run, u64::MAX)?.last;
    let end = journal.events(run, last.saturating_sub(1), u64::MAX, 1)?.pop();
    Ok(match end.map(|record| record.event) {
        Some(Event::TaskComplete(end)) => Some(end),
        _ => None,
    })
}

/// Takes back what a run changed in files; says what was done and what was left.
pub(crate) fn undo(launcher: &dyn Launcher, directory: &Path, run: &RunId) -> Result<String, String> {
    let journal = launcher.open_journal(directory).map_err(|error| error.to_string())?;
    if journal.is_active(run) {
        return Err("the run is still working".to_owned());
    }
    let settings = settings_of(&journal, run).map_err(|error| error.to_string())?;
    let workspace = Workspace::open(&settings.workspace).map_err(|error| error.to_string())?;
    let plan = UndoPlan::plan(&journal, run, &workspace).map_err(|error| error.to_string())?;
    let copies = journal.path().with_file_name("undone").join(run.as_str());
    if !plan.is_empty() {
        plan.apply(&workspace, run, &copies)?;
    }
    let mut text = match plan.files.len() {
        0 => "There are no changes to undo.".to_owned(),
        _ => "Undone:".to_owned(),
    };
    text.extend(plan.files.iter().map(|file| format!("\n- `{}`", file.path)));
    text.extend(plan.left.iter().map(|(path, reason)| format!("\n- `{path}` was left as it is: {reason}")));
    if !plan.uncertain.is_empty() {
        let _ = write!(text, "\n\nCopies of what commands may have changed are in `{}`.", copies.display());
    }
    if !plan.commands.is_empty() {
        text.push_str("\n\nOther effects of these commands are not undone:");
        text.extend(plan.commands.iter().map(|command| format!("\n- `{command}`")));
    }
    Ok(text)
}
