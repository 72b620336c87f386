//! Context shared by all branches of a workflow: the session, the journal, and the resources used so far.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use fusee_journal::{Branch, DurableRun};
use fusee_lang::{EffectKind, ResumeInput, SourceLocation};
use fusee_model::Message;
use parking_lot::Mutex;

use super::run::WorkflowRun;
use crate::agent::{Session, Spent, TaskOutcome};
use crate::task_system::TaskSystem;

/// Called with one line for every effect and every answer.
pub type EffectTrace = Arc<dyn Fn(&str) + Send + Sync>;

/// Maximum length of a value in a trace line, in characters.
const TRACED: usize = 200;

pub(crate) struct WorkflowContext {
    pub(super) session: Arc<Session>,
    pub(super) engine: Arc<dyn DurableRun>,
    /// Runs the tasks that the program calls.
    pub(super) tasks: Arc<TaskSystem>,
    /// Conversation that the run continues.
    pub(super) history: Arc<Vec<Message>>,
    pub(super) started_ms: i64,
    /// Workflows that can be called by name.
    pub(super) library: BTreeMap<String, WorkflowRun>,
    pub(super) trace: Option<EffectTrace>,
    /// Resources used by all branches. Working time is counted by each branch, because branches overlap.
    pub(super) spent: Mutex<Spent>,
    /// Error messages of tasks whose model was unreachable.
    pub(super) unreachable: Mutex<HashSet<String>>,
}

impl WorkflowContext {
    pub(super) fn submission_id(&self) -> String {
        self.engine.run().to_string()
    }

    /// Time limit of the whole workflow in seconds, if any.
    pub(super) fn seconds(&self) -> Option<u64> {
        self.session.limits.task_timeout_s
    }

    /// Cost limit of the whole workflow, if it can be enforced. Without a price, each task warns by itself.
    pub(super) fn usd(&self) -> Option<f64> {
        self.session.limits.budget_usd.filter(|_| self.session.limits.price.is_some())
    }

    /// Records what a task used.
    pub(super) fn count(&self, outcome: &TaskOutcome) {
        self.spent.lock().add(&outcome.spent);
        if let Some(error) = outcome.error.as_ref().filter(|_| outcome.unreachable) {
            let mut unreachable = self.unreachable.lock();
            unreachable.insert(error.message.clone());
        }
    }

    pub(super) fn trace(&self, branch: &Branch, place: &SourceLocation, kind: &EffectKind) {
        let Some(trace) = &self.trace else { return };
        let what = match kind {
            EffectKind::Task(_) | EffectKind::Tool(_) => format!("{} {}", kind.name(), kind.callee()),
            other => other.name().to_owned(),
        };
        trace(&format!("{branch} {place} {what} {}", brief(&kind.arguments().to_string())));
    }

    pub(super) fn trace_answer(&self, branch: &Branch, place: &SourceLocation, input: &ResumeInput) {
        let Some(trace) = &self.trace else { return };
        let answer = match input {
            ResumeInput::Go => return,
            ResumeInput::Reply(reply) => format!("{} {}", reply.status, brief(&reply.content)),
            ResumeInput::Json(json) => brief(&json.to_string()),
            ResumeInput::Branches(values) => format!("{} values", values.len()),
            ResumeInput::BranchFailed(fault) => brief(&fault.headline()),
            ResumeInput::Failed(failure) | ResumeInput::LimitReached(_, failure) => brief(&failure.message),
        };
        trace(&format!("{branch} {place} → {answer}"));
    }
}

fn brief(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TRACED) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
