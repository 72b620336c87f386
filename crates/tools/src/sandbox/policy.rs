//! The sandbox policy: what a command may reach, as data. Made once per run and the same for all of its
//! commands.
//!
//! A policy only describes; `rootfs` turns it into mounts. A path that is not named does not exist for a
//! command. `toolchains` finds the programs of this machine and what they need, `repository` what git needs.

mod denied_programs;
mod owner;
mod private_files;
mod repository;
mod toolchains;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CommandEnvironment;
use repository::LinkedRepository;

/// Maximum size of each private directory of a sandbox. They are kept in memory: together at most half of it.
const SCRATCH_BYTES: u64 = 2 << 30;
const SCRATCH_SHARE: u64 = 8;

/// Top-level directories of the system: programs, libraries and their settings. A symbolic link among them
/// stays one in the sandbox.
const SYSTEM: [&str; 11] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"];

/// CPU and memory topology, which runtimes read; nothing else of `/sys` is visible.
const MACHINE: &str = "/sys/devices/system";

/// Where services keep settings that only root can read.
const SYSTEM_SETTINGS: [&str; 2] = ["/etc", "/usr/local/etc"];

/// Files in `/etc` that no command needs, whoever can read them.
const SYSTEM_SECRETS: [&str; 14] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/docker",
    "/etc/ppp",
];

/// Credentials in a home directory. A home is not visible as such; this list matters if the workspace is a
/// home or contains one, or if the user made more of the system readable.
const HOME_SECRETS: [&str; 40] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".netrc",
    ".git-credentials",
    ".docker",
    ".kube",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".password-store",
    ".terraformrc",
    ".terraform.d",
    ".oci",
    ".fly",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/doctl",
    ".config/google-chrome",
    ".config/chromium",
    ".mozilla",
    ".local/share/keyrings",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
];

/// Describes what a command may reach. Of two nested entries the inner one applies; of two for the same path
/// the stricter one, except that a private directory yields to every other kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Files and trees that can be read and executed. `/` is possible and means everything except hidden
    /// paths.
    pub read: Vec<PathBuf>,
    /// Trees that can be changed, above all the workspace.
    pub write: Vec<PathBuf>,
    /// What is shown in place of one of the writable trees, so that commands change that instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitute: Option<Substitute>,
    /// Files and trees that appear empty.
    pub hidden: Vec<PathBuf>,
    /// Paths inside writable trees that can be neither changed nor created.
    pub guarded: Vec<ProtectedPath>,
    /// Folders that appear at another path, instead of their own.
    #[serde(default)]
    pub moved: Vec<MovedFolder>,
    /// Private directories: initially empty, shared by the commands of a run, and removed after it.
    pub scratch: Vec<PathBuf>,
    /// Maximum size of each private directory, in bytes.
    pub scratch_bytes: u64,
    /// Files that exist in the private directories from the start.
    pub placed: Vec<PlacedFile>,
    /// Network access.
    pub network: Network,
    /// User and group to run as, if different from those of this process.
    pub owner: Option<Owner>,
}

/// A tree that commands see in place of a writable one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Substitute {
    /// Path of the writable tree.
    pub path: PathBuf,
    /// What is mounted there.
    pub source: SubstituteSource,
}

/// Where the files of a substitute come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubstituteSource {
    /// A copy of the tree in this directory.
    Copy(PathBuf),
    /// The tree itself, below a layer that receives all changes.
    Overlay {
        /// Directory of the changed files.
        upper: PathBuf,
        /// Empty directory on the same file system, for the kernel.
        work: PathBuf,
    },
}

/// A folder that commands see at another path. Possible in a namespace sandbox only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedFolder {
    /// Path on the machine, absolute and without symbolic links.
    pub source: PathBuf,
    /// Absolute path in the sandbox.
    pub target: PathBuf,
    /// Whether commands may change it.
    pub writable: bool,
}

/// Owner of the workspace. Root without capabilities could not change the owner's files, and would leave
/// files behind that the owner cannot change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Numeric user id.
    pub user: u32,
    /// Numeric group id.
    pub group: u32,
}

/// A path that commands may not change or create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedPath {
    /// Absolute path.
    pub path: PathBuf,
    /// Applied if the path did not exist before a command and does after it. There is nothing to mount
    /// over then, so its creation is reverted instead.
    pub on_create: CreatedPathAction,
}

/// How a protected path that a command created is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreatedPathAction {
    /// It is renamed to a name without meaning.
    SetAside,
    /// Hooks in it are renamed, so that git does not run them; the samples of a new repository stay.
    WithoutHooks,
    /// It stays if it contains only settings of a new repository; otherwise it is set aside and replaced by
    /// those.
    Sanitized,
    /// A directory stays, and one that existed before can be changed; anything else is set aside.
    UnlessDirectory,
    /// It is a work tree and can be changed. Repositories in it that git's index links to are checked when a
    /// command has ended: their hooks are set aside, and so are settings beyond those of a new repository.
    Linking,
}

/// A file that exists in the sandbox from the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedFile {
    /// Absolute path below one of the private directories.
    pub path: PathBuf,
    /// Content of the file.
    pub content: String,
}

/// Network access of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Only the commands of the same run, over a private loopback device.
    #[default]
    Own,
    /// Like [`Network::Own`], with a proxy on that device through which named hosts can be reached. Only the namespace
    /// sandbox has it; elsewhere it is the same as [`Network::Own`].
    Hosts,
    /// The machine's network, including services on the machine itself.
    Machine,
}

impl Network {
    /// Whether commands are cut off from the machine's network.
    #[must_use]
    pub fn is_own(self) -> bool {
        self != Self::Machine
    }
}

/// Inputs to a policy.
#[derive(Clone, Copy, Debug)]
pub struct SandboxInputs<'s> {
    /// The workspace, as an absolute path without symbolic links.
    pub workspace: &'s Path,
    /// The environment of commands: `HOME`, `PATH` and the variables of toolchains.
    pub environment: &'s CommandEnvironment,
    /// Fusee's own directories (settings, state, journals), which no command may see.
    pub own: &'s [PathBuf],
    /// Network access of commands.
    pub network: Network,
}

/// Why a policy cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The workspace is `/`, so everything would be writable.
    #[error(
        "the sandbox cannot protect anything if `/` is writable; choose a smaller workspace or fewer sandbox.write paths"
    )]
    WholeSystem,
    /// A path to be made writable does not exist.
    #[error("{} is listed in sandbox.write but does not exist", .0.display())]
    Missing(PathBuf),
}

impl Policy {
    /// The default policy: the system and the toolchains are readable, the workspace is writable except for
    /// settings that decide what runs outside the sandbox, `/tmp` and the home directory are private to the
    /// run, and nothing else exists.
    pub fn defaults(surroundings: &SandboxInputs<'_>) -> Result<Self, PolicyError> {
        let SandboxInputs { workspace, environment, own, network } = *surroundings;
        if workspace.parent().is_none() {
            return Err(PolicyError::WholeSystem);
        }
        let home = environment.value("HOME").map(PathBuf::from).filter(|home| is_plain(home));
        let mut policy = Self {
            scratch_bytes: scratch_bytes(),
            network,
            owner: owner::find(workspace),
            ..Self::default()
        };
        policy.read.extend(SYSTEM.iter().chain([&MACHINE]).map(PathBuf::from).filter(|path| exists(path)));
        policy.read.extend(toolchains::roots(environment, home.as_deref(), workspace));
        if network == Network::Machine {
            policy.read.extend(resolver_settings());
        }
        policy.write.push(workspace.to_owned());
        let linked_repository = repository::linked_repository(workspace);
        if let Some(LinkedRepository { common, tree }) = &linked_repository {
            policy.write.extend([common.clone(), tree.clone()]);
            policy.read.push(common.join("worktrees"));
        }
        policy.read.extend(repository::enclosing_repository_parts(workspace, home.as_deref()));
        policy.scratch.extend(["/tmp", "/var/tmp"].map(PathBuf::from));
        policy.scratch.extend(environment.value("TMPDIR").map(PathBuf::from).filter(|path| is_plain(path)));
        if let Some(home) = &home {
            policy.scratch.push(home.clone());
            policy.hidden.extend(HOME_SECRETS.iter().map(|name| home.join(name)));
            policy.placed.push(PlacedFile {
                path: home.join(".gitconfig"),
                content: repository::identity(home, environment),
            });
        }
        if let Some(cargo) = environment.value("CARGO_HOME").map(Path::new) {
            policy.hidden.extend(["credentials", "credentials.toml"].map(|name| cargo.join(name)));
        }
        policy.hidden.extend(SYSTEM_SECRETS.iter().map(PathBuf::from).filter(|path| is_readable(path)));
        policy.hidden.extend(private_files::below(SYSTEM_SETTINGS));
        policy.hidden.extend(own.iter().filter(|own| !workspace.starts_with(own)).cloned());
        policy.guarded = guarded(workspace, linked_repository.as_ref());
        Ok(policy)
    }

    /// Adds paths that the user has made readable or writable. A writable path that does not exist is an
    /// error.
    pub fn with(mut self, read: &[PathBuf], write: &[PathBuf]) -> Result<Self, PolicyError> {
        for path in write {
            let path = path.canonicalize().map_err(|_| PolicyError::Missing(path.clone()))?;
            if !is_plain(&path) {
                return Err(PolicyError::WholeSystem);
            }
            self.write.push(path);
        }
        self.read.extend(read.iter().filter(|path| is_plain(path) || path.parent().is_none()).cloned());
        Ok(self)
    }

    /// Adds folders that appear at another path.
    #[must_use]
    pub fn with_moved(mut self, moved: &[MovedFolder]) -> Self {
        let fits = |folder: &&MovedFolder| is_plain(&folder.source) && is_plain(&folder.target);
        self.moved.extend(moved.iter().filter(fits).cloned());
        self
    }

    /// The path at which commands see a path of the machine.
    pub(super) fn inside(&self, path: &Path) -> PathBuf {
        let moved = |folder: &MovedFolder| {
            path.strip_prefix(&folder.source).ok().map(|rest| match rest.as_os_str().is_empty() {
                true => folder.target.clone(),
                false => folder.target.join(rest),
            })
        };
        self.moved.iter().find_map(moved).unwrap_or_else(|| path.to_owned())
    }

    /// The work tree whose repositories are watched.
    pub(super) fn workspace(&self) -> Option<&Path> {
        let tree = self.guarded.iter().find(|guarded| guarded.on_create == CreatedPathAction::Linking);
        tree.map(|guarded| guarded.path.as_path())
    }

    /// The minimal policy that can run a program: the system readable, nothing writable.
    #[must_use]
    pub fn minimal() -> Self {
        Self {
            read: SYSTEM.iter().chain([&MACHINE]).map(PathBuf::from).filter(|path| exists(path)).collect(),
            scratch: vec!["/tmp".into()],
            scratch_bytes: 1 << 20,
            ..Self::default()
        }
    }
}

/// Paths that decide what runs outside the sandbox: settings and hooks of git, and Fusee's own settings.
fn guarded(workspace: &Path, linked_repository: Option<&LinkedRepository>) -> Vec<ProtectedPath> {
    let guarded = |path: PathBuf, on_create: CreatedPathAction| ProtectedPath { path, on_create };
    let repository = workspace.join(".git");
    let mut all = vec![
        guarded(workspace.join(".fusee"), CreatedPathAction::SetAside),
        guarded(workspace.join("fusee.toml"), CreatedPathAction::SetAside),
        guarded(repository.clone(), CreatedPathAction::UnlessDirectory),
        guarded(workspace.to_owned(), CreatedPathAction::Linking),
    ];
    let whole =
        |repository: &Path| of_a_repository(repository).map(|(path, on_create)| guarded(path, on_create));
    match linked_repository {
        None => {
            all.extend(whole(&repository));
            // Other work trees point to their settings from there. If the directory does not exist, it may be
            // created.
            let others = repository.join("worktrees");
            all.extend(exists(&others).then(|| guarded(others, CreatedPathAction::SetAside)));
        }
        Some(LinkedRepository { common, tree }) => {
            all.extend(whole(common));
            let pointers = ["commondir", "gitdir", "config.worktree", "modules"];
            all.extend(pointers.map(|name| guarded(tree.join(name), CreatedPathAction::SetAside)));
        }
    }
    for git in repository::inside(workspace) {
        if git.is_dir() {
            all.extend(whole(&git));
        }
        all.push(guarded(git, CreatedPathAction::UnlessDirectory));
    }
    all
}

/// Paths in the git directory of a repository that decide what git runs.
pub(super) fn of_a_repository(folder: &Path) -> [(PathBuf, CreatedPathAction); 5] {
    [
        ("hooks", CreatedPathAction::WithoutHooks),
        ("config", CreatedPathAction::Sanitized),
        ("config.worktree", CreatedPathAction::SetAside),
        // Makes git read its settings and hooks from elsewhere.
        ("commondir", CreatedPathAction::SetAside),
        // Each submodule has hooks and settings of its own.
        ("modules", CreatedPathAction::SetAside),
    ]
    .map(|(name, on_create)| (folder.join(name), on_create))
}

/// Size of each private directory, limited by the memory of the machine.
fn scratch_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.strip_prefix("MemTotal:").and_then(|rest| rest.split_ascii_whitespace().next());
    let kilobytes: Option<u64> = total.and_then(|total| total.parse().ok());
    kilobytes.map_or(SCRATCH_BYTES, |kilobytes| (kilobytes * 1024 / SCRATCH_SHARE).min(SCRATCH_BYTES))
}

/// The resolver configuration, if `/etc/resolv.conf` is a link to a file outside `/etc`.
fn resolver_settings() -> Option<PathBuf> {
    let target = std::fs::canonicalize("/etc/resolv.conf").ok()?;
    (!target.starts_with("/etc")).then_some(target)
}

/// Whether a path is absolute, without `.` or `..`, not the root, and UTF-8: policies are sent as text.
fn is_plain(path: &Path) -> bool {
    use std::path::Component;
    let mut components = path.components();
    path.to_str().is_some()
        && components.next() == Some(Component::RootDir)
        && components.clone().next().is_some()
        && components.all(|component| matches!(component, Component::Normal(_)))
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_readable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok()
}

#[cfg(test)]
mod tests;
