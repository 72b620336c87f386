//! State that a continued run inherits: the conversation, the plan, opened sections and known files.
//!
//! It is rebuilt from the earlier run's journal alone, whichever version wrote it, and stored as a step of
//! the new run (see [`crate::run`]), which does not need the earlier run afterwards.

use std::collections::{BTreeSet, VecDeque};

use fusee_journal::event::Event;
use fusee_journal::{Branch, StepKind, StepRow};
use fusee_model::tokens::Estimator;
use fusee_model::{Message, ToolCall};
use fusee_tools::tool::arguments;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::conversation::COMPACT_TO;
use crate::agent::conversation::compaction::{self, Compacted, CompactionRetention};
use crate::agent::conversation::context_usage::size;
use crate::agent::conversation::external_changes::FileSnapshot;
use crate::agent::limits::Limits;
use crate::agent::model_request::attempt::{Attempt, AttemptResult};
use crate::agent::model_request::model_summary;
use crate::agent::model_request::to_message;
use crate::agent::plan::Plan;
use crate::agent::tool_calls::control_tools;
use crate::agent::tool_calls::images;
use crate::agent::tool_calls::tool_executor::CallRecord;
use crate::prompt::EnvironmentSnapshot;

/// Argument name that marks a request to rank files; no other model request uses it, and it is not part of the
/// conversation.
pub(crate) const RANKING_ARGUMENT: &str = "rank";

/// Callee of the step that stores this state.
pub(crate) const STEP: &str = "earlier";

/// When the user asks for compaction, the conversation shrinks to at most one part in this many.
const ASKED_TO: u64 = 3;

/// Stands in for a reply that never came: some servers reject two consecutive user messages.
const NO_REPLY: &str = "[no reply]";

/// Stands in for the result of a call that the earlier run never made.
const NO_RESULT: &str = "The run ended before this call was made.";

/// A conversation so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PriorConversation {
    /// The messages, as the model last saw them.
    #[serde(default)]
    pub messages: Vec<Message>,
    /// The model's plan.
    #[serde(default)]
    pub plan: Plan,
    /// The sections that were opened.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opened: BTreeSet<String>,
    /// The environment in which the session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentSnapshot>,
    /// File contents known to the model.
    #[serde(default)]
    pub(crate) known: FileSnapshot,
    /// File changes already reported to the model.
    #[serde(default, rename = "told", skip_serializing_if = "FileSnapshot::is_empty")]
    pub(crate) reported: FileSnapshot,
    /// The compaction applied when it was carried over, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shorter: Option<CompactionSavings>,
}

/// Size of a conversation before and after compaction, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionSavings {
    /// Tokens before compaction.
    pub before: u64,
    /// Tokens after compaction.
    pub after: u64,
    /// Number of messages removed or shortened.
    pub items: u32,
}

impl PriorConversation {
    /// Rebuilds the state from the steps of a run. The error names the step that cannot be read.
    pub(crate) fn from_steps(steps: &[StepRow]) -> Result<Self, String> {
        let mut fold = PriorConversationBuilder::default();
        let main = Branch::main();
        for step in steps.iter().filter(|step| step.key.branch == main) {
            fold.take(step).map_err(|error| format!("{}: {error}", step.key))?;
        }
        Ok(fold.end())
    }

    /// Adds the sections and plans from the parts of a flow. Their messages are not carried over.
    pub(crate) fn with_parts(self, steps: &[StepRow]) -> Self {
        let main = Branch::main();
        let of_part = |step: &&StepRow| {
            step.kind == StepKind::Tool && step.key.branch != main && !is_handed_over(&step.key.branch)
        };
        let mut parts: Vec<&StepRow> = steps.iter().filter(of_part).collect();
        parts.sort_by_key(|step| step.at_ms);
        let mut fold = PriorConversationBuilder { earlier: self, ..PriorConversationBuilder::default() };
        parts.into_iter().for_each(|step| fold.aside(step));
        fold.earlier
    }

    /// The state the run itself inherited, before any of its own steps.
    pub(crate) fn before(steps: &[StepRow]) -> Result<Self, String> {
        let main = Branch::main();
        let taken = |step: &&StepRow| step.key.branch == main && step.kind == StepKind::Environment;
        let mut fold = PriorConversationBuilder::default();
        for step in steps.iter().filter(taken) {
            fold.take(step).map_err(|error| format!("{}: {error}", step.key))?;
        }
        Ok(fold.end())
    }

    /// Appends only a request and its answer, for a run whose work was done on other branches.
    pub(crate) fn with_exchange(mut self, request: &str, answer: &str) -> Self {
        let answer = if answer.trim().is_empty() { NO_REPLY } else { answer };
        self.messages.push(Message::user(request.to_owned()));
        let (text, tool_calls) = (answer.to_owned(), Vec::new());
        self.messages.push(Message::Assistant { text, reasoning: None, tool_calls });
        self
    }

    /// The compaction event, if the conversation was shortened when it was carried over.
    pub(crate) fn compaction(&self, timestamp: i64) -> Option<Event> {
        let CompactionSavings { before, after, items } = self.shorter?;
        let (tokens_before, tokens_after, items_removed) = (before, after, items);
        Some(Event::Compaction { timestamp, turn_index: 0, tokens_before, tokens_after, items_removed })
    }

    /// Compacts the conversation by rule on the user's request; `None` if too little could be saved.
    pub(crate) fn shortened(&self, limits: &Limits) -> Option<(Self, CompactionSavings)> {
        let estimator = Estimator::default();
        let count = |message: &Message| estimator.count(size(message));
        let tokens: u64 = self.messages.iter().map(count).sum();
        let target = (tokens / ASKED_TO).min((limits.max_tokens as f64 * COMPACT_TO) as u64);
        let keep = CompactionRetention { first_user_messages: 1, request: None, recent_tokens: target / 2 };
        let compacted = compaction::compact(&self.messages, &keep, target, &count)?;
        let Compacted { messages, items_removed: items, tokens_before: before, tokens_after: after, .. } =
            compacted;
        let shorter = CompactionSavings { before, after, items };
        Some((Self { messages, shorter: Some(shorter), ..self.clone() }, shorter))
    }
}

/// Whether a step is a request of the conversation. Others ask the model to rank files or to summarise.
pub(crate) fn is_request(step: &StepRow) -> bool {
    step.kind == StepKind::Model
        && step.args.get(model_summary::ARGUMENT).is_none()
        && step.args.get(RANKING_ARGUMENT).is_none()
}

/// Whether a step is a request of the conversation that the model answered, which begins a turn.
pub(crate) fn is_reply(step: &StepRow) -> bool {
    let attempt = step.result.as_ref().and_then(|result| Attempt::deserialize(result).ok());
    is_request(step) && attempt.is_some_and(|attempt| matches!(attempt.result, AttemptResult::Reply(_)))
}

/// Whether a branch belongs to a subtask with its own prompt and plan.
fn is_handed_over(branch: &Branch) -> bool {
    branch.to_string().split('/').any(|part| part.starts_with("sub-"))
}

#[derive(Default)]
struct PriorConversationBuilder {
    earlier: PriorConversation,
    /// Results since the last reply; dropped if another request follows, because that request contains them.
    results: Vec<Message>,
    /// Calls of the last reply that have no result yet.
    open: VecDeque<ToolCall>,
    /// The plan as the user edited it before the run.
    edited: Option<Plan>,
}

impl PriorConversationBuilder {
    fn take(&mut self, step: &StepRow) -> Result<(), serde_json::Error> {
        let Some(result) = &step.result else { return Ok(()) };
        match (step.kind, step.callee.as_str()) {
            (StepKind::Environment, STEP) => {
                let earlier = PriorConversation::deserialize(result)?;
                // That compaction was reported by the earlier run.
                self.earlier = PriorConversation { shorter: None, ..earlier };
                if let Some(plan) = self.edited.take() {
                    self.earlier.plan = plan;
                }
            }
            (StepKind::Settings, _) => {
                if let Some(plan) = result.get("plan") {
                    self.earlier.plan = Plan::deserialize(plan)?;
                    self.edited = Some(self.earlier.plan.clone());
                }
            }
            (StepKind::Environment, "session") => {
                self.earlier.environment = Some(EnvironmentSnapshot::deserialize(result)?);
            }
            // Model requests outside the conversation.
            (StepKind::Model, _) if !is_request(step) => {}
            (StepKind::Model, _) => self.asked(&step.args, result)?,
            (StepKind::Tool, callee) => self.called(callee, &step.args, result),
            _ => {}
        }
        Ok(())
    }

    fn asked(&mut self, args: &Value, result: &Value) -> Result<(), serde_json::Error> {
        self.results.clear();
        self.open.clear();
        let messages = &mut self.earlier.messages;
        // A request that names the system prompt contains the entire conversation, as after a compaction.
        if args.get("system").is_some() {
            messages.clear();
        }
        let added = Vec::<Message>::deserialize(&args["messages"])?;
        messages.extend(added);
        let attempt = Attempt::deserialize(result)?;
        messages.extend(attempt.preface.map(Message::user));
        self.earlier.reported.extend(attempt.reported);
        if let AttemptResult::Reply(reply) = attempt.result {
            messages.push(to_message(&reply));
            self.open = reply.tool_calls.into();
        }
        Ok(())
    }

    /// Handles a call made in a part of the task.
    fn aside(&mut self, step: &StepRow) {
        let called = step.result.as_ref().and_then(|result| CallRecord::deserialize(result).ok());
        let Some(called) = called else { return };
        self.earlier.opened.extend(called.expansion.into_iter().flat_map(|expanded| expanded.opened));
        if step.callee == "plan_tasks" && called.output.ok {
            self.plan(step.args.as_str().unwrap_or_default());
        }
    }

    fn called(&mut self, callee: &str, args: &Value, result: &Value) {
        // Calls of the runtime have another shape, or come when no call of the model is open.
        let Ok(called) = CallRecord::deserialize(result) else { return };
        self.earlier.known.learn(&called.output);
        self.earlier.opened.extend(called.expansion.into_iter().flat_map(|expanded| expanded.opened));
        if callee == "plan_tasks" && called.output.ok {
            self.plan(args.as_str().unwrap_or_default());
        }
        if let Some(call) = self.open.pop_front() {
            let (content, ok) = (called.output.content, called.output.ok);
            let images = images(called.output.images);
            self.results.push(Message::Tool { call_id: call.id, name: call.name, content, ok, images });
        }
    }

    fn plan(&mut self, text: &str) {
        let definition =
            control_tools::definitions().iter().find(|definition| definition.name == "plan_tasks");
        let arguments = definition.and_then(|definition| arguments::parse(text, definition).ok());
        if let Some(arguments) = arguments {
            // The call was accepted when it was made; if it is rejected now, the previous plan stays.
            let _ = self.earlier.plan.call(arguments);
        }
    }

    fn end(mut self) -> PriorConversation {
        let messages = &mut self.earlier.messages;
        messages.append(&mut self.results);
        messages.extend(self.open.into_iter().map(|call| Message::Tool {
            call_id: call.id,
            name: call.name,
            content: NO_RESULT.to_owned(),
            ok: false,
            images: Vec::new(),
        }));
        if matches!(messages.last(), Some(Message::User { .. })) {
            let (text, tool_calls) = (NO_REPLY.to_owned(), Vec::new());
            messages.push(Message::Assistant { text, reasoning: None, tool_calls });
        }
        self.earlier
    }
}
