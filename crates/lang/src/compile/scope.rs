//! Name resolution: locals, captured variables and the function's own name.

use std::collections::HashMap;

use fusee_text::Span;

use crate::builtin::Arity;
use crate::bytecode::{Capture, Op};
use crate::value::Text;

/// A function while it is being compiled.
pub(super) struct FunctionBuilder<'t> {
    pub(super) name: Text,
    /// The name by which its body can call it without capturing anything.
    pub(super) own_name: Option<&'t str>,
    pub(super) file: u32,
    /// Whether it is the top level of a file rather than a function in it.
    pub(super) top: bool,
    pub(super) params: u32,
    pub(super) code: Vec<Op>,
    pub(super) spans: Vec<Span>,
    /// Number of values on the stack above the function's base at this point of the code.
    pub(super) depth: u32,
    pub(super) captures: Vec<Capture>,
    captured: HashMap<&'t str, (u32, Variable)>,
    locals: HashMap<&'t str, Vec<Local>>,
    /// Names in order of declaration, for closing scopes.
    declared: Vec<&'t str>,
    /// For each open scope, the number of names declared before it.
    scopes: Vec<usize>,
    /// Addresses of labels, and the jumps to patch once they are known.
    pub(super) labels: Vec<Label>,
}

#[derive(Default)]
pub(super) struct Label {
    pub(super) at: Option<u32>,
    pub(super) waiting: Vec<usize>,
}

/// How a variable is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    /// In a cell, because closures share it and it changes.
    pub(super) cell: bool,
    /// Whether it may be read before it is bound.
    pub(super) checked: bool,
    /// Number of arguments, if it is a function that never changes.
    pub(super) arity: Option<Arity>,
    /// Whether it is bound exactly once: a function bound to it can call itself by name.
    pub(super) fixed: bool,
}

#[derive(Clone, Copy)]
struct Local {
    slot: u32,
    scope: usize,
    variable: Variable,
}

/// A name resolved within the functions being compiled.
pub(super) enum ResolvedName {
    Local(u32, Variable),
    Captured(u32, Variable),
    /// The function itself.
    This,
}

impl<'t> FunctionBuilder<'t> {
    pub(super) fn new(name: Text, own_name: Option<&'t str>, file: u32, params: u32) -> Self {
        Self {
            name,
            own_name,
            file,
            top: false,
            params,
            code: Vec::new(),
            spans: Vec::new(),
            depth: params,
            captures: Vec::new(),
            captured: HashMap::new(),
            locals: HashMap::new(),
            declared: Vec::new(),
            scopes: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// The builder for the top level of a file.
    pub(super) fn top(name: Text, file: u32) -> Self {
        Self { top: true, ..Self::new(name, None, file, 0) }
    }

    pub(super) fn open_scope(&mut self) {
        self.scopes.push(self.declared.len());
    }

    /// Number of open scopes; 0 is the top level of the function.
    pub(super) fn scope(&self) -> usize {
        self.scopes.len()
    }

    /// Declares a name for a slot in the innermost scope.
    pub(super) fn declare(&mut self, name: &'t str, slot: u32, variable: Variable) {
        let scope = self.scope();
        self.locals.entry(name).or_default().push(Local { slot, scope, variable });
        self.declared.push(name);
    }

    /// Closes the innermost scope and returns its names.
    pub(super) fn close_scope(&mut self) -> Vec<&'t str> {
        let start = self.scopes.pop().unwrap_or(0);
        let names = self.declared.split_off(start.min(self.declared.len()));
        for name in &names {
            if let Some(locals) = self.locals.get_mut(name) {
                locals.pop();
                if locals.is_empty() {
                    self.locals.remove(name);
                }
            }
        }
        names
    }

    /// All names that are still declared when the function ends.
    pub(super) fn all_names(&self) -> &[&'t str] {
        &self.declared
    }

    /// The slot of a name declared by the innermost scope itself.
    pub(super) fn in_scope(&self, name: &str) -> Option<(u32, Variable)> {
        let local = self.locals.get(name)?.last()?;
        (local.scope == self.scope()).then_some((local.slot, local.variable))
    }

    fn own(&self, name: &str) -> Option<ResolvedName> {
        if let Some(local) = self.locals.get(name).and_then(|locals| locals.last()) {
            return Some(ResolvedName::Local(local.slot, local.variable));
        }
        if self.own_name == Some(name) {
            return Some(ResolvedName::This);
        }
        self.captured.get(name).map(|(index, variable)| ResolvedName::Captured(*index, *variable))
    }

    fn capture(&mut self, name: &'t str, from: Capture, variable: Variable) -> ResolvedName {
        let index = self.captures.len() as u32;
        self.captures.push(from);
        self.captured.insert(name, (index, variable));
        ResolvedName::Captured(index, variable)
    }
}

/// Resolves a name in the innermost function; captures it in all functions between its declaration and its
/// use.
pub(super) fn resolve<'t>(builders: &mut [FunctionBuilder<'t>], name: &'t str) -> Option<ResolvedName> {
    let level = builders.iter().rposition(|builder| builder.own(name).is_some())?;
    let mut found = builders.get(level)?.own(name)?;
    for builder in builders.get_mut(level + 1..)? {
        let (from, variable) = match found {
            ResolvedName::Local(slot, variable) => (Capture::Local(slot), variable),
            ResolvedName::Captured(index, variable) => (Capture::Captured(index), variable),
            ResolvedName::This => {
                (Capture::This, Variable { cell: false, checked: false, arity: None, fixed: true })
            }
        };
        found = builder.capture(name, from, variable);
    }
    Some(found)
}
