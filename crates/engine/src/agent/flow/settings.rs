//! Flow settings, as stored in a run. The configuration defines their names in files; `stage.rs` holds what a
//! stage can set for itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::auto::FlowChoice;
use super::fallback::FallbackMethod;
use super::samples::{SAMPLE_TEMPERATURE, Sampling};
use super::stage::Stage;
use crate::prompt::PlanningStrategy;

/// How a task is worked through, and what the runtime adds to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowSettings {
    /// Shape of the work; configured stages take precedence.
    pub mode: FlowMode,
    /// Configured stages, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// Which tools are open before a plan exists, in `branched` mode.
    pub plan_mode: PlanMode,
    /// Whether read-only planned tasks are skipped.
    pub skip_readonly: bool,
    /// Maximum number of retries of a failed planned task.
    pub replan_max: u32,
    /// Maximum number of retries of a stage that did not complete.
    pub stage_retries: u32,
    /// Whether a stage that did not complete ends the flow.
    pub stage_required: bool,
    /// Number of notes from earlier stages shown to a stage: 0 for none, negative for all.
    pub context_window: i64,
    /// Whether a retried stage is told why the last attempt failed.
    pub retry_hints: bool,
    /// History window of requests in the stages of a flow.
    pub stage_history: HistorySettings,
    /// History window of requests in any task.
    pub history: HistorySettings,
    /// Tools on offer; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Actions of the runtime before the first model request.
    #[serde(skip_serializing_if = "RuntimeAction::is_empty")]
    pub before: RuntimeAction,
    /// Actions of the runtime after the work.
    #[serde(skip_serializing_if = "RuntimeAction::is_empty")]
    pub after: RuntimeAction,
    /// Why the runtime chose the mode, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<FlowChoice>,
    /// What to try if the task comes to nothing; settled when a run starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_method: Option<FallbackMethod>,
    /// Command that verifies the result; before a run starts, also `auto` and `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
    /// Commands to try if the first one cannot run, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verify_alternatives: Vec<String>,
    /// Whether the command was found in the project instead of given by the user.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verify_found: bool,
    /// Maximum number of answers in `direct`; by default several from a small model, and one otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u32>,
    /// Maximum number of repairs of the best answer in `direct`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repairs: Option<u32>,
    /// Sampling temperature of all answers but the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_temperature: Option<f64>,
    /// Answers that are requested at once; by default what the server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_samples: Option<u32>,
    /// Model that gets one attempt after all answers failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate: Option<String>,
    /// Planning strategy in the prompt, if configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning: Option<PlanningStrategy>,
    /// How the model gives its edits.
    pub edit_format: FlowEditFormat,
    /// State machine that hints at, and tracks, what the model is doing.
    pub phase_control: PhaseControl,
    /// Where the prompt of a phase goes.
    pub phase_prompt_at: PhasePlace,
    /// Where phase events are shown.
    pub phase_log: PhaseLog,
    /// Output at the end.
    pub output: OutputMode,
    /// Set for a benchmark task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<BenchmarkSettings>,
    /// Files that a benchmark task protects besides those that look like tests; relative paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected_files: Vec<String>,
}

impl FlowSettings {
    /// How many answers `direct` takes, if not just one.
    pub(crate) fn sampling(&self) -> Option<Sampling> {
        if self.samples.is_none() && self.repairs.is_none() && self.escalate.is_none() {
            return None;
        }
        Some(Sampling {
            samples: self.samples.unwrap_or(1).max(1),
            repairs: self.repairs.unwrap_or_default(),
            temperature: self.sample_temperature.unwrap_or(SAMPLE_TEMPERATURE),
            escalate: self.escalate.clone(),
        })
    }

    /// The models that the flow names, each with the stage that uses it.
    pub fn other_models(&self) -> impl Iterator<Item = (&str, &str)> {
        let stages =
            self.stages.iter().filter_map(|stage| Some((stage.id.as_str(), stage.model.as_deref()?)));
        stages.chain(self.escalate.as_deref().map(|model| ("escalate", model)))
    }

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
            stage_history: HistorySettings::default(),
            history: HistorySettings::default(),
            tools: Vec::new(),
            before: RuntimeAction::default(),
            after: RuntimeAction::default(),
            chosen: None,
            second_method: None,
            verify: None,
            verify_alternatives: Vec::new(),
            verify_found: false,
            samples: None,
            repairs: None,
            sample_temperature: None,
            parallel_samples: None,
            escalate: None,
            planning: None,
            edit_format: FlowEditFormat::Tools,
            phase_control: PhaseControl::default(),
            phase_prompt_at: PhasePlace::System,
            phase_log: PhaseLog::Off,
            output: OutputMode::Human,
            benchmark: None,
            protected_files: Vec::new(),
        }
    }
}

/// Shape of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowMode {
    /// One of the others, by the model and the request; settled when a run starts.
    Auto,
    /// One session, no stages.
    #[default]
    Flat,
    /// One session in three gated phases.
    Staged,
    /// Context, plan and implement as three sub-runs.
    Staged3,
    /// A plan, then a sub-run for each planned task.
    Branched,
    /// The runtime reads and verifies; the model answers with the new file.
    Direct,
}

impl FlowMode {
    /// The name of the mode in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Flat => "flat",
            Self::Staged => "staged",
            Self::Staged3 => "staged3",
            Self::Branched => "branched",
            Self::Direct => "direct",
        }
    }

    /// Looks up a mode by name.
    pub fn named(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }
}

/// Which tools are open before a plan exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanMode {
    /// Planning tools only.
    First,
    /// Planning and reading tools.
    #[default]
    Explore,
    /// Every tool is open.
    None,
}

/// Which part of a conversation a request contains. The full conversation is always stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistorySettings {
    /// All messages, or only the newest.
    pub mode: HistoryMode,
    /// Maximum number of newest messages; 0 for no limit.
    pub max_messages: u32,
    /// Whether the first message is kept even if it is older.
    pub keep_first: bool,
    /// Whether the model's reasoning is omitted.
    pub strip_thinking: bool,
    /// Length in characters to which older tool results are truncated; 0 for no truncation.
    pub tool_truncate_chars: u32,
    /// Number of newest tool results that are not truncated.
    pub tool_truncate_keep_last: u32,
}

impl Default for HistorySettings {
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
    /// All messages.
    #[default]
    Full,
    /// Only the newest messages.
    Tail,
}

/// Actions of the runtime before or after the model's work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuntimeAction {
    /// Files to read into the context: globs, `@tests`, `@target`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// A command to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl RuntimeAction {
    /// Whether there is no action.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.run.is_none()
    }
}

/// How the model gives its edits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowEditFormat {
    /// By tool calls.
    #[default]
    Tools,
    /// As the new file in a fenced block.
    Whole,
    /// As search-and-replace blocks.
    Blocks,
}

/// Output at the end of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    /// The runtime's summary of one to three lines.
    #[default]
    Human,
    /// One status line.
    Runtime,
}

/// Requirements of a benchmark task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchmarkSettings {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Whether to print the runtime's status line instead of the model's last message.
    pub line: bool,
    /// Whether tests are protected from changes.
    pub protects_tests: bool,
}

/// Phase control: a side channel that tracks which phase a task is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseControl {
    /// How the phase is determined.
    pub mode: PhaseMode,
    /// The phases, in order.
    pub states: Vec<String>,
    /// The initial phase; the first state if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Deterministic rules.
    pub rules: PhaseRules,
    /// The probe that asks a model.
    pub probe: PhaseProbe,
    /// Prompt of each phase.
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
            probe: PhaseProbe::default(),
            prompts: BTreeMap::new(),
        }
    }
}

/// How the phase of a task is determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseMode {
    /// Phase control is off.
    #[default]
    Off,
    /// The recorded facts.
    Rules,
    /// A model, asked after each turn.
    Llm,
    /// The recorded facts, and a model where no rule applies.
    Hybrid,
}

/// Deterministic rules of phase control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseRules {
    /// Number of files to read before planning begins.
    pub min_files_read_for_plan: u32,
    /// Whether reading that many files starts planning.
    pub auto_plan_after_read: bool,
    /// Whether an actual file change starts the implementation.
    pub write_to_implement: bool,
    /// States used for `context`, `plan` and `implement`; the first, the last but one and the last if not
    /// set.
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

/// Settings of the phase probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseProbe {
    /// Sampling temperature.
    pub temperature: f64,
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
    /// System prompt, if not the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Question, if not the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_prompt: Option<String>,
}

impl Default for PhaseProbe {
    fn default() -> Self {
        Self { temperature: 0.0, max_tokens: 64, system_prompt: None, user_prompt: None }
    }
}

/// Position of a phase's prompt in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhasePlace {
    /// At the end of the system prompt.
    #[default]
    System,
    /// After the last message, so that a phase change does not invalidate the prefix.
    Tail,
}

/// Where phase events are shown, in addition to the event stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseLog {
    /// Not shown anywhere else.
    #[default]
    Off,
    /// On standard output.
    Stdout,
    /// Appended to the log file.
    Log,
    /// On stdout and in the log.
    Both,
}
