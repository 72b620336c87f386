//! Approval of calls. The policy is data; asking the user is a trait with one implementation per user
//! interface. The answer is a journal step, so it survives a restart.

mod line;
pub mod rules;

use std::sync::Arc;

use fusee_journal::BoxFuture;
use fusee_tools::Category;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::rules::{Decision, Rules};

use crate::agent::Terms;

/// When to ask for approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// Only for unsandboxed commands, unless the user turned the sandbox off.
    #[default]
    Auto,
    /// For every call that may change something.
    Ask,
    /// Never ask; refuse what would need approval.
    Never,
}

/// Asks the user.
pub trait Approver: Send + Sync {
    /// Asks for approval of a call; a non-interactive implementation refuses.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;

    /// Passes on a question from the model; `None` if there is no user to ask.
    fn ask_user<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        let _ = question;
        Box::pin(async { None })
    }

    /// Asks how to continue after the user stopped a turn: a message for the model, an empty string to
    /// continue, or `None` to end the run.
    fn after_stop<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        let _ = question;
        Box::pin(async { None })
    }
}

/// An approval question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Why approval is needed.
    pub reason: String,
}

/// The answer to an approval question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether the call may run.
    pub approved: bool,
    /// Reason of a refusal, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long an approval lasts.
    #[serde(default)]
    pub lasts: Lasts,
}

/// How long an approval lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lasts {
    /// For this call.
    #[default]
    Once,
    /// For similar calls until the run ends.
    Session,
    /// For similar calls in this project.
    Always,
}

impl Answer {
    /// Approves this call.
    #[must_use]
    pub fn yes() -> Self {
        Self { approved: true, reason: None, lasts: Lasts::Once }
    }

    /// Refuses the call with a reason.
    #[must_use]
    pub fn no(reason: impl Into<String>) -> Self {
        Self { approved: false, reason: Some(reason.into()), lasts: Lasts::Once }
    }
}

impl Question {
    /// The rules that a lasting approval adds.
    #[must_use]
    pub fn lasting(&self) -> Vec<rules::Rule> {
        rules::lasting(&self.name, &self.arguments)
    }
}

/// Non-interactive approver: refuses every question.
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _question: &'a Question) -> BoxFuture<'a, Answer> {
        let reason = "nobody is there to approve it; go on without it, or finish as blocked".to_owned();
        Box::pin(async { Answer::no(reason) })
    }
}

/// Decides for each call whether it runs, needs approval, or is refused.
#[derive(Clone)]
pub struct Gatekeeper {
    /// The approval mode.
    pub approve: Approve,
    /// Whether commands are sandboxed, or the user has allowed them to run unsandboxed.
    pub commands_settled: bool,
    /// The user's rules.
    pub rules: Rules,
    /// Asks the user.
    pub approver: Arc<dyn Approver>,
}

/// Decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Ask(String),
    Shut(String),
}

impl Gate {
    /// Applies the decision of the user's rules.
    pub(crate) fn ruled(self, decision: Option<Decision>, approve: Approve) -> Self {
        match decision {
            None => self,
            Some(Decision::Allow) => Self::Open,
            Some(Decision::Deny) => Self::Shut("a rule of the user's refuses it".to_owned()),
            Some(Decision::Ask) if approve == Approve::Never => {
                Self::Shut("a rule of the user's asks about it, and this run may not ask".to_owned())
            }
            Some(Decision::Ask) => Self::Ask("a user rule requires approval".to_owned()),
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
            Approve::Auto if unconfined => Gate::Ask("commands run without a sandbox".to_owned()),
            Approve::Auto => Gate::Open,
            Approve::Ask => Gate::Ask("this run asks before anything is changed".to_owned()),
            Approve::Never if unconfined => {
                Gate::Shut("no sandbox holds commands here, and this run may not ask".to_owned())
            }
            Approve::Never => Gate::Open,
        }
    }
}
