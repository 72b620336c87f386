//! Tool gates: which tools are open in a phase or stage, and the refusal for a closed one. Pure functions.

use fusee_tools::{Access, ToolDefinition};

use super::settings::PlanMode;
use super::task_rules::ToolAccess;

/// The phases of `staged`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StagedPhase {
    Explore,
    Plan,
    Implement,
}

impl StagedPhase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Explore => "explore",
            Self::Plan => "plan",
            Self::Implement => "implement",
        }
    }
}

/// The properties of a tool that gates look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolRef<'a> {
    pub(crate) name: &'a str,
    pub(crate) category: Access,
}

impl<'a> ToolRef<'a> {
    pub(crate) fn new(definition: &'a ToolDefinition) -> Self {
        Self { name: &definition.name, category: definition.category }
    }
}

/// Whether a tool is open in a phase. Control tools always are, except `spawn_subtask`, which could do
/// anything.
pub(crate) fn open_in(phase: StagedPhase, tool: ToolRef<'_>) -> bool {
    let is_control = tool.category == Access::Control && tool.name != "spawn_subtask";
    match phase {
        StagedPhase::Explore => {
            is_control || tool.category == Access::Read || (tool.category == Access::Reason && !plans(tool))
        }
        StagedPhase::Plan => is_control || tool.category == Access::Reason,
        StagedPhase::Implement => true,
    }
}

/// Whether this tool makes progress in a phase: reading files, making the plan, changing something.
pub(crate) fn makes_progress(phase: StagedPhase, tool: ToolRef<'_>) -> bool {
    match phase {
        StagedPhase::Explore => matches!(tool.name, "read_file" | "read_files"),
        StagedPhase::Plan => plans(tool),
        // Of the tools that change files, the one small models handle best; this rule exists for them.
        StagedPhase::Implement => tool.name == "write_file",
    }
}

/// Whether a planning task may use this tool before a plan exists.
pub(crate) fn open_before_plan(mode: PlanMode, tool: ToolRef<'_>) -> bool {
    match mode {
        PlanMode::First => open_in(StagedPhase::Plan, tool),
        PlanMode::Explore => open_in(StagedPhase::Plan, tool) || open_in(StagedPhase::Explore, tool),
        PlanMode::None => true,
    }
}

/// Whether the allow and block lists admit this tool. The signal that ends a stage is always admitted.
pub(crate) fn open_by_lists(access: &ToolAccess, tool: ToolRef<'_>) -> bool {
    let named = |list: &[String]| list.iter().any(|name| name == tool.name);
    if tool.name == "flow_stage_done" {
        return true;
    }
    if named(&access.block) {
        return false;
    }
    let is_control = tool.category == Access::Control && tool.name != "spawn_subtask";
    access.allow.is_empty() || is_control || named(&access.allow)
}

fn plans(tool: ToolRef<'_>) -> bool {
    tool.name == "plan_tasks"
}

/// The refusal for a closed tool: where it is closed, what is open, and what would open it.
pub(crate) fn refusal<'a>(
    tool: &str,
    place: &str,
    open: impl Iterator<Item = &'a str>,
    unlock_hint: &str,
) -> String {
    let open = open.collect::<Vec<_>>().join(", ");
    format!("Not run: `{tool}` is closed in {place}. Open now: {open}. {unlock_hint}")
}
