//! The turn manager: executes the turns of a task. It performs the actions of the turn machine, reports their
//! results, and owns the parts of a running task. Model requests (`model_request.rs`), tool calls
//! (`tool_calls.rs`), compaction (`conversation.rs`) and the runtime's own actions (`completion`) are journal
//! steps.

use fusee_journal::RunAborted;
use fusee_journal::event::TaskStatus;

use super::completion::answer_handler::Conclusion;
use super::completion::runtime_actions::RuntimeActions;
use super::completion::verification::Verification;
use super::completion::{answer_check, implement_nudge};
use super::conversation::Conversation;
use super::conversation::known_files::KnownFiles;
use super::conversation::sectioned_prompt::RenderedPrompt;
use super::execution::Execution;
use super::flow::{Feedback, FlowState};
use super::interrupt;
use super::limits::Limits;
use super::machine::{
    Action, AnswerRules, EMPTY_REPLY, EMPTY_TOO_EARLY, LimitUsage, TaskEnd, TurnEvent, TurnMachine,
};
use super::model_request::attempt::Outage;
use super::model_request::grammar_constraints::OpenCalls;
use super::model_request::{self, TurnRequest};
use super::phase_tracker::PhaseTracker;
use super::task::{AgentTask, FinishedTask, PresetEnd, TaskOutcome};
use super::task_hooks;
use super::task_report;

/// Result of executing a turn.
pub(crate) enum TurnResult {
    /// The turn is complete, and the task goes on from here.
    Complete(TurnEvent),
    /// The task has ended.
    End(TaskEnd),
}

/// Executes the turns of a running [`AgentTask`], one reply of the model and the calls in it at a time, and holds
/// what they leave behind: the conversation, the files seen, the state of the flow.
pub struct TurnManager<'t> {
    pub(super) run: Execution<'t>,
    pub(super) machine: TurnMachine,
    pub(super) conversation: Conversation<'t>,
    pub(super) files: KnownFiles,
    pub(super) verification: Verification,
    pub(super) flow: FlowState,
    /// How often hooks have kept the task from ending.
    objections: u32,
    outage: Outage,
}

impl<'t> TurnManager<'t> {
    pub(crate) fn new(task: &'t AgentTask, started_ms: i64) -> Self {
        let run = Execution::new(task, started_ms);
        let flow = FlowState::new(&task.rules, task.earlier.plan.clone());
        let answers = AnswerRules {
            only_one: task.rules.one_answer,
            checked: task.check.is_some(),
            handled: task.answer_handler.is_some(),
            sampled: task.rules.sample.is_some(),
        };
        Self {
            machine: TurnMachine::new(run.limits(), answers).with_accepted_tokens(task.rules.accepted_tokens),
            conversation: Conversation::new(task, &flow),
            files: KnownFiles::new(&task.earlier),
            verification: Verification::new(&task.rules),
            flow,
            run,
            outage: Outage::default(),
            objections: 0,
        }
    }

    /// Prepares the task, unless its end is known already. The first turn follows from the result.
    pub(crate) async fn start(&mut self) -> Result<TurnEvent, RunAborted> {
        match &self.run.task.preset_end {
            Some(PresetEnd::Failure(message)) => Ok(TurnEvent::CannotStart(message.clone())),
            Some(PresetEnd::Answer(answer)) => Ok(TurnEvent::NothingToDo(answer.clone())),
            None => self.prepare().await,
        }
    }

    /// Executes the next turn, with the retries, waits and compactions before its reply. A task may also end
    /// without a further turn.
    pub(crate) async fn execute_turn(&mut self, mut event: TurnEvent) -> Result<TurnResult, RunAborted> {
        loop {
            let usage = self.measure().await?;
            let mut warnings = Vec::new();
            let action = self.machine.step(event, usage, &mut warnings);
            warnings.into_iter().for_each(|warning| self.run.emit(warning));
            let completes = matches!(action, Action::Call(_) | Action::Say(_) | Action::Review);
            event = match action {
                Action::Ask { attempt } => self.ask(attempt).await?,
                Action::Wait { after_ms } => model_request::wait(&mut self.run, after_ms).await?,
                Action::Call(calls) => {
                    let mut results = self.make_calls(calls).await?;
                    self.complete_turn();
                    let (verification, mut runtime) = self.verification();
                    verification.review_calls(&mut runtime, &mut results).await?;
                    if results.continues() {
                        self.nudge().await?;
                        self.phases().after_turn().await?;
                    }
                    TurnEvent::Answered(results)
                }
                Action::Say(hint) => {
                    self.complete_turn();
                    self.flow.facts.count_feedback("asked_again");
                    let early = hint == EMPTY_REPLY && !self.verification.can_finish(&self.flow);
                    self.ask_again(if early { EMPTY_TOO_EARLY } else { hint }).await?
                }
                Action::Review => {
                    self.complete_turn();
                    let answer = self.machine.answer().to_owned();
                    let (verification, mut runtime) = self.verification();
                    let rejected = verification.review(&mut runtime, &answer).await?;
                    rejected.iter().for_each(|feedback| self.flow.facts.count_feedback(feedback.kind));
                    TurnEvent::Reviewed { rejected, files: self.flow.facts.state() }
                }
                Action::Reject(Feedback { text, .. }) => self.ask_again(&text).await?,
                Action::Check { answer, last } => {
                    TurnEvent::Checked(answer_check::check(self.run.task, answer, last).await?)
                }
                Action::Correct { problem } => {
                    self.flow.facts.count_feedback("output_format");
                    let text = format!(
                        "Your answer is not as it was asked for: {problem}. Answer again, all of it."
                    );
                    self.conversation.say(&self.run, &text);
                    TurnEvent::Ready
                }
                Action::Compact { accepted_tokens } => {
                    task_hooks::before_compaction(self.run.task, "auto").await?;
                    let turn_index = self.machine.turn_index();
                    self.conversation.compact(&mut self.run, turn_index, accepted_tokens).await?
                }
                Action::Pause => {
                    match interrupt::resume_after_stop(&mut self.run, &mut self.conversation).await? {
                        true => TurnEvent::Continue,
                        false => TurnEvent::Cancelled,
                    }
                }
                Action::Settle(end) => match self.objection_to(&end).await? {
                    Some(objection) => self.ask_again(&objection).await?,
                    None => {
                        self.wrap_up().await?;
                        TurnEvent::Settled(end)
                    }
                },
                Action::Handle { answer } => self.handle(answer).await?,
                Action::End(end) => return Ok(TurnResult::End(end)),
            };
            if completes {
                return Ok(TurnResult::Complete(event));
            }
        }
    }

    /// Prepares the task before the first request.
    async fn prepare(&mut self) -> Result<TurnEvent, RunAborted> {
        self.files.list(&mut self.run).await?;
        self.runtime().preload().await?;
        self.flow.first_state().into_iter().for_each(|event| self.run.emit(event));
        self.advance_flow();
        self.phases().start();
        self.nudge().await?;
        Ok(TurnEvent::Ready)
    }

    /// What hooks say against ending the task here; the task then continues with it.
    async fn objection_to(&mut self, end: &TaskEnd) -> Result<Option<String>, RunAborted> {
        let TaskEnd::Completed { answer } = end else { return Ok(None) };
        task_hooks::before_end(&self.run, answer, &mut self.objections).await
    }

    /// Runs the configured command after the task, and compares the recorded changes with the files.
    async fn wrap_up(&mut self) -> Result<(), RunAborted> {
        let task = self.run.task;
        self.runtime().run_after(&task.rules.after).await?;
        if task.rules.parent.is_none() {
            task_report::settle_changes(task, &mut self.flow.facts).await?;
        }
        Ok(())
    }

    /// Lets the answer handler decide about the final answer.
    async fn handle(&mut self, answer: String) -> Result<TurnEvent, RunAborted> {
        let Some(handler) = &self.run.task.answer_handler else {
            return Ok(TurnEvent::Handled(Conclusion::Answer(answer)));
        };
        let left = self.run.remaining(self.machine.turn_index(), &self.conversation);
        let conversation = self.conversation.history.messages();
        let (conclusion, spent) = handler.conclude(answer, left, conversation).await?;
        self.run.meter.spent.add(&spent);
        Ok(TurnEvent::Handled(conclusion))
    }

    /// Usage to compare with the limits, after bringing those up to date.
    async fn measure(&mut self) -> Result<LimitUsage, RunAborted> {
        self.refresh_policy();
        if self.run.task.preset_end.is_none() && self.conversation.probe_context_size(&self.run).await? {
            self.machine.set_limits(self.limits());
        }
        Ok(self.run.meter.usage(self.conversation.tokens()))
    }

    async fn ask(&mut self, attempt: u32) -> Result<TurnEvent, RunAborted> {
        let turn_index = self.machine.turn_index();
        let Self { run, conversation, files, verification, flow, .. } = self;
        let task = run.task;
        let open = OpenCalls { task, flow, files, verification, conversation, turn_index };
        let (options, tail) = (open.options(), flow.phase_tail().map(str::to_owned));
        let turn = TurnRequest { attempt, turn_index, options, tail };
        model_request::ask(run, conversation, files, &mut self.outage, turn).await
    }

    /// Sends a message in place of a reply that could not be used.
    async fn ask_again(&mut self, text: &str) -> Result<TurnEvent, RunAborted> {
        self.flow.facts.asked_again += 1;
        self.conversation.say(&self.run, text);
        self.phases().after_turn().await?;
        Ok(TurnEvent::Ready)
    }

    async fn nudge(&mut self) -> Result<(), RunAborted> {
        let (verification, mut runtime) = self.verification();
        implement_nudge::nudge(&mut runtime, verification).await
    }

    /// Applies the policy changes of a resume that take effect at the current position.
    pub(super) fn refresh_policy(&mut self) {
        if self.run.refresh_policy() {
            self.machine.set_limits(self.limits());
        }
    }

    /// The limits in force, with `max_tokens` capped at the context size of the model's server.
    fn limits(&self) -> Limits {
        let limits = self.run.limits();
        Limits { max_tokens: self.conversation.max_tokens(limits.max_tokens), ..limits }
    }

    /// Advances to the next phase if the facts allow it.
    pub(super) fn advance_flow(&mut self) {
        let events = self.flow.advance(self.machine.turn_index());
        events.into_iter().for_each(|event| self.run.emit(event));
    }

    fn complete_turn(&mut self) {
        let turn_index = self.machine.turn_index() - 1;
        let event = self.run.meter.complete_turn(turn_index, self.run.task.turn_id(turn_index));
        self.run.emit(event);
    }

    /// The parts that the runtime acts on.
    pub(super) fn runtime(&mut self) -> RuntimeActions<'_, 't> {
        self.verification().1
    }

    /// The verification, and the parts that it acts on.
    pub(super) fn verification(&mut self) -> (&mut Verification, RuntimeActions<'_, 't>) {
        let Self { run, flow, files, conversation, verification, .. } = self;
        (verification, RuntimeActions { run, flow, files, conversation })
    }

    /// The parts that the phase concerns.
    pub(super) fn phases(&mut self) -> PhaseTracker<'_, 't> {
        let Self { run, flow, conversation, machine, .. } = self;
        PhaseTracker { run, flow, conversation, turn_index: machine.turn_index() }
    }

    /// Unmet requirements of a stage that would have succeeded otherwise.
    pub(crate) fn missing(&self, outcome: &TaskOutcome) -> Vec<String> {
        match outcome.status {
            TaskStatus::Completed => self.verification.missing(&self.flow),
            _ => Vec::new(),
        }
    }

    /// Collects the results of a task that ended.
    pub(crate) fn finish(self, outcome: TaskOutcome, missing: Vec<String>) -> FinishedTask {
        let opened = self.conversation.prompt.as_ref().map(RenderedPrompt::opened).unwrap_or_default();
        let (facts, plan, phases, payload) = self.flow.into_parts();
        let last_ms = self.run.meter.last_ms;
        let sample = self.files.sample;
        FinishedTask { outcome, facts, plan, phases, missing, payload, last_ms, opened, sample }
    }
}

#[cfg(test)]
mod tests;
