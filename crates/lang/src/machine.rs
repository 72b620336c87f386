//! The machine that runs a [`Program`], with its own value stack and frame stack instead of the host's.
//!
//! [`Machine::resume`] runs until the program is done, fails, or requests an effect; then the machine is
//! suspended until it is resumed with the answer. `interpreter` and `cold_ops` implement the instructions, `invoke`
//! calls, `unwind` error handling, `request` effects.

mod agent_loops;
mod cold_ops;
mod fan_out;
mod higher_order;
mod interpreter;
mod invoke;
mod memory;
mod pattern_match;
mod request;
mod sort;
mod start;
mod unwind;

use std::sync::Arc;

use crate::bytecode::Program;
use crate::effect::{Effect, EffectKind, LimitsId, ResumeInput, Yield};
use crate::fuel::Fuel;
use crate::function::EvaluationBranch;
use crate::result::ResultValue;
use crate::runtime_error::{RuntimeError, SourceLocation, TraceEntry, UnlocatedError};
use crate::value::{Text, Value};

pub use fan_out::FanOut;
pub(crate) use higher_order::{HigherOrderCall, ItemAction, NativeStart};
use memory::Cells;
pub use start::ParameterProblem;

/// A running workflow, or one element of a `pmap`.
pub struct Machine {
    program: Arc<Program>,
    globals: Arc<Vec<Value>>,
    stack: Vec<Value>,
    frames: Vec<Frame>,
    handlers: Vec<ErrorHandler>,
    fuel: Fuel,
    branch: Arc<EvaluationBranch>,
    cells: Arc<Cells>,
    state: MachineState,
    next_limits: u64,
    /// Location of the workflow, or of the `pmap` this machine evaluates an element of.
    home: SourceLocation,
}

/// Execution state: what the machine is waiting for.
enum MachineState {
    /// Not started yet. A branch has a function on the stack, with this many arguments above it.
    Ready(Option<usize>),
    /// Between two slices of steps.
    Paused,
    /// Executing; only seen from outside after a panic in `resume`.
    Running,
    Waiting(PendingEffect, SourceLocation),
    Over,
}

/// How the answer to an effect is used.
enum PendingEffect {
    Reply(Text),
    Json,
    Branches(usize),
    /// Pushes nil.
    Nil,
    EnterLimits(LimitsId),
    /// Pushes nothing: the value is already on the stack.
    LeaveLimits,
    /// Continues unwinding with this error.
    Unwind(Box<RuntimeError>),
    /// Starts the next attempt.
    Retry,
}

enum Frame {
    Code(CodeFrame),
    Native(Box<HigherOrderCall>),
}

#[derive(Clone, Copy)]
struct CodeFrame {
    function: u32,
    /// Index of the next instruction; the current one precedes it.
    next: u32,
    /// Stack index of the function's first slot.
    base: u32,
    /// Stack height after it returns: its base, or one below if the function value itself is on the stack.
    floor: u32,
}

/// An error handler and the state to restore for it.
struct ErrorHandler {
    kind: HandlerKind,
    /// Number of frames to restore.
    frames: usize,
    /// Stack height to restore.
    height: usize,
}

enum HandlerKind {
    Catch { target: u32 },
    Finally { target: u32 },
    Retry { left: i64, wait: f64, body: u32 },
    Limits { id: LimitsId },
}

/// How execution continues.
enum ControlFlow {
    /// In the frame on top.
    Go,
    /// Suspended until the machine is resumed.
    Yield(Yield),
}

impl Machine {
    /// Continues with the answer to the last [`Yield`] until the next one.
    ///
    /// An answer of the wrong kind and resuming a finished machine are faults, not panics.
    pub fn resume(&mut self, input: ResumeInput) -> Yield {
        let flow = match std::mem::replace(&mut self.state, MachineState::Running) {
            MachineState::Over => return self.reject_resume("the workflow has already ended"),
            MachineState::Ready(arguments) => match (input, arguments) {
                (ResumeInput::Go, None) => Ok(ControlFlow::Go),
                (ResumeInput::Go, Some(count)) => self.invoke(count),
                (input, _) => self.not_an_answer(input, self.current_location()),
            },
            MachineState::Paused => match input {
                ResumeInput::Go => Ok(ControlFlow::Go),
                other => self.not_an_answer(other, self.current_location()),
            },
            MachineState::Running => return self.reject_resume("the workflow was interrupted while running"),
            MachineState::Waiting(waiting, location) => {
                self.fuel.refill();
                self.answered(waiting, location, input)
            }
        };
        self.run_on(flow)
    }

    /// The program this machine runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Number of active calls, for tracing.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    fn run_on(&mut self, mut flow: Result<ControlFlow, UnlocatedError>) -> Yield {
        loop {
            let found = match flow {
                Ok(ControlFlow::Go) => None,
                Ok(ControlFlow::Yield(found)) => Some(found),
                Err(problem) => self.fail(problem),
            };
            if let Some(found) = found {
                if matches!(found, Yield::Done(_) | Yield::Fault(_)) {
                    self.end();
                }
                return found;
            }
            flow = match self.frames.last() {
                Some(Frame::Code(frame)) => self.run_code(*frame),
                Some(Frame::Native(_)) => self.run_native(),
                None => Ok(ControlFlow::Yield(Yield::Done(self.stack.pop().unwrap_or_default()))),
            };
        }
    }

    fn answered(
        &mut self,
        waiting: PendingEffect,
        location: SourceLocation,
        input: ResumeInput,
    ) -> Result<ControlFlow, UnlocatedError> {
        match (waiting, input) {
            (PendingEffect::Reply(callee), ResumeInput::Reply(reply)) => {
                self.fuel.note(reply.content.len());
                self.stack.push(Value::Result(Arc::new(ResultValue::new(reply, callee, location))));
            }
            (PendingEffect::Json, ResumeInput::Json(json)) => self.stack.push(Value::from_json(json)),
            (PendingEffect::Branches(count), ResumeInput::Branches(values)) if values.len() == count => {
                self.stack.push(Value::list(values));
            }
            (PendingEffect::Nil, ResumeInput::Go) => self.stack.push(Value::Nil),
            (PendingEffect::EnterLimits(id), ResumeInput::Go) => {
                self.push_handler(HandlerKind::Limits { id })
            }
            (PendingEffect::LeaveLimits, ResumeInput::Go) => {}
            (PendingEffect::Unwind(fault), ResumeInput::Go) => return self.unwind(fault),
            (PendingEffect::Retry, ResumeInput::Go) => self.try_again(),
            (_, input) => return self.not_an_answer(input, location),
        }
        Ok(ControlFlow::Go)
    }

    /// Handles an input that is not the expected answer: an error, or misuse by the driver.
    fn not_an_answer(
        &mut self,
        input: ResumeInput,
        location: SourceLocation,
    ) -> Result<ControlFlow, UnlocatedError> {
        match input {
            ResumeInput::Failed(failure) => {
                let fault = self.fault_of(failure, location);
                self.unwind(Box::new(fault))
            }
            ResumeInput::LimitReached(id, failure) => {
                let mut fault = self.fault_of(failure, location);
                match id {
                    Some(LimitsId(id)) => {
                        fault.omitted_frames = Some(id);
                        self.unwind(Box::new(fault))
                    }
                    None => Ok(ControlFlow::Yield(Yield::Fault(Box::new(fault)))),
                }
            }
            ResumeInput::BranchFailed(mut fault) => {
                fault.trail.push(TraceEntry { name: Text::from("pmap"), location: Some(location) });
                fault.trail.extend(self.active_calls());
                fault.trail.truncate(RuntimeError::TRAIL);
                self.unwind(fault)
            }
            _ => Ok(ControlFlow::Yield(self.reject_resume("the answer does not match the effect"))),
        }
    }

    /// Yields an effect and waits for its answer.
    fn yield_effect(&mut self, kind: EffectKind, waiting: PendingEffect) -> ControlFlow {
        let location = self.current_location();
        self.state = MachineState::Waiting(waiting, location.clone());
        ControlFlow::Yield(Yield::Effect(Effect { kind, location }))
    }

    fn push_handler(&mut self, kind: HandlerKind) {
        self.handlers.push(ErrorHandler { kind, frames: self.frames.len(), height: self.stack.len() });
    }

    fn end(&mut self) {
        self.state = MachineState::Over;
        self.branch.finish();
        self.stack.clear();
        self.frames.clear();
        self.handlers.clear();
    }

    fn reject_resume(&mut self, message: &str) -> Yield {
        let fault = self.fault(UnlocatedError::new("misused-machine", message).into_report());
        self.end();
        Yield::Fault(Box::new(fault))
    }
}
