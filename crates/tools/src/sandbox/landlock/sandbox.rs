//! The Landlock sandbox, for systems without namespaces. Landlock grants access to files, a stricter seccomp
//! filter takes sockets away, and [`guarantees`] tells the user what is not covered.
//!
//! Unlike the namespace sandbox it shows the machine as it is and denies access. It cannot exclude a part of what it
//! grants; `grants` and `protected_paths::settings_backup` work around that. `restrict` applies it to a process. Where
//! namespaces are available, Landlock is also used as a second layer around them (`second_layer`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use tokio::sync::OnceCell;

use crate::sandbox::CommandEnvironment;
use crate::sandbox::command::CommandFailure;
use crate::sandbox::fork_server::protocol;
use crate::sandbox::landlock::{self, LandlockScope, MIN_VERSION, Ruleset, SIGNAL_VERSION};
use crate::sandbox::policy::{CreatedPathAction, Policy};
use crate::sandbox::protected_paths::repository_watch::RepositoryWatch;

pub(crate) use crate::sandbox::landlock::restrict::{LandlockConfinement, hold};
pub(crate) use crate::sandbox::landlock::second_layer::namespace_ruleset;

/// Candidate parents of a run's private directories; the first writable one is used.
const PLACES: [&str; 2] = ["/tmp", "/var/tmp"];
/// Maximum number of names tried there.
const MAX_NAMES: u32 = 10_000;

/// The Landlock ruleset for the commands of a run, built when it is first needed.
#[derive(Debug)]
pub struct LandlockSandbox {
    policy: Policy,
    repositories: Option<Arc<RepositoryWatch>>,
    built: OnceCell<BuiltRuleset>,
}

/// A ruleset that has been built.
#[derive(Debug)]
pub(crate) struct BuiltRuleset {
    ruleset: Ruleset,
    own: PrivateDirectory,
}

/// A private directory of the run, removed on drop. A killed process leaves it behind.
#[derive(Debug)]
struct PrivateDirectory(PathBuf);

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl LandlockSandbox {
    /// Creates a Landlock sandbox with this policy. Nothing is set up before a command needs it.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let repositories = policy.workspace().map(|root| Arc::new(RepositoryWatch::over(root.to_owned())));
        Self { policy, repositories, built: OnceCell::new() }
    }

    /// Watches for repositories in the workspace.
    pub(crate) fn repositories(&self) -> Option<&Arc<RepositoryWatch>> {
        self.repositories.as_ref()
    }

    /// The policy it enforces.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Builds the ruleset if it is not built yet, so that a policy that cannot be enforced here fails before
    /// a command is run.
    pub async fn prepare(&self) -> Result<(), CommandFailure> {
        self.built().await.map(drop)
    }

    pub(crate) async fn built(&self) -> Result<&BuiltRuleset, CommandFailure> {
        self.built.get_or_try_init(|| async { BuiltRuleset::build(&self.policy) }).await
    }

    pub(crate) fn guarded(&self) -> Vec<(&Path, CreatedPathAction)> {
        self.policy.guarded.iter().map(|guarded| (guarded.path.as_path(), guarded.on_create)).collect()
    }
}

impl BuiltRuleset {
    fn build(policy: &Policy) -> Result<Self, CommandFailure> {
        if policy.guarded.len() > protocol::MAX_GUARDED {
            let words = format!("the policy has more than {} protected paths", protocol::MAX_GUARDED);
            return Err(CommandFailure::NotConfined(words));
        }
        let version = usable_version().map_err(CommandFailure::NotConfined)?;
        let failed = |error: io::Error| CommandFailure::NotConfined(format!("setting up Landlock: {error}"));
        let own = PrivateDirectory::new(policy).map_err(failed)?;
        let grants = crate::sandbox::landlock::grants::for_policy(policy, std::slice::from_ref(&own.0))
            .map_err(CommandFailure::NotConfined)?;
        let ruleset = Ruleset::new(version, LandlockScope::FilesAndSignals).map_err(failed)?;
        for (path, grant) in grants {
            let held = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            match held {
                Ok(held) => ruleset.allow(held.as_fd(), grant).map_err(|error| {
                    CommandFailure::NotConfined(format!("granting access to {}: {error}", path.display()))
                })?,
                // Gone meanwhile, or not accessible to this process, and so not to a command either.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(Self { ruleset, own })
    }

    pub(crate) fn ruleset(&self) -> BorrowedFd<'_> {
        self.ruleset.as_fd()
    }

    /// The environment of commands, with writable directories in place of those that are not granted.
    pub(crate) fn environment(&self, usual: &CommandEnvironment) -> CommandEnvironment {
        let own = |name: &str| self.own.0.join(name).display().to_string();
        let variables = [
            ("TMPDIR", own("tmp")),
            ("XDG_CACHE_HOME", own("cache")),
            ("npm_config_cache", own("cache/npm")),
            ("GIT_CONFIG_GLOBAL", own("gitconfig")),
        ];
        usual.clone().with(variables.map(|(name, value)| (name.to_owned(), value)))
    }
}

impl PrivateDirectory {
    fn new(policy: &Policy) -> io::Result<Self> {
        let own = Self(PLACES.iter().find_map(|place| make(Path::new(place)).ok()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::PermissionDenied, "neither /tmp nor /var/tmp is writable")
        })?);
        let (temporary, cache) = (own.0.join("tmp"), own.0.join("cache"));
        for directory in [&temporary, &cache] {
            std::fs::create_dir(directory)?;
        }
        let settings = own.0.join("gitconfig");
        let placed = policy.placed.iter().find(|placed| placed.path.ends_with(".gitconfig"));
        std::fs::write(&settings, placed.map_or("", |placed| placed.content.as_str()))?;
        if let Some(owner) = policy.owner {
            for path in [&own.0, &temporary, &cache, &settings] {
                std::os::unix::fs::chown(path, Some(owner.user), Some(owner.group))?;
            }
        }
        Ok(own)
    }
}

/// Creates a new directory that only this user can access.
fn make(place: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    for number in 0..MAX_NAMES {
        let path = place.join(format!("fusee-{process}-{number}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The Landlock ABI version of this kernel, or the reason why it cannot be used.
pub(crate) fn usable_version() -> Result<u32, String> {
    match landlock::version() {
        Ok(version) if version >= MIN_VERSION => Ok(version),
        Ok(version) => Err(format!(
            "this kernel has Landlock version {version}; version {MIN_VERSION} (Linux 6.2) or later is required"
        )),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Err("Landlock is disabled in this kernel; add `landlock` to its boot parameter `lsm=`".to_owned())
        }
        Err(error) => Err(format!("this kernel has no Landlock: {error}")),
    }
}

/// Describes to the user what the Landlock sandbox guarantees and what it does not.
pub(crate) fn guarantees(version: u32) -> &'static str {
    if version >= SIGNAL_VERSION {
        "the system and toolchains read-only, the workspace and a temporary directory writable, no sockets, no signals \
         to other processes; weaker guarantees than namespaces: commands can see that other files and processes exist, \
         can change modes and times of the user's files and can change .fusee; git settings, git hooks and fusee.toml \
         are restored only when a command ends; shared memory (/dev/shm) is available only if it was empty at the \
         start; there is no private loopback"
    } else {
        "the system and toolchains read-only, the workspace and a temporary directory writable, no sockets; weaker \
         guarantees than namespaces: commands can see that other files and processes exist, can kill processes of the \
         same user, can change modes and times of the user's files and can change .fusee; git settings, git hooks and \
         fusee.toml are restored only when a command ends; shared memory (/dev/shm) is available only if it was empty \
         at the start; there is no private loopback"
    }
}
