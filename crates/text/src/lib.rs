//! Text with positions, shared by every small language of the product (workflows, templates, prompt files).
//!
//! [`Source`] is a named text with a line index, [`Span`] a byte range in it, [`Diagnostic`] a problem at a
//! span as a plain value; [`render`] turns diagnostics into terminal text or JSON. [`sexpr`] reads and
//! formats S-expressions, whose meaning is defined in `fusee-lang`. [`xml`] reads XML; templates are defined
//! in the engine. [`placeholder`] finds the `{{names}}` in their texts. This crate performs no I/O.

mod count;
mod diagnostic;
pub mod placeholder;
pub mod render;
pub mod sexpr;
mod source;
mod span;
pub mod suggest;
pub mod test_report;
pub mod xml;

pub use count::count;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use source::{Position, Source};
pub use span::Span;
