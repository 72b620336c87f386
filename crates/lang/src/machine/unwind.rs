//! Error handling: locations, stack traces, and unwinding to handlers.

use super::{ControlFlow, ErrorHandler, Frame, HandlerKind, Machine, PendingEffect};
use crate::effect::{EffectFailure, EffectKind, Yield};
use crate::runtime_error::{
    ErrorHandling, ErrorReport, RuntimeError, SourceLocation, TraceEntry, UnlocatedError,
};
use crate::value::{Text, Value};

/// Maximum wait before a retry, in seconds.
const LONGEST_WAIT: f64 = 3600.0;

impl Machine {
    /// Handles an error; `None` if the program continues.
    pub(super) fn fail(&mut self, problem: UnlocatedError) -> Option<Yield> {
        let mut report = problem.into_report();
        let fault = match std::mem::replace(&mut report.how, ErrorHandling::Raise) {
            ErrorHandling::Whole(mut fault) => {
                if fault.trail.is_empty() {
                    fault.trail = self.active_calls();
                }
                fault
            }
            ErrorHandling::Raise => Box::new(self.fault(report)),
            // Uncatchable: the program could not continue without the exhausted resource.
            ErrorHandling::OutOfSteps => {
                let steps = self.fuel.limits.steps;
                report.message = format!("more than {steps} steps without a task, tool call or other effect");
                return Some(Yield::Fault(Box::new(self.fault(report))));
            }
            ErrorHandling::NeedMemory(_) => {
                report.message =
                    format!("the workflow uses more than {} bytes of memory", self.fuel.limits.memory);
                return Some(Yield::Fault(Box::new(self.fault(report))));
            }
        };
        match self.unwind(fault) {
            Ok(ControlFlow::Go) => None,
            Ok(ControlFlow::Yield(found)) => Some(found),
            Err(problem) => Some(Yield::Fault(Box::new(self.fault(problem.into_report())))),
        }
    }

    /// Unwinds to the innermost handler that accepts the error.
    pub(super) fn unwind(&mut self, mut fault: Box<RuntimeError>) -> Result<ControlFlow, UnlocatedError> {
        while let Some(ErrorHandler { kind, frames, height }) = self.handlers.pop() {
            let passes = fault.omitted_frames.is_some();
            match kind {
                HandlerKind::Catch { .. } if passes => {}
                HandlerKind::Catch { target } => {
                    self.restore(frames, height);
                    self.stack.push(Value::Error(std::sync::Arc::new(*fault)));
                    self.jump(target);
                    return Ok(ControlFlow::Go);
                }
                HandlerKind::Finally { target } => {
                    self.restore(frames, height);
                    self.stack.extend([Value::Nil, Value::Error(std::sync::Arc::new(*fault))]);
                    self.jump(target);
                    return Ok(ControlFlow::Go);
                }
                HandlerKind::Retry { left, .. } if passes || left <= 0 => {}
                HandlerKind::Retry { left, wait, body } => {
                    self.restore(frames, height);
                    return Ok(self.next_attempt(left, wait, body));
                }
                HandlerKind::Limits { id } => {
                    self.restore(frames, height);
                    if fault.omitted_frames == Some(id.0) {
                        fault.omitted_frames = None;
                    }
                    return Ok(
                        self.yield_effect(EffectKind::LeaveLimits { id }, PendingEffect::Unwind(fault))
                    );
                }
            }
        }
        Ok(ControlFlow::Yield(Yield::Fault(fault)))
    }

    /// Starts another attempt of a `retry`, immediately or after a wait. The stack is as it was before the
    /// first attempt.
    pub(super) fn next_attempt(&mut self, left: i64, wait: f64, body: u32) -> ControlFlow {
        self.push_handler(HandlerKind::Retry { left: left - 1, wait: (wait * 2.0).min(LONGEST_WAIT), body });
        if wait > 0.0 {
            return self.yield_effect(EffectKind::Wait { seconds: wait }, PendingEffect::Retry);
        }
        self.try_again();
        ControlFlow::Go
    }

    /// Jumps to the body of the innermost `retry`.
    pub(super) fn try_again(&mut self) {
        if let Some(ErrorHandler { kind: HandlerKind::Retry { body, .. }, .. }) = self.handlers.last() {
            let body = *body;
            self.jump(body);
        }
    }

    fn restore(&mut self, frames: usize, height: usize) {
        self.frames.truncate(frames);
        self.stack.truncate(height);
    }

    fn jump(&mut self, target: u32) {
        if let Some(Frame::Code(frame)) = self.frames.last_mut() {
            frame.next = target;
        }
    }

    /// Creates a fault from a report, located at the current form.
    pub(super) fn fault(&self, report: ErrorReport) -> RuntimeError {
        RuntimeError {
            kind: report.kind,
            reason: report.reason,
            code: report.code,
            message: report.message,
            value: report.value,
            location: self.current_location(),
            trail: self.active_calls(),
            cause: Value::Nil,
            omitted_frames: None,
        }
    }

    /// Creates a fault from a failed effect.
    pub(super) fn fault_of(&self, failure: EffectFailure, location: SourceLocation) -> RuntimeError {
        RuntimeError {
            kind: failure.kind.into(),
            reason: failure.reason.map(Text::from),
            code: "effect-failed",
            message: failure.message,
            value: Value::Nil,
            location,
            trail: self.active_calls(),
            cause: failure.cause.map_or(Value::Nil, Value::from_json),
            omitted_frames: None,
        }
    }

    /// Location of the current form.
    pub(super) fn current_location(&self) -> SourceLocation {
        let code = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Code(frame) => Some(self.place_of(frame)),
            Frame::Native(_) => None,
        });
        code.unwrap_or_else(|| self.home.clone())
    }

    fn place_of(&self, frame: &super::CodeFrame) -> SourceLocation {
        let function = &self.program.functions[frame.function as usize];
        let at = frame.next.saturating_sub(1) as usize;
        let span = function.spans.get(at).copied().unwrap_or_default();
        self.program.location(function.file, span)
    }

    /// The active calls, innermost first.
    pub(super) fn active_calls(&self) -> Vec<TraceEntry> {
        let mut calls = Vec::new();
        for (index, frame) in self.frames.iter().enumerate().rev() {
            // The bottom frame is the workflow itself, which has no caller, or the function of a `pmap`
            // element.
            if calls.len() == RuntimeError::TRAIL || (index == 0 && self.branch.is_main()) {
                break;
            }
            let name = match frame {
                Frame::Code(frame) => self.program.functions[frame.function as usize].name.clone(),
                Frame::Native(native) => Text::from(native.name),
            };
            let location = match index.checked_sub(1).and_then(|below| self.frames.get(below)) {
                Some(Frame::Code(caller)) => Some(self.place_of(caller)),
                _ => None,
            };
            calls.push(TraceEntry { name, location });
        }
        calls
    }
}
