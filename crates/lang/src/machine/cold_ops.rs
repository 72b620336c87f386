//! Infrequent instructions, kept out of the loop in [`super::interpreter`]: shared variables, closures, loops,
//! retries.

use std::sync::Arc;

use super::agent_loops::{AgentLoop, AgentLoopKind, LoopFunctions};
use super::{CodeFrame, ControlFlow, Frame, HandlerKind, HigherOrderCall, Machine};
use crate::builtin::result;
use crate::bytecode::{Capture, Op};
use crate::function::{Cell, Closure};
use crate::runtime_error::UnlocatedError;
use crate::value::{Slot, Value, brief};

impl Machine {
    /// Executes an infrequent instruction. The frame must be saved; returning a flow leaves the instruction
    /// loop.
    pub(super) fn execute_cold(
        &mut self,
        op: Op,
        frame: CodeFrame,
    ) -> Result<Option<ControlFlow>, UnlocatedError> {
        match op {
            Op::LocalChecked(slot) => {
                let value = self.bound(self.local(frame, slot).clone())?;
                self.stack.push(value);
            }
            Op::LocalCell(slot) => {
                let value = self.read_cell(self.local(frame, slot))?;
                self.stack.push(value);
            }
            Op::CapturedCell(index) => {
                let value = self.read_cell(self.captured(frame, index))?;
                self.stack.push(value);
            }
            Op::This => {
                let value = self.stack[frame.base as usize - 1].clone();
                self.stack.push(value);
            }
            Op::SetLocal(slot) => {
                let value = self.top().clone();
                self.stack[(frame.base + slot) as usize] = value;
            }
            Op::SetLocalCell(slot) => {
                let cell = self.local(frame, slot).clone();
                self.write_cell(&cell)?;
            }
            Op::SetCapturedCell(index) => {
                let cell = self.captured(frame, index).clone();
                self.write_cell(&cell)?;
            }
            Op::SetGlobal(index) => {
                if !self.branch.is_main() {
                    return Err(not_yours());
                }
                let value = self.top().clone();
                Arc::make_mut(&mut self.globals)[index as usize] = value;
            }
            Op::MakeCell(slot) => self.make_cell((frame.base + slot) as usize),
            Op::Closure(index) => self.make_closure(index, frame),
            Op::LoopBegin => match self.top() {
                Value::Int(count) if *count >= 0 => self.stack.push(Value::Nil),
                other => {
                    let message =
                        format!("a loop needs a count of 0 or more, not {} {}", other.kind(), brief(other));
                    return Err(UnlocatedError::new("wrong-type", message));
                }
            },
            Op::WhileNext => self.while_next()?,
            Op::Match(pattern) => {
                let value = self.pop();
                if let Some(bindings) = self.fits(pattern, value)? {
                    self.stack.extend(bindings);
                    self.skip_one();
                }
            }
            Op::NoMatch => {
                let value = self.pop();
                return Err(UnlocatedError::new("no-match", format!("no pattern matches {}", brief(&value))));
            }
            Op::AssertFailed => {
                let message = self.pop().display(1000);
                return Err(UnlocatedError::new("assertion-failed", message));
            }
            Op::EndFinally => {
                if let Value::Error(fault) = self.pop() {
                    self.stack.pop();
                    return Ok(Some(self.unwind(Box::new((*fault).clone()))?));
                }
            }
            Op::RetryBegin => self.retry_begin(frame)?,
            Op::RetryEnd => return Ok(self.retry_end()),
            Op::EnterLimits(index) => return self.enter_limits(index).map(Some),
            Op::LeaveLimits => return Ok(self.leave_limits()),
            Op::Task(site) => return self.call_site(site).map(Some),
            Op::DirectorLoop => self.begin_work(AgentLoopKind::Director)?,
            Op::IterativeLoop => self.begin_work(AgentLoopKind::Iterative)?,
            // All other instructions are handled in the loop.
            _ => {}
        }
        Ok(None)
    }

    fn skip_one(&mut self) {
        if let Some(Frame::Code(frame)) = self.frames.last_mut() {
            frame.next += 1;
        }
    }

    fn make_cell(&mut self, slot: usize) {
        let value = std::mem::take(&mut self.stack[slot]);
        let cell = Arc::new(Cell::new(value, &self.branch));
        self.cells.add(&cell);
        self.fuel.note(96);
        self.stack[slot] = Value::Slot(Slot(Some(cell)));
    }

    fn read_cell(&self, value: &Value) -> Result<Value, UnlocatedError> {
        match value {
            Value::Slot(Slot(Some(cell))) => self.bound(cell.get()),
            value => self.bound(value.clone()),
        }
    }

    /// The value of a variable; an error if it is not bound yet.
    fn bound(&self, value: Value) -> Result<Value, UnlocatedError> {
        match value {
            Value::Slot(_) => {
                let location = self.current_location();
                let name =
                    self.program.source(&location.file).map_or("", |source| source.slice(location.span));
                Err(UnlocatedError::new("unbound", format!("`{name}` is used before it is bound")))
            }
            value => Ok(value),
        }
    }

    fn write_cell(&mut self, cell: &Value) -> Result<(), UnlocatedError> {
        if let Value::Slot(Slot(Some(cell))) = cell {
            cell.set(self.top().clone(), &self.branch).map_err(|_| not_yours())?;
        }
        Ok(())
    }

    fn make_closure(&mut self, index: u32, frame: CodeFrame) {
        let program = self.program.clone();
        let function = &program.functions[index as usize];
        let captured = function.captures.iter().map(|capture| match capture {
            Capture::Local(slot) => self.local(frame, *slot).clone(),
            Capture::Captured(index) => self.captured(frame, *index).clone(),
            Capture::This => self.stack[frame.base as usize - 1].clone(),
        });
        let closure = Closure::new(function.name.clone(), index, captured.collect(), function.plain);
        self.fuel.note(64 + closure.captured.len() * size_of::<Value>());
        self.stack.push(Value::Function(Arc::new(closure)));
    }

    fn while_next(&mut self) -> Result<(), UnlocatedError> {
        self.stack.pop();
        match self.stack.last_mut() {
            Some(Value::Int(left)) if *left > 0 => {
                *left -= 1;
                Ok(())
            }
            _ => Err(UnlocatedError::exhausted(
                "turns",
                "the loop reached `:max` iterations and its test is still true",
            )),
        }
    }

    fn retry_begin(&mut self, frame: CodeFrame) -> Result<(), UnlocatedError> {
        let (wait, times) = (self.pop(), self.pop());
        let Value::Int(times @ 1..) = times else {
            let message =
                format!("`retry` needs a count of 1 or more, not {} {}", times.kind(), brief(&times));
            return Err(UnlocatedError::new("wrong-type", message));
        };
        let wait = match wait {
            Value::Int(seconds @ 0..) => seconds as f64,
            Value::Float(seconds) if seconds >= 0.0 => seconds,
            other => {
                let message =
                    format!("`:backoff` must be a number of seconds, not {} {}", other.kind(), brief(&other));
                return Err(UnlocatedError::new("wrong-type", message));
            }
        };
        self.push_handler(HandlerKind::Retry { left: times - 1, wait, body: frame.next });
        Ok(())
    }

    fn retry_end(&mut self) -> Option<ControlFlow> {
        let handler = self.handlers.pop()?;
        let failed = matches!(self.top(), Value::Result(_)) && !result::is_ok(self.top());
        match handler.kind {
            HandlerKind::Retry { left, wait, body } if failed && left > 0 => {
                self.stack.truncate(handler.height);
                match self.next_attempt(left, wait, body) {
                    ControlFlow::Go => None,
                    yielded => Some(yielded),
                }
            }
            _ => None,
        }
    }

    fn begin_work(&mut self, kind: AgentLoopKind) -> Result<(), UnlocatedError> {
        if self.frames.len() >= self.fuel.limits.depth {
            return Err(self.too_deep());
        }
        let (controller, judge, executor) = (self.pop(), self.pop(), self.pop());
        let (first, input, most) = (self.pop(), self.pop(), self.pop());
        let work = AgentLoop::new(kind, &most, input, LoopFunctions { first, executor, judge, controller })?;
        let name = if kind == AgentLoopKind::Director { "director-evaluator-loop" } else { "iterative-loop" };
        self.frames.push(Frame::Native(Box::new(HigherOrderCall::work(name, work))));
        Ok(())
    }
}

fn not_yours() -> UnlocatedError {
    let message = "an element of `pmap` cannot change an outer variable: the elements run in no fixed order";
    UnlocatedError::new("shared-variable", message)
}
