//! The bytecode: the compiler's output and the machine's input, a set of functions for a stack machine.

use std::sync::Arc;

use fusee_text::{Source, Span};
use serde_json::Value as Json;

use crate::builtin::{Arity, Builtin};
use crate::catalog::Callable;
use crate::defatom::Atom;
use crate::effect::CallForm;
use crate::param::Param;
use crate::runtime_error::SourceLocation;
use crate::value::{Text, Value};

/// A compiled workflow without errors. Immutable and shared by all machines that run it.
pub struct Program {
    pub(crate) sources: Vec<Source>,
    /// The last function is the workflow itself.
    pub(crate) functions: Vec<Function>,
    pub(crate) constants: Vec<Value>,
    pub(crate) builtins: Vec<&'static Builtin>,
    pub(crate) globals: Vec<Text>,
    pub(crate) sites: Vec<CallSite>,
    pub(crate) limits: Vec<Vec<LimitKey>>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) params: Vec<(Param, u32)>,
    pub(crate) atoms: Vec<Arc<Atom>>,
}

impl Program {
    /// The sources it was compiled from: its own first, then the loaded ones.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Looks up a source by name.
    pub fn source(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| &**source.name() == name)
    }

    /// Parameters declared by the workflow.
    pub fn params(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().map(|(param, _)| param)
    }

    /// Tasks defined by the workflow.
    pub fn atoms(&self) -> &[Arc<Atom>] {
        &self.atoms
    }

    /// All calls of tasks and tools in source order, as shown by a dry run.
    pub fn calls(&self) -> impl Iterator<Item = PlannedCall<'_>> {
        self.sites.iter().map(|site| PlannedCall {
            callee: match &site.target {
                SiteTarget::Named(callable) => Some(&callable.name),
                SiteTarget::Atom(atom) => Some(&atom.name),
                SiteTarget::Described(text) => Some(text),
                SiteTarget::Context => Some(GET_CONTEXT),
                SiteTarget::Computed | SiteTarget::Inline | SiteTarget::Request => None,
            },
            atom: match &site.target {
                SiteTarget::Atom(atom) => Some(atom),
                _ => None,
            },
            arguments: &site.arguments,
            location: self.location(site.file, site.span),
        })
    }

    pub(crate) fn location(&self, file: u32, span: Span) -> SourceLocation {
        match self.sources.get(file as usize) {
            Some(source) => {
                SourceLocation { file: source.name().clone(), span, start: source.position(span.start()) }
            }
            None => SourceLocation { file: Arc::from(""), span, start: fusee_text::Position::default() },
        }
    }
}

/// Callee name of a file index query in a plan. No task can have this name because it is a special form.
pub const GET_CONTEXT: &str = "get-context";

/// A call as far as it is known before it runs.
pub struct PlannedCall<'p> {
    /// Name or description of the callee, or `None` if it is computed.
    pub callee: Option<&'p str>,
    /// The definition, if the workflow itself defines the task.
    pub atom: Option<&'p Arc<Atom>>,
    /// The arguments, with values where they are literals.
    pub arguments: &'p [Argument],
    /// Location of the call.
    pub location: SourceLocation,
}

/// One argument of a [`PlannedCall`].
#[derive(Clone, Debug)]
pub struct Argument {
    /// Parameter name.
    pub key: Text,
    /// The value, if it is a literal.
    pub literal: Option<Json>,
    /// Which part of the request the argument becomes.
    pub(crate) role: ArgumentRole,
}

/// Purpose of an argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentRole {
    /// An input of the task or an argument of the tool.
    Input,
    /// A map of inputs.
    Inputs,
    /// A setting of the request.
    Setting,
    /// A part of an inline task definition.
    Definition,
}

/// A compiled function: its code and the variables it captures.
pub(crate) struct Function {
    pub(crate) name: Text,
    pub(crate) params: u32,
    pub(crate) code: Vec<Op>,
    /// The span of the form that each instruction was compiled from.
    pub(crate) spans: Vec<Span>,
    pub(crate) file: u32,
    pub(crate) captures: Vec<Capture>,
    /// Whether its code never refers to the function itself.
    pub(crate) plain: bool,
}

impl Function {
    pub(crate) fn arity(&self) -> Arity {
        Arity::exactly(self.params as usize)
    }
}

/// Source of a captured variable at the time the closure is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    Local(u32),
    Captured(u32),
    This,
}

/// A call of a task or tool, or a context query, with its arguments on the stack.
pub(crate) struct CallSite {
    pub(crate) target: SiteTarget,
    pub(crate) form: CallForm,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) file: u32,
    pub(crate) span: Span,
}

pub(crate) enum SiteTarget {
    Named(Arc<Callable>),
    Atom(Arc<Atom>),
    /// This description, or `TYPE:SUBTYPE`.
    Described(String),
    /// The description or subtype among the arguments, which are computed.
    Request,
    /// The name is on the stack, below the arguments.
    Computed,
    /// The task is defined by the arguments.
    Inline,
    /// A context query, not a task.
    Context,
}

impl CallSite {
    /// Number of values it pops from the stack.
    pub(crate) fn takes(&self) -> usize {
        self.arguments.len() + usize::from(matches!(self.target, SiteTarget::Computed))
    }
}

/// A limit that `with-limits` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitKey {
    Turns,
    Tokens,
    Seconds,
    Usd,
}

/// A pattern of `match`: its parts in one array, the root first.
pub(crate) struct Pattern {
    pub(crate) parts: Vec<PatternPart>,
}

/// One part of a pattern; numbers are indices of other parts.
pub(crate) enum PatternPart {
    Any,
    /// Binds the next name.
    Name,
    Literal(Value),
    /// Items in order, and whether the rest of the list is bound too.
    List {
        items: Vec<u32>,
        rest: bool,
    },
    /// A list whose first item is this symbol.
    Tag {
        tag: Text,
        items: Vec<u32>,
        rest: bool,
    },
    Map(Vec<(Text, u32)>),
}

/// Binary arithmetic and comparison, the most frequent operations of typical programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
}

/// An instruction. `[a b → c]` shows the stack before and after, with the top on the right.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// `[→ v]`, pushes a constant.
    Const(u32),
    Int(i32),
    Nil,
    True,
    False,
    /// `[→ unset]`, a slot for a variable that is bound later.
    Unset,
    Local(u32),
    /// A local that may not be bound yet.
    LocalChecked(u32),
    LocalCell(u32),
    Captured(u32),
    CapturedCell(u32),
    Global(u32),
    /// Pushes the running function.
    This,
    /// `[v → v]`, stores the top value in a variable.
    SetLocal(u32),
    SetLocalCell(u32),
    SetCapturedCell(u32),
    SetGlobal(u32),
    /// Moves the local into a cell.
    MakeCell(u32),
    /// `[→ f]`, creates a closure.
    Closure(u32),
    /// `[v →]`, drops the top value.
    Pop,
    /// `[… v → v]`, removing n values below the top.
    Slide(u32),
    Jump(u32),
    /// Jumps back to the start of a loop; costs a step.
    Again(u32),
    /// `[v →]`, jumps if v is false.
    JumpIfFalse(u32),
    /// `[v → v]` if it jumps, else `[v →]`
    JumpIfFalseOrPop(u32),
    JumpIfTrueOrPop(u32),
    /// `[f a… → v]`
    Call(u32),
    TailCall(u32),
    /// `[a… → v]`, calls a global.
    CallGlobal {
        arguments: u16,
        global: u32,
    },
    TailCallGlobal {
        arguments: u16,
        global: u32,
    },
    CallBuiltin {
        builtin: u16,
        arguments: u32,
    },
    Return,
    /// `[a b → c]`
    Binary(Binary),
    /// `[→ c]`, applied to a local and a small integer.
    BinaryLocalInt {
        binary: Binary,
        local: u16,
        int: i32,
    },
    /// `[n → n nil]`; raises unless n is a non-negative integer.
    LoopBegin,
    /// `[n v → n-1]`, or jumps with the stack unchanged if n is 0.
    LoopNext(u32),
    /// `[n v → n-1]`, or raises if n is 0.
    WhileNext,
    /// `[v → bindings…]` and skips the next instruction if the pattern matches, else `[v →]`.
    Match(u32),
    /// `[v →]` and raises.
    NoMatch,
    /// `[m →]` and raises.
    AssertFailed,
    /// Until popped, errors jump to this address with the stack restored and the error pushed.
    PushCatch(u32),
    /// Until popped, errors jump to this address with the stack restored and nil and the error pushed.
    PushFinally(u32),
    PopHandler,
    /// `[v error →]` and raises the error again, or `[v unset → v]`.
    EndFinally,
    /// `[n s →]`, starts the attempts of a `retry`.
    RetryBegin,
    /// `[v → v]`, or jumps back to after `RetryBegin` if v is a failed result and attempts remain.
    RetryEnd,
    /// `[values… →]`, enters the limits at this index.
    EnterLimits(u32),
    LeaveLimits,
    /// `[arguments… → result]` of the call site at this index.
    Task(u32),
    /// `[n input director executor evaluator controller → v]`
    DirectorLoop,
    /// `[n input command executor validator controller → v]`
    IterativeLoop,
}
