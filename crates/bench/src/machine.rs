//! What this machine offers to the tests of a suite: programs, and whether folders can be mounted elsewhere.

use std::path::PathBuf;

/// Programs and mounts of this machine.
#[derive(Clone, Debug, Default)]
pub struct HostMachine {
    path: Vec<PathBuf>,
    mounts: bool,
}

impl HostMachine {
    /// A machine with these folders of programs; `mounts` says whether its sandbox can mount a folder at another
    /// path.
    pub fn new(path: Vec<PathBuf>, mounts: bool) -> Self {
        Self { path, mounts }
    }

    /// Whether a program can be started by its name.
    pub fn has_program(&self, name: &str) -> bool {
        use std::os::unix::fs::PermissionsExt;
        self.path.iter().any(|folder| {
            std::fs::metadata(folder.join(name))
                .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
    }

    /// Whether a sandbox can mount a folder at another path.
    pub fn has_mounts(&self) -> bool {
        self.mounts
    }
}
