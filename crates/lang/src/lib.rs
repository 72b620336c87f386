//! The workflow language: S-expressions that compose tasks, checked before they run, run by a machine whose effects are
//! data.
//!
//! [`compile`] turns a [`fusee_text::Source`] into a [`Program`] and reports everything that is wrong with it.
//! [`Machine`] runs the program and yields an [`Effect`] wherever it wants something from the world. A driver performs
//! the effect and resumes the machine; the engine crate has the one that writes every answer to the journal. This
//! crate performs no input or output, knows no clock, and keeps nothing on the host's stack that a program can grow.

mod atom;
mod builtin;
mod catalog;
mod code;
mod compile;
mod effect;
mod fault;
mod form;
mod function;
mod layout;
mod machine;
mod meter;
mod param;
mod result;
mod table;
mod value;

pub use atom::{Atom, OutputFormat};
pub use builtin::{Arity, Builtin};
pub use catalog::{Callable, CallableKind, Catalog};
pub use code::{Argument, GET_CONTEXT, PlannedCall, Program};
pub use compile::{Compiled, Load, NoFiles, compile, params};
pub use effect::{
    CallForm, Effect, EffectKind, Failure, Input, LimitsId, RunLimits, Target, TaskCall, ToolCall, Yield,
};
pub use fault::{Call, Fault, Place};
pub use form::Form;
pub use function::{Cell, Closure};
pub use layout::{format, indent};
pub use machine::{FanOut, InputProblem, Machine};
pub use meter::Limits;
pub use param::{Param, ParamType};
pub use result::{Reply, Status, TaskResult};
pub use value::{JsonProblem, List, ListIter, MAX_JSON_DEPTH, Map, Slot, Text, Value};
