//! The machine that runs a [`Program`], with its own value stack and frame stack instead of the host's.
//!
//! [`Machine::resume`] runs until the program is done, fails, or requests an effect; then the machine is
//! suspended until it is resumed with the answer. `run` and `rare` implement the instructions, `invoke`
//! calls, `unwind` error handling, `request` effects.

mod fan_out;
mod invoke;
mod matching;
mod memory;
mod native;
mod rare;
mod request;
mod run;
mod sort;
mod start;
mod unwind;
mod work;

use std::sync::Arc;

use crate::code::Program;
use crate::effect::{Effect, EffectKind, Input, LimitsId, Yield};
use crate::fault::{Call, Fault, Place, Problem};
use crate::function::Branch;
use crate::meter::Meter;
use crate::result::TaskResult;
use crate::value::{Text, Value};

pub use fan_out::FanOut;
use memory::Cells;
pub(crate) use native::{Begun, Each, Native};
pub use start::InputProblem;

/// A running workflow, or one element of a `pmap`.
pub struct Machine {
    program: Arc<Program>,
    globals: Arc<Vec<Value>>,
    stack: Vec<Value>,
    frames: Vec<Frame>,
    handlers: Vec<Handler>,
    meter: Meter,
    branch: Arc<Branch>,
    cells: Arc<Cells>,
    state: State,
    next_limits: u64,
    /// Location of the workflow, or of the `pmap` this machine evaluates an element of.
    home: Place,
}

/// Execution state: what the machine is waiting for.
enum State {
    /// Not started yet. A branch has a function on the stack, with this many arguments above it.
    Ready(Option<usize>),
    /// Between two slices of steps.
    Paused,
    /// Executing; only seen from outside after a panic in `resume`.
    Running,
    Waiting(Waiting, Place),
    Over,
}

/// How the answer to an effect is used.
enum Waiting {
    Reply(Text),
    Json,
    Branches(usize),
    /// Pushes nil.
    Nil,
    EnterLimits(LimitsId),
    /// Pushes nothing: the value is already on the stack.
    LeaveLimits,
    /// Continues unwinding with this error.
    Unwind(Box<Fault>),
    /// Starts the next attempt.
    Retry,
}

enum Frame {
    Code(CodeFrame),
    Native(Box<Native>),
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
struct Handler {
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
enum Flow {
    /// In the frame on top.
    Go,
    /// Suspended until the machine is resumed.
    Yield(Yield),
}

impl Machine {
    /// Continues with the answer to the last [`Yield`] until the next one.
    ///
    /// An answer of the wrong kind and resuming a finished machine are faults, not panics.
    pub fn resume(&mut self, input: Input) -> Yield {
        let flow = match std::mem::replace(&mut self.state, State::Running) {
            State::Over => return self.misused("the workflow has already ended"),
            State::Ready(arguments) => match (input, arguments) {
                (Input::Go, None) => Ok(Flow::Go),
                (Input::Go, Some(count)) => self.invoke(count),
                (input, _) => self.not_an_answer(input, self.here()),
            },
            State::Paused => match input {
                Input::Go => Ok(Flow::Go),
                other => self.not_an_answer(other, self.here()),
            },
            State::Running => return self.misused("the workflow was interrupted while running"),
            State::Waiting(waiting, place) => {
                self.meter.refill();
                self.answered(waiting, place, input)
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

    fn run_on(&mut self, mut flow: Result<Flow, Problem>) -> Yield {
        loop {
            let found = match flow {
                Ok(Flow::Go) => None,
                Ok(Flow::Yield(found)) => Some(found),
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
                None => Ok(Flow::Yield(Yield::Done(self.stack.pop().unwrap_or_default()))),
            };
        }
    }

    fn answered(&mut self, waiting: Waiting, place: Place, input: Input) -> Result<Flow, Problem> {
        match (waiting, input) {
            (Waiting::Reply(callee), Input::Reply(reply)) => {
                self.meter.note(reply.content.len());
                self.stack.push(Value::Result(Arc::new(TaskResult::new(reply, callee, place))));
            }
            (Waiting::Json, Input::Json(json)) => self.stack.push(Value::from_json(json)),
            (Waiting::Branches(count), Input::Branches(values)) if values.len() == count => {
                self.stack.push(Value::list(values));
            }
            (Waiting::Nil, Input::Go) => self.stack.push(Value::Nil),
            (Waiting::EnterLimits(id), Input::Go) => self.push_handler(HandlerKind::Limits { id }),
            (Waiting::LeaveLimits, Input::Go) => {}
            (Waiting::Unwind(fault), Input::Go) => return self.unwind(fault),
            (Waiting::Retry, Input::Go) => self.try_again(),
            (_, input) => return self.not_an_answer(input, place),
        }
        Ok(Flow::Go)
    }

    /// Handles an input that is not the expected answer: an error, or misuse by the driver.
    fn not_an_answer(&mut self, input: Input, place: Place) -> Result<Flow, Problem> {
        match input {
            Input::Failed(failure) => {
                let fault = self.fault_of(failure, place);
                self.unwind(Box::new(fault))
            }
            Input::LimitReached(id, failure) => {
                let mut fault = self.fault_of(failure, place);
                match id {
                    Some(LimitsId(id)) => {
                        fault.beyond = Some(id);
                        self.unwind(Box::new(fault))
                    }
                    None => Ok(Flow::Yield(Yield::Fault(Box::new(fault)))),
                }
            }
            Input::BranchFailed(mut fault) => {
                fault.trail.push(Call { name: Text::from("pmap"), place: Some(place) });
                fault.trail.extend(self.trail());
                fault.trail.truncate(Fault::TRAIL);
                self.unwind(fault)
            }
            _ => Ok(Flow::Yield(self.misused("the answer does not match the effect"))),
        }
    }

    /// Yields an effect and waits for its answer.
    fn want(&mut self, kind: EffectKind, waiting: Waiting) -> Flow {
        let place = self.here();
        self.state = State::Waiting(waiting, place.clone());
        Flow::Yield(Yield::Effect(Effect { kind, place }))
    }

    fn push_handler(&mut self, kind: HandlerKind) {
        self.handlers.push(Handler { kind, frames: self.frames.len(), height: self.stack.len() });
    }

    fn end(&mut self) {
        self.state = State::Over;
        self.branch.finish();
        self.stack.clear();
        self.frames.clear();
        self.handlers.clear();
    }

    fn misused(&mut self, message: &str) -> Yield {
        let fault = self.fault(Problem::new("misused-machine", message).into_report());
        self.end();
        Yield::Fault(Box::new(fault))
    }
}
