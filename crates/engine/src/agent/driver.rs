//! Does what the turn machine says: sends requests, waits, has calls made, compacts. Each is a step of the
//! journal, and what comes back is told to the machine.

use std::time::Duration;

use fusee_journal::event::{ErrorCode, Event, Role, TaskError};
use fusee_journal::{Call, Engine, Kind, Recorded, Stop};
use fusee_model::{Message, Reply, ToolSpec};
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::Judged;
use super::attempt::{Attempt, AttemptResult, send};
use super::compaction::{self, Keep};
use super::course::Evidence;
use super::disclosure::Shown;
use super::facts::Facts;
use super::limits::Limits;
use super::meanwhile::{Known, preface};
use super::occupancy::{Occupancy, size};
use super::plan::Plan;
use super::rereads::Rereads;
use super::session::Session;
use super::spawn;
use super::task::{AgentTask, TaskOutcome, Worked};
use super::terms::Terms;
use super::turns::{Effect, Ending, Gauge, Input, Turns};
use crate::approval::rules::Rules;
use crate::flow::{self, Conduct, Feedback, Phases, Sending};

/// Below this fill a server's context size cannot matter, so it is not asked for: short tasks start faster.
const ASK_CONTEXT_FROM: u64 = 3_000;

/// The share of the limit that a compaction aims at.
pub(crate) const COMPACT_TO: f64 = 0.4;

/// The share of the limit that the newest turns may keep word for word.
const KEEP_RECENT: f64 = 0.2;

/// One task under way.
pub(crate) struct Driver<'t> {
    pub(crate) task: &'t AgentTask,
    pub(crate) conversation: Sending,
    pub(crate) conduct: Conduct,
    /// Where it stands, where there are phases.
    pub(crate) phases: Option<Phases>,
    /// What the system prompt says of the phase.
    pub(crate) phase_shown: Option<String>,
    /// The prompt, if it has sections that open.
    pub(crate) shown: Option<Shown<'t>>,
    pub(crate) turns: Turns,
    pub(crate) facts: Facts,
    pub(crate) plan: Plan,
    pub(crate) occupancy: Occupancy,
    /// Working time: the sum of what the steps took, so that a resumed run counts as it would have.
    pub(crate) active_ms: u64,
    started_ms: i64,
    last_ms: i64,
    pub(crate) known: Known,
    /// Messages that earlier requests held.
    sent: usize,
    turn: Turn,
    pub(crate) evidence: Evidence,
    /// Texts of files that the model was sent.
    pub(crate) rereads: Rereads,
    /// The files that the task is about, where the runtime looked for them.
    pub(crate) targets: Vec<String>,
    /// Edits taken from answers so far.
    pub(crate) answer_edits: u32,
    context_asked: bool,
    /// What holds now.
    pub(crate) terms: Terms,
    /// What the user decided before the run and in it.
    pub(crate) rules: Rules,
    /// The size of the model's context, where its server tells it.
    context_tokens: Option<u64>,
    /// Whether an answer was found wrong already.
    pub(crate) answer_judged: bool,
    /// Whether the answer is one that makes the run fail.
    pub(crate) answer_objects: bool,
}

/// The turn under way.
#[derive(Default)]
struct Turn {
    began_ms: u64,
    output_tokens: u64,
    calls: u32,
    open: bool,
}

impl<'t> Driver<'t> {
    pub(crate) fn new(task: &'t AgentTask, started_ms: i64) -> Self {
        let session = &task.session;
        let conduct = Conduct::new(&task.rules);
        let shown = task.disclosure.as_ref().map(Shown::new);
        let phases = task.rules.phases.clone();
        let phase_shown = phases.as_ref().and_then(Phases::system).map(str::to_owned);
        let (system, tools) = frame(task, &conduct, shown.as_ref(), phase_shown.as_deref());
        let mut conversation = Sending::new(session.model.dialect(), system, tools, task.rules.history);
        let terms = session.terms_at(&task.branch, 0);
        for message in &task.input {
            conversation.push(message.clone());
        }
        Self {
            task,
            conversation,
            shown,
            conduct,
            phases,
            phase_shown,
            turns: Turns::new(task.rules.bound(terms.limits)),
            targets: Vec::new(),
            answer_edits: 0,
            facts: Facts::knowing(task.rules.already_read.clone()),
            plan: task.earlier.plan.clone(),
            occupancy: Occupancy::default(),
            active_ms: task.rules.used_ms,
            started_ms,
            last_ms: started_ms,
            known: task.earlier.known.clone(),
            sent: 0,
            turn: Turn::default(),
            evidence: Evidence::default(),
            rereads: Rereads::default(),
            context_asked: false,
            terms,
            rules: session.gatekeeper.rules.clone(),
            context_tokens: None,
            answer_judged: false,
            answer_objects: false,
        }
    }

    pub(crate) fn session(&self) -> &'t Session {
        &self.task.session
    }

    pub(crate) fn engine(&self) -> &'t dyn Engine {
        &*self.task.engine
    }

    /// From the start to the last step.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.last_ms - self.started_ms).unwrap_or_default()
    }

    pub(crate) fn emit(&self, event: Event) {
        self.task.engine.emit(&self.task.branch, event);
    }

    /// Runs the loop to its end.
    pub(crate) async fn drive(&mut self) -> Result<Ending, Stop> {
        if let Some(message) = self.task.obstacle.clone() {
            let (code, reason) = (ErrorCode::InitFailed, "configuration_error".to_owned());
            return Ok(Ending::Failed { error: TaskError { code, reason, message }, unreachable: false });
        }
        self.prelude().await?;
        self.move_on(true);
        self.phase_begins();
        let mut input = Input::Ready;
        loop {
            self.take_terms();
            self.learn_context().await?;
            let gauge = self.gauge();
            let mut warnings = Vec::new();
            let effect = self.turns.step(input, gauge, &mut warnings);
            for warning in warnings {
                self.emit(warning);
            }
            input = match effect {
                Effect::Ask { attempt } => self.ask(attempt, gauge).await?,
                Effect::Rest { after_ms } => self.rest(after_ms).await?,
                Effect::Call(planned) => {
                    let answered = self.make_calls(planned).await?;
                    self.complete_turn();
                    match self.settled(&answered).await? {
                        Some(ending) => return Ok(ending),
                        None => {
                            if answered.finished.is_none() && !answered.aborted {
                                self.phase_after_turn().await?;
                            }
                            Input::Answered(answered)
                        }
                    }
                }
                Effect::Say(hint) => {
                    self.complete_turn();
                    self.facts.fed_back("asked_again");
                    self.facts.asked_again += 1;
                    self.say(hint);
                    self.phase_after_turn().await?;
                    Input::Ready
                }
                Effect::Compact => self.compact(gauge),
                // A reply without calls would end the task; whether it may is decided by what was done.
                Effect::End(Ending::Completed { answer }) => {
                    let spoken = self.turn.open;
                    if spoken {
                        self.complete_turn();
                    }
                    let held = if spoken { self.held_back().await? } else { None };
                    match held {
                        Some(feedback) if self.task.rules.one_answer => return Ok(self.given_up(feedback)),
                        Some(Feedback { text, sort }) => {
                            self.facts.fed_back(sort);
                            self.facts.asked_again += 1;
                            self.say(&text);
                            self.phase_after_turn().await?;
                            Input::Ready
                        }
                        None => match self.judge_answer(answer).await? {
                            Judged::Ends(ending) => return Ok(ending),
                            Judged::Again => Input::Ready,
                        },
                    }
                }
                Effect::End(ending) => return Ok(ending),
            };
        }
    }

    /// Takes what a resume changed, where it changed it.
    pub(crate) fn take_terms(&mut self) {
        if self.session().amendments.is_empty() {
            return;
        }
        let next = self.engine().position(&self.task.branch);
        self.terms = self.session().terms_at(&self.task.branch, next);
        self.turns.set_limits(self.limits());
    }

    /// The limits, none beyond what the model's server can take.
    fn limits(&self) -> Limits {
        Limits { max_tokens: self.max_tokens(), ..self.task.rules.bound(self.terms.limits) }
    }

    fn max_tokens(&self) -> u64 {
        self.terms.limits.max_tokens.min(self.context_tokens.unwrap_or(u64::MAX))
    }

    /// Puts system prompt and tools anew before the conversation: the prompt shows more than before.
    pub(crate) fn reframe(&mut self) {
        let (system, tools) =
            frame(self.task, &self.conduct, self.shown.as_ref(), self.phase_shown.as_deref());
        self.conversation.reframe(system, tools);
        self.sent = 0;
    }

    /// About how many bytes more the context can hold.
    pub(crate) fn room_bytes(&self) -> usize {
        let left = self.max_tokens().saturating_sub(self.gauge().tokens);
        let per_token = 1000.0 / self.occupancy.estimate(1000).max(1) as f64;
        (left as f64 * per_token) as usize
    }

    /// A window on the conversation that moved is a compaction to whoever reads along.
    fn tell_moves(&mut self, gauge: Gauge) {
        let moves = self.conversation.moved();
        if moves > 0 {
            self.occupancy.rewritten();
            self.emit(Event::Compaction {
                timestamp: self.last_ms,
                turn_index: self.turns.turn_index(),
                tokens_before: gauge.tokens,
                tokens_after: self.gauge().tokens,
                items_removed: moves,
            });
        }
    }

    /// What is known to those who decide.
    pub(crate) fn known_facts(&self) -> flow::Known<'_> {
        flow::Known { facts: &self.facts, plan: &self.plan }
    }

    /// Moves on to the next part of the work if what was done allows it.
    pub(crate) fn move_on(&mut self, first: bool) {
        let turn_index = self.turns.turn_index();
        let known = flow::Known { facts: &self.facts, plan: &self.plan };
        let begins = first.then(|| self.conduct.first_state()).flatten();
        let events: Vec<Event> = begins.into_iter().chain(self.conduct.moved(known, turn_index)).collect();
        for event in events {
            self.emit(event);
        }
    }

    /// What is left of a task that ended.
    pub(crate) fn worked(self, outcome: TaskOutcome) -> Worked {
        let lacks = self.conduct.lacks(self.known_facts());
        let phases = self.phases.map(|phases| phases.carried_over(&self.facts));
        Worked {
            phases,
            outcome,
            lacks,
            facts: self.facts,
            plan: self.plan,
            payload: self.conduct.into_payload(),
            active_ms: self.active_ms,
            last_ms: self.last_ms,
        }
    }

    fn gauge(&self) -> Gauge {
        Gauge { tokens: self.occupancy.now(self.conversation.encoded_len()), active_ms: self.active_ms }
    }

    /// Takes note of the time a step took and when it ended.
    pub(crate) fn passed(&mut self, recorded: &Recorded) {
        self.active_ms += recorded.duration_ms;
        self.last_ms = self.last_ms.max(recorded.at_ms);
    }

    /// Working time left, if there is a limit.
    pub(crate) fn left_ms(&self) -> Option<u64> {
        self.terms.limits.task_timeout_s.map(|limit| (limit * 1000).saturating_sub(self.active_ms))
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.emit(Event::Message { role: Role::User, text: text.to_owned() });
        self.conversation.push(Message::User { text: text.to_owned() });
    }

    async fn ask(&mut self, attempt: u32, gauge: Gauge) -> Result<Input, Stop> {
        let turn_index = self.turns.turn_index();
        if attempt == 1 {
            self.turn = Turn { began_ms: self.active_ms, open: true, ..Turn::default() };
            self.tell_moves(gauge);
            let turn_id = self.turn_id(turn_index);
            self.emit(Event::TurnStart { turn_index, turn_id, input_tokens: gauge.tokens });
        }
        let call = Call {
            branch: self.task.branch.clone(),
            kind: Kind::Model,
            callee: self.session().model.name().to_owned(),
            args: self.request_args(),
        };
        let (attempt_now, recorded) = self.attempt(call, attempt).await?;
        self.passed(&recorded);
        if recorded.replayed {
            self.session().model.replayed(match &attempt_now.result {
                AttemptResult::Reply(reply) => Ok(reply),
                AttemptResult::Error { error, .. } => Err(error),
                AttemptResult::OutOfTime(_) => return Ok(Input::OutOfTime),
            });
        }
        if let Some(preface) = attempt_now.preface {
            self.emit(Event::Message { role: Role::User, text: preface.clone() });
            // Sending it has put it into the conversation already.
            if recorded.replayed {
                self.conversation.push(Message::User { text: preface });
            }
        }
        self.sent = self.conversation.messages().len();
        Ok(match attempt_now.result {
            AttemptResult::Reply(reply) => self.reply(reply),
            AttemptResult::Error { error, after_ms } => {
                if let Some(after_ms) = after_ms {
                    self.emit(Event::Retry { attempt, after_ms, reason: error.message.clone() });
                }
                Input::Failed { error, after_ms }
            }
            AttemptResult::OutOfTime(_) => Input::OutOfTime,
        })
    }

    /// What the request holds beyond the last one: enough to tell two requests apart and to show how they
    /// differ, at the price of what the turn added.
    fn request_args(&self) -> Value {
        let added = &self.conversation.messages()[self.sent.min(self.conversation.messages().len())..];
        let mut args = json!({ "messages": added });
        if self.sent == 0 {
            let tools: Vec<_> = self.conversation.tools().iter().map(|tool| tool.name.as_str()).collect();
            args["system"] = self.conversation.system().into();
            args["tools"] = tools.into();
        }
        if let Some(tail) = self.phases.as_ref().and_then(Phases::tail) {
            args["tail"] = tail.into();
        }
        args
    }

    async fn attempt(&mut self, call: Call, attempt: u32) -> Result<(Attempt, Recorded), Stop> {
        let (task, session, engine) = (self.task, self.session(), self.engine());
        let left = self.left_ms();
        let options = self.options_now();
        let tail = self.phases.as_ref().and_then(Phases::tail).map(str::to_owned);
        let (conversation, known) = (&mut self.conversation, &self.known);
        let body = Box::new(move || {
            let send = async move {
                let preface = preface(session, known, conversation);
                let lent = tail.map(|words| conversation.lend(&words));
                let result = send(task, conversation.request(), &options, attempt, left).await;
                if let Some(lent) = lent {
                    conversation.take_back(lent);
                }
                to_value(&Attempt { preface, result })
            };
            Box::pin(send) as fusee_journal::BoxFuture<'_, Value>
        });
        let mut recorded = engine.step(call, body).await?;
        let value = std::mem::take(&mut recorded.value);
        let attempt = serde_json::from_value(value).map_err(|error| Stop::Unreadable(error.to_string()))?;
        Ok((attempt, recorded))
    }

    fn reply(&mut self, reply: Reply) -> Input {
        if let Some(reasoning) = reply.reasoning.as_ref().filter(|reasoning| !reasoning.text.is_empty()) {
            self.emit(Event::Reasoning { text: reasoning.text.clone() });
        }
        if !reply.text.is_empty() {
            self.emit(Event::Message { role: Role::Assistant, text: reply.text.clone() });
        }
        let before = self.conversation.encoded_len();
        self.conversation.push(said(&reply));
        self.sent = self.conversation.messages().len();
        let added = self.conversation.encoded_len().saturating_sub(before);
        self.occupancy.replied(before, added, reply.usage.as_ref());
        self.turn.output_tokens =
            reply.usage.map_or_else(|| self.occupancy.estimate(added), |usage| usage.output_tokens);
        self.turn.calls = u32::try_from(reply.tool_calls.len()).unwrap_or(u32::MAX);
        let mut usage = self.turns.usage;
        if let Some(reported) = &reply.usage {
            usage.input_tokens += reported.input_tokens;
            usage.output_tokens += reported.output_tokens;
        }
        self.task.progress.turned(self.turns.turn_index() + 1, usage);
        Input::Replied(reply)
    }

    fn complete_turn(&mut self) {
        self.turn.open = false;
        let turn_index = self.turns.turn_index() - 1;
        self.emit(Event::TurnComplete {
            turn_index,
            turn_id: self.turn_id(turn_index),
            output_tokens: self.turn.output_tokens,
            tool_calls: self.turn.calls,
            duration_ms: self.active_ms - self.turn.began_ms,
        });
    }

    fn turn_id(&self, turn_index: u32) -> String {
        format!("{}:{turn_index}", self.task.branch)
    }

    /// Waits before a retry, as a step: a run killed meanwhile does not ask earlier than it was told to.
    async fn rest(&mut self, after_ms: u64) -> Result<Input, Stop> {
        let call = Call {
            branch: self.task.branch.clone(),
            kind: Kind::Wait,
            callee: "retry".to_owned(),
            args: json!({ "after_ms": after_ms }),
        };
        let cancel = &self.task.cancel;
        // Past the task's own deadline there is nothing to wait for.
        let pause = Duration::from_millis(after_ms.min(self.left_ms().unwrap_or(u64::MAX)));
        let body = Box::new(move || {
            let wait = async move {
                let slept = cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
                json!({ "cancelled": slept.is_none() })
            };
            Box::pin(wait) as fusee_journal::BoxFuture<'_, Value>
        });
        let recorded = self.engine().step(call, body).await?;
        self.passed(&recorded);
        let cancelled = recorded.value["cancelled"] == Value::Bool(true);
        Ok(if cancelled { Input::Cancelled } else { Input::Rested })
    }

    fn compact(&mut self, gauge: Gauge) -> Input {
        let limit = self.max_tokens() as f64;
        let keep = Keep {
            first_user_messages: 1,
            request: self.task.input.last().map(Message::text),
            recent_tokens: (limit * KEEP_RECENT) as u64,
        };
        // System prompt and tools stay as they are: what is left of the target is for the messages.
        let messages: usize = self.conversation.messages().iter().map(size).sum();
        let overhead = self.occupancy.estimate(self.conversation.encoded_len().saturating_sub(messages));
        let target = ((limit * COMPACT_TO) as u64).saturating_sub(overhead);
        let occupancy = &self.occupancy;
        let count = |message: &Message| occupancy.estimate(size(message));
        let Some(compacted) = compaction::compact(self.conversation.messages(), &keep, target, &count) else {
            return Input::Compacted { smaller: false };
        };
        self.conversation.rewrite(compacted.messages);
        self.occupancy.rewritten();
        self.sent = 0;
        self.emit(Event::Compaction {
            timestamp: self.last_ms,
            turn_index: self.turns.turn_index(),
            tokens_before: gauge.tokens,
            tokens_after: self.gauge().tokens,
            items_removed: compacted.items_removed,
        });
        Input::Compacted { smaller: true }
    }

    /// Asks the server for the size of its context, once, when that can begin to matter.
    async fn learn_context(&mut self) -> Result<(), Stop> {
        if self.context_asked || self.gauge().tokens < ASK_CONTEXT_FROM {
            return Ok(());
        }
        self.context_asked = true;
        let model = &self.session().model;
        let call = Call {
            branch: self.task.branch.clone(),
            kind: Kind::Environment,
            callee: "context_tokens".to_owned(),
            args: Value::Null,
        };
        let body = Box::new(move || {
            Box::pin(async move { json!(model.context_tokens().await) })
                as fusee_journal::BoxFuture<'_, Value>
        });
        let recorded = self.engine().step(call, body).await?;
        if let Some(tokens) = recorded.value.as_u64().filter(|tokens| *tokens > 0) {
            self.context_tokens = Some(tokens);
            self.turns.set_limits(self.limits());
        }
        Ok(())
    }
}

/// System prompt and tools, in the order a model sees them.
fn frame(
    task: &AgentTask,
    conduct: &Conduct,
    shown: Option<&Shown<'_>>,
    phase: Option<&str>,
) -> (String, Vec<ToolSpec>) {
    let mut tools = task.session.specs(|definition| conduct.offers(definition));
    tools.extend(task.spawn.iter().map(|_| spawn::spec()));
    let mut system = task.system.clone();
    if let Some(shown) = shown {
        tools.retain(|tool| shown.hides(&tool.name).is_none());
        tools.extend(shown.specs());
        shown.text().clone_into(&mut system);
    }
    if let Some(phase) = phase {
        system.truncate(system.trim_end().len());
        system.push_str("\n\n");
        system.push_str(phase);
    }
    (system, tools)
}

/// The reply as it stands in the conversation. Servers refuse an assistant's message with nothing in it, and
/// some refuse two messages of the user in a row.
pub(crate) fn said(reply: &Reply) -> Message {
    let mut reply = reply.clone();
    if reply.text.trim().is_empty() && reply.tool_calls.is_empty() {
        reply.text = "[nothing]".to_owned();
    }
    reply.into_message()
}

pub(crate) fn to_value(value: &impl Serialize) -> Value {
    // Our own types have string keys and finite numbers, the only ways this could fail.
    serde_json::to_value(value).unwrap_or_default()
}
