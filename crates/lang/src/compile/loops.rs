//! Loops: `loop`, `while`, and the agent loops.

use fusee_text::sexpr::NodeId;

use super::compiler::{CompileJob, Compiler, JumpKind, TailPosition};
use crate::bytecode::Op;
use crate::form::{Special, SpecialForm};

impl<'t> Compiler<'t> {
    pub(super) fn loop_form(&mut self, node: NodeId, tail: TailPosition) {
        let Some((count, body)) = self.arguments(node).split_first() else {
            return self.malformed(node, "`loop` takes a count and a body", tail);
        };
        if body.is_empty() {
            return self.malformed(node, "`loop` takes a count and a body", tail);
        }
        let base = self.depth();
        let (again, end) = (self.label(), self.label());
        let mut work = vec![
            CompileJob::Expr(*count, TailPosition::No),
            CompileJob::Op(Op::LoopBegin, *count),
            CompileJob::Loop(1),
            CompileJob::Label(again, base + 2),
            CompileJob::Jump(JumpKind::LoopNext, end, node),
            CompileJob::Body(body, TailPosition::No, node),
            CompileJob::Jump(JumpKind::Again, again, node),
            CompileJob::Loop(-1),
            CompileJob::Label(end, base + 2),
            CompileJob::Op(Op::Slide(1), node),
        ];
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    pub(super) fn while_form(&mut self, node: NodeId, tail: TailPosition) {
        let arguments = self.arguments(node);
        let Some(keywords) = self.keyword_arguments(node, arguments, &["max"]) else {
            return self.compile_invalid(&[], node, tail);
        };
        let Some(most) = keywords.values.first().copied().flatten() else {
            let help = Some("set the maximum number of iterations: (while test :max 100 body …)".to_owned());
            self.error_with("while-without-max", node, "`while` needs `:max`", help);
            return self.compile_invalid(&keywords.positional, node, tail);
        };
        let Some((test, body)) = keywords.positional.split_first() else {
            return self.malformed(node, "`while` takes a test and a body", tail);
        };
        let base = self.depth();
        let (again, end) = (self.label(), self.label());
        let mut work = vec![
            CompileJob::Expr(most, TailPosition::No),
            CompileJob::Op(Op::LoopBegin, most),
            CompileJob::Loop(1),
            CompileJob::Label(again, base + 2),
            CompileJob::Expr(*test, TailPosition::No),
            CompileJob::Jump(JumpKind::IfFalse, end, node),
            CompileJob::Op(Op::WhileNext, node),
        ];
        match body.split_last() {
            None => work.push(CompileJob::Op(Op::Nil, node)),
            Some((last, others)) => {
                let others = others.iter().flat_map(|node| {
                    [CompileJob::Expr(*node, TailPosition::No), CompileJob::Op(Op::Pop, *node)]
                });
                work.extend(others.chain([CompileJob::Expr(*last, TailPosition::No)]));
            }
        }
        work.extend([
            CompileJob::Jump(JumpKind::Again, again, node),
            CompileJob::Loop(-1),
            CompileJob::Label(end, base + 2),
            CompileJob::Op(Op::Slide(1), node),
        ]);
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    /// Compiles `director-evaluator-loop` or `iterative-loop`: each clause exactly once, in any order.
    pub(super) fn work_loop(&mut self, form: &'static SpecialForm, op: Op, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        let wanted: [&str; 6] = match form.special {
            Special::DirectorLoop => [
                "max-iterations",
                "initial-director-input",
                "director",
                "executor",
                "evaluator",
                "controller",
            ],
            _ => ["max-iterations", "initial-input", "test-command", "executor", "validator", "controller"],
        };
        let mut found: [Option<NodeId>; 6] = [None; 6];
        for clause in self.arguments(node) {
            let (Some(name), &[_, value]) = (tree.head(*clause), tree.items(*clause)) else {
                self.error("malformed-form", *clause, "a clause must be (name expression)");
                continue;
            };
            match wanted.iter().position(|known| *known == name) {
                Some(index) if found[index].is_none() => found[index] = Some(value),
                Some(_) => self.error("duplicate-parameter", *clause, format!("`{name}` is specified twice")),
                None => {
                    let help = fusee_text::suggest::did_you_mean(name, wanted);
                    let help = help.unwrap_or_else(|| format!("valid clauses are {}", wanted.join(", ")));
                    let message = format!("`{}` has no clause `{name}`", form.name);
                    self.error_with("unknown-parameter", *clause, message, Some(help));
                }
            }
        }
        for (name, _) in wanted.iter().zip(&found).filter(|(_, value)| value.is_none()) {
            let message = format!("`{}` needs `({name} …)`", form.name);
            self.error("missing-parameter", node, message);
        }
        let mut work: Vec<CompileJob<'t>> = found
            .iter()
            .map(|value| {
                value.map_or(CompileJob::Op(Op::Nil, node), |value| CompileJob::Expr(value, TailPosition::No))
            })
            .collect();
        work.push(CompileJob::Op(op, node));
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }
}
