//! The tools a model may call, and the limits on what they can reach.
//!
//! The main type is [`Toolbox`], a set of [`Tool`]s. [`Workspace`] decides which paths a call may touch,
//! [`sandbox`] what commands may touch. The engine decides which tools a model may call at a given moment,
//! journals the calls, and decides whether an interrupted call is repeated.

pub mod arguments;
mod change;
mod changes;
pub mod content;
mod edit;
mod endings;
mod find;
mod git_index;
mod glob;
mod list;
mod look;
pub mod mcp;
mod near;
mod nearest;
mod numbered;
pub mod patch;
pub mod picture;
pub mod plain;
pub mod provider;
mod read;
pub mod redact;
pub mod sandbox;
mod search;
mod shell;
pub mod tool;
pub mod toolbox;
#[cfg(test)]
mod trial;
pub mod walk;
pub mod workspace;
mod write;

pub use content::{ContentHash, DirectoryChange, FileChange, Seen};
pub use glob::matching;
pub use picture::Image;
pub use read::{NotShown, WholeFile, read_whole};
pub use redact::Secrets;
pub use sandbox::{Environment, Keeper, Sandbox};
pub use tool::{CallContext, Category, Definition, Limits, Prepared, Repeat, Settled, Tool, ToolOutput};
pub use toolbox::{CommandSettings, Toolbox};
pub use workspace::{Workspace, WorkspacePath};
