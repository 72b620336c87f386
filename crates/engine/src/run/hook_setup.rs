//! The hooks of a run, from its settings.

use std::path::Path;

use fusee_journal::RunId;
use fusee_tools::CommandSettings;
use serde_json::{Map, Value, json};

use super::RunSpec;
use crate::approval::ApprovalMode;
use crate::hook::{HookPlace, HookRunner};

/// The hooks of a run, with the fields that every hook reads.
pub(super) fn runner(
    settings: &RunSpec,
    run: &RunId,
    commands: &CommandSettings,
    trusts_project: bool,
) -> HookRunner {
    // The words of Claude Code for what may happen without a question.
    let mode = match (settings.approve, settings.commands_preapproved) {
        (ApprovalMode::Ask, _) => "default",
        (ApprovalMode::Auto, true) => "acceptEdits",
        (ApprovalMode::Auto, false) => "default",
        (ApprovalMode::Never, _) => "dontAsk",
    };
    let base = json!({
        "session_id": run.as_str(),
        // The conversation is in the journal, which is no transcript file.
        "transcript_path": null,
        "cwd": settings.workspace,
        "permission_mode": mode,
        "model": settings.model,
    });
    let base = if let Value::Object(base) = base { base } else { Map::new() };
    let is_root = |path: &&Path| path.join(".fusee").is_dir() || path.join(".git").exists();
    let directory = settings.workspace.clone();
    let root = directory.ancestors().find(is_root).unwrap_or(&directory).to_owned();
    let place = HookPlace { directory, root, trusts_project };
    HookRunner::new(&settings.hooks, commands.clone(), place, base)
}
