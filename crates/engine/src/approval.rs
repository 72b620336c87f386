//! Who says whether a call may run. The policy is data; asking a person is a trait, with one implementation a
//! face. The answer is a step, so it survives a restart.

mod line;
pub mod rules;

use std::sync::Arc;

use fusee_journal::BoxFuture;
use fusee_tools::Category;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::rules::{Decision, Rules};

use crate::agent::Terms;

/// When a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// Not for what the sandbox confines, nor with the sandbox off by the user's word.
    #[default]
    Auto,
    /// For everything that may change something.
    Ask,
    /// Never: what would be asked is refused.
    Never,
}

/// Asks a person.
pub trait Approver: Send + Sync {
    /// The person's answer; an implementation with nobody there refuses.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;

    /// The person's answer to a question of the model's own; `None` if nobody is there.
    fn ask_user<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        let _ = question;
        Box::pin(async { None })
    }

    /// What the person says after they have stopped a turn: words for the model, nothing to let it go on, or `None` to
    /// end the run.
    fn after_stop<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        let _ = question;
        Box::pin(async { None })
    }
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// What it is asked.
    pub arguments: Value,
    /// Why a person is asked.
    pub reason: String,
}

/// What the person said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether it may run.
    pub approved: bool,
    /// For the model, if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For how long.
    #[serde(default)]
    pub lasts: Lasts,
}

/// How long an answer holds that lets something run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lasts {
    /// For this call.
    #[default]
    Once,
    /// For calls like it until the run ends.
    Session,
    /// For calls like it in this project.
    Always,
}

impl Answer {
    /// It may run, once.
    #[must_use]
    pub fn yes() -> Self {
        Self { approved: true, reason: None, lasts: Lasts::Once }
    }

    /// It may not, for this reason.
    #[must_use]
    pub fn no(reason: impl Into<String>) -> Self {
        Self { approved: false, reason: Some(reason.into()), lasts: Lasts::Once }
    }
}

impl Question {
    /// What a lasting answer to it is about.
    #[must_use]
    pub fn lasting(&self) -> Vec<rules::Rule> {
        rules::lasting(&self.name, &self.arguments)
    }
}

/// Nobody is there: every question is a refusal.
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _question: &'a Question) -> BoxFuture<'a, Answer> {
        let reason = "nobody is there to approve it; go on without it, or finish as blocked".to_owned();
        Box::pin(async { Answer::no(reason) })
    }
}

/// Decides for each call whether it runs, is asked about, or is refused.
#[derive(Clone)]
pub struct Gatekeeper {
    /// The user's policy.
    pub approve: Approve,
    /// Whether commands are confined, or free by the user's word.
    pub commands_settled: bool,
    /// What the user decided before.
    pub rules: Rules,
    /// Asks.
    pub approver: Arc<dyn Approver>,
}

/// The gate's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Ask(String),
    Shut(String),
}

impl Gate {
    /// The same after what the user decided about such calls.
    pub(crate) fn ruled(self, decision: Option<Decision>, approve: Approve) -> Self {
        match decision {
            None => self,
            Some(Decision::Allow) => Self::Open,
            Some(Decision::Deny) => Self::Shut("a rule of the user's refuses it".to_owned()),
            Some(Decision::Ask) if approve == Approve::Never => {
                Self::Shut("a rule of the user's asks about it, and this run may not ask".to_owned())
            }
            Some(Decision::Ask) => Self::Ask("a rule of the user's asks about it".to_owned()),
        }
    }
}

impl Gatekeeper {
    pub(crate) fn judge(terms: &Terms, category: Category, runs_commands: bool) -> Gate {
        if category != Category::Write {
            return Gate::Open;
        }
        let unconfined = runs_commands && !terms.commands_settled;
        match terms.approve {
            Approve::Auto if unconfined => Gate::Ask("no sandbox holds commands here".to_owned()),
            Approve::Auto => Gate::Open,
            Approve::Ask => Gate::Ask("this run asks before anything is changed".to_owned()),
            Approve::Never if unconfined => {
                Gate::Shut("no sandbox holds commands here, and this run may not ask".to_owned())
            }
            Approve::Never => Gate::Open,
        }
    }
}
