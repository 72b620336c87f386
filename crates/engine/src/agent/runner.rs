//! The task runner: performs the actions of the turn machine and feeds the results back. `request.rs` sends
//! model requests, `tool_calls.rs` executes tool calls, and `context.rs` keeps the conversation within its limit.
//! Each of these is a journal step.

use fusee_journal::event::{ErrorCode, ErrorDetail, Event, Role};
use fusee_journal::{DurableRun, RunAborted, StepResult};
use fusee_model::{CancellationToken, Message, ToolSpec, Usage};
use serde::Serialize;
use serde_json::Value;

use super::facts::Facts;
use super::interrupt::InterruptibleTurn;
use super::machine::{Action, EMPTY_REPLY, EMPTY_TOO_EARLY, LimitUsage, TaskEnd, TurnEvent, TurnMachine};
use super::plan::Plan;
use super::task::{AgentTask, FinishedTask, TaskOutcome};
use super::task_context::TaskContext;
use crate::agent::completion::answer_check::AnswerJudgement;
use crate::agent::completion::verification::VerificationResult;
use crate::agent::conversation::context_usage::ContextUsage;
use crate::agent::conversation::external_changes::FileSnapshot;
use crate::agent::conversation::sectioned_prompt::RenderedPrompt;
use crate::agent::flow::{self, Feedback, FlowState, HistoryWindow, Phases};
use crate::agent::limits::policy_change::RunPolicy;
use crate::agent::model_request::attempt::ServerLoading;
use crate::agent::model_request::grammar_constraints::WorkspaceFile;
use crate::agent::tool_calls::read_cache::SentReads;
use crate::agent::tool_calls::subtask_tool;
use crate::approval::rules::ApprovalRules;
use crate::task_system::ResourceMetrics;

/// A running task.
pub(crate) struct TaskRunner<'t> {
    pub(crate) task: &'t AgentTask,
    pub(crate) conversation: HistoryWindow,
    pub(crate) conduct: FlowState,
    /// The current phase, if the task has phases.
    pub(crate) phases: Option<Phases>,
    /// The phase text in the system prompt.
    pub(crate) phase_shown: Option<String>,
    /// The prompt, if it has sections that open.
    pub(crate) shown: Option<RenderedPrompt<'t>>,
    pub(crate) turns: TurnMachine,
    pub(crate) facts: Facts,
    pub(crate) plan: Plan,
    pub(crate) occupancy: ContextUsage,
    /// Working time: the sum of the step durations, so that a resumed run counts the same.
    pub(crate) active_ms: u64,
    /// The part of the working time spent on model requests.
    pub(crate) model_ms: u64,
    /// Largest context size so far.
    pub(crate) peak_context_tokens: u64,
    started_ms: i64,
    pub(crate) last_ms: i64,
    pub(crate) known: FileSnapshot,
    /// File changes already reported to the model.
    pub(crate) told: FileSnapshot,
    /// Number of messages contained in earlier requests.
    pub(crate) sent: usize,
    pub(crate) turn: CurrentTurn,
    pub(crate) evidence: VerificationResult,
    /// File texts the model has been sent.
    pub(crate) rereads: SentReads,
    /// The files the task is about, if the runtime searched for them.
    pub(crate) targets: Vec<String>,
    /// Number of edits taken from answers so far.
    pub(crate) answer_edits: u32,
    pub(crate) context_asked: bool,
    /// Files present at the start, if the grammar restricts paths to them.
    pub(crate) files: Option<Vec<WorkspaceFile>>,
    /// Progress of the phase, and the turn at which it was first reached.
    pub(crate) standing: (u64, u32),
    /// Whether the model has been prompted to implement the change.
    pub(crate) led: bool,
    /// Set while the server is loading its model.
    pub(crate) loading: Option<ServerLoading>,
    /// The limits and approval policy in force.
    pub(crate) terms: RunPolicy,
    /// The user's approval rules, from before the run and added during it.
    pub(crate) rules: ApprovalRules,
    /// Context size of the model, if its server reports it.
    pub(crate) context_tokens: Option<u64>,
    /// Whether an answer has already been rejected.
    pub(crate) answer_judged: bool,
    /// Whether the answer makes the run fail.
    pub(crate) answer_objects: bool,
    /// Cancellation of the current turn; `None` while the user is asked how to proceed.
    pub(crate) under_way: Option<InterruptibleTurn>,
    /// Number of interrupted turns.
    pub(crate) stops: u32,
}

/// State of the current turn.
#[derive(Default)]
pub(crate) struct CurrentTurn {
    pub(crate) began_ms: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) calls: u32,
    pub(crate) open: bool,
}

impl<'t> TaskRunner<'t> {
    pub(crate) fn new(task: &'t AgentTask, started_ms: i64) -> Self {
        let session = &task.session;
        let conduct = FlowState::new(&task.rules);
        let shown = task.disclosure.as_ref().map(RenderedPrompt::new);
        let phases = task.rules.phases.clone();
        let phase_shown = phases.as_ref().and_then(Phases::system).map(str::to_owned);
        let (system, tools) = frame(task, &conduct, shown.as_ref(), phase_shown.as_deref());
        let mut conversation = HistoryWindow::new(session.model.dialect(), system, tools, task.rules.history);
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
            turns: TurnMachine::new(task.rules.bound(terms.limits)),
            targets: Vec::new(),
            answer_edits: 0,
            facts: Facts::knowing(task.rules.already_read.clone()),
            plan: task.earlier.plan.clone(),
            occupancy: ContextUsage::default(),
            active_ms: task.rules.used_ms,
            model_ms: 0,
            peak_context_tokens: 0,
            started_ms,
            last_ms: started_ms,
            known: task.earlier.known.clone(),
            told: task.earlier.told.clone(),
            sent: 0,
            turn: CurrentTurn::default(),
            evidence: VerificationResult::default(),
            rereads: SentReads::default(),
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

    pub(crate) fn session(&self) -> &'t TaskContext {
        &self.task.session
    }

    pub(crate) fn engine(&self) -> &'t dyn DurableRun {
        &*self.task.engine
    }

    /// Cancellation token of the current work: triggered by a stop of the turn or of the task.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        self.under_way.as_ref().map_or(&self.task.cancel, |turns| &turns.token)
    }

    /// Time from the start to the last step.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.last_ms - self.started_ms).unwrap_or_default()
    }

    pub(crate) fn emit(&self, event: Event) {
        self.task.engine.emit(&self.task.branch, event);
    }

    /// Runs the loop until the task ends.
    pub(crate) async fn drive(&mut self) -> Result<TaskEnd, RunAborted> {
        if let Some(message) = self.task.obstacle.clone() {
            let (code, reason) = (ErrorCode::InitFailed, "configuration_error".to_owned());
            return Ok(TaskEnd::Failed { error: ErrorDetail { code, reason, message }, unreachable: false });
        }
        self.list_files().await?;
        self.run_preload().await?;
        self.advance_stage(true);
        self.start_phase();
        self.nudge().await?;
        let mut input = TurnEvent::Ready;
        loop {
            self.apply_policy_changes();
            self.probe_context_size().await?;
            let gauge = self.limit_usage();
            let mut warnings = Vec::new();
            let effect = self.turns.step(input, gauge, &mut warnings);
            for warning in warnings {
                self.emit(warning);
            }
            input = match effect {
                Action::Ask { attempt } => self.ask(attempt, gauge).await?,
                Action::Rest { after_ms } => self.rest(after_ms).await?,
                Action::Call(planned) => {
                    let answered = self.make_calls(planned).await?;
                    self.complete_turn();
                    match self.settled(&answered).await? {
                        Some(ending) => return Ok(ending),
                        None => {
                            if answered.finished.is_none() && !answered.aborted {
                                self.nudge().await?;
                                self.phase_after_turn().await?;
                            }
                            TurnEvent::Answered(answered)
                        }
                    }
                }
                Action::Say(hint) => {
                    self.complete_turn();
                    self.facts.fed_back("asked_again");
                    self.facts.asked_again += 1;
                    let early = hint == EMPTY_REPLY && !self.can_finish();
                    self.say(if early { EMPTY_TOO_EARLY } else { hint });
                    self.phase_after_turn().await?;
                    TurnEvent::Ready
                }
                Action::Compact => self.compact(gauge).await?,
                // A reply without calls would end the task; whether it may depends on the recorded facts.
                Action::End(TaskEnd::Completed { answer }) => {
                    let spoken = self.turn.open;
                    if spoken {
                        self.complete_turn();
                    }
                    let held = if spoken { self.held_back().await? } else { None };
                    match held {
                        Some(feedback) if self.task.rules.one_answer => {
                            return Ok(self.reject_final(feedback));
                        }
                        Some(Feedback { text, sort }) => {
                            self.turns.held_back(self.facts.state());
                            self.facts.fed_back(sort);
                            self.facts.asked_again += 1;
                            self.say(&text);
                            self.phase_after_turn().await?;
                            TurnEvent::Ready
                        }
                        None => match self.judge_answer(answer).await? {
                            AnswerJudgement::Ends(ending) => return Ok(ending),
                            AnswerJudgement::Again => TurnEvent::Ready,
                        },
                    }
                }
                Action::End(TaskEnd::Cancelled) if self.resume_after_stop().await? => TurnEvent::GoOn,
                Action::End(ending) => return Ok(ending),
            };
        }
    }

    /// Applies the policy changes of a resume that take effect at the current position.
    pub(crate) fn apply_policy_changes(&mut self) {
        if self.session().amendments.is_empty() {
            return;
        }
        let next = self.engine().position(&self.task.branch);
        self.terms = self.session().terms_at(&self.task.branch, next);
        self.turns.set_limits(self.limits());
    }

    /// Rebuilds the system prompt and the tools after the prompt changed.
    pub(crate) fn set_frame(&mut self) {
        let (system, tools) =
            frame(self.task, &self.conduct, self.shown.as_ref(), self.phase_shown.as_deref());
        self.conversation.set_frame(system, tools);
        self.sent = 0;
    }

    /// The facts and the plan, as input for the flow rules.
    pub(crate) fn progress(&self) -> flow::Progress<'_> {
        flow::Progress { facts: &self.facts, plan: &self.plan }
    }

    /// Advances to the next stage or state if the facts allow it.
    pub(crate) fn advance_stage(&mut self, first: bool) {
        let turn_index = self.turns.turn_index();
        let known = flow::Progress { facts: &self.facts, plan: &self.plan };
        let begins = first.then(|| self.conduct.first_state()).flatten();
        let events: Vec<Event> = begins.into_iter().chain(self.conduct.moved(known, turn_index)).collect();
        for event in events {
            self.emit(event);
        }
        let standing = self.conduct.standing(self.progress());
        if standing != self.standing.0 {
            self.standing = (standing, turn_index);
        }
    }

    /// Collects the results of a task that ended.
    pub(crate) fn worked(self, outcome: TaskOutcome) -> FinishedTask {
        let lacks = self.lacks();
        let opened = self.shown.as_ref().map(RenderedPrompt::opened).unwrap_or_default();
        let phases = self.phases.map(|phases| phases.carried_over(&self.facts));
        FinishedTask {
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

    pub(crate) fn limit_usage(&self) -> LimitUsage {
        LimitUsage { tokens: self.occupancy.now(self.conversation.encoded_len()), active_ms: self.active_ms }
    }

    /// Records the duration and end of a step.
    pub(crate) fn passed<T>(&mut self, recorded: &StepResult<T>) {
        self.active_ms += recorded.duration_ms;
        self.last_ms = self.last_ms.max(recorded.at_ms);
    }

    /// Remaining working time, if limited.
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

/// Builds the system prompt and the tools, in the order the model sees them.
fn frame(
    task: &AgentTask,
    conduct: &FlowState,
    shown: Option<&RenderedPrompt<'_>>,
    phase: Option<&str>,
) -> (String, Vec<ToolSpec>) {
    let mut tools = task.session.specs(|definition| conduct.offers(definition));
    tools.extend(task.spawn.iter().map(|_| subtask_tool::spec()));
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
    // Our own types have string keys and finite numbers; nothing else can make this fail.
    serde_json::to_value(value).unwrap_or_default()
}
