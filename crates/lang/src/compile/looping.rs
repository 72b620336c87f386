//! Loops: `loop`, `while`, and the agent loops.

use fusee_text::sexpr::NodeId;

use super::lower::{JumpKind, Lower, Tail, Work};
use crate::code::Op;
use crate::form::{Form, Special};

impl<'t> Lower<'t> {
    pub(super) fn loop_form(&mut self, node: NodeId, tail: Tail) {
        let Some((count, body)) = self.arguments(node).split_first() else {
            return self.malformed(node, "`loop` takes a count and a body", tail);
        };
        if body.is_empty() {
            return self.malformed(node, "`loop` takes a count and a body", tail);
        }
        let base = self.depth();
        let (again, end) = (self.label(), self.label());
        let mut work = vec![
            Work::Expr(*count, Tail::No),
            Work::Op(Op::LoopBegin, *count),
            Work::Loop(1),
            Work::Label(again, base + 2),
            Work::Jump(JumpKind::LoopNext, end, node),
            Work::Body(body, Tail::No, node),
            Work::Jump(JumpKind::Again, again, node),
            Work::Loop(-1),
            Work::Label(end, base + 2),
            Work::Op(Op::Slide(1), node),
        ];
        work.extend((tail == Tail::Yes).then_some(Work::Op(Op::Return, node)));
        self.plan(work);
    }

    pub(super) fn while_form(&mut self, node: NodeId, tail: Tail) {
        let arguments = self.arguments(node);
        let Some(keywords) = self.keyword_arguments(node, arguments, &["max"]) else {
            return self.poison(&[], node, tail);
        };
        let Some(most) = keywords.values.first().copied().flatten() else {
            let help = Some("set the maximum number of iterations: (while test :max 100 body …)".to_owned());
            self.error_with("while-without-max", node, "`while` needs `:max`", help);
            return self.poison(&keywords.positional, node, tail);
        };
        let Some((test, body)) = keywords.positional.split_first() else {
            return self.malformed(node, "`while` takes a test and a body", tail);
        };
        let base = self.depth();
        let (again, end) = (self.label(), self.label());
        let mut work = vec![
            Work::Expr(most, Tail::No),
            Work::Op(Op::LoopBegin, most),
            Work::Loop(1),
            Work::Label(again, base + 2),
            Work::Expr(*test, Tail::No),
            Work::Jump(JumpKind::IfFalse, end, node),
            Work::Op(Op::WhileNext, node),
        ];
        match body.split_last() {
            None => work.push(Work::Op(Op::Nil, node)),
            Some((last, others)) => {
                let others =
                    others.iter().flat_map(|node| [Work::Expr(*node, Tail::No), Work::Op(Op::Pop, *node)]);
                work.extend(others.chain([Work::Expr(*last, Tail::No)]));
            }
        }
        work.extend([
            Work::Jump(JumpKind::Again, again, node),
            Work::Loop(-1),
            Work::Label(end, base + 2),
            Work::Op(Op::Slide(1), node),
        ]);
        work.extend((tail == Tail::Yes).then_some(Work::Op(Op::Return, node)));
        self.plan(work);
    }

    /// Compiles `director-evaluator-loop` or `iterative-loop`: each clause exactly once, in any order.
    pub(super) fn work_loop(&mut self, form: &'static Form, op: Op, node: NodeId, tail: Tail) {
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
                    let help = fusee_text::near::did_you_mean(name, wanted);
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
        let mut work: Vec<Work<'t>> = found
            .iter()
            .map(|value| value.map_or(Work::Op(Op::Nil, node), |value| Work::Expr(value, Tail::No)))
            .collect();
        work.push(Work::Op(op, node));
        work.extend((tail == Tail::Yes).then_some(Work::Op(Op::Return, node)));
        self.plan(work);
    }
}
