//! Conditionals: `if`, `cond`, `when`, `unless`, `and`, `or`, `match`.

use fusee_text::sexpr::NodeId;

use super::bindings::ScopeForm;
use super::compiler::{CompileJob, Compiler, JumpKind, LabelId, TailPosition};
use crate::bytecode::{Op, Pattern};

impl<'t> Compiler<'t> {
    pub(super) fn if_form(&mut self, node: NodeId, tail: TailPosition) {
        let (test, then, otherwise) = match *self.arguments(node) {
            [test, then] => (test, then, None),
            [test, then, otherwise] => (test, then, Some(otherwise)),
            _ => return self.malformed(node, "`if` takes a test and one or two expressions", tail),
        };
        let otherwise = match otherwise {
            Some(otherwise) => vec![CompileJob::Expr(otherwise, tail)],
            None => leaf(Op::Nil, node, tail),
        };
        self.branch(test, JumpKind::IfFalse, vec![CompileJob::Expr(then, tail)], otherwise, node, tail);
    }

    pub(super) fn when(&mut self, node: NodeId, tail: TailPosition, wanted: bool) {
        let Some((test, body)) = self.arguments(node).split_first() else {
            return self.malformed(node, "missing test", tail);
        };
        let body = vec![CompileJob::Body(body, tail, node)];
        let nothing = leaf(Op::Nil, node, tail);
        let (then, otherwise) = if wanted { (body, nothing) } else { (nothing, body) };
        self.branch(*test, JumpKind::IfFalse, then, otherwise, node, tail);
    }

    fn branch(
        &mut self,
        test: NodeId,
        jump: JumpKind,
        then: Vec<CompileJob<'t>>,
        otherwise: Vec<CompileJob<'t>>,
        node: NodeId,
        tail: TailPosition,
    ) {
        let base = self.depth();
        let (other, end) = (self.label(), self.label());
        let mut work = vec![CompileJob::Expr(test, TailPosition::No), CompileJob::Jump(jump, other, node)];
        work.extend(then);
        work.extend((tail == TailPosition::No).then_some(CompileJob::Jump(JumpKind::Always, end, node)));
        work.push(CompileJob::Label(other, base));
        work.extend(otherwise);
        work.push(CompileJob::Label(end, base + 1));
        self.plan(work);
    }

    pub(super) fn cond(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        let base = self.depth();
        let end = self.label();
        let clauses = self.arguments(node);
        let mut work = Vec::new();
        let mut has_else = false;
        for (index, clause) in clauses.iter().enumerate() {
            let Some((test, body)) = tree.list(*clause).and_then(<[NodeId]>::split_first) else {
                self.error("malformed-form", *clause, "a clause must be (test body …)");
                continue;
            };
            if tree.symbol(*test) == Some("else") {
                if index + 1 < clauses.len() {
                    self.error("malformed-form", *clause, "`else` must be the last clause");
                }
                work.push(CompileJob::Body(body, tail, *clause));
                has_else = true;
                break;
            }
            work.push(CompileJob::Expr(*test, TailPosition::No));
            if body.is_empty() {
                work.push(CompileJob::Jump(JumpKind::IfTrueOrPop, end, *clause));
                continue;
            }
            let next = self.label();
            work.push(CompileJob::Jump(JumpKind::IfFalse, next, *clause));
            work.push(CompileJob::Body(body, tail, *clause));
            work.extend((tail == TailPosition::No).then_some(CompileJob::Jump(
                JumpKind::Always,
                end,
                *clause,
            )));
            work.push(CompileJob::Label(next, base));
        }
        if !has_else {
            work.extend(leaf(Op::Nil, node, tail));
        }
        work.push(CompileJob::Label(end, base + 1));
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    pub(super) fn and_or(&mut self, node: NodeId, tail: TailPosition, and: bool) {
        let Some((last, others)) = self.arguments(node).split_last() else {
            return self.leaf(if and { Op::True } else { Op::False }, node, tail);
        };
        let base = self.depth();
        let end = self.label();
        let jump = if and { JumpKind::IfFalseOrPop } else { JumpKind::IfTrueOrPop };
        let others = others.iter().flat_map(|other| {
            [CompileJob::Expr(*other, TailPosition::No), CompileJob::Jump(jump, end, node)]
        });
        let mut work: Vec<CompileJob<'t>> = others.collect();
        work.push(CompileJob::Expr(*last, tail));
        work.push(CompileJob::Label(end, base + 1));
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    pub(super) fn match_form(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        let Some((subject, clauses)) = self.arguments(node).split_first() else {
            return self.malformed(node, "missing value to match", tail);
        };
        let slot = self.depth();
        let end = self.label();
        let mut work = vec![CompileJob::Expr(*subject, TailPosition::No)];
        for clause in clauses {
            match tree.list(*clause) {
                Some(items) if items.len() > 1 => work.push(CompileJob::Pattern(*clause, slot, end, tail)),
                _ => self.error("malformed-form", *clause, "a clause must be (pattern body …)"),
            }
        }
        work.push(CompileJob::Op(Op::Local(slot), *subject));
        work.push(CompileJob::Op(Op::NoMatch, node));
        work.push(CompileJob::Label(end, slot + 2));
        work.push(CompileJob::Op(Op::Slide(1), node));
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    /// Compiles one clause of `match`; the value to match is in the slot `subject`.
    pub(super) fn match_clause(&mut self, clause: NodeId, subject: u32, end: LabelId, tail: TailPosition) {
        let Some((pattern, body)) = self.tree().items(clause).split_first() else { return };
        let (parts, names) = self.pattern(*pattern);
        let index = self.patterns.len() as u32;
        self.patterns.push(Pattern { parts });
        let base = self.depth();
        let next = self.label();
        self.emit(Op::Local(subject), *pattern);
        self.emit(Op::Match(index), *pattern);
        self.emit_jump(JumpKind::Always, next, *pattern);
        self.builder().depth = base + names.len() as u32;
        let mut work = vec![CompileJob::OpenScope];
        for (index, (name, node)) in names.iter().enumerate() {
            let variable = self.variable(name, clause, None);
            work.push(CompileJob::Declare(name, base + index as u32, variable, *node));
        }
        self.rest_of_scope(&mut work, &ScopeForm { bound: &names, base, body, node: clause, tail });
        work.extend((tail == TailPosition::No).then_some(CompileJob::Jump(JumpKind::Always, end, clause)));
        work.push(CompileJob::Label(next, base));
        self.plan(work);
    }
}

fn leaf<'t>(op: Op, node: NodeId, tail: TailPosition) -> Vec<CompileJob<'t>> {
    let mut work = vec![CompileJob::Op(op, node)];
    work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
    work
}
