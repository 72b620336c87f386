//! What an earlier run leaves to one that continues it: the conversation, the plan, what was opened and seen.
//!
//! It is put together from that run's journal alone, whatever version wrote it, and is a step of the new run
//! ([`crate::run`]), which from then on needs the earlier one no more.

use std::collections::{BTreeSet, VecDeque};

use fusee_journal::event::Event;
use fusee_journal::{Branch, Kind, StepRow};
use fusee_model::tokens::Estimator;
use fusee_model::{Message, ToolCall};
use fusee_tools::arguments;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attempt::{Attempt, AttemptResult};
use super::calling::Called;
use super::calls::images;
use super::compaction::{self, Compacted, Keep};
use super::context::COMPACT_TO;
use super::control;
use super::limits::Limits;
use super::meanwhile::Known;
use super::occupancy::size;
use super::plan::Plan;
use super::request::said;
use super::summarising;
use crate::memory;
use crate::prompt::Environment;

/// The step of a run that holds this.
pub(crate) const STEP: &str = "earlier";

/// A conversation that a person wants shorter becomes at most this part of what it was.
const ASKED_TO: u64 = 3;

/// Stands for a reply that never came: some servers refuse two messages of the user in a row.
const NO_REPLY: &str = "[no reply]";

/// Answers a call that the earlier run never answered.
const NO_RESULT: &str = "The run ended before this call was made.";

/// A conversation so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Earlier {
    /// What was said, as the model last saw it.
    #[serde(default)]
    pub messages: Vec<Message>,
    /// The model's plan.
    #[serde(default)]
    pub plan: Plan,
    /// The sections that were opened.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opened: BTreeSet<String>,
    /// The world the session began in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Files as the model knows them.
    #[serde(default)]
    pub(crate) known: Known,
    /// What it was told of files that changed meanwhile.
    #[serde(default, skip_serializing_if = "Known::is_empty")]
    pub(crate) told: Known,
    /// How much shorter it was made on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shorter: Option<Shorter>,
}

/// A conversation before and after it is shortened, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shorter {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
    /// Messages that are gone or shorter.
    pub items: u32,
}

impl Earlier {
    /// Puts it together from the steps of a run. A step that cannot be read is named.
    pub(crate) fn of(steps: &[StepRow]) -> Result<Self, String> {
        let mut fold = Fold::default();
        let main = Branch::main();
        for step in steps.iter().filter(|step| step.key.branch == main) {
            fold.take(step).map_err(|error| format!("{}: {error}", step.key))?;
        }
        Ok(fold.end())
    }

    /// The same with what the parts of a flow leave to the session: what they opened and planned. Their words are
    /// their own.
    pub(crate) fn with_parts(self, steps: &[StepRow]) -> Self {
        let main = Branch::main();
        let of_part = |step: &&StepRow| {
            step.kind == Kind::Tool && step.key.branch != main && !is_handed_over(&step.key.branch)
        };
        let mut parts: Vec<&StepRow> = steps.iter().filter(of_part).collect();
        parts.sort_by_key(|step| step.at_ms);
        let mut fold = Fold { earlier: self, ..Fold::default() };
        parts.into_iter().for_each(|step| fold.aside(step));
        fold.earlier
    }

    /// What the run itself took over, before anything of its own.
    pub(crate) fn before(steps: &[StepRow]) -> Result<Self, String> {
        let main = Branch::main();
        let taken = |step: &&StepRow| step.key.branch == main && step.kind == Kind::Environment;
        let mut fold = Fold::default();
        for step in steps.iter().filter(taken) {
            fold.take(step).map_err(|error| format!("{}: {error}", step.key))?;
        }
        Ok(fold.end())
    }

    /// The conversation with nothing but a request and its answer added: what is left of a run whose work was done on
    /// other branches.
    pub(crate) fn spoken(mut self, request: &str, answer: &str) -> Self {
        let answer = if answer.trim().is_empty() { NO_REPLY } else { answer };
        self.messages.push(Message::User { text: request.to_owned() });
        let (text, tool_calls) = (answer.to_owned(), Vec::new());
        self.messages.push(Message::Assistant { text, reasoning: None, tool_calls });
        self
    }

    /// What readers are told if it was shortened on the way.
    pub(crate) fn compaction(&self, timestamp: i64) -> Option<Event> {
        let Shorter { before, after, items } = self.shorter?;
        let (tokens_before, tokens_after, items_removed) = (before, after, items);
        Some(Event::Compaction { timestamp, turn_index: 0, tokens_before, tokens_after, items_removed })
    }

    /// The same made shorter by rule, because a person wants it so; nothing where too little could be saved.
    pub(crate) fn shortened(&self, limits: &Limits) -> Option<(Self, Shorter)> {
        let estimator = Estimator::default();
        let count = |message: &Message| estimator.count(size(message));
        let tokens: u64 = self.messages.iter().map(count).sum();
        let target = (tokens / ASKED_TO).min((limits.max_tokens as f64 * COMPACT_TO) as u64);
        let keep = Keep { first_user_messages: 1, request: None, recent_tokens: target / 2 };
        let compacted = compaction::compact(&self.messages, &keep, target, &count)?;
        let Compacted { messages, items_removed: items, tokens_before: before, tokens_after: after, .. } =
            compacted;
        let shorter = Shorter { before, after, items };
        Some((Self { messages, shorter: Some(shorter), ..self.clone() }, shorter))
    }
}

/// Whether a branch is that of a task with a prompt and a plan of its own.
fn is_handed_over(branch: &Branch) -> bool {
    branch.to_string().split('/').any(|part| part.starts_with("sub-"))
}

#[derive(Default)]
struct Fold {
    earlier: Earlier,
    /// Results since the last reply: the next request, if there is one, tells them itself.
    results: Vec<Message>,
    /// Calls of the last reply that have no result yet.
    open: VecDeque<ToolCall>,
    /// The plan as a person left it before the run.
    edited: Option<Plan>,
}

impl Fold {
    fn take(&mut self, step: &StepRow) -> Result<(), serde_json::Error> {
        let Some(result) = &step.result else { return Ok(()) };
        match (step.kind, step.callee.as_str()) {
            (Kind::Environment, STEP) => {
                let earlier = Earlier::deserialize(result)?;
                // That it was shortened then was told then.
                self.earlier = Earlier { shorter: None, ..earlier };
                if let Some(plan) = self.edited.take() {
                    self.earlier.plan = plan;
                }
            }
            (Kind::Settings, _) => {
                if let Some(plan) = result.get("plan") {
                    self.earlier.plan = Plan::deserialize(plan)?;
                    self.edited = Some(self.earlier.plan.clone());
                }
            }
            (Kind::Environment, "session") => {
                self.earlier.environment = Some(Environment::deserialize(result)?);
            }
            // Asked beside the conversation, and no part of it.
            (Kind::Model, _) if step.args.get(summarising::ARGUMENT).is_some() => {}
            (Kind::Model, _) if step.args.get(memory::RANKING).is_some() => {}
            (Kind::Model, _) => self.asked(&step.args, result)?,
            (Kind::Tool, callee) => self.called(callee, &step.args, result),
            _ => {}
        }
        Ok(())
    }

    fn asked(&mut self, args: &Value, result: &Value) -> Result<(), serde_json::Error> {
        self.results.clear();
        self.open.clear();
        let messages = &mut self.earlier.messages;
        // A request that names the system prompt tells the whole conversation, as after a compaction.
        if args.get("system").is_some() {
            messages.clear();
        }
        let added = Vec::<Message>::deserialize(&args["messages"])?;
        messages.extend(added);
        let attempt = Attempt::deserialize(result)?;
        messages.extend(attempt.preface.map(|text| Message::User { text }));
        self.earlier.told.extend(attempt.told);
        if let AttemptResult::Reply(reply) = attempt.result {
            messages.push(said(&reply));
            self.open = reply.tool_calls.into();
        }
        Ok(())
    }

    /// A call made in a part of the task.
    fn aside(&mut self, step: &StepRow) {
        let called = step.result.as_ref().and_then(|result| Called::deserialize(result).ok());
        let Some(called) = called else { return };
        self.earlier.opened.extend(called.expansion.into_iter().flat_map(|expanded| expanded.opened));
        if step.callee == "plan_tasks" && called.output.ok {
            self.plan(step.args.as_str().unwrap_or_default());
        }
    }

    fn called(&mut self, callee: &str, args: &Value, result: &Value) {
        // What the runtime ran on its own account has another shape, or stands where no call is open.
        let Ok(called) = Called::deserialize(result) else { return };
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
        let definition = control::definitions().iter().find(|definition| definition.name == "plan_tasks");
        let arguments = definition.and_then(|definition| arguments::parse(text, definition).ok());
        if let Some(arguments) = arguments {
            // It was accepted then; should it not be now, the plan before it stands.
            let _ = self.earlier.plan.call(arguments);
        }
    }

    fn end(mut self) -> Earlier {
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
