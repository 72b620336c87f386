//! Emitting instructions and tracking the stack depth.

use fusee_text::Span;
use fusee_text::sexpr::NodeId;

use super::compiler::{Compiler, JumpKind, LabelId, TailPosition};
use super::scope::{FunctionBuilder, Label};
use crate::bytecode::{Capture, Function, Op};
use crate::value::Value;

impl<'t> Compiler<'t> {
    /// Emits an instruction with the span of a form.
    pub(super) fn emit(&mut self, op: Op, node: NodeId) {
        let span = self.tree().span(node);
        self.emit_at(op, span);
    }

    pub(super) fn emit_at(&mut self, op: Op, span: Span) {
        let change = self.change(op);
        let builder = self.builder();
        builder.depth = builder.depth.saturating_add_signed(change);
        builder.code.push(op);
        builder.spans.push(span);
    }

    /// Emits an instruction that pushes one value, followed by a return if the expression is in tail
    /// position.
    pub(super) fn leaf(&mut self, op: Op, node: NodeId, tail: TailPosition) {
        self.emit(op, node);
        self.end_of(node, tail);
    }

    /// Emits a return if the expression just compiled is in tail position.
    pub(super) fn end_of(&mut self, node: NodeId, tail: TailPosition) {
        if tail == TailPosition::Yes {
            self.emit(Op::Return, node);
        }
    }

    pub(super) fn label(&mut self) -> LabelId {
        let builder = self.builder();
        builder.labels.push(Label::default());
        LabelId(builder.labels.len() as u32 - 1)
    }

    pub(super) fn depth(&mut self) -> u32 {
        self.builder().depth
    }

    pub(super) fn emit_jump(&mut self, kind: JumpKind, label: LabelId, node: NodeId) {
        let at = self.builder().code.len();
        self.emit(jump(kind, 0), node);
        let builder = self.builder();
        let label = &mut builder.labels[label.0 as usize];
        match label.at {
            Some(target) => builder.code[at] = jump(kind, target),
            None => label.waiting.push(at),
        }
    }

    pub(super) fn bind_label(&mut self, label: LabelId, depth: u32) {
        let builder = self.builder();
        let here = builder.code.len() as u32;
        let label = &mut builder.labels[label.0 as usize];
        label.at = Some(here);
        for at in std::mem::take(&mut label.waiting) {
            builder.code[at] = retarget(builder.code[at], here);
        }
        builder.depth = depth;
    }

    pub(super) fn constant(&mut self, value: Value) -> u32 {
        self.constants.push(value);
        self.constants.len() as u32 - 1
    }

    pub(super) fn add_function(&mut self, builder: FunctionBuilder<'t>) -> u32 {
        let takes_this = |index: u32| self.functions[index as usize].captures.contains(&Capture::This);
        let looks_at_itself = builder.code.iter().any(|op| match op {
            Op::This => true,
            Op::Closure(inner) => takes_this(*inner),
            _ => false,
        });
        let plain = builder.captures.is_empty() && !looks_at_itself;
        self.functions.push(Function {
            plain,
            name: builder.name,
            params: builder.params,
            code: builder.code,
            spans: builder.spans,
            file: builder.file,
            captures: builder.captures,
        });
        self.functions.len() as u32 - 1
    }

    /// Change of the stack depth by an instruction if it does not jump.
    fn change(&self, op: Op) -> i32 {
        let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        match op {
            Op::Const(_) | Op::Int(_) | Op::Nil | Op::True | Op::False | Op::Unset => 1,
            Op::Local(_) | Op::LocalChecked(_) | Op::LocalCell(_) | Op::Captured(_) | Op::CapturedCell(_) => {
                1
            }
            Op::Global(_) | Op::This | Op::Closure(_) | Op::BinaryLocalInt { .. } => 1,
            Op::SetLocal(_)
            | Op::SetLocalCell(_)
            | Op::SetCapturedCell(_)
            | Op::SetGlobal(_)
            | Op::MakeCell(_) => 0,
            Op::Jump(_)
            | Op::Again(_)
            | Op::Return
            | Op::PushCatch(_)
            | Op::PushFinally(_)
            | Op::PopHandler => 0,
            Op::RetryEnd | Op::LeaveLimits => 0,
            Op::Pop
            | Op::JumpIfFalse(_)
            | Op::JumpIfFalseOrPop(_)
            | Op::JumpIfTrueOrPop(_)
            | Op::Binary(_) => -1,
            Op::LoopNext(_)
            | Op::WhileNext
            | Op::Match(_)
            | Op::NoMatch
            | Op::AssertFailed
            | Op::EndFinally => -1,
            Op::LoopBegin => 1,
            Op::RetryBegin => -2,
            Op::Slide(slots) => -count(slots),
            Op::Call(arguments) | Op::TailCall(arguments) => -count(arguments),
            Op::CallGlobal { arguments, .. } | Op::TailCallGlobal { arguments, .. } => {
                1 - i32::from(arguments)
            }
            Op::CallBuiltin { arguments, .. } => 1 - count(arguments),
            Op::EnterLimits(index) => -count(self.limits[index as usize].len() as u32),
            Op::Task(site) => 1 - count(self.sites[site as usize].takes() as u32),
            Op::DirectorLoop | Op::IterativeLoop => -5,
        }
    }
}

fn jump(kind: JumpKind, target: u32) -> Op {
    match kind {
        JumpKind::Always => Op::Jump(target),
        JumpKind::Again => Op::Again(target),
        JumpKind::IfFalse => Op::JumpIfFalse(target),
        JumpKind::IfFalseOrPop => Op::JumpIfFalseOrPop(target),
        JumpKind::IfTrueOrPop => Op::JumpIfTrueOrPop(target),
        JumpKind::LoopNext => Op::LoopNext(target),
        JumpKind::Catch => Op::PushCatch(target),
        JumpKind::Finally => Op::PushFinally(target),
    }
}

fn retarget(op: Op, target: u32) -> Op {
    match op {
        Op::Jump(_) => Op::Jump(target),
        Op::Again(_) => Op::Again(target),
        Op::JumpIfFalse(_) => Op::JumpIfFalse(target),
        Op::JumpIfFalseOrPop(_) => Op::JumpIfFalseOrPop(target),
        Op::JumpIfTrueOrPop(_) => Op::JumpIfTrueOrPop(target),
        Op::LoopNext(_) => Op::LoopNext(target),
        Op::PushCatch(_) => Op::PushCatch(target),
        Op::PushFinally(_) => Op::PushFinally(target),
        other => other,
    }
}
