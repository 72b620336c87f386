//! The turn loop as a pure state machine: given an event, it returns the next action. `runner.rs` performs
//! the actions and reports what came of them. Every limit and every end of a task is decided here and nowhere
//! else.

use fusee_journal::event::{ErrorCode, ErrorDetail, Event};
use fusee_model::{ErrorKind, ModelError, Reply, StopReason, ToolCall};

use super::limits::Limits;
use crate::agent::completion::answer_check::AcceptedAnswer;
use crate::agent::flow::Feedback;
use crate::agent::limits::cost::Cost;
use crate::agent::limits::loop_detector::{LoopDetector, LoopVerdict, RejectedAnswers};

/// An event for the machine.
#[derive(Debug)]
pub(crate) enum TurnEvent {
    /// The task cannot start, with the reason.
    CannotStart(String),
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
    /// The rules of the task and its verification were applied to an answer in words. A rejection says why,
    /// and `files` is the file state it applies to.
    Reviewed { rejected: Option<Feedback>, files: u64 },
    /// The final answer was checked: the accepted answer, or what is wrong with it.
    Checked(Result<AcceptedAnswer, String>),
    /// The user stopped the turn or the task during an action.
    Stopped,
    /// The user lets the task continue after a stop.
    GoOn,
    /// The user ended the task.
    Cancelled,
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
    /// Set if the calls ended a stage or made the requested plan: its answer, which may be empty.
    pub(crate) stage_answer: Option<String>,
    /// Set if the calls completed the work: the verification command that passes.
    pub(crate) verified_by: Option<String>,
}

impl CallResults {
    /// Whether the task continues with another request, unless a limit is reached.
    pub(crate) fn continues(&self) -> bool {
        !self.aborted && self.finished.is_none() && self.stage_answer.is_none() && self.verified_by.is_none()
    }
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
    /// Tell the model why its answer was rejected, and ask again.
    Reject(Feedback),
    /// Apply the rules of the task and its verification to an answer in words.
    Review,
    /// Check the form of the final answer; a rejected `last` answer fails the task.
    Check { answer: String, last: bool },
    /// Tell the model what is wrong with the form of its answer, and ask again.
    Correct { complaint: String },
    /// Ask the user whether the task continues.
    Pause,
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
    Repeated(u32),
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

/// Usage at the time of a decision, as measured by the runner.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitUsage {
    /// Tokens in the next request.
    pub(crate) tokens: u64,
    /// Working time so far.
    pub(crate) active_ms: u64,
    /// Model replies in subtasks; the turn limit covers them.
    pub(crate) subtask_turns: u32,
    /// Money spent so far.
    pub(crate) cost: Cost,
}

pub(crate) const EMPTY_REPLY: &str =
    "Your last reply was empty. Call a tool to go on, or answer in words if you are done.";
/// Used while the work is known to be unfinished: a small model repeats that it is done as soon as it reads
/// the word.
pub(crate) const EMPTY_TOO_EARLY: &str = "Your last reply was empty. Call a tool to go on.";
const TOO_LONG: &str = "Your last reply was cut off: it was too long. Send it again in smaller parts.";

/// Marks that the warning about the cost was given.
const COST: &str = "cost";

/// State of the loop.
#[derive(Debug)]
pub(crate) struct TurnMachine {
    limits: Limits,
    /// Whether there is only one answer: a rejection ends the task.
    one_answer: bool,
    guard: LoopDetector,
    turn_index: u32,
    attempt: u32,
    asked_again: bool,
    overflowed: bool,
    /// Tokens after the last compaction; another one is only worth it once the context has grown.
    compacted_to: Option<u64>,
    halted: Option<String>,
    rejected: RejectedAnswers,
    /// Whether the form of an answer was already rejected once.
    corrected: bool,
    /// Whether the accepted answer makes the run fail.
    objects: bool,
    warned: Vec<&'static str>,
    answer: String,
}

impl TurnMachine {
    pub(crate) fn new(limits: Limits, one_answer: bool) -> Self {
        Self {
            limits,
            one_answer,
            guard: LoopDetector::default(),
            turn_index: 0,
            attempt: 1,
            asked_again: false,
            overflowed: false,
            compacted_to: None,
            halted: None,
            rejected: RejectedAnswers::default(),
            corrected: false,
            objects: false,
            warned: Vec::new(),
            answer: String::new(),
        }
    }

    /// Number of model replies so far.
    pub(crate) fn turn_index(&self) -> u32 {
        self.turn_index
    }

    /// Whether the accepted answer makes the run fail.
    pub(crate) fn objects(&self) -> bool {
        self.objects
    }

    /// The last words of the model.
    pub(crate) fn answer(&self) -> &str {
        &self.answer
    }

    /// Replaces the limits.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Reports a call that ran to the loop detector.
    pub(crate) fn ran(&mut self, content: &str, changed_files: bool) {
        self.guard.record_seen(content, changed_files);
    }

    /// Returns the next action; user-visible warnings are appended to `warnings`.
    pub(crate) fn step(&mut self, input: TurnEvent, gauge: LimitUsage, warnings: &mut Vec<Event>) -> Action {
        match input {
            TurnEvent::CannotStart(message) => {
                Action::End(fail(ErrorCode::InitFailed, "configuration_error", message))
            }
            TurnEvent::Ready | TurnEvent::Rested => self.ask(gauge, warnings),
            TurnEvent::Replied(reply) => self.replied(reply),
            TurnEvent::Failed { error, after_ms } => self.failed(error, after_ms),
            TurnEvent::Answered(answered) => self.answered(answered, gauge, warnings),
            TurnEvent::Compacted { smaller } => self.compacted(smaller, gauge, warnings),
            TurnEvent::Reviewed { rejected: Some(feedback), files } => self.rejected(feedback, files),
            TurnEvent::Reviewed { rejected: None, .. } => self.check(self.answer.clone()),
            TurnEvent::Checked(Ok(AcceptedAnswer { answer, objects })) => {
                self.objects = objects;
                Action::End(TaskEnd::Completed { answer })
            }
            TurnEvent::Checked(Err(complaint)) => self.complained(complaint),
            TurnEvent::Stopped => Action::Pause,
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
        Action::Ask { attempt: self.attempt }
    }

    /// Number of model replies including subtasks.
    fn turns(&self, gauge: LimitUsage) -> u32 {
        self.turn_index.saturating_add(gauge.subtask_turns)
    }

    fn limit_reached(&self, gauge: LimitUsage) -> Option<TaskEnd> {
        if let Some(message) = &self.halted {
            return Some(fail(ErrorCode::TurnFailed, "execution_halted", message.clone()));
        }
        if self.turns(gauge) >= self.limits.max_turns {
            let message = format!("the task did not finish within {} turns", self.limits.max_turns);
            return Some(fail(ErrorCode::MaxTurns, "turns", message));
        }
        if let Some(message) = gauge.cost.budget_error(&self.limits, gauge.tokens) {
            return Some(fail(ErrorCode::Budget, "cost", message));
        }
        let limit = self.limits.task_timeout_s?;
        (gauge.active_ms >= limit * 1000).then(|| self.out_of_time())
    }

    fn out_of_time(&self) -> TaskEnd {
        let limit = self.limits.task_timeout_s.unwrap_or_default();
        let message = format!("the task did not finish within {limit} s");
        fail(ErrorCode::Timeout, "time", message)
    }

    fn out_of_tokens(&self, gauge: LimitUsage) -> TaskEnd {
        let message = format!(
            "the context is full: the next request needs about {} tokens and the limit is {}",
            gauge.tokens, self.limits.max_tokens
        );
        fail(ErrorCode::TokenLimit, "context", message)
    }

    fn warn(&mut self, gauge: LimitUsage, warnings: &mut Vec<Event>) {
        let share = |used: u64, limit: u64| limit > 0 && used * 5 >= limit * 4;
        let limits = [
            ("turns", u64::from(self.turns(gauge)), u64::from(self.limits.max_turns), "turns"),
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
        if let Some((code, message)) = gauge.cost.warning(&self.limits)
            && !self.warned.contains(&COST)
        {
            self.warned.push(COST);
            warnings.push(Event::Warning { code: code.to_owned(), message });
        }
    }

    fn replied(&mut self, reply: Reply) -> Action {
        self.attempt = 1;
        self.turn_index += 1;
        self.overflowed = false;
        if !reply.text.trim().is_empty() {
            self.answer.clone_from(&reply.text);
        }
        if !reply.tool_calls.is_empty() {
            self.asked_again = false;
            self.rejected = RejectedAnswers::default();
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
            None => Action::Review,
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

    fn plan(&mut self, calls: Vec<ToolCall>) -> Vec<GuardedCall> {
        let mut planned: Vec<GuardedCall> = Vec::with_capacity(calls.len());
        for call in calls {
            let same =
                |other: &GuardedCall| other.call.name == call.name && other.call.arguments == call.arguments;
            let verdict = match planned.iter().position(same) {
                Some(first) => CallVerdict::Duplicate(first),
                None => match self.guard.judge(&call.name, &call.arguments) {
                    LoopVerdict::Run => CallVerdict::Run,
                    LoopVerdict::Hint { times } => CallVerdict::Repeated(times),
                    LoopVerdict::Halt { times } => {
                        self.halted = Some(format!(
                            "the model made the same call {times} times in a row with the same result"
                        ));
                        CallVerdict::Repeated(times)
                    }
                },
            };
            planned.push(GuardedCall { call, verdict });
        }
        planned
    }

    fn failed(&mut self, error: ModelError, after_ms: Option<u64>) -> Action {
        if error.kind == ErrorKind::Cancelled {
            return Action::Pause;
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
        match answered {
            CallResults { aborted: true, .. } => Action::Pause,
            CallResults { stage_answer: Some(answer), .. } => {
                Action::End(TaskEnd::Completed { answer: self.or_last_words(answer) })
            }
            CallResults { verified_by: Some(command), .. } => {
                let answer = match self.answer.trim() {
                    "" => format!("Done: `{command}` passes."),
                    said => said.to_owned(),
                };
                Action::End(TaskEnd::Completed { answer })
            }
            CallResults { finished: Some(FinishCall { blocked: true, summary }), .. } => {
                Action::End(TaskEnd::Blocked { answer: self.or_last_words(summary) })
            }
            CallResults { finished: Some(FinishCall { blocked: false, summary }), .. } => {
                self.check(self.or_last_words(summary))
            }
            _ => self.ask(gauge, warnings),
        }
    }

    fn or_last_words(&self, answer: String) -> String {
        if answer.trim().is_empty() { self.answer.clone() } else { answer }
    }

    fn rejected(&mut self, feedback: Feedback, files: u64) -> Action {
        if self.one_answer {
            let reason = match feedback.kind {
                "verify_failed" => "tool_execution_error",
                _ => "output_format_failure",
            };
            return Action::End(fail(ErrorCode::TurnFailed, reason, feedback.text));
        }
        if let Some(times) = self.rejected.again(files) {
            self.halted = Some(format!(
                "the model answered {times} times in a row without a tool call or a file change, but the work is \
                 not done"
            ));
        }
        Action::Reject(feedback)
    }

    fn check(&self, answer: String) -> Action {
        Action::Check { answer, last: self.corrected }
    }

    fn complained(&mut self, complaint: String) -> Action {
        if self.corrected {
            let message = format!("the answer does not have the requested form: {complaint}");
            return Action::End(fail(ErrorCode::TurnFailed, "output_format_failure", message));
        }
        self.corrected = true;
        Action::Correct { complaint }
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
