//! Flows: hold a model to a process with stages, gates and phases, and with actions of the runtime itself.
//!
//! [`FlowSettings`] is the complete configuration as data, part of a run's step 0. Decisions within a task
//! are pure functions of recorded facts; the task runner calls them and acts on the results.

mod answer_edits;
mod auto;
mod branched;
mod complete_answer;
mod fallback;
mod flow_state;
mod imports;
mod location;
mod phases;
mod preload;
mod preparation;
mod protected_tests;
mod request_files;
mod run_flow;
mod sampler;
mod samples;
mod settings;
mod stage;
mod stage_notes;
mod stage_runner;
mod task_rules;
mod tool_gate;

pub(crate) use answer_edits::{edits, unnamed_edits};
pub(crate) use auto::{RunTraits, asks_for_tests, is_unusable, resolve_auto};
pub(crate) use complete_answer::CompleteAnswer;
pub(crate) use flow_state::{Feedback, FlowState};
pub(crate) use phases::{PhaseTransition, Phases};
pub(crate) use preload::{PreloadedFile, read as read_before, read_text, render as render_before};
pub(crate) use protected_tests::{ProtectedTests, answer as protected_answer};
pub(crate) use request_files::is_test;
pub(crate) use run_flow::{with_settings, work};
pub(crate) use samples::{CandidateTexts, SampleResult, Score, Verdict};
pub(crate) use task_rules::{FlowShape, TaskRules};
pub(crate) use tool_gate::ToolRef;

pub use auto::{FlowChoice, VERIFY_AUTO, VERIFY_OFF};
pub use fallback::FallbackMethod;
pub use settings::{
    BenchmarkSettings, FlowEditFormat, FlowMode, FlowSettings, HistoryMode, HistorySettings, OutputMode,
    PhaseControl, PhaseLog, PhaseMode, PhasePlace, PhaseProbe, PhaseRules, PlanMode, RuntimeAction,
};
pub use stage::{Stage, ToolsMode};

/// Names and aliases of all tools that a run can have by itself, for validating settings.
pub fn tool_names() -> Vec<String> {
    use fusee_tools::tool::{fetch_url, web_search};
    let toolbox = fusee_tools::Toolbox::standard(fusee_tools::CommandSettings::default());
    let web = [fetch_url::definition(), web_search::definition()];
    let all = || toolbox.definitions().chain(&web);
    let aliases = all().flat_map(|definition| definition.aliases.iter().map(|name| (*name).to_owned()));
    let names = all().map(|definition| definition.name.to_string());
    names.chain(aliases).chain(crate::agent::control_names()).collect()
}
