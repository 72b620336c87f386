//! The turn loop as a pure state machine: given an event, it returns the next action. `driver.rs` performs
//! the actions. Every limit and guard rail of a task is decided here and nowhere else.

use fusee_journal::event::{ErrorCode, ErrorDetail, Event};
use fusee_model::{ErrorKind, ModelError, Reply, StopReason, ToolCall, Usage};

use super::limits::Limits;
use crate::agent::limits::cost::Cost;
use crate::agent::limits::loop_detector::{LoopDetector, LoopVerdict, RejectedAnswers};

/// An event for the machine.
#[derive(Debug)]
pub(crate) enum TurnEvent {
    /// The conversation is set up.
    Ready,
    /// The model replied.
    Replied(Reply),
    /// An attempt failed; `after_ms` is the delay before the next one, if there is to be one.
    Failed { error: ModelError, after_ms: Option<u64> },
    /// The delay before a retry has elapsed.
    Rested,
    /// All calls of the reply have their results.
    Answered(CallResults),
    /// A compaction ran; `smaller` says whether it saved anything.
    Compacted { smaller: bool },
    /// The user cancelled the task during an action.
    Cancelled,
    /// A turn was interrupted, and the task continues.
    GoOn,
    /// The task's time limit was reached during an action.
    OutOfTime,
}

/// Combined result of the calls of one reply.
#[derive(Debug, Default)]
pub(crate) struct CallResults {
    /// Set if the model called `finish`.
    pub(crate) finished: Option<FinishCall>,
    /// Whether a call was aborted by a cancellation.
    pub(crate) aborted: bool,
}

/// Arguments of the model's `finish` call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinishCall {
    pub(crate) blocked: bool,
    pub(crate) summary: String,
}

/// The next action.
#[derive(Debug)]
pub(crate) enum Action {
    /// Send the conversation; `attempt` counts from 1.
    Ask { attempt: u32 },
    /// Wait before the next attempt.
    Rest { after_ms: u64 },
    /// Execute these calls, in order.
    Call(Vec<GuardedCall>),
    /// Send this message to the model and ask again.
    Say(&'static str),
    /// Compact the conversation.
    Compact,
    /// End the task.
    End(TaskEnd),
}

/// A call with the loop detector's verdict.
#[derive(Debug)]
pub(crate) struct GuardedCall {
    pub(crate) call: ToolCall,
    pub(crate) verdict: CallVerdict,
}

/// Whether a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    Run,
    /// The same call appears earlier in the same reply, at this index.
    Duplicate(usize),
    /// The call was repeated this many times in a row.
    Circling(u32),
}

/// How the task ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskEnd {
    Completed {
        answer: String,
    },
    Blocked {
        answer: String,
    },
    Failed {
        error: ErrorDetail,
        /// The model could not be reached despite all retries.
        unreachable: bool,
    },
    Cancelled,
}

/// Usage at the time of a decision, as measured by the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitUsage {
    /// Tokens in the next request.
    pub(crate) tokens: u64,
    /// Working time so far.
    pub(crate) active_ms: u64,
}

pub(crate) const EMPTY_REPLY: &str =
    "Your last reply was empty. Call a tool to go on, or answer in words if you are done.";
/// Used while the work is known to be unfinished: a small model repeats that it is done as soon as it reads
/// the word.
pub(crate) const EMPTY_TOO_EARLY: &str = "Your last reply was empty. Call a tool to go on.";
const TOO_LONG: &str = "Your last reply was cut off: it was too long. Send it again in smaller parts.";

/// State of the loop.
#[derive(Debug)]
pub(crate) struct TurnMachine {
    limits: Limits,
    guard: LoopDetector,
    turn_index: u32,
    /// Turns of the subtasks.
    others: u32,
    attempt: u32,
    asked_again: bool,
    overflowed: bool,
    /// Tokens after the last compaction; another one is only worth it once the context has grown.
    compacted_to: Option<u64>,
    halted: Option<String>,
    held: RejectedAnswers,
    money: Cost,
    warned: Vec<&'static str>,
    pub(crate) answer: String,
    pub(crate) usage: Usage,
}

impl TurnMachine {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            guard: LoopDetector::default(),
            turn_index: 0,
            others: 0,
            attempt: 1,
            asked_again: false,
            overflowed: false,
            compacted_to: None,
            halted: None,
            held: RejectedAnswers::default(),
            money: Cost::default(),
            warned: Vec::new(),
            answer: String::new(),
            usage: Usage::default(),
        }
    }

    /// Number of model replies so far.
    pub(crate) fn turn_index(&self) -> u32 {
        self.turn_index
    }

    /// Number of model replies including subtasks; the turn limit covers all of them.
    pub(crate) fn all_turns(&self) -> u32 {
        self.turn_index.saturating_add(self.others)
    }

    /// Charges the resources used by a subtask.
    pub(crate) fn spend(&mut self, turns: u32, usage: &Usage) {
        self.others = self.others.saturating_add(turns);
        self.money.charge(&self.limits, usage);
        self.usage.input_tokens += usage.input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        self.usage.cached_tokens += usage.cached_tokens;
        self.usage.reasoning_tokens += usage.reasoning_tokens;
        self.usage.cache_write_tokens += usage.cache_write_tokens;
    }

    /// Replaces the limits.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Reports a call that ran to the loop detector.
    pub(crate) fn ran(&mut self, content: &str, changed_files: bool) {
        self.guard.record_seen(content, changed_files);
    }

    /// Records an answer that was rejected for this file state.
    pub(crate) fn held_back(&mut self, files: u64) {
        if let Some(times) = self.held.again(files) {
            self.halted = Some(format!(
                "the model answered {times} times in a row without a tool call or a file change, but the work is \
                 not done"
            ));
        }
    }

    /// Charges a reply outside the conversation; it does not count as a turn.
    pub(crate) fn charge_reply(&mut self, reply: &Reply, tokens: u64) {
        self.money.spent(&self.limits, reply, tokens);
        self.use_up(reply);
    }

    fn use_up(&mut self, reply: &Reply) {
        if let Some(usage) = &reply.usage {
            self.usage.input_tokens += usage.input_tokens;
            self.usage.output_tokens += usage.output_tokens;
            self.usage.cached_tokens += usage.cached_tokens;
            self.usage.reasoning_tokens += usage.reasoning_tokens;
        }
    }

    /// Returns the next action; user-visible warnings are appended to `warnings`.
    pub(crate) fn step(&mut self, input: TurnEvent, gauge: LimitUsage, warnings: &mut Vec<Event>) -> Action {
        match input {
            TurnEvent::Ready | TurnEvent::Rested => self.ask(gauge, warnings),
            TurnEvent::Replied(reply) => {
                self.money.spent(&self.limits, &reply, gauge.tokens);
                self.replied(reply)
            }
            TurnEvent::Failed { error, after_ms } => self.failed(error, after_ms),
            TurnEvent::Answered(answered) => self.answered(answered, gauge, warnings),
            TurnEvent::Compacted { smaller } => self.compacted(smaller, gauge, warnings),
            TurnEvent::GoOn => {
                self.attempt = 1;
                self.ask(gauge, warnings)
            }
            TurnEvent::Cancelled => Action::End(TaskEnd::Cancelled),
            TurnEvent::OutOfTime => Action::End(self.out_of_time()),
        }
    }

    fn ask(&mut self, gauge: LimitUsage, warnings: &mut Vec<Event>) -> Action {
        if let Some(ending) = self.limit_reached(gauge) {
            return Action::End(ending);
        }
        let threshold = (self.limits.max_tokens as f64 * self.limits.compaction_threshold) as u64;
        let grown = self.compacted_to.is_none_or(|tokens| gauge.tokens > tokens + tokens / 4);
        if self.attempt == 1 && gauge.tokens > threshold && grown {
            return Action::Compact;
        }
        if gauge.tokens > self.limits.max_tokens {
            return Action::End(self.out_of_tokens(gauge));
        }
        self.warn(gauge, warnings);
        warnings.extend(self.money.warning(&self.limits));
        Action::Ask { attempt: self.attempt }
    }

    fn limit_reached(&self, gauge: LimitUsage) -> Option<TaskEnd> {
        if let Some(message) = &self.halted {
            return Some(fail(ErrorCode::TurnFailed, "execution_halted", message.clone()));
        }
        if self.all_turns() >= self.limits.max_turns {
            let message = format!(
                "the task did not finish within {} turns; raise the limit with `--max-turns`",
                self.limits.max_turns
            );
            return Some(fail(ErrorCode::MaxTurns, "turns", message));
        }
        if let Some(message) = self.money.budget_error(&self.limits, gauge.tokens) {
            return Some(fail(ErrorCode::Budget, "cost", message));
        }
        let limit = self.limits.task_timeout_s?;
        (gauge.active_ms >= limit * 1000).then(|| self.out_of_time())
    }

    fn out_of_time(&self) -> TaskEnd {
        let limit = self.limits.task_timeout_s.unwrap_or_default();
        let message = format!("the task did not finish within {limit} s; raise the limit with `--timeout`");
        fail(ErrorCode::Timeout, "time", message)
    }

    fn out_of_tokens(&self, gauge: LimitUsage) -> TaskEnd {
        let message = format!(
            "the context is full: the next request needs about {} tokens and the limit is {}; raise it with \
             `--max-tokens` if the model supports it",
            gauge.tokens, self.limits.max_tokens
        );
        fail(ErrorCode::TokenLimit, "context", message)
    }

    fn warn(&mut self, gauge: LimitUsage, warnings: &mut Vec<Event>) {
        let share = |used: u64, limit: u64| limit > 0 && used * 5 >= limit * 4;
        let limits = [
            ("turns", u64::from(self.all_turns()), u64::from(self.limits.max_turns), "turns"),
            ("tokens", gauge.tokens, self.limits.max_tokens, "tokens of context"),
            ("time", gauge.active_ms / 1000, self.limits.task_timeout_s.unwrap_or_default(), "seconds"),
        ];
        for (code, used, limit, unit) in limits {
            if share(used, limit) && !self.warned.contains(&code) {
                self.warned.push(code);
                let message = format!("used {used} of {limit} {unit}");
                warnings.push(Event::Warning { code: format!("limit_{code}"), message });
            }
        }
    }

    fn replied(&mut self, reply: Reply) -> Action {
        self.attempt = 1;
        self.turn_index += 1;
        self.overflowed = false;
        self.use_up(&reply);
        if !reply.text.trim().is_empty() {
            self.answer.clone_from(&reply.text);
        }
        if !reply.tool_calls.is_empty() {
            self.asked_again = false;
            self.held = RejectedAnswers::default();
            return Action::Call(self.plan(reply.tool_calls));
        }
        let problem = match reply.stop {
            StopReason::Refusal => {
                let message = format!("the model declined: {}", reply.text);
                return Action::End(fail(ErrorCode::TurnFailed, "llm_error", message));
            }
            StopReason::Length => Some(TOO_LONG),
            _ if reply.text.trim().is_empty() => Some(EMPTY_REPLY),
            _ => None,
        };
        match problem {
            None => Action::End(TaskEnd::Completed { answer: self.answer.clone() }),
            Some(hint) if !self.asked_again => {
                self.asked_again = true;
                Action::Say(hint)
            }
            Some(EMPTY_REPLY) => {
                let message = "the model sent two empty replies in a row".to_owned();
                Action::End(fail(ErrorCode::TurnFailed, "llm_error", message))
            }
            Some(_) => {
                let message = "the model's reply was cut off twice by its output limit".to_owned();
                Action::End(fail(ErrorCode::TurnFailed, "llm_error", message))
            }
        }
    }

    /// Charges a reply outside the conversation; it does not count as a turn.
    pub(crate) fn charge_reply_beside(&mut self, reply: &Reply, tokens: u64) {
        self.money.spent(&self.limits, reply, tokens);
        self.use_up(reply);
    }

    fn plan(&mut self, calls: Vec<ToolCall>) -> Vec<GuardedCall> {
        let mut planned: Vec<GuardedCall> = Vec::with_capacity(calls.len());
        for call in calls {
            let same =
                |other: &GuardedCall| other.call.name == call.name && other.call.arguments == call.arguments;
            let verdict = match planned.iter().position(same) {
                Some(first) => CallVerdict::Duplicate(first),
                None => match self.guard.judge(&call.name, &call.arguments) {
                    LoopVerdict::Run => CallVerdict::Run,
                    LoopVerdict::Hint { times } => CallVerdict::Circling(times),
                    LoopVerdict::Halt { times } => {
                        self.halted = Some(format!(
                            "the model made the same call {times} times in a row with the same result"
                        ));
                        CallVerdict::Circling(times)
                    }
                },
            };
            planned.push(GuardedCall { call, verdict });
        }
        planned
    }

    fn failed(&mut self, error: ModelError, after_ms: Option<u64>) -> Action {
        if error.kind == ErrorKind::Cancelled {
            return Action::End(TaskEnd::Cancelled);
        }
        if error.kind == ErrorKind::Overflow && !self.overflowed {
            self.overflowed = true;
            return Action::Compact;
        }
        match after_ms {
            Some(after_ms) => {
                // A server that is loading its model has not failed; waiting for it has its own limit.
                self.attempt += u32::from(error.kind != ErrorKind::Loading);
                Action::Rest { after_ms }
            }
            None => Action::End(model_failure(&error, self.attempt)),
        }
    }

    fn answered(&mut self, answered: CallResults, gauge: LimitUsage, warnings: &mut Vec<Event>) -> Action {
        if answered.aborted {
            return Action::End(TaskEnd::Cancelled);
        }
        match answered.finished {
            Some(FinishCall { blocked: true, summary }) => {
                Action::End(TaskEnd::Blocked { answer: self.last_words(summary) })
            }
            Some(FinishCall { blocked: false, summary }) => {
                Action::End(TaskEnd::Completed { answer: self.last_words(summary) })
            }
            None => self.ask(gauge, warnings),
        }
    }

    fn last_words(&self, summary: String) -> String {
        if summary.trim().is_empty() { self.answer.clone() } else { summary }
    }

    fn compacted(&mut self, smaller: bool, gauge: LimitUsage, warnings: &mut Vec<Event>) -> Action {
        self.compacted_to = Some(gauge.tokens);
        if self.overflowed && !smaller {
            return Action::End(self.out_of_tokens(gauge));
        }
        self.ask(gauge, warnings)
    }
}

fn fail(code: ErrorCode, reason: &str, message: String) -> TaskEnd {
    TaskEnd::Failed { error: ErrorDetail { code, reason: reason.to_owned(), message }, unreachable: false }
}

fn model_failure(error: &ModelError, attempts: u32) -> TaskEnd {
    let (code, reason) = match error.kind {
        ErrorKind::Overflow => (ErrorCode::TokenLimit, "context"),
        _ => (ErrorCode::TurnFailed, "llm_error"),
    };
    if error.kind == ErrorKind::Loading {
        let help = "the model took too long to load; raise `loading_timeout_s`";
        let message = format!("{} ({help})", error.message);
        let error = ErrorDetail { code, reason: reason.to_owned(), message };
        return TaskEnd::Failed { error, unreachable: true };
    }
    let tries = if attempts > 1 { format!(" (after {attempts} attempts)") } else { String::new() };
    let error_out =
        ErrorDetail { code, reason: reason.to_owned(), message: format!("{}{tries}", error.message) };
    TaskEnd::Failed { error: error_out, unreachable: error.kind.unreachable() }
}

#[cfg(test)]
mod tests;
