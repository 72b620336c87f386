//! What the compiler makes and the machine runs: a program of functions of instructions for a stack.

use std::sync::Arc;

use fusee_text::{Source, Span};
use serde_json::Value as Json;

use crate::atom::Atom;
use crate::builtin::{Arity, Builtin};
use crate::catalog::Callable;
use crate::effect::CallForm;
use crate::fault::Place;
use crate::param::Param;
use crate::value::{Text, Value};

/// A workflow that passed the checker. Immutable and shared by all machines that run it.
pub struct Program {
    pub(crate) sources: Vec<Source>,
    /// The last one is the workflow itself.
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
    /// The sources it was made of: its own first, then what it loads.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The source of this name.
    pub fn source(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| &**source.name() == name)
    }

    /// The declared parameters.
    pub fn params(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().map(|(param, _)| param)
    }

    /// The tasks it defines.
    pub fn atoms(&self) -> &[Arc<Atom>] {
        &self.atoms
    }

    /// Every call of a task or tool it contains, in the order of the text: what a dry run shows.
    pub fn calls(&self) -> impl Iterator<Item = PlannedCall<'_>> {
        self.sites.iter().map(|site| PlannedCall {
            callee: match &site.target {
                SiteTarget::Named(callable) => Some(&callable.name),
                SiteTarget::Atom(atom) => Some(&atom.name),
                SiteTarget::Described(text) => Some(text),
                SiteTarget::Context => Some(GET_CONTEXT),
                SiteTarget::Computed | SiteTarget::Inline => None,
            },
            atom: match &site.target {
                SiteTarget::Atom(atom) => Some(atom),
                _ => None,
            },
            arguments: &site.arguments,
            place: self.place(site.file, site.span),
        })
    }

    pub(crate) fn place(&self, file: u32, span: Span) -> Place {
        match self.sources.get(file as usize) {
            Some(source) => Place { file: source.name().clone(), span, start: source.position(span.start()) },
            None => Place { file: Arc::from(""), span, start: fusee_text::Position::default() },
        }
    }
}

/// What a plan calls a question to the file index: a form, so no task has its name.
pub const GET_CONTEXT: &str = "get-context";

/// A call as far as it is known before it runs.
pub struct PlannedCall<'p> {
    /// Name or description of what is called, unless that is computed.
    pub callee: Option<&'p str>,
    /// The definition, if the workflow itself defines the task.
    pub atom: Option<&'p Arc<Atom>>,
    /// The arguments by key, with the value where it is written out.
    pub arguments: &'p [Argument],
    /// Where the call is.
    pub place: Place,
}

/// One argument of a [`PlannedCall`].
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its key.
    pub key: Text,
    /// Its value, if that is a literal.
    pub literal: Option<Json>,
    /// What becomes of it.
    pub(crate) role: Role,
}

/// What an argument of a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// An input of the task, an argument of the tool.
    Input,
    /// A map of inputs.
    Inputs,
    /// A setting of the request.
    Setting,
    /// A part of a task written in place.
    Definition,
}

/// A function: its code and what it takes from the scope around it.
pub(crate) struct Function {
    pub(crate) name: Text,
    pub(crate) params: u32,
    pub(crate) code: Vec<Op>,
    /// The span of the form each instruction comes from.
    pub(crate) spans: Vec<Span>,
    pub(crate) file: u32,
    pub(crate) captures: Vec<Capture>,
    /// Whether its code never looks at the function itself.
    pub(crate) plain: bool,
}

impl Function {
    pub(crate) fn arity(&self) -> Arity {
        Arity::exactly(self.params as usize)
    }
}

/// Where a captured variable comes from when the function is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    Local(u32),
    Captured(u32),
    This,
}

/// A call of a task, tool or context, with its arguments on the stack.
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
    Described(String),
    /// The name is on the stack before the arguments.
    Computed,
    /// The task is among the arguments.
    Inline,
    /// Not a task: a query for context.
    Context,
}

impl CallSite {
    /// How many values it takes from the stack.
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

/// A pattern of `match`: its parts in one array, the whole first.
pub(crate) struct Pattern {
    pub(crate) parts: Vec<Part>,
}

/// One part of a pattern; indices point at other parts.
pub(crate) enum Part {
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

/// Arithmetic and order on two values, which most programs spend their steps on.
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

/// An instruction. `[a b → c]` says what it takes from the stack and leaves there, the top last.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// `[→ v]`
    Const(u32),
    Int(i32),
    Nil,
    True,
    False,
    /// `[→ unset]`, the place of a variable that is bound later.
    Unset,
    Local(u32),
    /// A local that may not be bound yet.
    LocalChecked(u32),
    LocalCell(u32),
    Captured(u32),
    CapturedCell(u32),
    Global(u32),
    /// The running function.
    This,
    /// `[v → v]`
    SetLocal(u32),
    SetLocalCell(u32),
    SetCapturedCell(u32),
    SetGlobal(u32),
    /// Puts the local into a cell.
    MakeCell(u32),
    /// `[→ f]`
    Closure(u32),
    /// `[v →]`
    Pop,
    /// `[… v → v]`, without the n values below the top.
    Slide(u32),
    Jump(u32),
    /// Back to the beginning of a loop; costs a step.
    Again(u32),
    /// `[v →]`
    JumpIfFalse(u32),
    /// `[v → v]` if it jumps, else `[v →]`
    JumpIfFalseOrPop(u32),
    JumpIfTrueOrPop(u32),
    /// `[f a… → v]`
    Call(u32),
    TailCall(u32),
    /// `[a… → v]`
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
    /// `[→ c]`, of a local and a small integer.
    BinaryLocalInt {
        binary: Binary,
        local: u16,
        int: i32,
    },
    /// `[n → n nil]`, checking that n is a count.
    LoopBegin,
    /// `[n v → n-1]`, or jumps with the stack as it is if n is 0.
    LoopNext(u32),
    /// `[n v → n-1]`, or raises if n is 0.
    WhileNext,
    /// `[v → bindings…]` and skips the next instruction if the pattern fits, else `[v →]`.
    Match(u32),
    /// `[v →]` and raises.
    NoMatch,
    /// `[m →]` and raises.
    AssertFailed,
    /// Errors from here on go to this place, with the stack as it is now and the error on it.
    PushCatch(u32),
    /// Errors from here on go to this place, with nil and the error on the stack.
    PushFinally(u32),
    PopHandler,
    /// `[v error →]` and raises it again, or `[v unset → v]`.
    EndFinally,
    /// `[n s →]`, and begins the attempts.
    RetryBegin,
    /// `[v → v]`, or back to after `RetryBegin` if v is a failed result and attempts are left.
    RetryEnd,
    /// `[values… →]` of the limits at this index.
    EnterLimits(u32),
    LeaveLimits,
    /// `[arguments… → result]` of the call site at this index.
    Task(u32),
    /// `[n input director executor evaluator controller → v]`
    DirectorLoop,
    /// `[n input command executor validator controller → v]`
    IterativeLoop,
}
