//! Flows: hold a model to a process with stages, gates and phases, and with actions of the runtime itself.
//!
//! [`FlowSettings`] is the complete configuration as data, part of a run's step 0. Decisions within a task
//! are pure functions of recorded facts; the agent's driver calls them and acts on the results.

mod answer;
mod before;
mod conduct;
mod gate;
mod history;
mod notes;
mod parts;
mod phase;
mod planned;
mod protected;
mod required;
mod rules;
mod settings;
mod stage;
mod work;

pub(crate) use answer::edits;
pub(crate) use before::{Material, read as read_before, shown as shown_before};
pub(crate) use conduct::{Conduct, Feedback, Known};
pub(crate) use gate::Asked;
pub(crate) use history::Sending;
pub(crate) use phase::{Move as PhaseMove, Phases};
pub(crate) use protected::{Protected, answer as protected_answer};
pub(crate) use rules::Rules;
pub(crate) use work::work;

pub use settings::{
    Act, Benchmark, EditFormat, FlowMode, FlowSettings, History, HistoryMode, OutputMode, PhaseControl,
    PhaseLog, PhaseMode, PhasePlace, PhaseRules, PlanMode, Probe,
};
pub use stage::{Stage, ToolsMode};

/// Names and aliases of all tools available in every run, for validating settings.
pub fn tool_names() -> Vec<String> {
    let toolbox = fusee_tools::Toolbox::standard(fusee_tools::CommandSettings::default());
    let aliases =
        toolbox.definitions().flat_map(|definition| definition.aliases.iter().map(|name| (*name).to_owned()));
    let names = toolbox.definitions().map(|definition| definition.name.to_string());
    names.chain(aliases).chain(crate::agent::control_names()).collect()
}
