//! Function calls: closures, library functions, and callbacks of library functions.

use super::higher_order::NextStep;
use super::{CodeFrame, ControlFlow, Frame, Machine, PendingEffect};
use crate::builtin::{Builtin, Run};
use crate::effect::{EffectKind, Yield};
use crate::runtime_error::{ErrorHandling, UnlocatedError};
use crate::value::{Value, brief};

use super::higher_order::NativeStart;

impl Machine {
    /// Calls the function below the top `count` values of the stack with these as arguments.
    pub(super) fn invoke(&mut self, count: usize) -> Result<ControlFlow, UnlocatedError> {
        let base = self.stack.len() - count;
        let floor = base - 1;
        match self.stack.get(floor) {
            Some(Value::Function(closure)) => {
                let function = closure.code;
                self.enter(function, count, base, floor)?;
                Ok(ControlFlow::Go)
            }
            Some(Value::Builtin(builtin)) => {
                let builtin: &'static Builtin = builtin;
                self.check_builtin_arity(builtin, count)?;
                self.run_builtin(builtin, count, floor)
            }
            Some(other) => Err(not_callable(other)),
            None => Ok(ControlFlow::Go),
        }
    }

    /// Pushes the frame of a function whose arguments start at `base`.
    pub(super) fn enter(
        &mut self,
        function: u32,
        count: usize,
        base: usize,
        floor: usize,
    ) -> Result<(), UnlocatedError> {
        let code = &self.program.functions[function as usize];
        if code.params as usize != count {
            let message = format!("`{}` takes {}, not {count}", code.name, code.arity());
            return Err(UnlocatedError::new("wrong-arity", message));
        }
        if self.frames.len() >= self.fuel.limits.depth {
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

    pub(super) fn too_deep(&self) -> UnlocatedError {
        let message = format!("calls are nested deeper than {}", self.fuel.limits.depth);
        UnlocatedError::exhausted("depth", message)
    }

    fn check_builtin_arity(&self, builtin: &Builtin, count: usize) -> Result<(), UnlocatedError> {
        if builtin.arity.allows(count) {
            return Ok(());
        }
        let message = format!("`{}` takes {}, not {count}", builtin.name, builtin.arity);
        Err(UnlocatedError::new("wrong-arity", message))
    }

    /// Runs a library function on the top `count` values; its result replaces everything from `floor` on.
    pub(super) fn run_builtin(
        &mut self,
        builtin: &'static Builtin,
        count: usize,
        floor: usize,
    ) -> Result<ControlFlow, UnlocatedError> {
        let start = self.stack.len() - count;
        match &builtin.run {
            Run::Pure(run) => {
                let value = self.retry_after_gc(start, *run)?;
                self.stack.truncate(floor);
                self.stack.push(value);
                Ok(ControlFlow::Go)
            }
            Run::Native(begin) => {
                if self.frames.len() >= self.fuel.limits.depth {
                    return Err(self.too_deep());
                }
                let begun = self.retry_after_gc(start, *begin)?;
                self.stack.truncate(floor);
                match begun {
                    NativeStart::Value(value) => self.stack.push(value),
                    NativeStart::Native(native) => self.frames.push(Frame::Native(Box::new(native))),
                }
                Ok(ControlFlow::Go)
            }
            Run::Effect(ask) => {
                let kind = self.retry_after_gc(start, *ask)?;
                self.stack.truncate(floor);
                let waiting = if matches!(kind, EffectKind::AskUser { .. }) {
                    PendingEffect::Json
                } else {
                    PendingEffect::Nil
                };
                Ok(self.yield_effect(kind, waiting))
            }
            Run::FanOut => self.begin_fan_out(count, floor),
        }
    }

    /// Runs `run` on the values from `start` on. If it may exceed the memory limit, measures live memory and
    /// runs it once more if there is enough.
    fn retry_after_gc<T>(
        &mut self,
        start: usize,
        run: fn(&mut crate::fuel::Fuel, &[Value]) -> Result<T, UnlocatedError>,
    ) -> Result<T, UnlocatedError> {
        let arguments = self.stack.get(start..).unwrap_or_default();
        match run(&mut self.fuel, arguments) {
            Err(problem) => {
                let report = problem.into_report();
                match report.how {
                    ErrorHandling::NeedMemory(bytes) if self.has_memory_for(bytes) => {
                        let arguments = self.stack.get(start..).unwrap_or_default();
                        run(&mut self.fuel, arguments)
                    }
                    _ => Err(report.into()),
                }
            }
            done => done,
        }
    }

    /// Executes one step of the native function in the top frame.
    pub(super) fn run_native(&mut self) -> Result<ControlFlow, UnlocatedError> {
        if self.fuel.left == 0
            && let Some(pause) = self.look_up()?
        {
            return Ok(ControlFlow::Yield(pause));
        }
        self.fuel.left = self.fuel.left.saturating_sub(1);
        let Some(Frame::Native(native)) = self.frames.last_mut() else { return Ok(ControlFlow::Go) };
        match native.step(&mut self.fuel, &mut self.stack) {
            Ok(NextStep::Call(count)) => self.invoke(count),
            Ok(NextStep::Return(value)) => {
                self.frames.pop();
                self.stack.push(value);
                Ok(ControlFlow::Go)
            }
            Err(problem) => {
                let report = problem.into_report();
                match report.how {
                    // The step has not consumed anything yet, so it can simply be repeated.
                    ErrorHandling::NeedMemory(bytes) if self.has_memory_for(bytes) => Ok(ControlFlow::Go),
                    _ => Err(report.into()),
                }
            }
        }
    }

    /// Called at the end of a slice of steps: pauses, or fails if no steps are left.
    pub(super) fn look_up(&mut self) -> Result<Option<Yield>, UnlocatedError> {
        if self.fuel.is_overdrawn() && !self.has_memory_for(0) {
            return Err(UnlocatedError::need_memory(0));
        }
        if !self.fuel.next_slice() {
            return Err(UnlocatedError::out_of_steps());
        }
        self.state = super::MachineState::Paused;
        Ok(Some(Yield::Pause))
    }
}

pub(super) fn not_callable(value: &Value) -> UnlocatedError {
    UnlocatedError::new("not-a-function", format!("{} {} is not a function", value.kind(), brief(value)))
}
