//! The machine that runs a [`Program`]: a stack of values, a stack of frames, and nothing of the host's.
//!
//! [`Machine::resume`] runs until the program is done, fails, or wants something from the world; then the machine
//! stands still, as data, until it is resumed with the answer. `run` and `rare` have the
//! instructions, `invoke` the calls, `unwind` the errors, `request` the effects.

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
    /// Where it began: the workflow, or the `pmap` it is an element of.
    home: Place,
}

/// What the machine waits for.
enum State {
    /// To be started, with this many arguments on the stack for the function below them if it is a branch.
    Ready(Option<usize>),
    /// To be told to go on.
    Paused,
    /// For nothing: it runs.
    Running,
    Waiting(Waiting, Place),
    Over,
}

/// What the answer to an effect is used for.
enum Waiting {
    Reply(Text),
    Json,
    Branches(usize),
    /// Nothing: the value is nil.
    Nil,
    EnterLimits(LimitsId),
    /// Nothing: the value is on the stack already.
    LeaveLimits,
    /// To go on with this error.
    Unwind(Box<Fault>),
    /// To try again.
    Retry,
}

enum Frame {
    Code(CodeFrame),
    Native(Box<Native>),
}

#[derive(Clone, Copy)]
struct CodeFrame {
    function: u32,
    /// The next instruction; the one before it is the one under way.
    next: u32,
    /// Where the function's own slots begin.
    base: u32,
    /// Where the stack ends when it returns: at its base, or one below, where the function itself lies.
    floor: u32,
}

/// Where an error goes, and the state it finds.
struct Handler {
    kind: HandlerKind,
    /// Number of frames.
    frames: usize,
    /// Number of values.
    height: usize,
}

enum HandlerKind {
    Catch { target: u32 },
    Finally { target: u32 },
    Retry { left: i64, wait: f64, body: u32 },
    Limits { id: LimitsId },
}

/// How running goes on.
enum Flow {
    /// In whatever frame is on top.
    Go,
    /// Not, for now.
    Yield(Yield),
}

impl Machine {
    /// Runs on with the answer to the last [`Yield`] until there is another.
    ///
    /// An answer of the wrong kind is a fault, not a panic; so is resuming a machine that is done.
    pub fn resume(&mut self, input: Input) -> Yield {
        let flow = match std::mem::replace(&mut self.state, State::Running) {
            State::Over => return self.misused("the workflow is over"),
            State::Ready(arguments) => match (input, arguments) {
                (Input::Go, None) => Ok(Flow::Go),
                (Input::Go, Some(count)) => self.invoke(count),
                (input, _) => self.not_an_answer(input, self.here()),
            },
            State::Paused => match input {
                Input::Go => Ok(Flow::Go),
                other => self.not_an_answer(other, self.here()),
            },
            State::Running => return self.misused("the workflow was left while it ran"),
            State::Waiting(waiting, place) => {
                self.meter.refill();
                self.answered(waiting, place, input)
            }
        };
        self.run_on(flow)
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Calls under way, for tracing.
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

    /// An error instead of an answer, or something that is no answer at all.
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
            _ => Ok(Flow::Yield(self.misused("the answer is not one to what was asked"))),
        }
    }

    /// Waits for the answer to an effect.
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
