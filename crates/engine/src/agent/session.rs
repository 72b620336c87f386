//! What a task works with and may not change: the model, the tools, the workspace, the limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fusee_journal::{Branch, RunId};
use fusee_model::{Model, Price, RequestOptions, ToolSpec};
use fusee_tools::{Definition, Secrets, Toolbox, Workspace};

use super::control;
use super::limits::Limits;
use super::review::Restrictions;
use super::stopping::TurnStop;
use super::terms::{self, Amendment, Terms};
use crate::approval::Gatekeeper;

/// The surroundings of one task. Nothing leaks between two of them.
pub struct Session {
    /// Answers.
    pub model: Arc<dyn Model>,
    /// Answer in stages that name them.
    pub others: std::collections::BTreeMap<String, Arc<dyn Model>>,
    /// The knobs of each request.
    pub options: RequestOptions,
    /// What its tokens cost, where that is known.
    pub price: Option<Price>,
    /// Acts.
    pub toolbox: Toolbox,
    /// Where it acts.
    pub workspace: Arc<Workspace>,
    /// How much.
    pub limits: Limits,
    /// Secrets that nobody is shown.
    pub secrets: Secrets,
    /// Stops single turns.
    pub turn_stop: TurnStop,
    /// Who says whether a command may run.
    pub gatekeeper: Gatekeeper,
    /// What resumes changed of the limits and of when a person is asked, in order.
    pub amendments: Vec<Amendment>,
    /// Set in review mode.
    pub review: Option<Restrictions>,
    /// What confines commands, in words, for the events.
    pub sandbox: String,
    /// Chance, for spreading retries: a number from -1 to 1.
    pub jitter: fn() -> f64,
    /// Whether an earlier process worked on this run: then the world may have moved on meanwhile. Cleared by
    /// the first request that takes that into account.
    pub resumed: AtomicBool,
    /// The run in which the conversation began, if that is another.
    pub continues: Option<RunId>,
}

impl Session {
    /// The surroundings of a task that this one begins, with limits of its own.
    pub(crate) fn for_child(&self, limits: Limits) -> Self {
        Self {
            model: Arc::clone(&self.model),
            others: self.others.clone(),
            options: self.options.clone(),
            price: self.price,
            toolbox: self.toolbox.clone(),
            workspace: Arc::clone(&self.workspace),
            limits,
            secrets: self.secrets.clone(),
            turn_stop: self.turn_stop.clone(),
            gatekeeper: self.gatekeeper.clone(),
            // What a resume changed of the limits is the whole's; the child has what it was granted.
            amendments: self
                .amendments
                .iter()
                .map(|amendment| Amendment {
                    after: amendment.after.clone(),
                    terms: Terms { limits, ..amendment.terms },
                })
                .collect(),
            review: self.review.clone(),
            sandbox: self.sandbox.clone(),
            jitter: self.jitter,
            resumed: AtomicBool::new(self.resumed.load(Ordering::Relaxed)),
            continues: None,
        }
    }

    /// What holds when `next_step` is the next step of a branch.
    pub(crate) fn terms_at(&self, branch: &Branch, next_step: u64) -> Terms {
        let Gatekeeper { approve, commands_settled, .. } = self.gatekeeper;
        let first = Terms { limits: self.limits, approve, commands_settled };
        terms::at(first, &self.amendments, branch, next_step)
    }

    /// The same surroundings with another model. One that was not opened is answered by the first.
    pub(crate) fn with_model(&self, name: &str) -> Self {
        let model = Arc::clone(self.others.get(name).unwrap_or(&self.model));
        let (amendments, continues) = (self.amendments.clone(), self.continues.clone());
        Self { model, price: None, amendments, continues, ..self.for_child(self.limits) }
    }

    /// All tools on offer, in the order a model sees them.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.toolbox.definitions().chain(control::definitions())
    }

    pub(crate) fn specs(&self, offered: impl Fn(&Definition) -> bool) -> Vec<ToolSpec> {
        self.definitions()
            .filter(|definition| offered(definition))
            .map(|definition| ToolSpec {
                name: definition.name.to_string(),
                description: definition.description.to_string(),
                parameters: if Toolbox::is_standard(&definition.name) || control::is_one(&definition.name) {
                    definition.short_parameters()
                } else {
                    definition.parameters.clone()
                },
            })
            .collect()
    }
}
