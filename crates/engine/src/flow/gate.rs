//! Which tools are open, and what a call of a closed one is told. Pure: told the phase or the stage, it answers.

use fusee_tools::{Category, Definition};

use super::rules::Reach;
use super::settings::PlanMode;

/// The three parts of `staged` work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Explore,
    Plan,
    Implement,
}

impl Part {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Explore => "explore",
            Self::Plan => "plan",
            Self::Implement => "implement",
        }
    }
}

/// What a gate needs to know of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    pub(crate) category: Category,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(definition: &'a Definition) -> Self {
        Self { name: &definition.name, category: definition.category }
    }
}

/// Whether a part of the work has this tool. Steering the task is always possible; a subtask could do anything.
pub(crate) fn open_in(part: Part, tool: Asked<'_>) -> bool {
    let steers = tool.category == Category::Control && tool.name != "spawn_subtask";
    match part {
        Part::Explore => {
            steers || tool.category == Category::Read || (tool.category == Category::Reason && !plans(tool))
        }
        Part::Plan => steers || tool.category == Category::Reason,
        Part::Implement => true,
    }
}

/// Whether this tool is what brings a part of the work on: the files are read, the plan is made, something is changed.
pub(crate) fn brings_on(part: Part, tool: Asked<'_>) -> bool {
    match part {
        Part::Explore => matches!(tool.name, "read_file" | "read_files"),
        Part::Plan => plans(tool),
        // Of the ways to change a file the one that small models are good at; this is for them.
        Part::Implement => tool.name == "write_file",
    }
}

/// Whether a task that makes a plan has this tool before there is one.
pub(crate) fn open_before_plan(mode: PlanMode, tool: Asked<'_>) -> bool {
    match mode {
        PlanMode::First => open_in(Part::Plan, tool),
        PlanMode::Explore => open_in(Part::Plan, tool) || open_in(Part::Explore, tool),
        PlanMode::None => true,
    }
}

/// Whether lists of allowed and blocked tools let this one through. The signal that ends a stage always passes.
pub(crate) fn open_by_lists(reach: &Reach, tool: Asked<'_>) -> bool {
    let named = |list: &[String]| list.iter().any(|name| name == tool.name);
    if tool.name == "flow_stage_done" {
        return true;
    }
    if named(&reach.block) {
        return false;
    }
    let steers = tool.category == Category::Control && tool.name != "spawn_subtask";
    reach.allow.is_empty() || steers || named(&reach.allow)
}

fn plans(tool: Asked<'_>) -> bool {
    tool.name == "plan_tasks"
}

/// What a call of a closed tool is told: where it is closed, what is open, what would open it.
pub(crate) fn refusal<'a>(
    tool: &str,
    place: &str,
    open: impl Iterator<Item = &'a str>,
    opens_when: &str,
) -> String {
    let open = open.collect::<Vec<_>>().join(", ");
    format!("Not run: `{tool}` is closed in {place}. Open now: {open}. {opens_when}")
}
