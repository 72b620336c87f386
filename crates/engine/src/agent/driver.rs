//! Does what the turn machine says, and tells it what came back: `request.rs` asks the model, `calls.rs` has calls made,
//! `context.rs` keeps the conversation within its bounds. Each is a step of the journal.

use fusee_journal::event::{ErrorCode, Event, Role, TaskError};
use fusee_journal::{Engine, Recorded, Stop};
use fusee_model::{CancellationToken, Message, ToolSpec, Usage};
use serde::Serialize;
use serde_json::Value;

use super::answer::Judged;
use super::attempt::Loading;
use super::course::Evidence;
use super::disclosure::Shown;
use super::facts::Facts;
use super::meanwhile::Known;
use super::nameable::Listed;
use super::occupancy::Occupancy;
use super::plan::Plan;
use super::rereads::Rereads;
use super::session::Session;
use super::spawn;
use super::stopping::UnderWay;
use super::task::{AgentTask, TaskOutcome, Worked};
use super::terms::Terms;
use super::turns::{EMPTY_REPLY, EMPTY_TOO_EARLY, Effect, Ending, Gauge, Input, Turns};
use crate::approval::rules::Rules;
use crate::flow::{self, Conduct, Feedback, Phases, Sending};
use crate::task_system::ResourceMetrics;

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
    /// What of it was spent on the model.
    pub(crate) model_ms: u64,
    /// The most that the context held at once.
    pub(crate) peak_context_tokens: u64,
    started_ms: i64,
    pub(crate) last_ms: i64,
    pub(crate) known: Known,
    /// What the model was told of files that changed meanwhile.
    pub(crate) told: Known,
    /// Messages that earlier requests held.
    pub(crate) sent: usize,
    pub(crate) turn: Turn,
    pub(crate) evidence: Evidence,
    /// Texts of files that the model was sent.
    pub(crate) rereads: Rereads,
    /// The files that the task is about, where the runtime looked for them.
    pub(crate) targets: Vec<String>,
    /// Edits taken from answers so far.
    pub(crate) answer_edits: u32,
    pub(crate) context_asked: bool,
    /// The files there were at the start, where a reply's paths are held to them.
    pub(crate) files: Option<Vec<Listed>>,
    /// How far the phase has come, and the turn before which that was so first.
    pub(crate) standing: (u64, u32),
    /// Whether it was told what to change, as that opened.
    pub(crate) led: bool,
    /// Since when the server loads its model, if it does.
    pub(crate) loading: Option<Loading>,
    /// What holds now.
    pub(crate) terms: Terms,
    /// What the user decided before the run and in it.
    pub(crate) rules: Rules,
    /// The size of the model's context, where its server tells it.
    pub(crate) context_tokens: Option<u64>,
    /// Whether an answer was found wrong already.
    pub(crate) answer_judged: bool,
    /// Whether the answer is one that makes the run fail.
    pub(crate) answer_objects: bool,
    /// What a stop of the turn cancels; none while a person is asked what is to happen now.
    pub(crate) under_way: Option<UnderWay>,
    /// How often turns were stopped.
    pub(crate) stops: u32,
}

/// The turn under way.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) began_ms: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) calls: u32,
    pub(crate) open: bool,
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
            model_ms: 0,
            peak_context_tokens: 0,
            started_ms,
            last_ms: started_ms,
            known: task.earlier.known.clone(),
            told: task.earlier.told.clone(),
            sent: 0,
            turn: Turn::default(),
            evidence: Evidence::default(),
            rereads: Rereads::default(),
            context_asked: false,
            files: None,
            standing: (0, 0),
            led: false,
            loading: None,
            terms,
            rules: session.gatekeeper.rules.clone(),
            context_tokens: None,
            answer_judged: false,
            answer_objects: false,
            under_way: Some(session.turn_stop.begin(&task.cancel)),
            stops: 0,
        }
    }

    pub(crate) fn session(&self) -> &'t Session {
        &self.task.session
    }

    pub(crate) fn engine(&self) -> &'t dyn Engine {
        &*self.task.engine
    }

    /// What ends what is under way: a stop of the turn, or of the whole task.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        self.under_way.as_ref().map_or(&self.task.cancel, |turns| &turns.token)
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
        self.list_files().await?;
        self.prelude().await?;
        self.move_on(true);
        self.phase_begins();
        self.lead().await?;
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
                                self.lead().await?;
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
                    let early = hint == EMPTY_REPLY && !self.may_say_done();
                    self.say(if early { EMPTY_TOO_EARLY } else { hint });
                    self.phase_after_turn().await?;
                    Input::Ready
                }
                Effect::Compact => self.compact(gauge).await?,
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
                            self.turns.held_back(self.facts.state());
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
                Effect::End(Ending::Cancelled) if self.goes_on().await? => Input::GoOn,
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

    /// Puts system prompt and tools anew before the conversation: the prompt shows more than before.
    pub(crate) fn reframe(&mut self) {
        let (system, tools) =
            frame(self.task, &self.conduct, self.shown.as_ref(), self.phase_shown.as_deref());
        self.conversation.reframe(system, tools);
        self.sent = 0;
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
        let standing = self.conduct.standing(self.known_facts());
        if standing != self.standing.0 {
            self.standing = (standing, turn_index);
        }
    }

    /// What is left of a task that ended.
    pub(crate) fn worked(self, outcome: TaskOutcome) -> Worked {
        let lacks = self.lacks();
        let opened = self.shown.as_ref().map(Shown::opened).unwrap_or_default();
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
            opened,
        }
    }

    pub(crate) fn gauge(&self) -> Gauge {
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

    pub(crate) fn metrics(&self, turns: u32, usage: Usage) -> ResourceMetrics {
        ResourceMetrics {
            turns,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            peak_context_tokens: self.peak_context_tokens,
            active_ms: self.active_ms,
            model_ms: self.model_ms,
        }
    }

    fn complete_turn(&mut self) {
        self.turn.open = false;
        let turn_index = self.turns.turn_index() - 1;
        self.emit(Event::TurnComplete {
            turn_index,
            turn_id: self.turn_id(turn_index),
            output_tokens: self.turn.output_tokens,
            cached_tokens: self.turn.cached_tokens,
            tool_calls: self.turn.calls,
            duration_ms: self.active_ms - self.turn.began_ms,
        });
    }

    pub(crate) fn turn_id(&self, turn_index: u32) -> String {
        format!("{}:{turn_index}", self.task.branch)
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

pub(crate) fn to_value(value: &impl Serialize) -> Value {
    // Our own types have string keys and finite numbers, the only ways this could fail.
    serde_json::to_value(value).unwrap_or_default()
}
