//! What one task is held to, as data. `conduct.rs` applies it while the task runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fusee_journal::Branch;
use fusee_tools::ContentHash;

use super::phase::Phases;
use super::protected::Protected;
use super::settings::{Act, EditFormat, FlowSettings, History, PlanMode};
use super::stage::Stage;
use crate::agent::Limits;

/// The rules of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// The way it goes.
    pub(crate) course: Course,
    /// Which tools it may reach.
    pub(crate) reach: Reach,
    /// What its requests hold.
    pub(crate) history: History,
    /// A command that tells whether it is done.
    pub(crate) verify: Option<String>,
    /// The task that began it.
    pub(crate) parent: Option<Branch>,
    /// Which attempt this is, from 1, and how many further ones are allowed.
    pub(crate) attempt: u32,
    pub(crate) further_attempts: u32,
    /// Replies of the model, if fewer than the session's.
    pub(crate) max_turns: Option<u32>,
    /// Working time that the parts before it took.
    pub(crate) used_ms: u64,
    /// What the runtime does first and last.
    pub(crate) before: Act,
    pub(crate) after: Act,
    /// How edits come from the model.
    pub(crate) edit_format: EditFormat,
    /// Whether one answer is all there is: what fails then ends the task.
    pub(crate) one_answer: bool,
    /// Tests that cannot be changed.
    pub(crate) protected: Option<Arc<Protected>>,
    /// What the report calls it, if not by its request.
    pub(crate) description: Option<String>,
    /// The request of the whole, where this is a part of it.
    pub(crate) request: Option<String>,
    /// What files held that earlier parts read.
    pub(crate) already_read: BTreeMap<String, ContentHash>,
    /// The phase it begins in, where there are phases.
    pub(crate) phases: Option<Phases>,
}

/// Tools of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// Those on offer; none named are all.
    pub(crate) offered: Vec<String>,
    /// Those that may be called; none named are all.
    pub(crate) allow: Vec<String>,
    /// Those that may not.
    pub(crate) block: Vec<String>,
    /// Whether closed tools are left out of the list.
    pub(crate) hides: bool,
    /// Whether there are none at all.
    pub(crate) bare: bool,
}

/// The way a task goes.
#[derive(Clone, Debug, Default)]
pub(crate) enum Course {
    /// Freely.
    #[default]
    Free,
    /// Explore, plan, implement.
    Staged(Required),
    /// Towards a plan, which ends it.
    Planning(PlanMode),
    /// One stage of a flow.
    Stage(StageCourse),
}

/// What has to be read before a plan is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Required {
    /// These files.
    pub(crate) files: Vec<String>,
    /// Where none are named, so many.
    pub(crate) least: u32,
}

/// What a stage needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageCourse {
    pub(crate) id: String,
    /// How the model says that it is done.
    pub(crate) signal: Signal,
    pub(crate) files_read: u32,
    pub(crate) calls: u32,
    pub(crate) change: bool,
    /// Files read in the run before this stage: they count.
    pub(crate) read_before: BTreeSet<String>,
    /// A fixed part of the work, whose gates hold.
    pub(crate) part: Option<super::gate::Part>,
}

/// How a stage ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Signal {
    /// By `flow_stage_done` alone.
    #[default]
    Required,
    /// By that, or by a turn without calls once the minimums are met.
    Optional,
    /// By a turn without calls, or `finish`.
    None,
}

impl Rules {
    /// Limits, none beyond what this task may use up.
    pub(crate) fn bound(&self, limits: Limits) -> Limits {
        let max_turns = self.max_turns.map_or(limits.max_turns, |most| most.min(limits.max_turns));
        Limits { max_turns, ..limits }
    }

    /// The rules of a run's one session.
    pub(crate) fn of_session(settings: &FlowSettings, course: Course) -> Self {
        let history = match &course {
            Course::Free => settings.history,
            _ => settings.history_in_stages(),
        };
        Self {
            course,
            reach: Reach { offered: settings.tools.clone(), ..Reach::default() },
            history,
            verify: settings.verify.clone(),
            before: settings.before.clone(),
            after: settings.after.clone(),
            edit_format: settings.edit_format,
            attempt: 1,
            phases: Phases::begin(settings),
            ..Self::default()
        }
    }

    /// The rules of a stage given by hand.
    pub(crate) fn of_stage(settings: &FlowSettings, stage: &Stage, read_before: BTreeSet<String>) -> Self {
        let signal = if stage.allow_missing_done { Signal::Optional } else { Signal::Required };
        let course = StageCourse {
            id: stage.id.clone(),
            signal,
            files_read: stage.require_files_read.unwrap_or_default(),
            calls: stage.require_non_flow_tool.unwrap_or_default(),
            change: stage.require_code_change,
            read_before,
            part: None,
        };
        Self {
            course: Course::Stage(course),
            reach: Reach {
                offered: settings.tools.clone(),
                allow: stage.tools_allow.clone(),
                block: stage.tools_block.clone(),
                hides: stage.tools_mode == super::stage::ToolsMode::Hide,
                bare: false,
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
