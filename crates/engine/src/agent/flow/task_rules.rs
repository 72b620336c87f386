//! The rules of one task, as data. `flow_state.rs` applies them while the task runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fusee_journal::Branch;
use fusee_tools::ContentHash;

use super::auto::FlowChoice;
use super::location::Located;
use super::phases::Phases;
use super::protected_tests::ProtectedTests;
use super::samples::SampleRules;
use super::settings::{FlowEditFormat, FlowSettings, HistorySettings, PlanMode, RuntimeAction};
use super::stage::Stage;
use crate::agent::{Limits, Spent};

/// What a flow imposes on one task: tools, history, verification, edits.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskRules {
    /// Shape of the work.
    pub(crate) shape: FlowShape,
    /// Tool access.
    pub(crate) access: ToolAccess,
    /// History window of its requests.
    pub(crate) history: HistorySettings,
    /// Command that verifies the result.
    pub(crate) verify: Option<String>,
    /// Commands to try if that one cannot run; set if it was found in the project.
    pub(crate) verify_alternatives: Vec<String>,
    /// Time limit of that command in seconds, if shorter than that of other commands.
    pub(crate) verify_time_s: Option<u64>,
    /// Why the runtime chose the flow, if it did.
    pub(crate) chosen: Option<FlowChoice>,
    /// The parent task.
    pub(crate) parent: Option<Branch>,
    /// Number of this attempt, from 1, and of the further ones allowed.
    pub(crate) attempt: u32,
    pub(crate) further_attempts: u32,
    /// Turn limit, if lower than the session's.
    pub(crate) max_turns: Option<u32>,
    /// Resources used by earlier stages; they count towards the limits on time and cost.
    pub(crate) used: Spent,
    /// Tokens that the model's server accepts, as far as earlier stages found out.
    pub(crate) accepted_tokens: Option<u64>,
    /// Actions of the runtime before and after the work.
    pub(crate) before: RuntimeAction,
    pub(crate) after: RuntimeAction,
    /// How the model gives its edits.
    pub(crate) edit_format: FlowEditFormat,
    /// Whether there is only one answer: a rejection ends the task.
    pub(crate) one_answer: bool,
    /// The files that the runtime located, if the request names none.
    pub(crate) located: Option<Arc<Located>>,
    /// Set if the task is one of several answers to the same request.
    pub(crate) sample: Option<SampleRules>,
    /// Tests that must not change.
    pub(crate) protected: Option<Arc<ProtectedTests>>,
    /// Description in the report, if not the request.
    pub(crate) description: Option<String>,
    /// Request of the entire task, if this is one of its stages.
    pub(crate) request: Option<String>,
    /// Content of the files read by earlier stages.
    pub(crate) already_read: BTreeMap<String, ContentHash>,
    /// Initial phase state, if there are phases.
    pub(crate) phases: Option<Phases>,
}

/// Tool access of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolAccess {
    /// Tools on offer; empty means all.
    pub(crate) offered: Vec<String>,
    /// Tools that may be called; empty means all.
    pub(crate) allow: Vec<String>,
    /// Tools that may not be called.
    pub(crate) block: Vec<String>,
    /// Whether closed tools are omitted from the list.
    pub(crate) hides: bool,
    /// Whether there are no tools at all.
    pub(crate) no_tools: bool,
}

/// Shape of the work of one task.
#[derive(Clone, Debug, Default)]
pub(crate) enum FlowShape {
    /// No process.
    #[default]
    Free,
    /// Explore, plan, implement.
    Staged(RequiredReads),
    /// Ends once a plan is made.
    Planning(PlanMode),
    /// One stage of a flow.
    Stage(StageRequirements),
}

/// The files that must be read before planning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequiredReads {
    /// These files.
    pub(crate) files: Vec<String>,
    /// Number of files, if none are named.
    pub(crate) min_files: u32,
}

/// Minimum activity before a stage counts as done.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageRequirements {
    pub(crate) id: String,
    /// How the model signals completion.
    pub(crate) signal: StageSignal,
    pub(crate) files_read: u32,
    pub(crate) calls: u32,
    pub(crate) change: bool,
    /// Files read in the run before this stage; they count towards `files_read`.
    pub(crate) read_before: BTreeSet<String>,
    /// Fixed phase whose gates apply.
    pub(crate) phase: Option<super::tool_gate::StagedPhase>,
}

/// How a stage ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StageSignal {
    /// Only by `flow_stage_done`.
    #[default]
    Required,
    /// By `flow_stage_done`, or by a turn without calls once the minimums are met.
    Optional,
    /// By a turn without calls, or by `finish`.
    None,
}

impl TaskRules {
    /// Lowers limits to those of this task.
    pub(crate) fn bound(&self, limits: Limits) -> Limits {
        let max_turns = self.max_turns.map_or(limits.max_turns, |most| most.min(limits.max_turns));
        Limits { max_turns, ..limits }
    }

    /// Rules of a run with a single session.
    pub(crate) fn for_session(settings: &FlowSettings, shape: FlowShape) -> Self {
        let history = match &shape {
            FlowShape::Free => settings.history,
            _ => settings.history_in_stages(),
        };
        Self {
            shape,
            access: ToolAccess { offered: settings.tools.clone(), ..ToolAccess::default() },
            history,
            verify: settings.verify.clone(),
            verify_alternatives: settings.verify_alternatives.clone(),
            before: settings.before.clone(),
            after: settings.after.clone(),
            edit_format: settings.edit_format,
            attempt: 1,
            phases: Phases::begin(settings),
            ..Self::default()
        }
    }

    /// Rules of a configured stage.
    pub(crate) fn of_stage(settings: &FlowSettings, stage: &Stage, read_before: BTreeSet<String>) -> Self {
        let signal = if stage.allow_missing_done { StageSignal::Optional } else { StageSignal::Required };
        let shape = StageRequirements {
            id: stage.id.clone(),
            signal,
            files_read: stage.require_files_read.unwrap_or_default(),
            calls: stage.require_non_flow_tool.unwrap_or_default(),
            change: stage.require_code_change,
            read_before,
            phase: None,
        };
        Self {
            shape: FlowShape::Stage(shape),
            access: ToolAccess {
                offered: settings.tools.clone(),
                allow: stage.tools_allow.clone(),
                block: stage.tools_block.clone(),
                hides: stage.tools_mode == super::stage::ToolsMode::Hide,
                no_tools: false,
            },
            history: stage.history(settings),
            verify: stage.verify.clone(),
            attempt: 1,
            further_attempts: settings.stage_retries,
            max_turns: stage.max_turns,
            ..Self::default()
        }
    }
}
