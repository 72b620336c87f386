//! The session of a task: what it depends on and cannot change (model, tools, workspace, limits).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fusee_journal::{Branch, RunId};
use fusee_model::{Model, Price, RequestOptions, ToolSpec};
use fusee_tools::diagnostics::EditChecker;
use fusee_tools::mcp::deferral;
use fusee_tools::tool::computer;
use fusee_tools::{CommandSettings, Secrets, ToolDefinition, Toolbox, Workspace};

use super::interrupt::TurnInterrupt;
use super::limits::Limits;
use super::review_policy::ReviewPolicy;
use crate::agent::limits::policy_change::{self, PolicyChange, RunPolicy};
use crate::agent::tool_calls::control_tools;
use crate::approval::ApprovalPolicy;
use crate::hook::HookRunner;

/// A model and the price of its tokens, if known.
#[derive(Clone)]
pub struct PricedModel {
    /// Answers the requests.
    pub model: Arc<dyn Model>,
    /// Price of its tokens.
    pub price: Option<Price>,
}

/// Model, tools, workspace and limits of one task; nothing leaks from one task to another.
pub struct Session {
    /// The model that works on the task.
    pub model: Arc<dyn Model>,
    /// Models for the stages that name one.
    pub stage_models: std::collections::BTreeMap<String, PricedModel>,
    /// Options of each request.
    pub options: RequestOptions,
    /// Dependencies of commands, for those that run outside of a call.
    pub commands: CommandSettings,
    /// The tools on offer.
    pub toolbox: Toolbox,
    /// The workspace the tools act on.
    pub workspace: Arc<Workspace>,
    /// Resource limits.
    pub limits: Limits,
    /// Secrets that are removed from all output.
    pub secrets: Secrets,
    /// Stops single turns.
    pub turn_stop: TurnInterrupt,
    /// Approval policy.
    pub approval: ApprovalPolicy,
    /// Hooks of the user and of the project.
    pub(crate) hooks: Arc<HookRunner>,
    /// Checks the files that the model edits, if that is wanted.
    pub(crate) diagnostics: Option<Arc<EditChecker>>,
    /// Changes of limits and approval made on resume, in order.
    pub policy_changes: Vec<PolicyChange>,
    /// Set in review mode.
    pub review: Option<ReviewPolicy>,
    /// Description of the sandbox, for the events.
    pub sandbox: String,
    /// Random source for retry jitter: returns a number from -1 to 1.
    pub jitter: fn() -> f64,
    /// Whether an earlier process worked on this run, so files may have changed meanwhile. Cleared by the
    /// first request that takes this into account.
    pub resumed: AtomicBool,
    /// The run in which the conversation began, if it is another one.
    pub continues: Option<RunId>,
}

impl Session {
    /// The session of a subtask, with its own limits.
    pub(crate) fn for_child(&self, limits: Limits) -> Self {
        Self {
            model: Arc::clone(&self.model),
            stage_models: self.stage_models.clone(),
            options: self.options.clone(),
            commands: self.commands.clone(),
            toolbox: self.toolbox.clone(),
            workspace: Arc::clone(&self.workspace),
            limits,
            secrets: self.secrets.clone(),
            turn_stop: self.turn_stop.clone(),
            approval: self.approval.clone(),
            hooks: Arc::clone(&self.hooks),
            diagnostics: self.diagnostics.clone(),
            // Limit changes apply to the parent task only; the child keeps what it was granted.
            policy_changes: self
                .policy_changes
                .iter()
                .map(|change| PolicyChange {
                    after: change.after.clone(),
                    policy: RunPolicy { limits, ..change.policy },
                })
                .collect(),
            review: self.review.clone(),
            sandbox: self.sandbox.clone(),
            jitter: self.jitter,
            resumed: AtomicBool::new(self.resumed.load(Ordering::Relaxed)),
            continues: None,
        }
    }

    /// The policy in force when `next_step` is the next step of a branch.
    pub(crate) fn policy_at(&self, branch: &Branch, next_step: u64) -> RunPolicy {
        let ApprovalPolicy { approve, commands_preapproved, .. } = self.approval;
        let first = RunPolicy { limits: self.limits, approve, commands_preapproved };
        policy_change::at(first, &self.policy_changes, branch, next_step)
    }

    /// The same session with another model; an unknown name keeps the current model.
    pub(crate) fn with_model(&self, name: &str) -> Self {
        let mut other = Self {
            policy_changes: self.policy_changes.clone(),
            continues: self.continues.clone(),
            ..self.for_child(self.limits)
        };
        if let Some(PricedModel { model, price }) = self.stage_models.get(name) {
            other.model = Arc::clone(model);
            other.limits.price = *price;
            other.policy_changes.iter_mut().for_each(|change| change.policy.limits.price = *price);
        }
        other
    }

    /// All tools on offer, in the order the model sees them: without those that it finds with `find_tools`. A display
    /// is used only by models that know how.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        let display = self.model.dialect().traits.display.is_some();
        let offered = move |definition: &&ToolDefinition| display || definition.name != computer::NAME;
        deferral::sent(&self.toolbox).filter(offered).chain(control_tools::definitions())
    }

    /// The definition of a control tool or of a tool of the toolbox.
    pub(crate) fn definition(&self, name: &str) -> Option<&ToolDefinition> {
        let control = control_tools::definitions().iter().find(|definition| definition.name == name);
        control.or_else(|| self.toolbox.find(name).map(|tool| tool.definition()))
    }

    pub(crate) fn specs(&self, offered: impl Fn(&ToolDefinition) -> bool) -> Vec<ToolSpec> {
        self.definitions()
            .filter(|definition| offered(definition))
            .map(|definition| ToolSpec {
                name: definition.name.to_string(),
                description: definition.description.to_string(),
                parameters: if Toolbox::is_standard(&definition.name)
                    || control_tools::is_one(&definition.name)
                {
                    definition.short_parameters()
                } else {
                    definition.parameters.clone()
                },
            })
            .collect()
    }
}
