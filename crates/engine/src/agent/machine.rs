//! The turn loop as a pure state machine: given an event, it returns the next action. `turn_manager.rs` performs
//! the actions and reports their results. Every limit and every end of a task is decided here and nowhere
//! else.

mod action;
mod event;

use fusee_journal::event::{ErrorCode, ErrorDetail, Event};
use fusee_model::{ErrorKind, ModelError, Reply, StopReason, ToolCall};

use super::limits::Limits;
use crate::agent::completion::answer_check::AcceptedAnswer;
use crate::agent::completion::answer_handler::Conclusion;
use crate::agent::flow::Feedback;
use crate::agent::limits::loop_detector::{LoopDetector, LoopVerdict, RejectedAnswers};

pub(crate) use action::{Action, CallVerdict, GuardedCall, TaskEnd};
pub(crate) use event::{CallResults, FinishCall, LimitUsage, TurnEvent};

pub(crate) const EMPTY_REPLY: &str =
    "Your last reply was empty. Call a tool to go on, or answer in words if you are done.";
/// Used while the work is known to be unfinished: a small model repeats that it is done as soon as it reads
/// the word.
pub(crate) const EMPTY_TOO_EARLY: &str = "Your last reply was empty. Call a tool to go on.";
/// Reason of a task that the model gave up with `finish`.
const BLOCKED: &str = "blocked";

/// Start of the error message if the model declined.
pub(crate) const DECLINED: &str = "the model declined";
const TOO_LONG: &str = "Your last reply was cut off: it was too long. Send it again in smaller parts.";

/// Maximum number of expansions per task; each one invalidates the server's prefix cache.
const MAX_EXPANSIONS: u32 = 10;

/// Maximum number of overflows in a row that are answered with a compaction. Each one at
/// least halves the context.
const MAX_OVERFLOWS: u32 = 6;

/// Marks that the warning about the cost was given.
const COST: &str = "cost";

/// How the answers of a task are treated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnswerRules {
    /// Whether there is only one answer: a rejection ends the task.
    pub(crate) only_one: bool,
    /// Whether the answer must have a certain form.
    pub(crate) checked: bool,
    /// Whether an answer handler decides about the final answer.
    pub(crate) handled: bool,
    /// Whether this is one of several answers to the same request.
    pub(crate) sampled: bool,
}

/// State of the loop.
#[derive(Debug)]
pub(crate) struct TurnMachine {
    limits: Limits,
    answers: AnswerRules,
    loop_detector: LoopDetector,
    turn_index: u32,
    attempt: u32,
    asked_again: bool,
    /// Number of overflows since the last reply, and the message of the last one.
    overflows: u32,
    overflow: String,
    /// Tokens that the server accepts, if it rejected a larger conversation. Only the server can tell exactly,
    /// so this is the size to compact to and not a limit.
    accepted_tokens: Option<u64>,
    expansions: u32,
    /// Tokens after the last compaction; another one is only worth it once the context has grown.
    compacted_to: Option<u64>,
    halted: Option<String>,
    rejected: RejectedAnswers,
    /// Whether the form of an answer was already rejected once.
    corrected: bool,
    /// Whether the accepted answer makes the run fail.
    fails_run: bool,
    warned: Vec<&'static str>,
    answer: String,
}

impl TurnMachine {
    pub(crate) fn new(limits: Limits, answers: AnswerRules) -> Self {
        Self {
            limits,
            answers,
            loop_detector: LoopDetector::default(),
            turn_index: 0,
            attempt: 1,
            asked_again: false,
            overflows: 0,
            overflow: String::new(),
            accepted_tokens: None,
            expansions: 0,
            compacted_to: None,
            halted: None,
            rejected: RejectedAnswers::default(),
            corrected: false,
            fails_run: false,
            warned: Vec::new(),
            answer: String::new(),
        }
    }

    /// Sets the tokens that the server accepts, as far as earlier stages of the work found out.
    pub(crate) fn with_accepted_tokens(self, accepted_tokens: Option<u64>) -> Self {
        Self { accepted_tokens, ..self }
    }

    /// Number of model replies so far.
    pub(crate) fn turn_index(&self) -> u32 {
        self.turn_index
    }

    /// Whether the accepted answer makes the run fail.
    pub(crate) fn fails_run(&self) -> bool {
        self.fails_run
    }

    /// The model's last text.
    pub(crate) fn answer(&self) -> &str {
        &self.answer
    }

    /// Replaces the limits.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Whether prompt sections may be opened; the error is worded for the model.
    pub(crate) fn check_expansion(&self) -> Result<(), String> {
        if self.expansions < MAX_EXPANSIONS {
            return Ok(());
        }
        Err(format!(
            "This task has opened sections {MAX_EXPANSIONS} times, which is the most. Go on with what you see."
        ))
    }

    /// Reports a call that opened prompt sections.
    pub(crate) fn record_expansion(&mut self) {
        self.expansions += 1;
    }

    /// Tells the loop detector about an executed call.
    pub(crate) fn record_call(&mut self, content: &str, changed_files: bool) {
        self.loop_detector.record_seen(content, changed_files);
    }

    /// Returns the next action; user-visible warnings are appended to `warnings`.
    pub(crate) fn step(&mut self, event: TurnEvent, usage: LimitUsage, warnings: &mut Vec<Event>) -> Action {
        let action = match event {
            TurnEvent::Settled(TaskEnd::Completed { answer }) if self.answers.handled => {
                return Action::Handle { answer };
            }
            TurnEvent::Settled(end) => return Action::End(end),
            TurnEvent::Handled(Conclusion::Answer(answer)) => {
                return Action::End(TaskEnd::Completed { answer });
            }
            TurnEvent::Handled(Conclusion::Failed { answer, error }) => {
                self.answer = answer;
                return Action::End(TaskEnd::Failed { error, unreachable: false });
            }
            TurnEvent::CannotStart(message) => {
                Action::End(fail(ErrorCode::InitFailed, "configuration_error", message))
            }
            TurnEvent::NothingToDo(answer) => Action::End(TaskEnd::Completed { answer }),
            TurnEvent::Ready | TurnEvent::Waited => self.ask(usage, warnings),
            TurnEvent::Replied(reply) => self.replied(reply),
            TurnEvent::Failed { error, after_ms } => self.failed(error, after_ms, usage),
            TurnEvent::Answered(results) => self.answered(results, usage, warnings),
            TurnEvent::Compacted { smaller } => self.compacted(smaller, usage, warnings),
            TurnEvent::Reviewed { rejected: Some(feedback), files } => self.rejected(feedback, files),
            TurnEvent::Reviewed { rejected: None, .. } => self.check(self.answer.clone()),
            TurnEvent::Checked(Ok(AcceptedAnswer { answer, fails_run })) => {
                self.fails_run = fails_run;
                Action::End(TaskEnd::Completed { answer })
            }
            TurnEvent::Checked(Err(problem)) => self.malformed(problem),
            TurnEvent::Stopped => Action::Pause,
            TurnEvent::Continue => {
                self.attempt = 1;
                self.ask(usage, warnings)
            }
            TurnEvent::Cancelled => Action::End(TaskEnd::Cancelled),
            TurnEvent::OutOfTime => Action::End(self.out_of_time()),
        };
        match action {
            Action::End(end) => Action::Settle(end),
            action => action,
        }
    }

    fn ask(&mut self, usage: LimitUsage, warnings: &mut Vec<Event>) -> Action {
        if let Some(ending) = self.limit_reached(usage) {
            return Action::End(ending);
        }
        let context = self.limits.max_tokens.min(self.accepted_tokens.unwrap_or(u64::MAX));
        let threshold = (context as f64 * self.limits.compaction_threshold) as u64;
        let grown = self.compacted_to.is_none_or(|tokens| usage.tokens > tokens + tokens / 4);
        if self.attempt == 1 && usage.tokens > threshold && grown {
            return Action::Compact { accepted_tokens: None };
        }
        if usage.tokens > self.limits.max_tokens {
            return Action::End(self.out_of_tokens(usage));
        }
        self.warn(usage, warnings);
        Action::Ask { attempt: self.attempt }
    }

    /// Number of model replies including subtasks.
    fn turns(&self, usage: LimitUsage) -> u32 {
        self.turn_index.saturating_add(usage.subtask_turns)
    }

    fn limit_reached(&self, usage: LimitUsage) -> Option<TaskEnd> {
        if let Some(message) = &self.halted {
            return Some(fail(ErrorCode::TurnFailed, "execution_halted", message.clone()));
        }
        if self.turns(usage) >= self.limits.max_turns {
            let message = format!(
                "the task did not finish within {}",
                fusee_text::count(self.limits.max_turns.into(), "turn")
            );
            return Some(fail(ErrorCode::MaxTurns, "turns", message));
        }
        if let Some(message) = usage.cost.budget_error(&self.limits, usage.tokens) {
            return Some(fail(ErrorCode::Budget, "cost", message));
        }
        self.time_is_up(usage).then(|| self.out_of_time())
    }

    fn time_is_up(&self, usage: LimitUsage) -> bool {
        self.limits.task_timeout_s.is_some_and(|limit| usage.active_ms >= limit * 1000)
    }

    fn out_of_time(&self) -> TaskEnd {
        let limit = self.limits.task_timeout_s.unwrap_or_default();
        let message = format!("the task did not finish within {limit} s");
        fail(ErrorCode::Timeout, "time", message)
    }

    fn out_of_tokens(&self, usage: LimitUsage) -> TaskEnd {
        let message = format!(
            "the context is full: the next request needs about {} tokens and the limit is {}",
            usage.tokens, self.limits.max_tokens
        );
        fail(ErrorCode::TokenLimit, "context", message)
    }

    fn warn(&mut self, usage: LimitUsage, warnings: &mut Vec<Event>) {
        let nearly_used = |used: u64, limit: u64| limit > 0 && used * 5 >= limit * 4;
        let limits = [
            ("turns", u64::from(self.turns(usage)), u64::from(self.limits.max_turns), "turns"),
            ("tokens", usage.tokens, self.limits.max_tokens, "tokens of context"),
            ("time", usage.active_ms / 1000, self.limits.task_timeout_s.unwrap_or_default(), "seconds"),
        ];
        for (code, used, limit, unit) in limits {
            if nearly_used(used, limit) && !self.warned.contains(&code) {
                self.warned.push(code);
                let message = format!("used {used} of {limit} {unit}");
                warnings.push(Event::Warning { code: format!("limit_{code}"), message });
            }
        }
        if let Some((code, message)) = usage.cost.warning(&self.limits)
            && !self.warned.contains(&COST)
        {
            self.warned.push(COST);
            warnings.push(Event::Warning { code: code.to_owned(), message });
        }
    }

    fn replied(&mut self, reply: Reply) -> Action {
        self.attempt = 1;
        self.turn_index += 1;
        self.overflows = 0;
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
                let message = format!("{DECLINED}: {}", reply.text);
                return Action::End(fail(ErrorCode::TurnFailed, "llm_error", message));
            }
            // Another answer to the same request is worth more than the rest of this one.
            StopReason::Length if !self.answers.sampled => Some(TOO_LONG),
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
                let message =
                    "the model's reply was cut off twice by its output limit; raise `max_output_tokens` \
                               or ask for less at once"
                        .to_owned();
                Action::End(fail(ErrorCode::TokenLimit, "output", message))
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
                None => match self.loop_detector.check(&call.name, &call.arguments) {
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

    fn failed(&mut self, error: ModelError, after_ms: Option<u64>, usage: LimitUsage) -> Action {
        if error.kind == ErrorKind::Cancelled {
            return Action::Pause;
        }
        if error.kind == ErrorKind::Overflow && self.overflows < MAX_OVERFLOWS {
            return self.overflowed(error, usage);
        }
        match after_ms {
            Some(after_ms) => {
                // A server that is loading its model has not failed; waiting for it has its own limit.
                self.attempt += u32::from(error.kind != ErrorKind::Loading);
                Action::Wait { after_ms }
            }
            None => Action::End(model_failure(&error, self.attempt)),
        }
    }

    /// The server's context is smaller than the limit. The server may state its size, by its own count.
    fn overflowed(&mut self, error: ModelError, usage: LimitUsage) -> Action {
        self.overflows += 1;
        let stated = error.context_tokens().filter(|_| self.overflows == 1);
        let accepted = stated.unwrap_or(usage.tokens / 2).min(usage.tokens);
        let accepted = self.accepted_tokens.map_or(accepted, |known| known.min(accepted));
        self.accepted_tokens = Some(accepted);
        self.overflow = error.message;
        Action::Compact { accepted_tokens: self.accepted_tokens }
    }

    fn answered(&mut self, results: CallResults, usage: LimitUsage, warnings: &mut Vec<Event>) -> Action {
        match results {
            CallResults { failure: Some(reason), .. } => {
                Action::End(fail(ErrorCode::TurnFailed, "tool_execution_error", reason))
            }
            CallResults { aborted: true, .. } if self.time_is_up(usage) => Action::End(self.out_of_time()),
            CallResults { aborted: true, .. } => Action::Pause,
            CallResults { stage_answer: Some(answer), .. } => self.check(self.or_last_text(answer)),
            CallResults { verified_by: Some(command), .. } if !self.answers.checked => {
                let answer = match self.answer.trim() {
                    "" => format!("Done: `{command}` passes."),
                    said => said.to_owned(),
                };
                Action::End(TaskEnd::Completed { answer })
            }
            CallResults { finished: Some(FinishCall { blocked: true, summary }), .. } => {
                self.answer = self.or_last_text(summary);
                let message = format!("the model reports that it is blocked: {}", self.answer);
                Action::End(fail(ErrorCode::TurnFailed, BLOCKED, message))
            }
            CallResults { finished: Some(FinishCall { blocked: false, summary }), .. } => {
                self.check(self.or_last_text(summary))
            }
            _ => self.ask(usage, warnings),
        }
    }

    fn or_last_text(&self, answer: String) -> String {
        if answer.trim().is_empty() { self.answer.clone() } else { answer }
    }

    fn rejected(&mut self, feedback: Feedback, files: u64) -> Action {
        if self.answers.only_one {
            let reason = match feedback.kind {
                "verify_failed" => "tool_execution_error",
                _ => "output_format_failure",
            };
            return Action::End(fail(ErrorCode::TurnFailed, reason, feedback.text));
        }
        if let Some(times) = self.rejected.again(files) {
            self.halted = Some(format!(
                "the model answered {times} times in a row without a tool call or a file change, although the work is not finished"
            ));
        }
        Action::Reject(feedback)
    }

    fn check(&self, answer: String) -> Action {
        Action::Check { answer, last: self.corrected }
    }

    fn malformed(&mut self, problem: String) -> Action {
        if self.corrected {
            let message = format!("the answer does not have the requested form: {problem}");
            return Action::End(fail(ErrorCode::TurnFailed, "output_format_failure", message));
        }
        self.corrected = true;
        Action::Correct { problem }
    }

    fn compacted(&mut self, smaller: bool, usage: LimitUsage, warnings: &mut Vec<Event>) -> Action {
        self.compacted_to = Some(usage.tokens);
        if self.overflows > 0 && !smaller {
            let message = format!("{} (the conversation cannot be shortened any further)", self.overflow);
            return Action::End(fail(ErrorCode::TokenLimit, "context", message));
        }
        self.ask(usage, warnings)
    }
}

fn fail(code: ErrorCode, reason: &str, message: String) -> TaskEnd {
    TaskEnd::Failed { error: ErrorDetail { code, reason: reason.to_owned(), message }, unreachable: false }
}

fn model_failure(error: &ModelError, attempts: u32) -> TaskEnd {
    if error.kind == ErrorKind::Silence {
        let message = format!(
            "{}{}; raise `timeout_s` if the model needs longer",
            error.message,
            attempts_suffix(attempts)
        );
        return fail(ErrorCode::Timeout, "time", message);
    }
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
    let message = format!("{}{}", error.message, attempts_suffix(attempts));
    let detail = ErrorDetail { code, reason: reason.to_owned(), message };
    TaskEnd::Failed { error: detail, unreachable: error.kind.unreachable() }
}

fn attempts_suffix(attempts: u32) -> String {
    if attempts > 1 { format!(" (after {attempts} attempts)") } else { String::new() }
}

#[cfg(test)]
mod tests;
