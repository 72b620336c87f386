//! Text with positions: the kit under every small language of the product (workflows, templates, prompt files).
//!
//! [`Source`] knows where lines begin, [`Span`] names a byte range in it, [`Diagnostic`] says what is wrong there as a
//! plain value, and [`render`] turns diagnostics into terminal text or JSON. [`sexpr`] reads and lays out
//! S-expressions; what they mean is the business of `fusee-lang`. [`xml`] reads XML; templates are the engine's.
//! Nothing here performs input or output.

mod diagnostic;
pub mod near;
pub mod render;
pub mod sexpr;
mod source;
mod span;
pub mod xml;

pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use source::{Position, Source};
pub use span::Span;
