//! The knobs of flows, as a run keeps them. Their names in files are the configuration's; what a stage may set for
//! itself is in `stage.rs`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stage::Stage;
use crate::prompt::PlanningStrategy;

/// How a task is worked through, and what the runtime adds to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowSettings {
    /// The shape of the work; stages given by hand go before it.
    pub mode: FlowMode,
    /// Stages given by hand, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// What is open before a plan exists, in `branched`.
    pub plan_mode: PlanMode,
    /// Whether planned tasks that only read are skipped.
    pub skip_readonly: bool,
    /// Further attempts of a failed planned task.
    pub replan_max: u32,
    /// Further attempts of a stage that did not complete.
    pub stage_retries: u32,
    /// Whether a stage that did not complete ends the flow.
    pub stage_required: bool,
    /// Notes of earlier stages that a stage is told: 0 none, negative all.
    pub context_window: i64,
    /// Whether a stage that is tried again is told why.
    pub retry_hints: bool,
    /// What of the conversation a request holds, in the stages of a flow.
    pub stage_history: History,
    /// The same for any task.
    pub history: History,
    /// Tools on offer; none named are all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What the runtime does before the model is asked.
    #[serde(skip_serializing_if = "Act::is_empty")]
    pub before: Act,
    /// What the runtime does after the work.
    #[serde(skip_serializing_if = "Act::is_empty")]
    pub after: Act,
    /// A command that tells whether the work is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
    /// How the model is told to plan, if that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning: Option<PlanningStrategy>,
    /// How edits come from the model.
    pub edit_format: EditFormat,
    /// The side channel.
    pub phase_control: PhaseControl,
    /// Where a phase's prompt stands.
    pub phase_prompt_at: PhasePlace,
    /// Where phase events are shown.
    pub phase_log: PhaseLog,
    /// What is said at the end.
    pub output: OutputMode,
    /// Set for a task of a benchmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<Benchmark>,
}

impl FlowSettings {
    /// Whether the model answers once, with the new files, and has no tools.
    pub fn is_direct(&self) -> bool {
        self.mode == FlowMode::Direct && self.stages.is_empty()
    }
}

impl Default for FlowSettings {
    fn default() -> Self {
        Self {
            mode: FlowMode::Flat,
            stages: Vec::new(),
            plan_mode: PlanMode::Explore,
            skip_readonly: false,
            replan_max: 0,
            stage_retries: 0,
            stage_required: true,
            context_window: 6,
            retry_hints: true,
            stage_history: History::default(),
            history: History::default(),
            tools: Vec::new(),
            before: Act::default(),
            after: Act::default(),
            verify: None,
            planning: None,
            edit_format: EditFormat::Tools,
            phase_control: PhaseControl::default(),
            phase_prompt_at: PhasePlace::System,
            phase_log: PhaseLog::Off,
            output: OutputMode::Human,
            benchmark: None,
        }
    }
}

/// The shape of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowMode {
    /// One session, no stages.
    #[default]
    Flat,
    /// One session in three gated phases.
    Staged,
    /// Context, plan, implement as three sub-runs.
    Staged3,
    /// A plan, then a sub-run for each planned task.
    Branched,
    /// The runtime reads and verifies, the model answers with the new file.
    Direct,
}

impl FlowMode {
    /// The mode called so.
    pub fn named(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }
}

/// What is open before a plan exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanMode {
    /// Nothing but planning.
    First,
    /// Reading too.
    #[default]
    Explore,
    /// Everything.
    None,
}

/// What of a conversation a request holds. What is stored stays whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// All of it, or its end.
    pub mode: HistoryMode,
    /// Messages of the end; 0 is no limit.
    pub max_messages: u32,
    /// Whether the first message stays although it is older.
    pub keep_first: bool,
    /// Whether the model's reasoning is left out.
    pub strip_thinking: bool,
    /// Characters that older tool results are cut to; 0 is no cut.
    pub tool_truncate_chars: u32,
    /// Newest tool results that are not cut.
    pub tool_truncate_keep_last: u32,
}

impl Default for History {
    fn default() -> Self {
        Self {
            mode: HistoryMode::Full,
            max_messages: 0,
            keep_first: true,
            strip_thinking: false,
            tool_truncate_chars: 0,
            tool_truncate_keep_last: 0,
        }
    }
}

/// How much of a conversation is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryMode {
    /// All of it.
    #[default]
    Full,
    /// Its end.
    Tail,
}

/// What the runtime does itself, before or after the model's work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Act {
    /// Files to read into the context: globs, `@tests`, `@target`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// A command to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl Act {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.run.is_none()
    }
}

/// How edits come from the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditFormat {
    /// By tool calls.
    #[default]
    Tools,
    /// The new file in a fenced block.
    Whole,
    /// Search and replace blocks.
    Blocks,
}

/// What is said at the end of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    /// The runtime's summary of one to three lines.
    #[default]
    Human,
    /// One status line.
    Runtime,
}

/// What a benchmark asks of a task beyond the task itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Benchmark {
    /// Which try it is, from 1.
    pub attempt: u32,
    /// Whether the runtime's line is printed, and not the model's last message.
    pub line: bool,
    /// Whether tests cannot be changed.
    pub protects_tests: bool,
}

/// The side channel that knows which phase a task is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseControl {
    /// Who decides.
    pub mode: PhaseMode,
    /// The phases, in order.
    pub states: Vec<String>,
    /// The first phase; the first of the states if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The deterministic part.
    pub rules: PhaseRules,
    /// The question to a model.
    pub probe: Probe,
    /// What a model is told in a phase.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, String>,
}

impl Default for PhaseControl {
    fn default() -> Self {
        Self {
            mode: PhaseMode::Off,
            states: ["context", "plan", "implement"].map(str::to_owned).to_vec(),
            default: None,
            rules: PhaseRules::default(),
            probe: Probe::default(),
            prompts: BTreeMap::new(),
        }
    }
}

/// Who decides which phase a task is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseMode {
    /// Nobody: there are no phases.
    #[default]
    Off,
    /// What was really done.
    Rules,
    /// A model, asked after each turn.
    Llm,
    /// What was done, and a model where that says nothing.
    Hybrid,
}

/// The deterministic part of phase control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseRules {
    /// Files read before planning begins.
    pub min_files_read_for_plan: u32,
    /// Whether reading so many begins planning.
    pub auto_plan_after_read: bool,
    /// Whether a real change begins the implementation.
    pub write_to_implement: bool,
    /// The phases that stand for `context`, `plan` and `implement`; the first, the one before last and the last
    /// if not set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, String>,
}

impl Default for PhaseRules {
    fn default() -> Self {
        Self {
            min_files_read_for_plan: 1,
            auto_plan_after_read: true,
            write_to_implement: true,
            targets: BTreeMap::new(),
        }
    }
}

/// How a model is asked for the phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// Sampling temperature.
    pub temperature: f64,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// The system prompt, if not the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The question, if not the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_prompt: Option<String>,
}

impl Default for Probe {
    fn default() -> Self {
        Self { temperature: 0.0, max_tokens: 64, system_prompt: None, user_prompt: None }
    }
}

/// Where a phase's prompt stands in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhasePlace {
    /// At the end of the system prompt.
    #[default]
    System,
    /// After the last message, so that a change of phase leaves the prefix as it is.
    Tail,
}

/// Where phase events are shown, beside the event stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseLog {
    /// Nowhere.
    #[default]
    Off,
    /// On stdout.
    Stdout,
    /// In the log.
    Log,
    /// In both.
    Both,
}
