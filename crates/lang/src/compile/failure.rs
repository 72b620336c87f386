//! Error handling forms: `try`, `retry`, `assert`, `with-limits`.

use fusee_text::sexpr::{NodeId, NodeKind};

use super::bindings::ScopeForm;
use super::compiler::{CompileJob, Compiler, JumpKind, TailPosition};
use crate::bytecode::{LimitKey, Op};
use crate::form::{Special, SpecialForm};
use crate::value::Value;

/// The parts of a `try`.
struct TryForm<'t> {
    body: &'t [NodeId],
    catch: Option<NodeId>,
    finally: Option<NodeId>,
}

impl<'t> Compiler<'t> {
    pub(super) fn try_form(&mut self, node: NodeId, tail: TailPosition) {
        let Some(parts) = self.try_parts(node) else { return self.compile_invalid(&[], node, tail) };
        let base = self.depth();
        let mut work = Vec::new();
        let inner_tail = if parts.finally.is_some() { TailPosition::No } else { tail };
        let end = parts.finally.map(|finally| (finally, self.label()));
        if let Some((finally, label)) = end {
            work.push(CompileJob::Jump(JumpKind::Finally, label, finally));
        }
        match parts.catch {
            Some(catch) => self.try_catch(&mut work, &parts, catch, inner_tail, node),
            None => work.push(CompileJob::Body(parts.body, TailPosition::No, node)),
        }
        if let Some((finally, label)) = end {
            work.extend([
                CompileJob::Op(Op::PopHandler, node),
                CompileJob::Op(Op::Unset, node),
                CompileJob::Label(label, base + 2),
                CompileJob::Body(self.arguments(finally), TailPosition::No, finally),
                CompileJob::Op(Op::Pop, finally),
                CompileJob::Op(Op::EndFinally, node),
            ]);
        }
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    fn try_catch(
        &mut self,
        work: &mut Vec<CompileJob<'t>>,
        parts: &TryForm<'t>,
        catch: NodeId,
        tail: TailPosition,
        node: NodeId,
    ) {
        let tree = self.tree();
        let base = self.depth();
        let (caught, after) = (self.label(), self.label());
        work.extend([
            CompileJob::Jump(JumpKind::Catch, caught, catch),
            CompileJob::Body(parts.body, TailPosition::No, node),
            CompileJob::Op(Op::PopHandler, node),
            CompileJob::Jump(JumpKind::Always, after, node),
            CompileJob::Label(caught, base + 1),
            CompileJob::OpenScope,
        ]);
        let [variable, body @ ..] = self.arguments(catch) else { return };
        let names: Vec<(&'t str, NodeId)> = match tree.list(*variable) {
            Some(&[name]) => tree.symbol(name).map(|text| (text, name)).into_iter().collect(),
            _ => Vec::new(),
        };
        match names.first() {
            Some((name, name_node)) => {
                let variable = self.variable(name, catch, None);
                work.push(CompileJob::Declare(name, base, variable, *name_node));
                self.rest_of_scope(work, &ScopeForm { bound: &names, base, body, node: catch, tail });
            }
            None => {
                let help = Some("usage: (catch (e) body …)".to_owned());
                self.error_with("malformed-form", catch, "`catch` needs a name for the error", help);
            }
        }
        work.push(CompileJob::Label(after, base + 1));
    }

    fn try_parts(&mut self, node: NodeId) -> Option<TryForm<'t>> {
        let tree = self.tree();
        let items = self.arguments(node);
        let clause = |item: &NodeId| {
            tree.head(*item)
                .filter(|head| SpecialForm::find(head).is_some_and(|form| form.special == Special::Clause))
        };
        let body_length = items.iter().position(|item| clause(item).is_some()).unwrap_or(items.len());
        let (body, clauses) = items.split_at(body_length);
        let mut parts = TryForm { body, catch: None, finally: None };
        for item in clauses {
            match (clause(item), parts.catch, parts.finally) {
                (Some("catch"), None, None) => parts.catch = Some(*item),
                (Some("finally"), _, None) => parts.finally = Some(*item),
                (Some("catch"), Some(_), _) => {
                    self.error(
                        "unreachable-catch",
                        *item,
                        "this `catch` is never reached: the first one catches everything",
                    );
                }
                (Some("catch"), None, Some(_)) => {
                    self.error("misplaced-clause", *item, "`catch` must come before `finally`");
                }
                (Some(name), ..) => {
                    self.error("misplaced-clause", *item, format!("`{name}` is specified twice"))
                }
                (None, ..) => {
                    self.error("misplaced-clause", *item, "the body of `try` must come before its clauses")
                }
            }
        }
        if body.is_empty() || clauses.is_empty() {
            let what =
                if body.is_empty() { "`try` needs a body" } else { "`try` needs a `catch` or a `finally`" };
            let help = Some("usage: (try body … (catch (e) …) (finally …))".to_owned());
            self.error_with("malformed-form", node, what, help);
            return None;
        }
        if let Some(catch) = parts.catch
            && body.iter().all(|node| self.cannot_fail(*node))
        {
            self.warning("unreachable-catch", catch, "this `catch` is never reached: the body cannot fail");
        }
        Some(parts)
    }

    fn cannot_fail(&self, node: NodeId) -> bool {
        let tree = self.tree();
        match tree.kind(node) {
            NodeKind::List => matches!(tree.head(node), Some("lambda" | "quote")),
            NodeKind::Symbol => false,
            _ => true,
        }
    }

    pub(super) fn retry(&mut self, node: NodeId, tail: TailPosition) {
        let arguments = self.arguments(node);
        let Some(keywords) = self.keyword_arguments(node, arguments, &["backoff"]) else {
            return self.compile_invalid(&[], node, tail);
        };
        let [times, body @ ..] = keywords.positional.as_slice() else {
            return self.malformed(node, "`retry` takes a count and an expression", tail);
        };
        let &[body] = body else {
            return self.malformed(node, "`retry` takes a count and one expression", tail);
        };
        let wait = keywords.values.first().copied().flatten();
        let mut work = vec![
            CompileJob::Expr(*times, TailPosition::No),
            wait.map_or(CompileJob::Op(Op::Int(0), node), |wait| CompileJob::Expr(wait, TailPosition::No)),
            CompileJob::Op(Op::RetryBegin, node),
            CompileJob::Expr(body, TailPosition::No),
            CompileJob::Op(Op::RetryEnd, node),
        ];
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    pub(super) fn assert_form(&mut self, node: NodeId, tail: TailPosition) {
        let (test, message) = match *self.arguments(node) {
            [test] => (test, None),
            [test, message] => (test, Some(message)),
            _ => return self.malformed(node, "`assert` takes a test and an optional message", tail),
        };
        let tree = self.tree();
        let base = self.depth();
        let end = self.label();
        let message = match message {
            Some(message) => CompileJob::Expr(message, TailPosition::No),
            None => {
                let shown: String = tree.source().slice(tree.span(test)).chars().take(200).collect();
                let constant = self.constant(Value::text(format!("assertion failed: {shown}")));
                CompileJob::Op(Op::Const(constant), node)
            }
        };
        let mut work = vec![
            CompileJob::Expr(test, TailPosition::No),
            CompileJob::Jump(JumpKind::IfTrueOrPop, end, node),
            message,
            CompileJob::Op(Op::AssertFailed, node),
            CompileJob::Label(end, base + 1),
        ];
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    pub(super) fn with_limits(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        let Some((limits, body)) = self.arguments(node).split_first().filter(|(_, body)| !body.is_empty())
        else {
            return self.malformed(node, "`with-limits` takes limits and an expression", tail);
        };
        let Some(limits) = tree.list(*limits) else {
            return self.malformed(
                node,
                "the limits must be a list (:turns n :tokens n :seconds n :usd n)",
                tail,
            );
        };
        let Some(keywords) = self.keyword_arguments(node, limits, &["turns", "tokens", "seconds", "usd"])
        else {
            return self.compile_invalid(body, node, tail);
        };
        if !keywords.positional.is_empty() || limits.is_empty() {
            return self.malformed(
                node,
                "the limits must be a list (:turns n :tokens n :seconds n :usd n)",
                tail,
            );
        }
        let known = [LimitKey::Turns, LimitKey::Tokens, LimitKey::Seconds, LimitKey::Usd];
        let given: Vec<(LimitKey, NodeId)> = known
            .into_iter()
            .zip(&keywords.values)
            .filter_map(|(key, value)| Some((key, (*value)?)))
            .collect();
        let index = self.limits.len() as u32;
        self.limits.push(given.iter().map(|(key, _)| *key).collect());
        let mut work: Vec<CompileJob<'t>> =
            given.iter().map(|(_, value)| CompileJob::Expr(*value, TailPosition::No)).collect();
        work.extend([
            CompileJob::Op(Op::EnterLimits(index), node),
            CompileJob::Body(body, TailPosition::No, node),
            CompileJob::Op(Op::LeaveLimits, node),
        ]);
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }
}
