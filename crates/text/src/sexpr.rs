//! S-expressions: the shape of workflows, without their meaning.
//!
//! [`read`] makes a [`Tree`] of a source and reports every reading problem at once; [`layout`] writes a tree back with
//! its comments, the way `fusee fmt` does. Both work on flat arrays and explicit stacks, so nesting of any depth is
//! read, written and dropped without touching the host's stack.

mod layout;
mod lex;
mod read;
mod tree;

pub use layout::{Indent, layout};
pub use read::{MAX_BYTES, read};
pub use tree::{Kind, NodeId, Tree};
