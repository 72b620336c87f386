//! The workflow language: S-expressions that compose tasks, checked before they run and executed by a machine
//! whose effects are data.
//!
//! [`compile()`] turns a [`fusee_text::Source`] into a [`Program`] and reports everything wrong with it.
//! [`Machine`] runs the program and yields an [`Effect`] whenever it needs something from the outside. A
//! driver performs the effect and resumes the machine; the driver in the engine crate journals every result.
//! This crate performs no I/O, has no clock, and never recurses to a depth that a program controls.

mod builtin;
mod bytecode;
mod catalog;
mod compile;
mod defatom;
mod effect;
mod form;
mod fuel;
mod function;
mod layout;
mod lookup;
mod machine;
mod param;
mod result;
mod runtime_error;
mod value;

pub use builtin::{Arity, Builtin};
pub use bytecode::{Argument, GET_CONTEXT, PlannedCall, Program};
pub use catalog::{Callable, CallableKind, Catalog};
pub use compile::{Compiled, FileLoader, NoFiles, compile, params};
pub use defatom::{Atom, OutputFormat, OutputKind};
pub use effect::{
    CallForm, Effect, EffectFailure, EffectKind, LimitsId, ResumeInput, RunLimits, TaskCall, TaskTarget,
    ToolEffect, Yield,
};
pub use form::SpecialForm;
pub use fuel::EvaluationLimits;
pub use function::{Cell, Closure};
pub use layout::{format, indent};
pub use machine::{FanOut, Machine, ParameterProblem};
pub use param::{Param, ParamType};
pub use result::{ResultValue, Status, TaskResult};
pub use runtime_error::{RuntimeError, SourceLocation, TraceEntry};
pub use value::{JsonProblem, List, ListIter, MAX_JSON_DEPTH, Map, Slot, Text, Value};
