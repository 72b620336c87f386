//! Function calls: closures, library functions, and callbacks of library functions.

use super::native::Next;
use super::{CodeFrame, Flow, Frame, Machine, Waiting};
use crate::builtin::{Builtin, Run};
use crate::effect::{EffectKind, Yield};
use crate::fault::{How, Problem};
use crate::value::{Value, brief};

use super::native::Begun;

impl Machine {
    /// Calls the function below the top `count` values of the stack with these as arguments.
    pub(super) fn invoke(&mut self, count: usize) -> Result<Flow, Problem> {
        let base = self.stack.len() - count;
        let floor = base - 1;
        match self.stack.get(floor) {
            Some(Value::Function(closure)) => {
                let function = closure.code;
                self.enter(function, count, base, floor)?;
                Ok(Flow::Go)
            }
            Some(Value::Builtin(builtin)) => {
                let builtin: &'static Builtin = builtin;
                self.check_builtin_arity(builtin, count)?;
                self.run_builtin(builtin, count, floor)
            }
            Some(other) => Err(not_callable(other)),
            None => Ok(Flow::Go),
        }
    }

    /// Pushes the frame of a function whose arguments start at `base`.
    pub(super) fn enter(
        &mut self,
        function: u32,
        count: usize,
        base: usize,
        floor: usize,
    ) -> Result<(), Problem> {
        let code = &self.program.functions[function as usize];
        if code.params as usize != count {
            let message = format!("`{}` takes {}, not {count}", code.name, code.arity());
            return Err(Problem::new("wrong-arity", message));
        }
        if self.frames.len() >= self.meter.limits.depth {
            return Err(self.too_deep());
        }
        self.frames.push(Frame::Code(CodeFrame {
            function,
            next: 0,
            base: base as u32,
            floor: floor as u32,
        }));
        Ok(())
    }

    pub(super) fn too_deep(&self) -> Problem {
        let message = format!("calls are nested deeper than {}", self.meter.limits.depth);
        Problem::exhausted("depth", message)
    }

    fn check_builtin_arity(&self, builtin: &Builtin, count: usize) -> Result<(), Problem> {
        if builtin.arity.allows(count) {
            return Ok(());
        }
        let message = format!("`{}` takes {}, not {count}", builtin.name, builtin.arity);
        Err(Problem::new("wrong-arity", message))
    }

    /// Runs a library function on the top `count` values; its result replaces everything from `floor` on.
    pub(super) fn run_builtin(
        &mut self,
        builtin: &'static Builtin,
        count: usize,
        floor: usize,
    ) -> Result<Flow, Problem> {
        let start = self.stack.len() - count;
        match &builtin.run {
            Run::Pure(run) => {
                let value = self.with_room(start, *run)?;
                self.stack.truncate(floor);
                self.stack.push(value);
                Ok(Flow::Go)
            }
            Run::Native(begin) => {
                if self.frames.len() >= self.meter.limits.depth {
                    return Err(self.too_deep());
                }
                let begun = self.with_room(start, *begin)?;
                self.stack.truncate(floor);
                match begun {
                    Begun::Value(value) => self.stack.push(value),
                    Begun::Native(native) => self.frames.push(Frame::Native(Box::new(native))),
                }
                Ok(Flow::Go)
            }
            Run::Effect(ask) => {
                let kind = self.with_room(start, *ask)?;
                self.stack.truncate(floor);
                let waiting =
                    if matches!(kind, EffectKind::AskUser { .. }) { Waiting::Json } else { Waiting::Nil };
                Ok(self.want(kind, waiting))
            }
            Run::FanOut => self.begin_fan_out(count, floor),
        }
    }

    /// Runs `run` on the values from `start` on. If it may exceed the memory limit, measures live memory and
    /// runs it once more if there is enough.
    fn with_room<T>(
        &mut self,
        start: usize,
        run: fn(&mut crate::meter::Meter, &[Value]) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let arguments = self.stack.get(start..).unwrap_or_default();
        match run(&mut self.meter, arguments) {
            Err(problem) => {
                let report = problem.into_report();
                match report.how {
                    How::NeedMemory(bytes) if self.make_room(bytes) => {
                        let arguments = self.stack.get(start..).unwrap_or_default();
                        run(&mut self.meter, arguments)
                    }
                    _ => Err(report.into()),
                }
            }
            done => done,
        }
    }

    /// Executes one step of the native function in the top frame.
    pub(super) fn run_native(&mut self) -> Result<Flow, Problem> {
        if self.meter.left == 0
            && let Some(pause) = self.look_up()?
        {
            return Ok(Flow::Yield(pause));
        }
        self.meter.left = self.meter.left.saturating_sub(1);
        let Some(Frame::Native(native)) = self.frames.last_mut() else { return Ok(Flow::Go) };
        match native.step(&mut self.meter, &mut self.stack) {
            Ok(Next::Call(count)) => self.invoke(count),
            Ok(Next::Return(value)) => {
                self.frames.pop();
                self.stack.push(value);
                Ok(Flow::Go)
            }
            Err(problem) => {
                let report = problem.into_report();
                match report.how {
                    // The step has not consumed anything yet, so it can simply be repeated.
                    How::NeedMemory(bytes) if self.make_room(bytes) => Ok(Flow::Go),
                    _ => Err(report.into()),
                }
            }
        }
    }

    /// Called at the end of a slice of steps: pauses, or fails if no steps are left.
    pub(super) fn look_up(&mut self) -> Result<Option<Yield>, Problem> {
        if self.meter.is_overdrawn() && !self.make_room(0) {
            return Err(Problem::need_memory(0));
        }
        if !self.meter.next_slice() {
            return Err(Problem::out_of_steps());
        }
        self.state = super::State::Paused;
        Ok(Some(Yield::Pause))
    }
}

pub(super) fn not_callable(value: &Value) -> Problem {
    Problem::new("not-a-function", format!("{} {} is not a function", value.kind(), brief(value)))
}
