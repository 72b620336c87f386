//! The workflow language: S-expressions that compose tasks, checked before they run and executed by a machine
//! whose effects are data.
//!
//! [`compile`] turns a [`fusee_text::Source`] into a [`Program`] and reports everything wrong with it.
//! [`Machine`] runs the program and yields an [`Effect`] whenever it needs something from the outside. A
//! driver performs the effect and resumes the machine; the driver in the engine crate journals every result.
//! This crate performs no I/O, has no clock, and never recurses to a depth that a program controls.

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
