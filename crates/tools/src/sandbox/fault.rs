//! What went wrong on the way into a sandbox, in words for people: which step, where, and what the system said.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A step on the way into a sandbox. Its number is what is sent between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
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
    Place,
    Guard,
    Processes,
    Join,
    Privileges,
    Filter,
    Directory,
    Message,
    Fence,
    Keep,
}

impl Step {
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
        Self::Place,
        Self::Guard,
        Self::Processes,
        Self::Join,
        Self::Privileges,
        Self::Filter,
        Self::Directory,
        Self::Message,
        Self::Fence,
        Self::Keep,
    ];

    pub(super) fn number(self) -> u32 {
        Self::ALL.iter().zip(0..).find(|(step, _)| **step == self).map_or(0, |(_, number)| number)
    }

    pub(super) fn of_number(number: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    fn words(self) -> &'static str {
        match self {
            Self::UserNamespace => "making a user namespace",
            Self::Identities => "mapping the user into the namespace",
            Self::Namespaces => "making mount and network namespaces",
            Self::Loopback => "bringing up the loopback device",
            Self::Root => "making a root of its own",
            Self::Devices => "making /dev",
            Self::Read => "making readable",
            Self::Write => "making writable",
            Self::Hide => "hiding",
            Self::Scratch => "making a directory of its own at",
            Self::Place => "placing",
            Self::Guard => "guarding",
            Self::Processes => "mounting /proc",
            Self::Join => "entering the namespaces",
            Self::Privileges => "giving up privileges",
            Self::Filter => "filtering system calls",
            Self::Directory => "entering the working directory",
            Self::Message => "reading what is to be done",
            Self::Fence => "restricting its files (Landlock)",
            Self::Keep => "keeping the settings of git and Fusee in the workspace",
        }
    }

    /// The fault of this step.
    pub(super) fn failed(self) -> impl FnOnce(io::Error) -> Fault {
        move |error| Fault { step: self, path: None, error }
    }

    /// The same at a path.
    pub(super) fn failed_at(self, path: &Path) -> impl FnOnce(io::Error) -> Fault {
        move |error| Fault { step: self, path: Some(path.to_owned()), error }
    }
}

/// A step that failed.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) step: Step,
    pub(super) path: Option<PathBuf>,
    pub(super) error: io::Error,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.step.words())?;
        if let Some(path) = &self.path {
            write!(formatter, " {}", path.display())?;
        }
        write!(formatter, ": {}", self.error)
    }
}
