//! Errors from setting up a sandbox: the failed step, the path, and the system's error.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A step of setting up a sandbox. Its number is sent between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetupStep {
    UserNamespace,
    Identities,
    Namespaces,
    Loopback,
    Root,
    Devices,
    Read,
    Write,
    Hide,
    Scratch,
    WriteFile,
    ProtectPath,
    Processes,
    Join,
    Privileges,
    Filter,
    Directory,
    Message,
    Landlock,
    BackUpSettings,
}

impl SetupStep {
    const ALL: [Self; 20] = [
        Self::UserNamespace,
        Self::Identities,
        Self::Namespaces,
        Self::Loopback,
        Self::Root,
        Self::Devices,
        Self::Read,
        Self::Write,
        Self::Hide,
        Self::Scratch,
        Self::WriteFile,
        Self::ProtectPath,
        Self::Processes,
        Self::Join,
        Self::Privileges,
        Self::Filter,
        Self::Directory,
        Self::Message,
        Self::Landlock,
        Self::BackUpSettings,
    ];

    pub(super) fn number(self) -> u32 {
        Self::ALL.iter().zip(0..).find(|(step, _)| **step == self).map_or(0, |(_, number)| number)
    }

    pub(super) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    fn describe(self) -> &'static str {
        match self {
            Self::UserNamespace => "creating a user namespace",
            Self::Identities => "mapping user and group ids into the namespace",
            Self::Namespaces => "creating mount, IPC and network namespaces",
            Self::Loopback => "bringing up the loopback device",
            Self::Root => "setting up the root file system",
            Self::Devices => "setting up /dev",
            Self::Read => "creating a read-only mount of",
            Self::Write => "creating a writable mount of",
            Self::Hide => "hiding",
            Self::Scratch => "creating a private directory at",
            Self::WriteFile => "writing",
            Self::ProtectPath => "protecting",
            Self::Processes => "mounting /proc",
            Self::Join => "joining the namespaces",
            Self::Privileges => "dropping privileges",
            Self::Filter => "installing the seccomp filter",
            Self::Directory => "entering the working directory",
            Self::Message => "decoding the request",
            Self::Landlock => "applying Landlock",
            Self::BackUpSettings => "backing up the git and Fusee settings in the workspace",
        }
    }

    /// Makes an error of this step.
    pub(super) fn failed(self) -> impl FnOnce(io::Error) -> SandboxError {
        move |error| SandboxError { step: self, path: None, error }
    }

    /// Makes an error of this step at a path.
    pub(super) fn failed_at(self, path: &Path) -> impl FnOnce(io::Error) -> SandboxError {
        move |error| SandboxError { step: self, path: Some(path.to_owned()), error }
    }
}

/// A failed step.
#[derive(Debug)]
pub(super) struct SandboxError {
    pub(super) step: SetupStep,
    pub(super) path: Option<PathBuf>,
    pub(super) error: io::Error,
}

impl fmt::Display for SandboxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.step.describe())?;
        if let Some(path) = &self.path {
            write!(formatter, " {}", path.display())?;
        }
        write!(formatter, ": {}", self.error)
    }
}
