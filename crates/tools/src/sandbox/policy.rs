//! What a command may reach, as data: made once for a run, and the same for every command of it.
//!
//! A policy only says; `view` turns it into mounts. What is not named here does not exist for a command.
//! `toolchains` finds the programs of this machine and what they need, `repository` what git needs.

mod owner;
mod repository;
mod toolchains;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Environment;
use repository::Apart;

/// Most bytes in each of a room's directories of its own. They are memory: together not more than half of it.
const SCRATCH_BYTES: u64 = 2 << 30;
const SCRATCH_SHARE: u64 = 8;

/// Top directories that are the system: programs, libraries and their settings. Where one is a symbolic link it is
/// that for commands too.
const SYSTEM: [&str; 11] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"];

/// The processors and memory of the machine, which runtimes count; nothing else of `/sys`.
const MACHINE: &str = "/sys/devices/system";

/// What root can read in `/etc` and no command needs.
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

/// What a home holds that gives access to something else. A home is not visible as such; this counts where the
/// workspace is a home or lies around one, or where somebody made more of the system readable.
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

/// What a command may reach. Of two entries that lie in each other the deeper one counts; of two for the same path the
/// stricter one, except that a directory of its own gives way to everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Files and trees that can be read, and run. `/` is possible: everything, then, except what is hidden.
    pub read: Vec<PathBuf>,
    /// Trees that can be changed, the workspace above all.
    pub write: Vec<PathBuf>,
    /// Files and trees that look empty.
    pub hidden: Vec<PathBuf>,
    /// Inside of what can be changed: what cannot, and cannot be made either.
    pub guarded: Vec<Guarded>,
    /// Directories of its own: empty at first, shared by the commands of a run, and gone after it.
    pub scratch: Vec<PathBuf>,
    /// Most bytes in each of those.
    pub scratch_bytes: u64,
    /// Files that stand in those from the start.
    pub placed: Vec<Placed>,
    /// Whom it can talk to.
    pub network: Network,
    /// Whom it runs as, where that is not who we are.
    pub owner: Option<Owner>,
}

/// Whose files are worked on. Root without privileges could not change them, and would leave files behind that their
/// owner cannot change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The number of the user.
    pub user: u32,
    /// The number of the group.
    pub group: u32,
}

/// A path that commands may not change or make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarded {
    /// Which.
    pub path: PathBuf,
    /// What happens if it did not exist before a command, and does after it. There is nothing to mount over then, so
    /// this is how it is kept from being made.
    pub made: Made,
}

/// What becomes of a guarded path that a command made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Made {
    /// It gets another name, which means nothing.
    SetAside,
    /// Hooks in it get other names, so that git does not run them; the samples of a new repository stay.
    WithoutHooks,
    /// It stays if it only says what the settings of a new repository say, else it is set aside for those.
    Tamed,
    /// A directory stays, and one that was there before can be changed; anything else is set aside.
    UnlessDirectory,
    /// It is a work tree and can be changed. Repositories in it that git's index links to are looked at when a command has
    /// ended: their hooks are set aside, and settings that say more than those of a new repository.
    Linking,
}

/// A file that is there from the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Below one of the directories of its own.
    pub path: PathBuf,
    /// What is in it.
    pub content: String,
}

/// Whom a command can talk to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// The commands of the same run, over a loopback device of their own.
    #[default]
    Own,
    /// Everybody the machine can talk to, its own services included.
    Machine,
}

/// What a policy is made for.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'s> {
    /// The workspace, as an absolute path without symbolic links.
    pub workspace: &'s Path,
    /// What commands see: `HOME`, `PATH` and the variables of toolchains.
    pub environment: &'s Environment,
    /// Directories that are ours (settings, state, journals), which no command may see.
    pub own: &'s [PathBuf],
    /// Whom commands can talk to.
    pub network: Network,
}

/// A policy that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Everything would be writable.
    #[error("the workspace is the whole file system, so nothing of it could be kept from a command")]
    WholeSystem,
    /// What was to be writable is not there.
    #[error("{} is to be writable (sandbox.write) and does not exist", .0.display())]
    Missing(PathBuf),
}

impl Policy {
    /// The usual policy: the system and the toolchains can be read, the workspace can be changed except for what
    /// decides over programs outside, `/tmp` and the home directory are a run's own, and nothing else exists.
    pub fn usual(surroundings: &Surroundings<'_>) -> Result<Self, PolicyError> {
        let Surroundings { workspace, environment, own, network } = *surroundings;
        if workspace.parent().is_none() {
            return Err(PolicyError::WholeSystem);
        }
        let home = environment.value("HOME").map(PathBuf::from).filter(|home| is_plain(home));
        let mut policy =
            Self { scratch_bytes: scratch_bytes(), network, owner: owner::of(workspace), ..Self::default() };
        policy.read.extend(SYSTEM.iter().chain([&MACHINE]).map(PathBuf::from).filter(|path| exists(path)));
        policy.read.extend(toolchains::roots(environment, home.as_deref(), workspace));
        if network == Network::Machine {
            policy.read.extend(resolver_settings());
        }
        policy.write.push(workspace.to_owned());
        let apart = repository::apart(workspace);
        if let Some(Apart { common, tree }) = &apart {
            policy.write.extend([common.clone(), tree.clone()]);
            policy.read.push(common.join("worktrees"));
        }
        policy.read.extend(repository::above(workspace, home.as_deref()));
        policy.scratch.extend(["/tmp", "/var/tmp"].map(PathBuf::from));
        policy.scratch.extend(environment.value("TMPDIR").map(PathBuf::from).filter(|path| is_plain(path)));
        if let Some(home) = &home {
            policy.scratch.push(home.clone());
            policy.hidden.extend(HOME_SECRETS.iter().map(|name| home.join(name)));
            policy.placed.push(Placed {
                path: home.join(".gitconfig"),
                content: repository::identity(home, environment),
            });
        }
        if let Some(cargo) = environment.value("CARGO_HOME").map(Path::new) {
            policy.hidden.extend(["credentials", "credentials.toml"].map(|name| cargo.join(name)));
        }
        policy.hidden.extend(SYSTEM_SECRETS.iter().map(PathBuf::from).filter(|path| is_readable(path)));
        policy.hidden.extend(host_keys());
        policy.hidden.extend(own.iter().filter(|own| !workspace.starts_with(own)).cloned());
        policy.guarded = guarded(workspace, apart.as_ref());
        Ok(policy)
    }

    /// The same with more that can be read or changed, by the user's word. What cannot be changed, since it is missing,
    /// is an error.
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

    /// The least that runs a program: the system to be read, and nothing to be changed.
    #[must_use]
    pub fn bare() -> Self {
        Self {
            read: SYSTEM.iter().chain([&MACHINE]).map(PathBuf::from).filter(|path| exists(path)).collect(),
            scratch: vec!["/tmp".into()],
            scratch_bytes: 1 << 20,
            ..Self::default()
        }
    }
}

/// What decides over programs outside the sandbox: what git runs, and what we do.
fn guarded(workspace: &Path, apart: Option<&Apart>) -> Vec<Guarded> {
    let guarded = |path: PathBuf, made: Made| Guarded { path, made };
    let repository = workspace.join(".git");
    let mut all = vec![
        guarded(workspace.join(".fusee"), Made::SetAside),
        guarded(workspace.join("fusee.toml"), Made::SetAside),
        guarded(repository.clone(), Made::UnlessDirectory),
        guarded(workspace.to_owned(), Made::Linking),
    ];
    let whole = |repository: &Path| of_a_repository(repository).map(|(path, made)| guarded(path, made));
    match apart {
        None => {
            all.extend(whole(&repository));
            // Other work trees say in there where their settings are. Where there is none, one may be made.
            let others = repository.join("worktrees");
            all.extend(exists(&others).then(|| guarded(others, Made::SetAside)));
        }
        Some(Apart { common, tree }) => {
            all.extend(whole(common));
            let pointers = ["commondir", "gitdir", "config.worktree", "modules"];
            all.extend(pointers.map(|name| guarded(tree.join(name), Made::SetAside)));
        }
    }
    for git in repository::inside(workspace) {
        if git.is_dir() {
            all.extend(whole(&git));
        }
        all.push(guarded(git, Made::UnlessDirectory));
    }
    all
}

/// What decides over programs in the folder of a repository.
pub(super) fn of_a_repository(folder: &Path) -> [(PathBuf, Made); 5] {
    [
        ("hooks", Made::WithoutHooks),
        ("config", Made::Tamed),
        ("config.worktree", Made::SetAside),
        // Makes git take its settings and hooks from elsewhere.
        ("commondir", Made::SetAside),
        // Each has hooks and settings of its own.
        ("modules", Made::SetAside),
    ]
    .map(|(name, made)| (folder.join(name), made))
}

/// What the machine can spare.
fn scratch_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.strip_prefix("MemTotal:").and_then(|rest| rest.split_ascii_whitespace().next());
    let kilobytes: Option<u64> = total.and_then(|total| total.parse().ok());
    kilobytes.map_or(SCRATCH_BYTES, |kilobytes| (kilobytes * 1024 / SCRATCH_SHARE).min(SCRATCH_BYTES))
}

/// Private keys of the machine's own ssh server.
fn host_keys() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/etc/ssh") else { return Vec::new() };
    let is_key = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("ssh_host_") && name.ends_with("_key") && is_readable(path)
    };
    entries.flatten().map(|entry| entry.path()).filter(is_key).collect()
}

/// Where the names of machines are looked up, if `/etc` only points there.
fn resolver_settings() -> Option<PathBuf> {
    let target = std::fs::canonicalize("/etc/resolv.conf").ok()?;
    (!target.starts_with("/etc")).then_some(target)
}

/// Absolute and without `.` or `..`, not the root, and text: policies are sent as text.
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
