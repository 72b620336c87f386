//! A fence: what holds commands where no namespaces can be had. Landlock grants files, a stricter filter of calls takes
//! away sockets, and what is left over is said ([`promise`]).
//!
//! Unlike a `room` it shows the machine as it is, and refuses. It cannot refuse a part of what it grants: `grants`
//! and `kept` are about that. `hold` puts a process behind it. Where there are namespaces it stands around the room as well
//! (`around`).

mod around;
mod grants;
mod hold;
mod kept;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tokio::sync::OnceCell;

use super::landlock::{self, LEAST_VERSION, Ruleset, SIGNAL_VERSION, Scope};
use super::policy::{Made, Policy};
use super::running::CommandFailure;
use super::{Environment, spec};

pub(super) use around::around_room;
pub(super) use hold::{Fencing, hold, put_back};
pub(super) use kept::Kept;

/// Where the directories of a run's own are made: the first that can be written to.
const PLACES: [&str; 2] = ["/tmp", "/var/tmp"];
/// Names that are tried there.
const MOST_NAMES: u32 = 10_000;

/// What is granted to the commands of a run, made when it is first needed.
#[derive(Debug)]
pub struct Fence {
    policy: Policy,
    standing: OnceCell<Standing>,
}

/// A fence that stands.
#[derive(Debug)]
pub(super) struct Standing {
    ruleset: Ruleset,
    own: Own,
}

/// A directory of the run's own, which goes with it. One that was killed leaves it behind.
#[derive(Debug)]
struct Own(PathBuf);

impl Drop for Own {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Fence {
    /// A fence as this policy says. Nothing happens before a command needs it.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy, standing: OnceCell::new() }
    }

    /// What it was, or will be, made by.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Makes the fence if it was not, so that a policy that cannot be followed here is known before there is a command.
    pub async fn prepare(&self) -> Result<(), CommandFailure> {
        self.standing().await.map(drop)
    }

    pub(super) async fn standing(&self) -> Result<&Standing, CommandFailure> {
        self.standing.get_or_try_init(|| async { Standing::of(&self.policy) }).await
    }

    pub(super) fn guarded(&self) -> Vec<(&Path, Made)> {
        self.policy.guarded.iter().map(|guarded| (guarded.path.as_path(), guarded.made)).collect()
    }
}

impl Standing {
    fn of(policy: &Policy) -> Result<Self, CommandFailure> {
        if policy.guarded.len() > spec::MOST_GUARDED {
            let words = format!("a policy guards at most {} paths", spec::MOST_GUARDED);
            return Err(CommandFailure::NotConfined(words));
        }
        let version = usable_version().map_err(CommandFailure::NotConfined)?;
        let failed = |error: io::Error| CommandFailure::NotConfined(format!("making a fence: {error}"));
        let own = Own::new(policy).map_err(failed)?;
        let grants = grants::of(policy, std::slice::from_ref(&own.0)).map_err(CommandFailure::NotConfined)?;
        let ruleset = Ruleset::new(version, Scope::FilesAndSignals).map_err(failed)?;
        for (path, grant) in grants {
            let held = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            match held {
                Ok(held) => ruleset.allow(held.as_fd(), grant).map_err(|error| {
                    CommandFailure::NotConfined(format!("granting {}: {error}", path.display()))
                })?,
                // Gone meanwhile, or not for us: then not for a command either.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(Self { ruleset, own })
    }

    pub(super) fn ruleset(&self) -> BorrowedFd<'_> {
        self.ruleset.as_fd()
    }

    /// What commands see, with places to write to instead of those that a fence closes.
    pub(super) fn environment(&self, usual: &Environment) -> Environment {
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

impl Own {
    fn new(policy: &Policy) -> io::Result<Self> {
        let own = Self(PLACES.iter().find_map(|place| make(Path::new(place)).ok()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::PermissionDenied, "neither /tmp nor /var/tmp can be written to")
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

/// A new directory that only we can look into.
fn make(place: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    for number in 0..MOST_NAMES {
        let path = place.join(format!("fusee-{process}-{number}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The version of Landlock here, if it is enough; else why not.
pub(super) fn usable_version() -> Result<u32, String> {
    match landlock::version() {
        Ok(version) if version >= LEAST_VERSION => Ok(version),
        Ok(version) => Err(format!(
            "this kernel has version {version} of Landlock; version {LEAST_VERSION} (Linux 6.2) is needed"
        )),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Err("Landlock is not turned on in this kernel (its parameter lsm= leaves it out)".to_owned())
        }
        Err(error) => Err(format!("this kernel has no Landlock: {error}")),
    }
}

/// What a fence does, and what it does not, for people.
pub(super) fn promise(version: u32) -> &'static str {
    if version >= SIGNAL_VERSION {
        "the system and toolchains read-only, the workspace and a directory for temporary files writable, no sockets and \
         no signals to others; a smaller promise than namespaces: commands see that other files and processes exist and can \
         change modes and times of the user's files, .fusee can be changed, settings and hooks of git and fusee.toml are put \
         back only when a command ends, shared memory by name (/dev/shm) is there only where nobody used it at the start, and \
         there is no loopback of their own"
    } else {
        "the system and toolchains read-only, the workspace and a directory for temporary files writable, no sockets; a \
         smaller promise than namespaces: commands see that other files and processes exist, can end processes of the same \
         user and change modes and times of the user's files, .fusee can be changed, settings and hooks of git and \
         fusee.toml are put back only when a command ends, shared memory by name (/dev/shm) is there only where nobody used it \
         at the start, and there is no loopback of their own"
    }
}
