//! Binding forms: `let`, `let*`, `letrec`, `define`, `set!`, `lambda`, `defun`.

use std::collections::{HashMap, HashSet};

use fusee_text::sexpr::{NodeId, NodeKind};

use super::compiler::{CompileJob, Compiler, Lambda, NameMeaning, TailPosition};
use super::scan::{self, Definition};
use super::scope::{FunctionBuilder, ResolvedName, Variable};
use crate::builtin::{Arity, Builtin};
use crate::bytecode::Op;
use crate::form::{Special, SpecialForm};
use crate::value::Text;

/// One `(name expression)` of a `let`.
#[derive(Clone, Copy)]
struct Binding<'t> {
    name: &'t str,
    name_node: NodeId,
    value: NodeId,
}

/// A scope, as described by the form that opens it.
pub(super) struct ScopeForm<'a, 't> {
    /// The names it binds itself.
    pub(super) bound: &'a [(&'t str, NodeId)],
    /// Slot of the first bound name.
    pub(super) base: u32,
    pub(super) body: &'t [NodeId],
    /// The form in which the names are visible.
    pub(super) node: NodeId,
    pub(super) tail: TailPosition,
}

fn names<'t>(bindings: &[Binding<'t>]) -> Vec<(&'t str, NodeId)> {
    bindings.iter().map(|binding| (binding.name, binding.name_node)).collect()
}

impl<'t> Compiler<'t> {
    pub(super) fn let_form(&mut self, node: NodeId, tail: TailPosition) {
        let Some((bindings, body)) = self.bindings(node, tail) else { return };
        self.check_distinct(bindings.iter().map(|binding| (binding.name, binding.name_node)));
        let base = self.depth();
        let mut work: Vec<CompileJob<'t>> =
            bindings.iter().map(|binding| self.value_of(binding, false)).collect();
        work.push(CompileJob::OpenScope);
        for (index, binding) in bindings.iter().enumerate() {
            let variable = self.variable(binding.name, node, Some(binding.value));
            work.push(CompileJob::Declare(binding.name, base + index as u32, variable, binding.name_node));
        }
        let bound = names(&bindings);
        self.rest_of_scope(&mut work, &ScopeForm { bound: &bound, base, body, node, tail });
        self.plan(work);
    }

    pub(super) fn let_star(&mut self, node: NodeId, tail: TailPosition) {
        let Some((bindings, body)) = self.bindings(node, tail) else { return };
        let base = self.depth();
        let mut work = vec![CompileJob::OpenScope];
        for (index, binding) in bindings.iter().enumerate() {
            let variable = self.variable(binding.name, node, Some(binding.value));
            work.push(self.value_of(binding, false));
            work.push(CompileJob::Declare(binding.name, base + index as u32, variable, binding.name_node));
        }
        let bound = names(&bindings);
        self.rest_of_scope(&mut work, &ScopeForm { bound: &bound, base, body, node, tail });
        self.plan(work);
    }

    pub(super) fn letrec(&mut self, node: NodeId, tail: TailPosition) {
        let Some((bindings, body)) = self.bindings(node, tail) else { return };
        self.check_distinct(bindings.iter().map(|binding| (binding.name, binding.name_node)));
        let base = self.depth();
        let mut work = vec![CompileJob::OpenScope];
        for (index, binding) in bindings.iter().enumerate() {
            let variable = self.late_variable(binding.name, node, Some(binding.value), true);
            work.push(CompileJob::Op(Op::Unset, binding.name_node));
            work.push(CompileJob::Declare(binding.name, base + index as u32, variable, binding.name_node));
        }
        for binding in &bindings {
            work.push(self.value_of(binding, !self.assigned.contains(binding.name)));
            work.push(CompileJob::Store(binding.name, binding.name_node));
            work.push(CompileJob::Op(Op::Pop, binding.name_node));
        }
        let bound = names(&bindings);
        self.rest_of_scope(&mut work, &ScopeForm { bound: &bound, base, body, node, tail });
        self.plan(work);
    }

    /// `(define name expr)`, or `(define (name param …) body …)`.
    pub(super) fn define(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        let arguments = self.arguments(node);
        if scan::defines_function(tree, node) {
            let Some((target, body)) = arguments.split_first() else { return };
            return match tree.items(*target).split_first() {
                Some((name, params)) => self.define_function(node, *name, params, body, tail),
                None => self.malformed(node, "a definition needs a name", tail),
            };
        }
        let &[name_node, value] = arguments else {
            return self.malformed(node, "a definition takes a name and one expression", tail);
        };
        let Some(name) = tree.symbol(name_node) else {
            return self.malformed(node, "a definition needs a name", tail);
        };
        let binding = Binding { name, name_node, value };
        let own = self.names_itself(name);
        let value = self.value_of(&binding, own);
        self.store(name, name_node, value, node, tail);
    }

    pub(super) fn defun(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        match self.arguments(node) {
            [name, params, body @ ..] if tree.kind(*params) == NodeKind::List => {
                self.define_function(node, *name, tree.items(*params), body, tail);
            }
            _ => self.malformed(node, "a function needs a name, a list of parameters and a body", tail),
        }
    }

    fn define_function(
        &mut self,
        node: NodeId,
        name_node: NodeId,
        params: &'t [NodeId],
        body: &'t [NodeId],
        tail: TailPosition,
    ) {
        let Some(name) = self.tree().symbol(name_node) else {
            return self.malformed(node, "a function needs a name", tail);
        };
        let own = self.names_itself(name);
        let lambda = Lambda { node, params, body, name: Some(name), own };
        self.store(name, name_node, CompileJob::Function(lambda, TailPosition::No), node, tail);
    }

    /// Schedules the evaluation of a definition's value and its storage.
    fn store(
        &mut self,
        name: &'t str,
        name_node: NodeId,
        value: CompileJob<'t>,
        node: NodeId,
        tail: TailPosition,
    ) {
        let mut work = vec![value];
        let global = self.globals.get(name).map(|global| global.index).filter(|_| self.is_top());
        if let Some(global) = global {
            work.push(CompileJob::Op(Op::SetGlobal(global), node));
            work.push(CompileJob::Bound(name));
        } else if self.builder().in_scope(name).is_some() {
            work.push(CompileJob::Store(name, node));
        } else {
            let help = "definitions are allowed at the top level and in the body of a function or let; elsewhere use let or set!";
            let message = format!("`{name}` cannot be defined here");
            self.error_with("misplaced-definition", name_node, message, Some(help.to_owned()));
        }
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    pub(super) fn set(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        let &[name, value] = self.arguments(node) else {
            return self.malformed(node, "`set!` takes a name and one expression", tail);
        };
        if tree.symbol(name).is_none() {
            return self.malformed(node, "`set!` needs a name", tail);
        }
        let mut work = vec![CompileJob::Expr(value, TailPosition::No), CompileJob::Assign(name, node)];
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    /// Stores the value on the stack in a variable of any kind.
    pub(super) fn assign(&mut self, name_node: NodeId, node: NodeId) {
        let Some(name) = self.tree().symbol(name_node) else { return };
        let op = match self.resolve_name(name) {
            NameMeaning::Variable(ResolvedName::Local(slot, variable)) if variable.cell => {
                Op::SetLocalCell(slot)
            }
            NameMeaning::Variable(ResolvedName::Local(slot, _)) => Op::SetLocal(slot),
            NameMeaning::Variable(ResolvedName::Captured(index, _)) => Op::SetCapturedCell(index),
            // A name that is changed by some `set!` is never treated as a function's own name.
            NameMeaning::Variable(ResolvedName::This) => return,
            NameMeaning::Global(index) => {
                self.check_bound(name, name_node);
                Op::SetGlobal(index)
            }
            NameMeaning::Builtin(_) | NameMeaning::Atom(_) | NameMeaning::Callable(_) => {
                let message = format!("`{name}` is not a variable of this workflow");
                return self.error("bad-assignment", name_node, message);
            }
            NameMeaning::Unknown => {
                let help = self.near_name(name).or(Some(format!("define it first: (define {name} …)")));
                return self.error_with("unbound-name", name_node, format!("`{name}` is not bound"), help);
            }
        };
        self.emit(op, node);
    }

    pub(super) fn lambda(&mut self, node: NodeId, tail: TailPosition) {
        match self.as_lambda(node, None, false) {
            Some(lambda) => self.function(lambda, tail),
            None => self.malformed(node, "a function needs a list of parameters and a body", tail),
        }
    }

    /// The parts of a `lambda`, or `None` if the node is something else.
    fn as_lambda(&self, node: NodeId, name: Option<&'t str>, own: bool) -> Option<Lambda<'t>> {
        let tree = self.tree();
        let form = tree.head(node).and_then(SpecialForm::find)?;
        match tree.items(node) {
            [_, params, body @ ..]
                if form.special == Special::Lambda && tree.kind(*params) == NodeKind::List =>
            {
                Some(Lambda { node, params: tree.items(*params), body, name, own })
            }
            _ => None,
        }
    }

    /// Starts a function; `end_function` is scheduled after its body.
    pub(super) fn function(&mut self, lambda: Lambda<'t>, tail: TailPosition) {
        let tree = self.tree();
        let Lambda { node, params, body, name, own } = lambda;
        let mut names = Vec::new();
        for param in params {
            match tree.symbol(*param) {
                Some(name) => names.push((name, *param)),
                None => self.error("malformed-form", *param, "a parameter must be a name"),
            }
        }
        self.check_distinct(names.iter().copied());
        if body.is_empty() {
            self.error("malformed-form", node, "a function needs a body");
        }
        let shown = match name {
            Some(name) => Text::from(name),
            None => {
                Text::from(format!("lambda at {}", tree.source().position(tree.span(node).start())).as_str())
            }
        };
        let own_name = name.filter(|_| own);
        self.builders.push(FunctionBuilder::new(shown, own_name, self.file as u32, names.len() as u32));
        let mut work = vec![CompileJob::OpenScope];
        for (slot, (name, param)) in names.iter().enumerate() {
            let variable = self.variable(name, node, None);
            work.push(CompileJob::Declare(name, slot as u32, variable, *param));
        }
        self.declare_definitions(
            &mut work,
            &ScopeForm { bound: &names, base: 0, body, node, tail: TailPosition::Yes },
        );
        work.push(CompileJob::Body(body, TailPosition::Yes, node));
        work.push(CompileJob::EndFunction(node, tail));
        self.plan(work);
    }

    pub(super) fn end_function(&mut self, node: NodeId, tail: TailPosition) {
        let Some(builder) = self.builders.pop() else { return };
        for name in builder.all_names() {
            forget(&mut self.declared, name);
        }
        let index = self.add_function(builder);
        self.leaf(Op::Closure(index), node, tail);
    }

    /// Completes a scope whose own names are declared in `work`: the names its body defines, the body, and
    /// the end.
    pub(super) fn rest_of_scope(&mut self, work: &mut Vec<CompileJob<'t>>, scope: &ScopeForm<'_, 't>) {
        let top = self.declare_definitions(work, scope);
        work.push(CompileJob::Body(scope.body, scope.tail, scope.node));
        work.push(CompileJob::CloseScope(top - scope.base, scope.tail, scope.node));
    }

    /// Declares slots for the names a body defines, after those the scope binds itself; returns the next free
    /// slot.
    fn declare_definitions(&mut self, work: &mut Vec<CompileJob<'t>>, scope: &ScopeForm<'_, 't>) -> u32 {
        let ScopeForm { bound, base, body, node, .. } = *scope;
        let mut seen: HashSet<&str> = bound.iter().map(|(name, _)| *name).collect();
        let mut certain: HashSet<&str> = seen.clone();
        let mut top = base + bound.len() as u32;
        let definitions = scan::definitions(self.tree(), body);
        let mut times: HashMap<&str, usize> = HashMap::new();
        for definition in &definitions {
            *times.entry(definition.name).or_default() += 1;
        }
        for Definition { name, name_node, node: form, conditional } in definitions {
            if !conditional && !certain.insert(name) {
                self.duplicate(name, name_node);
            }
            if seen.insert(name) {
                let value = self.tree().items(form).get(2).copied();
                let variable = self.late_variable(name, node, value, times.get(name) == Some(&1));
                work.push(CompileJob::Op(Op::Unset, name_node));
                work.push(CompileJob::Declare(name, top, variable, name_node));
                top += 1;
            }
        }
        top
    }

    pub(super) fn duplicate(&mut self, name: &str, name_node: NodeId) {
        let help = Some(format!("change it with (set! {name} …), or choose another name"));
        self.error_with("duplicate-definition", name_node, format!("`{name}` is already defined"), help);
    }

    pub(super) fn declare(&mut self, name: &'t str, slot: u32, variable: Variable, node: NodeId) {
        self.check_name(name, node);
        *self.declared.entry(name).or_default() += 1;
        self.builder().declare(name, slot, variable);
        if variable.cell {
            self.emit(Op::MakeCell(slot), node);
        }
    }

    pub(super) fn close_scope(&mut self, slots: u32, tail: TailPosition, node: NodeId) {
        for name in self.builder().close_scope() {
            forget(&mut self.declared, name);
        }
        if tail == TailPosition::No && slots > 0 {
            self.emit(Op::Slide(slots), node);
        }
    }

    pub(super) fn store_in_scope(&mut self, name: &'t str, node: NodeId) {
        if let Some((slot, variable)) = self.builder().in_scope(name) {
            self.emit(if variable.cell { Op::SetLocalCell(slot) } else { Op::SetLocal(slot) }, node);
        }
    }

    /// Storage of a variable that is bound when it is declared. `scope` is the form in which it is visible.
    pub(super) fn variable(&self, name: &str, scope: NodeId, value: Option<NodeId>) -> Variable {
        let changes = self.assigned.contains(name);
        let shared = self.overviews[self.file].makes_function(&self.inside(scope));
        let arity = value.filter(|_| !changes).and_then(|value| self.arity_of(value));
        Variable { cell: changes && shared, checked: false, arity, fixed: !changes }
    }

    /// Storage of a variable that closures may capture before it is bound.
    fn late_variable(&self, name: &str, scope: NodeId, value: Option<NodeId>, once: bool) -> Variable {
        let cell = self.overviews[self.file].makes_function(&self.inside(scope));
        let fixed = once && !self.assigned.contains(name);
        let arity = value.filter(|_| fixed).and_then(|value| self.arity_of(value));
        Variable { cell, checked: !cell, arity, fixed }
    }

    /// The nodes inside a form, excluding the form itself: a `lambda` is not inside itself.
    fn inside(&self, node: NodeId) -> std::ops::Range<NodeId> {
        let extent = self.tree().extent(node);
        self.tree().next(node).unwrap_or(extent.end)..extent.end
    }

    pub(super) fn arity_of(&self, value: NodeId) -> Option<Arity> {
        self.as_lambda(value, None, false).map(|lambda| Arity::exactly(lambda.params.len()))
    }

    /// Whether a function defined with this name here can call itself without a variable.
    fn names_itself(&mut self, name: &str) -> bool {
        !self.is_top() && self.builder().in_scope(name).is_some_and(|(_, variable)| variable.fixed)
    }

    fn value_of(&self, binding: &Binding<'t>, own: bool) -> CompileJob<'t> {
        match self.as_lambda(binding.value, Some(binding.name), own) {
            Some(lambda) => CompileJob::Function(lambda, TailPosition::No),
            None => CompileJob::Expr(binding.value, TailPosition::No),
        }
    }

    /// The bindings and the body of a `let`; reports an error and returns `None` if they are malformed.
    fn bindings(&mut self, node: NodeId, tail: TailPosition) -> Option<(Vec<Binding<'t>>, &'t [NodeId])> {
        let tree = self.tree();
        let [list, body @ ..] = self.arguments(node) else {
            self.malformed(node, "missing bindings", tail);
            return None;
        };
        if tree.kind(*list) != NodeKind::List || body.is_empty() {
            self.malformed(node, "expected a list of bindings and a body", tail);
            return None;
        }
        let mut bindings = Vec::new();
        for item in tree.items(*list) {
            match tree.list(*item) {
                Some(&[name_node, value]) if tree.symbol(name_node).is_some() => {
                    bindings.push(Binding { name: tree.text(name_node), name_node, value });
                }
                _ => self.error("malformed-form", *item, "a binding must be (name expression)"),
            }
        }
        Some((bindings, body))
    }

    fn check_distinct(&mut self, names: impl Iterator<Item = (&'t str, NodeId)>) {
        let mut seen = HashSet::new();
        for (name, node) in names {
            if !seen.insert(name) {
                self.error("duplicate-definition", node, format!("`{name}` is bound twice here"));
            }
        }
    }

    /// Checks a name that is being bound: an error for a form, a warning for a library function, task or
    /// tool.
    pub(super) fn check_name(&mut self, name: &str, node: NodeId) {
        if SpecialForm::find(name).is_some() {
            self.error("reserved-name", node, format!("`{name}` is a special form and cannot be bound"));
        } else if Builtin::find(name).is_some() {
            self.warning(
                "shadowed-name",
                node,
                format!("`{name}` shadows the library function of the same name"),
            );
        } else if self.atoms.contains_key(name) || self.catalog.find(name).is_some() {
            self.warning(
                "shadowed-name",
                node,
                format!("`{name}` shadows the task or tool of the same name"),
            );
        }
    }
}

fn forget(declared: &mut HashMap<&str, usize>, name: &str) {
    if let Some(count) = declared.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            declared.remove(name);
        }
    }
}
