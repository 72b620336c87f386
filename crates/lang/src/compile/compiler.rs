//! The compiler's state and its work list.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fusee_text::sexpr::{NodeId, Tree};
use fusee_text::{Diagnostic, Diagnostics, Span};

use super::files::SourceFiles;
use super::scan::FileOverview;
use super::scope::{FunctionBuilder, ResolvedName, Variable, resolve};
use crate::builtin::{Arity, Builtin};
use crate::bytecode::{CallSite, Function, LimitKey, Op, Pattern, Program};
use crate::catalog::Catalog;
use crate::defatom::Atom;
use crate::param::Param;
use crate::value::{Text, Value};

/// A unit of compilation. Forms push units onto the work list instead of recursing.
pub(super) enum CompileJob<'t> {
    /// Compiles an expression, which leaves one value on the stack.
    Expr(NodeId, TailPosition),
    /// Compiles a sequence of expressions; leaves the value of the last one, or nil if it is empty.
    Body(&'t [NodeId], TailPosition, NodeId),
    /// Emits an instruction with the span of this form.
    Op(Op, NodeId),
    /// Emits a jump to a label.
    Jump(JumpKind, LabelId, NodeId),
    /// Binds a label here and sets the stack depth.
    Label(LabelId, u32),
    /// Names a slot in the innermost scope.
    Declare(&'t str, u32, Variable, NodeId),
    OpenScope,
    /// Closes a scope with this many slots, which are below its value.
    CloseScope(u32, TailPosition, NodeId),
    /// Stores the top of the stack in a variable declared by the innermost scope.
    Store(&'t str, NodeId),
    /// Stores the top of the stack in the variable that the name resolves to.
    Assign(NodeId, NodeId),
    /// Compiles a function.
    Function(Lambda<'t>, TailPosition),
    /// Ends the innermost function and pushes its closure.
    EndFunction(NodeId, TailPosition),
    /// Ends a loaded file and returns to the file and form that loaded it.
    EndFile(usize, NodeId, TailPosition),
    /// Enters (1) or leaves (-1) a loop.
    Loop(i32),
    /// Marks a global as bound from here on.
    Bound(&'t str),
    /// Compiles a clause of `match` against a local.
    Pattern(NodeId, u32, LabelId, TailPosition),
}

/// A function as written in the source.
#[derive(Clone, Copy)]
pub(super) struct Lambda<'t> {
    pub(super) node: NodeId,
    pub(super) params: &'t [NodeId],
    pub(super) body: &'t [NodeId],
    /// The name it is bound to, for messages.
    pub(super) name: Option<&'t str>,
    /// Whether the name refers to this function inside its body.
    pub(super) own: bool,
}

/// Whether an expression is in tail position: its value is the value of its function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TailPosition {
    Yes,
    No,
}

/// A jump target in the code of the innermost function.
#[derive(Clone, Copy)]
pub(super) struct LabelId(pub(super) u32);

#[derive(Clone, Copy)]
pub(super) enum JumpKind {
    Always,
    Again,
    IfFalse,
    IfFalseOrPop,
    IfTrueOrPop,
    LoopNext,
    Catch,
    Finally,
}

/// A name defined at the top level.
pub(super) struct Global {
    pub(super) index: u32,
    pub(super) arity: Option<Arity>,
    /// Whether its definition was already compiled, in source order.
    pub(super) bound: bool,
    pub(super) span: Span,
    pub(super) file: usize,
}

/// Resolution of a name.
pub(super) enum NameMeaning<'a> {
    Variable(ResolvedName),
    Global(u32),
    Atom(Arc<Atom>),
    Builtin(&'static Builtin),
    Callable(&'a Arc<crate::catalog::Callable>),
    Unknown,
}

/// State while a program is translated to bytecode.
pub(super) struct Compiler<'t> {
    pub(super) files: &'t SourceFiles,
    pub(super) catalog: &'t Catalog,
    pub(super) overviews: Vec<FileOverview>,
    /// Names changed by some `set!`.
    pub(super) assigned: HashSet<&'t str>,
    pub(super) file: usize,
    pub(super) work: Vec<CompileJob<'t>>,
    pub(super) builders: Vec<FunctionBuilder<'t>>,
    /// Number of current declarations of each name; a name without an entry is not a variable.
    pub(super) declared: HashMap<&'t str, usize>,
    pub(super) globals: HashMap<&'t str, Global>,
    pub(super) global_names: Vec<Text>,
    pub(super) atoms: HashMap<&'t str, Arc<Atom>>,
    pub(super) atom_list: Vec<Arc<Atom>>,
    pub(super) params: Vec<(Param, u32)>,
    pub(super) functions: Vec<Function>,
    pub(super) constants: Vec<Value>,
    pub(super) strings: HashMap<&'t str, u32>,
    pub(super) builtins: Vec<&'static Builtin>,
    pub(super) sites: Vec<CallSite>,
    pub(super) limits: Vec<Vec<LimitKey>>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) loops: i32,
    pub(super) diagnostics: Diagnostics,
}

impl<'t> Compiler<'t> {
    /// Compiles all files into one program, which is only meaningful if there are no errors.
    pub(super) fn program(
        files: &'t SourceFiles,
        catalog: &'t Catalog,
        diagnostics: Diagnostics,
    ) -> (Program, Diagnostics) {
        let mut assigned = HashSet::new();
        let overviews = files.trees.iter().map(|tree| FileOverview::of(tree, &mut assigned)).collect();
        let mut lower = Compiler {
            files,
            catalog,
            overviews,
            assigned,
            file: 0,
            work: Vec::new(),
            builders: Vec::new(),
            declared: HashMap::new(),
            globals: HashMap::new(),
            global_names: Vec::new(),
            atoms: HashMap::new(),
            atom_list: Vec::new(),
            params: Vec::new(),
            functions: Vec::new(),
            constants: Vec::new(),
            strings: HashMap::new(),
            builtins: Vec::new(),
            sites: Vec::new(),
            limits: Vec::new(),
            patterns: Vec::new(),
            loops: 0,
            diagnostics,
        };
        lower.define_globals();
        lower.main();
        lower.finish()
    }

    fn main(&mut self) {
        self.builders.push(FunctionBuilder::top(Text::from("workflow"), 0));
        let tree = self.tree();
        match tree.roots() {
            [] => self.emit_at(Op::Nil, Span::at(0)),
            [first, ..] => self.plan([CompileJob::Body(tree.roots(), TailPosition::No, *first)]),
        }
        self.run();
        self.emit_at(Op::Return, Span::at(0));
        if let Some(builder) = self.builders.pop() {
            self.add_function(builder);
        }
    }

    fn run(&mut self) {
        while let Some(work) = self.work.pop() {
            self.step(work);
        }
    }

    fn step(&mut self, work: CompileJob<'t>) {
        match work {
            CompileJob::Expr(node, tail) => self.expression(node, tail),
            CompileJob::Body(nodes, tail, form) => self.body(nodes, tail, form),
            CompileJob::Op(op, node) => self.emit(op, node),
            CompileJob::Jump(kind, label, node) => self.emit_jump(kind, label, node),
            CompileJob::Label(label, depth) => self.bind_label(label, depth),
            CompileJob::Declare(name, slot, variable, node) => self.declare(name, slot, variable, node),
            CompileJob::OpenScope => self.builder().open_scope(),
            CompileJob::CloseScope(slots, tail, node) => self.close_scope(slots, tail, node),
            CompileJob::Store(name, node) => self.store_in_scope(name, node),
            CompileJob::Assign(name, node) => self.assign(name, node),
            CompileJob::Function(lambda, tail) => self.function(lambda, tail),
            CompileJob::EndFunction(node, tail) => self.end_function(node, tail),
            CompileJob::EndFile(file, node, tail) => self.end_file(file, node, tail),
            CompileJob::Loop(change) => self.loops += change,
            CompileJob::Bound(name) => {
                if let Some(global) = self.globals.get_mut(name) {
                    global.bound = true;
                }
            }
            CompileJob::Pattern(clause, subject, end, tail) => self.match_clause(clause, subject, end, tail),
        }
    }

    /// Pushes units of work so that they are processed in the given order.
    pub(super) fn plan(
        &mut self,
        work: impl IntoIterator<Item = CompileJob<'t>, IntoIter: DoubleEndedIterator>,
    ) {
        self.work.extend(work.into_iter().rev());
    }

    pub(super) fn tree(&self) -> &'t Tree {
        let files: &'t SourceFiles = self.files;
        &files.trees[self.file]
    }

    /// The innermost function being compiled.
    pub(super) fn builder(&mut self) -> &mut FunctionBuilder<'t> {
        let last = self.builders.len() - 1;
        &mut self.builders[last]
    }

    /// Whether the code being compiled is executed exactly once, in source order.
    pub(super) fn is_straight(&self) -> bool {
        self.loops == 0 && self.builders.iter().all(|builder| builder.top)
    }

    /// Whether a definition at this point is global.
    pub(super) fn is_top(&self) -> bool {
        self.builders.last().is_some_and(|builder| builder.top && builder.scope() == 0)
    }

    /// Resolves a name at this point.
    pub(super) fn resolve_name(&mut self, name: &'t str) -> NameMeaning<'t> {
        if self.declared.contains_key(name)
            && let Some(found) = resolve(&mut self.builders, name)
        {
            return NameMeaning::Variable(found);
        }
        if let Some(global) = self.globals.get(name) {
            return NameMeaning::Global(global.index);
        }
        if let Some(atom) = self.atoms.get(name) {
            return NameMeaning::Atom(atom.clone());
        }
        if let Some(builtin) = Builtin::find(name) {
            return NameMeaning::Builtin(builtin);
        }
        let catalog: &'t Catalog = self.catalog;
        catalog.find(name).map_or(NameMeaning::Unknown, NameMeaning::Callable)
    }

    pub(super) fn error(&mut self, code: &'static str, node: NodeId, message: impl Into<String>) {
        self.error_with(code, node, message, None);
    }

    pub(super) fn error_with(
        &mut self,
        code: &'static str,
        node: NodeId,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let tree = self.tree();
        let problem = Diagnostic::error(code, tree.source(), tree.span(node), message);
        self.diagnostics.push(problem.maybe_help(help));
    }

    pub(super) fn warning(&mut self, code: &'static str, node: NodeId, message: impl Into<String>) {
        let tree = self.tree();
        self.diagnostics.push(Diagnostic::warning(code, tree.source(), tree.span(node), message));
    }

    fn finish(self) -> (Program, Diagnostics) {
        let program = Program {
            sources: self.files.sources(),
            functions: self.functions,
            constants: self.constants,
            builtins: self.builtins,
            globals: self.global_names,
            sites: self.sites,
            limits: self.limits,
            patterns: self.patterns,
            params: self.params,
            atoms: self.atom_list,
        };
        (program, self.diagnostics)
    }
}
