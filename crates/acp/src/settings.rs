//! What a client can choose for a session: model, flow, thought level and when to ask for approval, as config options and as modes.

use agent_client_protocol_schema::v1::{
    Error, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use fusee::ApprovalMode;
use fusee::engine::run::{RunKind, RunSpec};
use fusee::launch::{LaunchRequest, LaunchWork};

use crate::connection::invalid;

const MODEL: &str = "model";
const FLOW: &str = "flow";
const APPROVAL: &str = "approval";
const THOUGHT_LEVEL: &str = "thought_level";

/// Value of a choice that is left to the configuration.
const DEFAULT: &str = "default";

/// Flows that can be chosen, with what they do.
const FLOWS: [(&str, &str); 6] = [
    ("auto", "Chosen by the size of the task and the model"),
    ("flat", "One conversation"),
    ("direct", "One request, one answer"),
    ("staged", "Analyse, plan, implement and verify in sequence"),
    ("staged3", "Three stages"),
    ("branched", "One branch for each part of the plan"),
];

/// Approval modes, with their names and what they do.
const APPROVALS: [(&str, &str, &str); 3] = [
    ("auto", "Auto", "Runs what the sandbox confines without asking"),
    ("ask", "Ask", "Asks before every change"),
    ("never", "Never ask", "Refuses calls that need approval"),
];

/// Thought levels, which are the reasoning effort of the model.
const THOUGHT_LEVELS: [(&str, &str); 4] =
    [(DEFAULT, "As configured"), ("low", "Low"), ("medium", "Medium"), ("high", "High")];

/// Choices of a session; those that are not made come from the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SessionSettings {
    pub(crate) model: Option<String>,
    pub(crate) flow: Option<String>,
    pub(crate) approve: Option<ApprovalMode>,
    pub(crate) thought_level: Option<String>,
}

impl SessionSettings {
    /// The choices that a run was started with. Its model counts as chosen if it is not the configured one.
    pub(crate) fn recorded(spec: &RunSpec, configured_model: Option<&String>) -> Self {
        let effort = spec.options.reasoning_effort.as_deref();
        // A template or workflow has a flow of its own, which says nothing about the next request.
        let flow = matches!(spec.work, RunKind::Request).then(|| spec.flow.mode.name());
        Self {
            model: Some(spec.model.clone()).filter(|model| configured_model != Some(model)),
            flow: flow.filter(|flow| FLOWS.iter().any(|(name, _)| name == flow)).map(str::to_owned),
            approve: Some(spec.approve),
            thought_level: effort
                .filter(|effort| THOUGHT_LEVELS.iter().any(|(id, _)| id == effort))
                .map(str::to_owned),
        }
    }

    /// Applies them to a run. A template or workflow has a flow of its own.
    pub(crate) fn apply(&self, request: LaunchRequest) -> LaunchRequest {
        let is_request = matches!(request.work, LaunchWork::Request(_));
        let flow = self.flow.clone().filter(|_| is_request);
        LaunchRequest {
            model: self.model.clone(),
            flow,
            approve: self.approve,
            reasoning_effort: self.thought_level.clone(),
            ..request
        }
    }

    /// The options as the client shows them. `models` are the known ones, the configured first; `approve` is the
    /// configured approval mode.
    pub(crate) fn options(&self, models: &[String], approve: ApprovalMode) -> Vec<SessionConfigOption> {
        let mut names: Vec<&str> = models.iter().map(String::as_str).collect();
        if let Some(chosen) = self.model.as_deref().filter(|chosen| !names.contains(chosen)) {
            names.push(chosen);
        }
        let model = self.model.as_deref().or(names.first().copied()).unwrap_or(DEFAULT);
        if names.is_empty() {
            names.push(DEFAULT);
        }
        let option = |name: &str| SessionConfigSelectOption::new(name.to_owned(), name);
        let described =
            |name: &str, title: &str, text: &str| option(name).description(text.to_owned()).named(title);
        let flow = self.flow.as_deref().unwrap_or("auto");
        vec![
            SessionConfigOption::select(
                MODEL,
                "Model",
                model.to_owned(),
                names.iter().map(|name| option(name)).collect::<Vec<_>>(),
            )
            .category(SessionConfigOptionCategory::Model),
            SessionConfigOption::select(
                FLOW,
                "Flow",
                flow.to_owned(),
                FLOWS.map(|(name, text)| described(name, name, text)).to_vec(),
            )
            .description("How to work through a task".to_owned()),
            SessionConfigOption::select(
                APPROVAL,
                "Approval",
                mode_id(self.approve.unwrap_or(approve)).to_owned(),
                APPROVALS.map(|(id, name, text)| described(id, name, text)).to_vec(),
            )
            .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select(
                THOUGHT_LEVEL,
                "Thought level",
                self.thought_level.as_deref().unwrap_or(DEFAULT).to_owned(),
                THOUGHT_LEVELS.map(|(id, name)| option(id).named(name)).to_vec(),
            )
            .category(SessionConfigOptionCategory::ThoughtLevel),
        ]
    }

    /// Sets an option.
    pub(crate) fn set(&mut self, id: &str, value: &str) -> Result<(), Error> {
        match id {
            MODEL => self.model = Some(value.to_owned()).filter(|value| value != DEFAULT),
            FLOW if FLOWS.iter().any(|(name, _)| *name == value) => self.flow = Some(value.to_owned()),
            APPROVAL => self.set_mode(value)?,
            THOUGHT_LEVEL if THOUGHT_LEVELS.iter().any(|(id, _)| *id == value) => {
                self.thought_level = Some(value.to_owned()).filter(|value| value != DEFAULT);
            }
            THOUGHT_LEVEL => return Err(invalid("unknown thought level")),
            FLOW => return Err(invalid("unknown flow")),
            _ => return Err(invalid("unknown config option")),
        }
        Ok(())
    }

    /// The approval modes as session modes; `approve` is the configured one.
    pub(crate) fn modes(&self, approve: ApprovalMode) -> SessionModeState {
        let modes = APPROVALS.map(|(id, name, text)| SessionMode::new(id, name).description(text.to_owned()));
        SessionModeState::new(mode_id(self.approve.unwrap_or(approve)), modes.to_vec())
    }

    /// Sets the approval mode.
    pub(crate) fn set_mode(&mut self, id: &str) -> Result<(), Error> {
        self.approve = Some(match id {
            "auto" => ApprovalMode::Auto,
            "ask" => ApprovalMode::Ask,
            "never" => ApprovalMode::Never,
            _ => return Err(invalid("unknown mode")),
        });
        Ok(())
    }
}

/// Names an option.
trait Named {
    fn named(self, name: &str) -> Self;
}

impl Named for SessionConfigSelectOption {
    fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }
}

fn mode_id(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Auto => "auto",
        ApprovalMode::Ask => "ask",
        ApprovalMode::Never => "never",
    }
}
