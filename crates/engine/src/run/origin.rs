//! The origin of a run that begins as another one did: a rewind or a fork. `crate::rewind` creates such runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fusee_journal::event::Event;
use fusee_journal::{Branch, RunId, StepKind, StepRequest};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The run whose beginning another one shares, and up to where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOrigin {
    /// The other run.
    pub run: RunId,
    /// Number of its turns that were completed at that point.
    pub turn: u32,
    /// Whether the files were restored to that point.
    pub files: bool,
    /// Whether the conversation ends at that point; otherwise all of it was taken over.
    pub conversation: bool,
    /// Number of turns that were taken over.
    pub turns: u32,
    /// Number of steps of each branch that were taken over.
    pub steps: BTreeMap<Branch, u64>,
    /// Workspace of the other run, if this one works in a copy of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
}

impl RunOrigin {
    /// Branch of the step that restores the files. It has no other steps, so those of the shared beginning keep their
    /// numbers.
    pub fn branch() -> Branch {
        Branch::main().child("rewind")
    }

    /// The step that restores the files.
    pub fn restore_step(&self) -> StepRequest {
        let args = json!({ "from_run": self.run, "turn": self.turn });
        StepRequest::new(&Self::branch(), StepKind::Environment, "restore").with_args(args)
    }

    /// The event that reports the rewind.
    pub fn event(&self) -> Event {
        let Self { turn, files, conversation, .. } = *self;
        Event::Rewound { from_run: self.run.to_string(), turn, files, conversation }
    }
}
