//! Builds a run: the one place where the settings that are journaled ([`RunSpec`]) and what the process
//! contributes ([`RunDeps`]) are put together, for every command and for embedders.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fusee_journal::{Journal, RunId};
use fusee_model::{Model, RequestOptions, ResolvedModel};
use fusee_tools::mcp::OfferedTool;
use fusee_tools::{CommandSettings, Tool};

use super::{
    ActiveSandbox, RunDeps, RunHandle, RunOutcome, RunSpec, StartError, TemplateSource, WebDeps, no_model,
};
use crate::agent::{Limits, PricedModel};
use crate::approval::NonInteractive;

/// A run that is not started yet. Settings that concern the run alone are set on `spec`; the methods keep
/// `spec` and `deps` consistent.
pub struct RunBuilder {
    /// Persisted as step 0 of the run.
    pub spec: RunSpec,
    /// Provided by this process.
    pub deps: RunDeps,
}

impl RunBuilder {
    /// A run with these settings: no sandbox, nobody to ask, no further tools.
    pub fn new(spec: RunSpec, journal: Journal, model: Arc<dyn Model>) -> Self {
        let deps = RunDeps {
            journal,
            model,
            stage_models: BTreeMap::new(),
            commands: CommandSettings::default(),
            extra_tools: Vec::new(),
            commands_preapproved: spec.commands_preapproved,
            approver: Arc::new(NonInteractive),
            jitter: || 0.0,
            templates: TemplateSource::default(),
            trusts_project: false,
            trace: None,
            web: WebDeps::default(),
            documents: None,
        };
        Self { spec, deps }
    }

    /// A run as it is recorded in the journal, without a model: to be replayed.
    pub fn recorded(journal: &Journal, run: &RunId) -> Result<Self, StartError> {
        let spec = super::settings_of(journal, run)?;
        let model = Arc::new(no_model::NoModel::new(&spec));
        Ok(Self::new(spec, journal.clone(), model))
    }

    /// A new run in `workspace` with a resolved model. Limits and options are adapted to the model: its
    /// context size caps the conversation, and its profile fills in what the options leave open.
    pub fn resolved(
        workspace: &Path,
        resolved: &ResolvedModel,
        limits: Limits,
        options: RequestOptions,
        journal: Journal,
        model: Arc<dyn Model>,
    ) -> Self {
        let mut spec = RunSpec::new("", "", workspace);
        spec.limits = limits_for(resolved, limits);
        spec.options = resolved.options(options);
        Self::new(spec, journal, model).with_connection(resolved)
    }

    /// Sets the connection and the price of the model.
    #[must_use]
    pub fn with_connection(mut self, resolved: &ResolvedModel) -> Self {
        self.spec.set_connection(resolved);
        self
    }

    /// Sets the sandbox and how commands run.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: &ActiveSandbox) -> Self {
        self.spec.sandbox = sandbox.mode;
        self.spec.sandbox_options = sandbox.options.clone();
        self.spec.sandbox_state = sandbox.state.to_owned();
        self.spec.commands_preapproved = sandbox.preapproved;
        self.deps.commands = sandbox.commands.clone();
        self.deps.commands_preapproved = sandbox.preapproved;
        self
    }

    /// Adds the tools that MCP servers offer; `secrets` are redacted.
    #[must_use]
    pub fn with_mcp(mut self, offered: &[OfferedTool], tools: &[Arc<dyn Tool>], secrets: &[String]) -> Self {
        self.spec.mcp = offered.to_vec();
        self.deps.extra_tools.extend(tools.iter().cloned());
        self.deps.commands.secrets = self.deps.commands.secrets.and(secrets);
        self
    }

    /// Opens the models that the flow names. `open` gets the ids of the stage and of the model.
    pub fn with_stage_models<E>(
        mut self,
        mut open: impl FnMut(&str, &str) -> Result<PricedModel, E>,
    ) -> Result<Self, E> {
        for (stage, name) in self.spec.flow.other_models() {
            if !self.deps.stage_models.contains_key(name) {
                self.deps.stage_models.insert(name.to_owned(), open(stage, name)?);
            }
        }
        Ok(self)
    }

    /// Starts the run.
    pub async fn start(self, run: &RunId) -> Result<RunHandle, StartError> {
        super::start(run, self.spec, self.deps).await
    }

    /// Resumes the run, whose settings are those of [`super::settings_of`] with changes. A run that has ended
    /// returns its result again.
    pub fn resume(self, run: &RunId) -> Result<RunHandle, StartError> {
        super::resume(run, self.spec, self.deps)
    }

    /// Replays the run from its journal alone: no model is called, no workspace is read, and no tool runs. Of
    /// the further tools only the names are used.
    pub async fn replay(self, run: &RunId) -> Result<RunOutcome, StartError> {
        let Self { spec, deps } = self;
        let mut replay = Self::new(spec, deps.journal, deps.model);
        replay.deps.model = Arc::new(no_model::NoModel::new(&replay.spec));
        replay.deps.stage_models = no_model::stage_models(&replay.spec);
        replay.deps.extra_tools = deps.extra_tools;
        super::replay(run, replay.spec, replay.deps).await
    }
}

/// The limits of a task with this model: `max_tokens` is capped at its context size.
pub fn limits_for(resolved: &ResolvedModel, limits: Limits) -> Limits {
    let context = resolved.context_tokens.unwrap_or(u64::MAX);
    Limits { max_tokens: limits.max_tokens.min(context), price: resolved.price, ..limits }
}
