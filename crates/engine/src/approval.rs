//! Approval of calls. The policy is data; asking the user is a trait with one implementation per user
//! interface. The answer is a journal step (`question`), so it survives a restart.

pub mod rules;
mod shell_words;
mod user_wait;

use std::sync::Arc;

use fusee_journal::BoxFuture;
use fusee_journal::event::HookDecision;
use fusee_tools::Access;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::rules::{ApprovalRules, RuleDecision};
use crate::hook::HookOutcome;

pub(crate) use user_wait::{AFTER_STOP, ASK_USER, NoAnswer, UNANSWERED_ADVICE, UserWait};
pub use user_wait::{OutsideAnswer, signal_name};

/// When to ask for approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
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
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer>;

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

    /// Whether a user of this process could stop a turn. If not, a turn is stopped from outside, and how to continue is
    /// answered from there.
    fn has_user(&self) -> bool {
        true
    }
}

/// A call that needs the user's decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalQuestion {
    /// As the model assigned it.
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
pub struct ApprovalAnswer {
    /// Whether the call may run.
    pub approved: bool,
    /// Reason of a refusal, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long an approval lasts.
    #[serde(default)]
    pub lasts: ApprovalScope,
    /// What a lasting approval covers.
    #[serde(default)]
    pub extent: ApprovalExtent,
}

/// What a lasting approval covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalExtent {
    /// The command shown, or changes of the files shown.
    Shown,
    /// Every command that begins with the same words, or every call of the tool. The meaning of answers in
    /// journals that do not say.
    #[default]
    Wider,
}

/// How long an approval lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// For this call.
    #[default]
    Once,
    /// Until the run ends.
    Session,
    /// In every run of this project.
    Always,
}

impl ApprovalAnswer {
    /// Approves this call.
    #[must_use]
    pub fn yes() -> Self {
        let (lasts, extent) = (ApprovalScope::Once, ApprovalExtent::Shown);
        Self { approved: true, reason: None, lasts, extent }
    }

    /// Refuses the call with a reason.
    #[must_use]
    pub fn no(reason: impl Into<String>) -> Self {
        Self { approved: false, reason: Some(reason.into()), ..Self::yes() }
    }
}

impl ApprovalQuestion {
    /// The rules that a lasting approval adds; none if the call has no such extent.
    #[must_use]
    pub fn lasting(&self, extent: ApprovalExtent) -> Vec<rules::ApprovalRule> {
        rules::lasting(&self.name, &self.arguments, extent)
    }
}

/// Reason of a refusal because nobody could be asked.
pub const NOBODY_TO_ASK: &str = "nobody is there to approve it; go on without it, or finish as blocked";

/// Kind under which a task report counts calls that were refused because nobody could be asked.
pub const REFUSED_UNASKED: &str = "refused_unasked";

/// Non-interactive approver: refuses every question.
pub struct NonInteractive;

impl Approver for NonInteractive {
    fn ask<'a>(&'a self, _question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::no(NOBODY_TO_ASK) })
    }

    fn has_user(&self) -> bool {
        false
    }
}

/// Approver of a process in which nobody answers: every question waits for an answer from outside, or until its
/// time is over.
pub struct AnsweredOutside;

impl Approver for AnsweredOutside {
    fn ask<'a>(&'a self, _question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::pending())
    }

    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::pending())
    }

    fn after_stop<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::pending())
    }
}

/// Decides for each call whether it runs, needs approval, or is refused.
#[derive(Clone)]
pub struct ApprovalPolicy {
    /// The approval mode.
    pub approve: ApprovalMode,
    /// Whether commands are sandboxed, or the user has allowed them to run unsandboxed.
    pub commands_preapproved: bool,
    /// The user's rules.
    pub rules: ApprovalRules,
    /// Asks the user.
    pub approver: Arc<dyn Approver>,
}

/// Decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalDecision {
    Allow,
    Ask(String),
    Deny(String),
}

impl ApprovalDecision {
    /// Applies a hook's decision to what the approval mode decides. It can spare the user a question of the mode, not
    /// one that a rule demands.
    pub(crate) fn allowed_by_hook(self, decision: HookDecision) -> Self {
        match self {
            Self::Ask(_) if decision == HookDecision::Allow => Self::Allow,
            other => other,
        }
    }

    /// Applies a hook's wish to ask the user.
    pub(crate) fn asked_by_hook(self, hooks: &HookOutcome, approve: ApprovalMode) -> Self {
        if hooks.decision != HookDecision::Ask {
            return self;
        }
        let why = if hooks.reason.is_empty() { String::new() } else { format!(": {}", hooks.reason) };
        match (self, approve) {
            (Self::Deny(reason), _) => Self::Deny(reason),
            // The user is asked anyway, and sees what the hook has to say.
            (Self::Ask(reason), _) => Self::Ask(format!("{reason}; a hook requires approval{why}")),
            (Self::Allow, ApprovalMode::Never) => {
                Self::Deny(format!("a hook requires approval, and this run cannot ask{why}"))
            }
            (Self::Allow, ApprovalMode::Auto | ApprovalMode::Ask) => {
                Self::Ask(format!("a hook requires approval{why}"))
            }
        }
    }

    /// Applies the decision of the user's rules.
    pub(crate) fn with_rules(self, decision: Option<RuleDecision>, approve: ApprovalMode) -> Self {
        match decision {
            None => self,
            Some(RuleDecision::Allow) => Self::Allow,
            Some(RuleDecision::Deny) => Self::Deny("denied by a user rule".to_owned()),
            Some(RuleDecision::Ask) if approve == ApprovalMode::Never => {
                Self::Deny("a user rule requires approval, and this run cannot ask".to_owned())
            }
            Some(RuleDecision::Ask) => Self::Ask("a user rule requires approval".to_owned()),
        }
    }
}

impl ApprovalPolicy {
    /// Decides about a call by the approval mode. `unconfined` is a command that no sandbox confines.
    pub(crate) fn decide(mode: ApprovalMode, category: Access, unconfined: bool) -> ApprovalDecision {
        if category != Access::Write {
            return ApprovalDecision::Allow;
        }
        match mode {
            ApprovalMode::Auto if unconfined => {
                ApprovalDecision::Ask("commands run without a sandbox".to_owned())
            }
            ApprovalMode::Auto => ApprovalDecision::Allow,
            ApprovalMode::Ask => ApprovalDecision::Ask("this run asks before anything is changed".to_owned()),
            ApprovalMode::Never if unconfined => ApprovalDecision::Deny(
                "commands are not sandboxed, and this run cannot ask for approval".to_owned(),
            ),
            ApprovalMode::Never => ApprovalDecision::Allow,
        }
    }
}
