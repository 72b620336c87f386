//! Protected paths: settings in the workspace that decide what runs outside the sandbox, which commands may
//! not change.
//!
//! An existing path is covered by a read-only bind mount of itself, and its parent directories are pinned, so
//! that none of them can be moved away and created again (`read_only_mount`). A missing path cannot be covered; it is
//! watched while a command runs, and what the command creates there is set aside (`revert`). Settings of git that cannot
//! be covered are restored from a copy after the command (`settings_backup`).

#[cfg(target_os = "linux")]
mod directory_changes;
pub(crate) mod entry;
#[cfg(target_os = "linux")]
mod git_references;
mod git_settings;
#[cfg(target_os = "linux")]
mod nested_repos;
#[cfg(target_os = "linux")]
mod read_only_mount;
pub(crate) mod report;
#[cfg(target_os = "linux")]
pub(crate) mod repository_watch;
#[cfg(target_os = "linux")]
mod revert;
#[cfg(target_os = "linux")]
pub(crate) mod settings_backup;
pub(crate) mod submodules;

#[doc(hidden)]
pub use git_settings::has_only_safe_settings as has_only_safe_git_settings;
#[cfg(target_os = "linux")]
pub(super) use nested_repos::sanitize_nested;
#[cfg(target_os = "linux")]
pub(super) use read_only_mount::{Presence, is_pinned, protect};
#[cfg(target_os = "linux")]
pub(super) use revert::{Watch, check, is_hook, revert_at};
