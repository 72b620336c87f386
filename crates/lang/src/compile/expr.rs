//! Expressions: literals, names, quoted data, and dispatch of forms.

use fusee_text::sexpr::{NodeId, NodeKind};
use fusee_text::suggest;

use super::compiler::{CompileJob, Compiler, NameMeaning, TailPosition};
use super::scope::ResolvedName;
use crate::builtin::Builtin;
use crate::bytecode::Op;
use crate::form::{Special, SpecialForm};
use crate::value::Value;

/// Maximum number of problems that get a "did you mean" suggestion.
const MAX_PROPOSALS: usize = 100;

impl<'t> Compiler<'t> {
    pub(super) fn expression(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        let op = match tree.kind(node) {
            NodeKind::Int(value) => match i32::try_from(value) {
                Ok(small) => Op::Int(small),
                Err(_) => Op::Const(self.constant(Value::Int(value))),
            },
            NodeKind::Float(value) => Op::Const(self.constant(Value::Float(value))),
            NodeKind::Bool(true) => Op::True,
            NodeKind::Bool(false) => Op::False,
            // The reader has already reported unreadable nodes.
            NodeKind::Nil | NodeKind::Unreadable => Op::Nil,
            NodeKind::String => Op::Const(self.string(tree.text(node))),
            NodeKind::Keyword => {
                Op::Const(self.constant(Value::symbol(tree.source().slice(tree.span(node)))))
            }
            NodeKind::Quote => return self.quote(tree.items(node).first().copied(), node, tail),
            NodeKind::Symbol => return self.name(tree.text(node), node, tail),
            NodeKind::List => return self.list(node, tail),
        };
        self.leaf(op, node, tail);
    }

    /// Compiles a sequence of expressions; the value of the last one remains on the stack.
    pub(super) fn body(&mut self, nodes: &'t [NodeId], tail: TailPosition, form: NodeId) {
        let Some((last, others)) = nodes.split_last() else {
            return self.leaf(Op::Nil, form, tail);
        };
        let others = others
            .iter()
            .flat_map(|node| [CompileJob::Expr(*node, TailPosition::No), CompileJob::Op(Op::Pop, *node)]);
        self.plan(others.chain([CompileJob::Expr(*last, tail)]).collect::<Vec<_>>());
    }

    /// Compiles a form that was reported as wrong: its parts are still checked, and its value is nil.
    pub(super) fn compile_invalid(&mut self, inside: &[NodeId], node: NodeId, tail: TailPosition) {
        let jobs = inside
            .iter()
            .flat_map(|node| [CompileJob::Expr(*node, TailPosition::No), CompileJob::Op(Op::Pop, *node)]);
        let mut work: Vec<CompileJob<'t>> = jobs.collect();
        work.push(CompileJob::Op(Op::Nil, node));
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    fn string(&mut self, text: &'t str) -> u32 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = self.constant(Value::text(text));
        self.strings.insert(text, index);
        index
    }

    fn list(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        match tree.head(node).and_then(SpecialForm::find) {
            Some(form) => self.special(form, node, tail),
            None => self.call(node, tail),
        }
    }

    fn special(&mut self, form: &'static SpecialForm, node: NodeId, tail: TailPosition) {
        match form.special {
            Special::Let => self.let_form(node, tail),
            Special::LetStar => self.let_star(node, tail),
            Special::Letrec => self.letrec(node, tail),
            Special::Define => self.define(node, tail),
            Special::Set => self.set(node, tail),
            Special::Lambda => self.lambda(node, tail),
            Special::Defun => self.defun(node, tail),
            Special::If => self.if_form(node, tail),
            Special::Cond => self.cond(node, tail),
            Special::When => self.when(node, tail, true),
            Special::Unless => self.when(node, tail, false),
            Special::And => self.and_or(node, tail, true),
            Special::Or => self.and_or(node, tail, false),
            Special::Match => self.match_form(node, tail),
            Special::Progn => {
                let body = self.arguments(node);
                self.body(body, tail, node);
            }
            Special::Loop => self.loop_form(node, tail),
            Special::While => self.while_form(node, tail),
            Special::Call => self.call_form(node, tail),
            Special::CallAtomicTask | Special::Spawn => self.request(form, node, tail),
            Special::AtomicTask => self.atomic_task(form, node, tail),
            Special::DirectTool => self.direct_tool(node, tail),
            Special::Defatom => self.defatom(node, tail),
            Special::GetContext => self.get_context(node, tail),
            Special::DirectorLoop => self.work_loop(form, Op::DirectorLoop, node, tail),
            Special::IterativeLoop => self.work_loop(form, Op::IterativeLoop, node, tail),
            Special::Try => self.try_form(node, tail),
            Special::Clause => {
                let message = format!("`{}` is only allowed inside `try`, after its body", form.name);
                self.error_with(
                    "misplaced-clause",
                    node,
                    message,
                    Some("usage: (try body … (catch (e) …) (finally …))".into()),
                );
                self.compile_invalid(&[], node, tail);
            }
            Special::Retry => self.retry(node, tail),
            Special::Assert => self.assert_form(node, tail),
            Special::WithLimits => self.with_limits(node, tail),
            Special::Params => self.params_form(node, tail),
            Special::Load => self.load(node, tail),
            Special::Quote => self.quote_form(node, tail),
        }
    }

    /// The items of a form after its head.
    pub(super) fn arguments(&self, node: NodeId) -> &'t [NodeId] {
        self.tree().items(node).get(1..).unwrap_or_default()
    }

    /// Reports a malformed form and shows its syntax.
    pub(super) fn malformed(&mut self, node: NodeId, what: impl Into<String>, tail: TailPosition) {
        let signature = self.tree().head(node).and_then(SpecialForm::find).map(|form| form.signature);
        self.error_with(
            "malformed-form",
            node,
            what,
            signature.map(|signature| format!("usage: {signature}")),
        );
        let inside: Vec<NodeId> = Vec::new();
        self.compile_invalid(&inside, node, tail);
    }

    fn name(&mut self, name: &'t str, node: NodeId, tail: TailPosition) {
        if SpecialForm::find(name).is_some() {
            self.error("form-as-value", node, format!("`{name}` is a special form, not a value"));
            return self.leaf(Op::Nil, node, tail);
        }
        match self.resolve_name(name) {
            NameMeaning::Variable(found) => self.load_variable(&found, node),
            NameMeaning::Global(index) => {
                self.check_bound(name, node);
                self.emit(Op::Global(index), node);
            }
            NameMeaning::Builtin(builtin) => {
                let constant = self.constant(Value::Builtin(builtin));
                self.emit(Op::Const(constant), node);
            }
            NameMeaning::Atom(_) | NameMeaning::Callable(_) => {
                let help = format!("wrap the call: (lambda (x) ({name} (key x)))");
                let message = format!("`{name}` is not a value; call it as ({name} (key expression) …)");
                self.error_with("task-as-value", node, message, Some(help));
                self.emit(Op::Nil, node);
            }
            NameMeaning::Unknown => {
                self.unbound(name, node);
                self.emit(Op::Nil, node);
            }
        }
        self.end_of(node, tail);
    }

    pub(super) fn unbound(&mut self, name: &'t str, node: NodeId) {
        let help = self.near_name(name);
        self.error_with("unbound-name", node, format!("`{name}` is not bound"), help);
    }

    /// Suggests known names similar to `name`. Only for the first problems: comparing with every known name
    /// costs more than all other checks.
    pub(super) fn near_name(&self, name: &str) -> Option<String> {
        if self.diagnostics.len() >= MAX_PROPOSALS {
            return None;
        }
        let library =
            Builtin::all().map(|builtin| builtin.name).chain(SpecialForm::all().iter().map(|form| form.name));
        let own = self.declared.keys().chain(self.globals.keys()).chain(self.atoms.keys()).copied();
        suggest::did_you_mean(name, library.chain(own).chain(self.catalog.names()))
    }

    pub(super) fn load_variable(&mut self, found: &ResolvedName, node: NodeId) {
        let op = match *found {
            ResolvedName::This => Op::This,
            ResolvedName::Local(slot, variable) if variable.cell => Op::LocalCell(slot),
            ResolvedName::Local(slot, variable) if variable.checked => Op::LocalChecked(slot),
            ResolvedName::Local(slot, _) => Op::Local(slot),
            ResolvedName::Captured(index, variable) if variable.cell => Op::CapturedCell(index),
            ResolvedName::Captured(index, _) => Op::Captured(index),
        };
        self.emit(op, node);
    }

    /// Reports a global that is certainly used before it is bound.
    pub(super) fn check_bound(&mut self, name: &'t str, node: NodeId) {
        let straight = self.is_straight();
        if let Some(global) = self.globals.get(name)
            && straight
            && !global.bound
        {
            let source = self.files.trees[global.file].source();
            let location = source.position(global.span.start());
            let message = format!("`{name}` is used before it is bound on line {}", location.line);
            self.error("used-before-bound", node, message);
        }
    }

    fn quote_form(&mut self, node: NodeId, tail: TailPosition) {
        match *self.arguments(node) {
            [quoted] => self.quote(Some(quoted), node, tail),
            _ => self.malformed(node, "`quote` takes one expression", tail),
        }
    }

    fn quote(&mut self, quoted: Option<NodeId>, node: NodeId, tail: TailPosition) {
        let value = quoted.map_or(Value::Nil, |quoted| self.data(quoted));
        let constant = self.constant(value);
        self.leaf(Op::Const(constant), node, tail);
    }

    /// Converts an expression to data.
    pub(super) fn data(&self, root: NodeId) -> Value {
        let tree = self.tree();
        let mut done: Vec<Value> = Vec::new();
        // In reverse order, the items of a list are done before the list, with the first one on top.
        for node in tree.subtree(root).rev() {
            let value = match tree.kind(node) {
                NodeKind::Int(value) => Value::Int(value),
                NodeKind::Float(value) => Value::Float(value),
                NodeKind::Bool(value) => Value::Bool(value),
                NodeKind::Nil | NodeKind::Unreadable => Value::Nil,
                NodeKind::String => Value::text(tree.text(node)),
                NodeKind::Symbol | NodeKind::Keyword => Value::symbol(tree.source().slice(tree.span(node))),
                NodeKind::List | NodeKind::Quote => {
                    let from = done.len().saturating_sub(tree.items(node).len());
                    let mut items = done.split_off(from);
                    items.extend((tree.kind(node) == NodeKind::Quote).then(|| Value::symbol("quote")));
                    items.reverse();
                    Value::list(items)
                }
            };
            done.push(value);
        }
        done.pop().unwrap_or_default()
    }
}
