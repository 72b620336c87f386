//! S-expressions: the syntax of workflows, without their semantics.
//!
//! [`read()`] parses a source into a [`Tree`] and reports all syntax errors at once; `formatter` writes a tree
//! back with its comments, as `fusee fmt` does. Both use flat arrays and explicit stacks, so an expression of
//! any nesting depth is read, written and dropped without using the host's stack.

mod formatter;
mod lex;
mod read;
mod tree;

pub use formatter::{Indent, layout};
pub use read::{MAX_BYTES, read};
pub use tree::{NodeId, NodeKind, Tree};
