//! The tools a model may call, and the limits on what they can reach.
//!
//! The main type is [`Toolbox`], a set of [`Tool`]s. [`Workspace`] decides which paths a call may touch,
//! [`sandbox`] what commands may touch. The engine decides which tools a model may call at a given moment,
//! journals the calls, and decides whether an interrupted call is repeated.
#![cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "what only the sandbox of Linux uses"))]

pub mod diagnostics;
pub mod host_proxy;
pub mod mcp;
pub mod redact;
pub mod sandbox;
mod suggestions;
pub mod test_command;
pub mod tool;
pub mod toolbox;
pub mod web;
pub mod workspace;
pub mod workspace_copy;
pub mod worktree;

#[cfg(test)]
mod test_support;

pub use crate::tool::image::ToolImage;
pub use crate::tool::read_file::{NotShown, WholeFile, read_whole};
pub use crate::workspace::content::{ContentHash, DirectoryChange, FileChange, ModeChange, SeenVersion};
pub use crate::workspace::glob::matching;
pub use redact::Secrets;
pub use sandbox::{CommandEnvironment, ForkServer, Sandbox};
pub use tool::shell::{CandidateFiles, CommandSettings, NETWORK_BLOCKED, candidate_shell, copy_kind};
pub use tool::{
    Access, CallContext, CallLimits, InterruptedOutcome, PreparedCall, RetrySafety, Tool, ToolDefinition,
    ToolOutput,
};
pub use toolbox::Toolbox;
pub use workspace::{OpenDocuments, Workspace, WorkspacePath};
