//! Enforces the rules of one task: which calls may run, which phase it is in, and whether it may
//! end. It keeps the facts, the plan and the phase, and has no effects; the task runner acts on its decisions.

use fusee_journal::event::{Event, PhaseSource};
use fusee_tools::{ToolDefinition, ToolOutput};
use serde_json::Value;

use super::phases::{PhaseTransition, Phases};
use super::task_rules::{FlowShape, RequiredReads, StageRequirements, StageSignal, TaskRules, ToolAccess};
use super::tool_gate::{self, StagedPhase, ToolRef};
use crate::agent::{Facts, Plan, Session};

/// The rules of a task and its progress under them.
#[derive(Debug)]
pub(crate) struct FlowState {
    access: ToolAccess,
    shape: FlowShape,
    phase: StagedPhase,
    pub(crate) facts: Facts,
    pub(crate) plan: Plan,
    /// The current phase, if the task has phases.
    pub(crate) phases: Option<Phases>,
    /// Arguments of the model's `flow_stage_done` call.
    payload: Option<Value>,
    /// Hash of the progress in the current phase, and the turn at which it was first reached.
    progress: (u64, u32),
    /// Whether the model has been prompted to implement the change.
    nudged: bool,
}

/// Message for the model in place of what it attempted. `kind` is counted in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feedback {
    pub(crate) text: String,
    pub(crate) kind: &'static str,
}

impl FlowState {
    pub(crate) fn new(rules: &TaskRules, plan: Plan) -> Self {
        let phase = match &rules.shape {
            FlowShape::Stage(StageRequirements { phase: Some(phase), .. }) => *phase,
            FlowShape::Staged(_) => StagedPhase::Explore,
            _ => StagedPhase::Implement,
        };
        Self {
            access: rules.access.clone(),
            shape: rules.shape.clone(),
            phase,
            facts: Facts::with_contents(rules.already_read.clone()),
            plan,
            phases: rules.phases.clone(),
            payload: None,
            progress: (0, 0),
            nudged: false,
        }
    }

    /// Whether a tool is in the list that the model sees.
    pub(crate) fn offers(&self, tool: &ToolDefinition) -> bool {
        if self.access.no_tools {
            return false;
        }
        let tool = ToolRef::new(tool);
        let offered = &self.access.offered;
        if tool.name == "flow_stage_done" {
            return self.has_signal();
        }
        let asked = || offered.iter().chain(&self.access.allow).any(|name| name == tool.name);
        if tool.name == "think" && matches!(self.shape, FlowShape::Free) && !asked() {
            // With all tools open, a model thinks in its replies, and the definition is not worth its tokens.
            return false;
        }
        let is_control = tool.category == fusee_tools::Access::Control;
        let named = offered.is_empty() || is_control || offered.iter().any(|name| name == tool.name);
        named && (!self.access.hides || tool_gate::open_by_lists(&self.access, tool))
    }

    fn has_signal(&self) -> bool {
        matches!(&self.shape, FlowShape::Stage(stage) if stage.signal != StageSignal::None)
    }

    /// The event for the initial phase, if the task has phases.
    pub(crate) fn first_state(&self) -> Option<Event> {
        matches!(self.shape, FlowShape::Staged(_)).then(|| Event::PhaseState {
            phase: self.phase.name().to_owned(),
            source: PhaseSource::Flow,
            turn_index: 0,
        })
    }

    /// Whether a call may run now. `all` are the tools on offer.
    fn decide<'a>(
        &self,
        tool: ToolRef<'_>,
        all: impl Iterator<Item = &'a ToolDefinition>,
    ) -> Result<(), Feedback> {
        if self.payload.is_some() {
            let text = "Not run: the stage is over.".to_owned();
            return Err(Feedback { text, kind: "after_stage_end" });
        }
        if self.is_open(tool) {
            return Ok(());
        }
        let open = self.open_among(all);
        let text = tool_gate::refusal(tool.name, &self.place(), open, &self.unlock_hint());
        Err(Feedback { text, kind: "gated_call" })
    }

    /// Whether a tool of the session may be called now.
    pub(crate) fn open(&self, session: &Session, name: &str) -> Result<(), Feedback> {
        // Unknown tools are answered later, with suggestions for similar names.
        let Some(definition) = session.definition(name) else { return Ok(()) };
        if name == "flow_stage_done" && !self.offers(definition) {
            return Ok(());
        }
        let offered = session.definitions().filter(|definition| self.offers(definition));
        self.decide(ToolRef::new(definition), offered)
    }

    /// Whether some tools may be closed.
    pub(crate) fn is_gated(&self) -> bool {
        let lists = !self.access.allow.is_empty() || !self.access.block.is_empty();
        lists || !matches!(self.shape, FlowShape::Free)
    }

    /// Filters the tools that may be called now.
    pub(crate) fn open_among<'a>(
        &self,
        all: impl Iterator<Item = &'a ToolDefinition>,
    ) -> impl Iterator<Item = &'a str> {
        all.map(ToolRef::new).filter(move |tool| self.is_open(*tool)).map(|tool| tool.name)
    }

    /// Whether this tool makes progress in the current phase of a staged task.
    pub(crate) fn makes_progress(&self, tool: ToolRef<'_>) -> bool {
        matches!(self.shape, FlowShape::Staged(_)) && tool_gate::makes_progress(self.phase, tool)
    }

    /// Whether a staged task has reached the phase that changes files.
    fn changes_now(&self) -> bool {
        matches!(self.shape, FlowShape::Staged(_)) && self.phase == StagedPhase::Implement
    }

    /// Hash of the progress in the current phase; unchanged while there is no progress.
    fn progress_now(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut hasher = std::collections::hash_map::DefaultHasher::new();
        let (read, planned) = (self.facts.files_read().count(), self.plan.tasks().len());
        (self.phase.name(), read, planned, self.facts.state()).hash(&mut hasher);
        hasher.finish()
    }

    fn is_open(&self, tool: ToolRef<'_>) -> bool {
        let by_shape = match &self.shape {
            FlowShape::Free => true,
            FlowShape::Staged(_) => tool_gate::open_in(self.phase, tool),
            FlowShape::Planning(mode) => {
                !self.plan.tasks().is_empty() || tool_gate::open_before_plan(*mode, tool)
            }
            FlowShape::Stage(stage) => stage.phase.is_none_or(|phase| tool_gate::open_in(phase, tool)),
        };
        let offered = &self.access.offered;
        let is_control = tool.category == fusee_tools::Access::Control;
        !self.access.no_tools
            && by_shape
            && tool_gate::open_by_lists(&self.access, tool)
            && (offered.is_empty() || is_control || offered.iter().any(|name| name == tool.name))
    }

    fn place(&self) -> String {
        match &self.shape {
            FlowShape::Free => "this task".to_owned(),
            FlowShape::Staged(_) => format!("the {} phase", self.phase.name()),
            FlowShape::Planning(_) => "this task before there is a plan".to_owned(),
            FlowShape::Stage(stage) => format!("the stage `{}`", stage.id),
        }
    }

    fn unlock_hint(&self) -> String {
        match &self.shape {
            FlowShape::Free => "It is not open in this task.".to_owned(),
            FlowShape::Staged(required) => match self.phase {
                StagedPhase::Explore => format!(
                    "Planning opens once {}; changing files opens with the plan.",
                    missing_reads(required, &self.facts)
                ),
                _ => "The rest opens once a plan is made: plan_tasks with action \"create\".".to_owned(),
            },
            FlowShape::Planning(_) => {
                "The rest opens once a plan is made: plan_tasks with action \"create\".".to_owned()
            }
            FlowShape::Stage(stage) if stage.signal == StageSignal::None => {
                "It may open in a later stage: end this one by answering in words.".to_owned()
            }
            FlowShape::Stage(stage) => format!(
                "It may open in a later stage: when this one is done, call flow_stage_done with stage \"{}\".",
                stage.id
            ),
        }
    }

    /// Advances to the next phase if the facts allow it; each change is an event.
    pub(crate) fn advance(&mut self, turn_index: u32) -> Vec<Event> {
        let events = self.next_phases(turn_index);
        let progress = self.progress_now();
        if progress != self.progress.0 {
            self.progress = (progress, turn_index);
        }
        events
    }

    /// Whether the task made no progress in its phase since an earlier turn.
    pub(crate) fn is_stuck(&self, turn_index: u32) -> bool {
        turn_index > self.progress.1
    }

    /// Whether to prompt the model to implement the change: once, when the phase that changes files begins and
    /// nothing has changed yet.
    pub(crate) fn take_nudge(&mut self) -> bool {
        if self.nudged || !self.changes_now() {
            return false;
        }
        self.nudged = true;
        !self.facts.has_changes()
    }

    /// Moves to the phase that the facts call for, if it is a different one.
    pub(crate) fn follow_phase(&mut self) -> Option<PhaseTransition> {
        self.phases.as_mut()?.follow(&self.facts)
    }

    /// The phase text that goes at the end of the system prompt.
    pub(crate) fn phase_in_system(&self) -> Option<&str> {
        self.phases.as_ref().and_then(Phases::system)
    }

    /// The phase text that goes after the last message of a request.
    pub(crate) fn phase_tail(&self) -> Option<&str> {
        self.phases.as_ref().and_then(Phases::tail)
    }

    fn next_phases(&mut self, turn_index: u32) -> Vec<Event> {
        let FlowShape::Staged(required) = &self.shape else { return Vec::new() };
        let mut events = Vec::new();
        loop {
            let (next, reason) = match self.phase {
                StagedPhase::Explore if has_read(required, &self.facts) => {
                    (StagedPhase::Plan, "the required files were read")
                }
                StagedPhase::Plan if !self.plan.tasks().is_empty() => {
                    (StagedPhase::Implement, "a plan was made")
                }
                _ => return events,
            };
            events.push(Event::PhaseTransition {
                from: self.phase.name().to_owned(),
                to: next.name().to_owned(),
                source: PhaseSource::Flow,
                turn_index,
                reason: reason.to_owned(),
            });
            self.phase = next;
        }
    }

    /// Whether the task may end here, by an answer or by `finish`.
    pub(crate) fn may_end(&self) -> Result<(), Feedback> {
        let text = match &self.shape {
            FlowShape::Free | FlowShape::Stage(_) | FlowShape::Planning(super::PlanMode::None) => {
                return Ok(());
            }
            FlowShape::Planning(_) if !self.plan.tasks().is_empty() => return Ok(()),
            FlowShape::Planning(_) => {
                "There is no plan yet. Make one: call plan_tasks with action \"create\" and a list of tasks."
                    .to_owned()
            }
            FlowShape::Staged(required) => match self.phase {
                StagedPhase::Explore => format!(
                    "You are in the explore phase. Go on with the reading tools: planning opens once {}.",
                    missing_reads(required, &self.facts)
                ),
                StagedPhase::Plan => {
                    "You are in the plan phase. Call plan_tasks with action \"create\" and a list of tasks; \
                               then the tools that change files open."
                        .to_owned()
                }
                StagedPhase::Implement if self.facts.has_changes() => return Ok(()),
                StagedPhase::Implement => {
                    "Nothing has changed in the workspace yet. Make the change now with write_file, \
                                    edit_file or apply_patch."
                        .to_owned()
                }
            },
        };
        Err(Feedback { text, kind: "early_end" })
    }

    /// Handles the signal that ends a stage: accepts it, or returns what is wrong or missing.
    pub(crate) fn signal(&mut self, arguments: Value) -> Result<ToolOutput, Feedback> {
        let FlowShape::Stage(stage) = &self.shape else {
            let text = "There are no stages in this task.".to_owned();
            return Err(Feedback { text, kind: "wrong_stage" });
        };
        let named = arguments.get("stage").and_then(Value::as_str).unwrap_or_default().trim();
        if !named.eq_ignore_ascii_case(&stage.id) {
            let text = format!(
                "This stage is `{}`, not `{named}`. Call flow_stage_done with stage \"{}\".",
                stage.id, stage.id
            );
            return Err(Feedback { text, kind: "wrong_stage" });
        }
        let missing = unmet(stage, &self.facts);
        if !missing.is_empty() {
            let text = format!("The stage `{}` is not done yet: {}.", stage.id, missing.join("; "));
            return Err(Feedback { text, kind: "stage_unmet" });
        }
        let answer = ToolOutput::done(format!("The stage `{}` is done.", stage.id));
        self.payload = Some(arguments);
        Ok(answer)
    }

    /// The answer, if the calls so far ended the task: its stage was declared done, or the requested plan
    /// exists.
    pub(crate) fn is_over(&self) -> Option<String> {
        match &self.shape {
            FlowShape::Stage(_) => self.payload.as_ref().map(|payload| text_of(payload, "summary")),
            FlowShape::Planning(_) if !self.plan.tasks().is_empty() => Some(self.plan.render()),
            _ => None,
        }
    }

    /// The facts, the plan, the phases for the next stage, and the arguments that ended the stage.
    pub(crate) fn into_parts(self) -> (Facts, Plan, Option<Phases>, Option<Value>) {
        let phases = self.phases.map(|phases| phases.carried_over(&self.facts));
        (self.facts, self.plan, phases, self.payload)
    }

    /// Requirements of a stage that are not met.
    pub(crate) fn unmet(&self) -> Vec<String> {
        let FlowShape::Stage(stage) = &self.shape else { return Vec::new() };
        unmet(stage, &self.facts)
    }

    /// Everything a finished stage still lacks, including its signal.
    pub(crate) fn missing(&self) -> Vec<String> {
        let FlowShape::Stage(stage) = &self.shape else { return Vec::new() };
        let mut missing = unmet(stage, &self.facts);
        if stage.signal == StageSignal::Required && self.payload.is_none() {
            missing.insert(0, format!("flow_stage_done was not called with stage \"{}\"", stage.id));
        }
        missing
    }
}

fn text_of(payload: &Value, key: &str) -> String {
    payload.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn unmet(stage: &StageRequirements, facts: &Facts) -> Vec<String> {
    let mut missing = Vec::new();
    let read = facts.files_read().filter(|path| !stage.read_before.contains(*path)).count();
    let read = u32::try_from(read + stage.read_before.len()).unwrap_or(u32::MAX);
    if read < stage.files_read {
        missing.push(format!("{} must be read, so far {read}", files(stage.files_read)));
    }
    let calls = facts.successful_calls();
    if calls < stage.calls {
        let word = if stage.calls == 1 { "call" } else { "calls" };
        missing.push(format!("at least {} successful tool {word} must be made, so far {calls}", stage.calls));
    }
    if stage.change && !facts.has_changes() {
        missing.push("no file has changed".to_owned());
    }
    missing
}

fn files(count: u32) -> String {
    fusee_text::count(count.into(), "file")
}

fn has_read(required: &RequiredReads, facts: &Facts) -> bool {
    if required.files.is_empty() {
        return facts.files_read().count() >= required.min_files as usize;
    }
    required.files.iter().all(|path| facts.has_read(path))
}

fn missing_reads(required: &RequiredReads, facts: &Facts) -> String {
    if required.files.is_empty() {
        return format!(
            "{} read",
            if required.min_files == 1 {
                "a file was".to_owned()
            } else {
                format!("{} files were", required.min_files)
            }
        );
    }
    let missing: Vec<&str> =
        required.files.iter().map(String::as_str).filter(|path| !facts.has_read(path)).collect();
    format!("these were read: {}", missing.join(", "))
}

#[cfg(test)]
mod tests;
