//! What the system offers to confine commands. This build uses none of it yet, and says so.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use fusee_engine::tools::sandbox::{CommandRequest, Ending};
use fusee_engine::tools::{Environment, Keeper, Sandbox};

use super::{Finding, State};
use crate::command::Process;

/// How long the trial of namespaces may take.
const PATIENCE: Duration = Duration::from_secs(2);

const UNUSED: &str = "available, not used yet by this build";

/// Looks at every layer.
pub(crate) async fn look(process: &Process) -> Vec<Finding> {
    vec![namespaces(process).await, landlock(), seccomp(), cgroup()]
}

async fn namespaces(process: &Process) -> Finding {
    let name = "namespaces";
    if !cfg!(target_os = "linux") {
        return Finding::new(name, State::Absent, "only on Linux");
    }
    let setting = |path: &str| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let off = [
        ("/proc/sys/user/max_user_namespaces", 0),
        ("/proc/sys/kernel/unprivileged_userns_clone", 0),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1),
    ];
    let refused = off.iter().find(|(path, value)| setting(path) == Some(*value));
    let tried = match &process.keeper {
        Some(keeper) => try_namespaces(keeper, process).await,
        None => None,
    };
    match (tried, refused) {
        (Some(true), _) => Finding::new(name, State::Unused, UNUSED),
        (_, Some((path, value))) => {
            Finding::new(name, State::Absent, format!("turned off: {path} is {value}"))
        }
        (Some(false), None) => Finding::new(name, State::Absent, "the system refuses them to this user"),
        (None, None) => Finding::new(name, State::Unused, "not turned off; could not be tried"),
    }
}

/// Whether a command can be started in namespaces of its own; `None` where that cannot be tried.
async fn try_namespaces(keeper: &Keeper, process: &Process) -> Option<bool> {
    let directory: OwnedFd = File::open("/").ok()?.into();
    let variables = process.environment.variables().map(|(name, value)| (name.clone(), value.clone()));
    let request = CommandRequest {
        command: "exec unshare --user --map-root-user --mount --pid --net --fork true",
        directory,
        input: None,
        environment: &Environment::allowed(variables),
        sandbox: Sandbox::Off,
    };
    let finished = keeper.run(request, |_| {}, tokio::time::sleep(PATIENCE)).await.ok()?;
    match finished.ending {
        Ending::Exited(0) => Some(true),
        // The shell found no `unshare`.
        Ending::Exited(127) => None,
        Ending::Exited(_) | Ending::Signalled(_) => Some(false),
    }
}

fn landlock() -> Finding {
    let name = "landlock";
    match fs::read_to_string("/sys/kernel/security/lsm") {
        Ok(modules) if modules.split(',').any(|module| module.trim() == name) => {
            Finding::new(name, State::Unused, UNUSED)
        }
        Ok(_) => Finding::new(name, State::Absent, "this kernel does not have it turned on"),
        Err(_) => match kernel() {
            Some(version) if version >= (5, 13) => Finding::new(
                name,
                State::Unused,
                "probably: this kernel is new enough; not used yet by this build",
            ),
            _ => Finding::new(name, State::Absent, "this kernel is too old (5.13 is needed), or not Linux"),
        },
    }
}

fn kernel() -> Option<(u32, u32)> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = release.split(['.', '-']).map(|part| part.trim().parse::<u32>());
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn seccomp() -> Finding {
    if Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
        Finding::new("seccomp", State::Unused, UNUSED)
    } else {
        Finding::new("seccomp", State::Absent, "this kernel does not have it")
    }
}

fn cgroup() -> Finding {
    let name = "cgroup";
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let (version, folder) = match own.lines().find_map(|line| line.strip_prefix("0::")) {
        Some(path) if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() => {
            ("v2", Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/')))
        }
        _ => ("v1", Path::new("/sys/fs/cgroup/memory").to_owned()),
    };
    if !folder.exists() {
        return Finding::new(name, State::Absent, "not mounted");
    }
    match rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Finding::new(name, State::Unused, format!("{version}, {UNUSED}")),
        Err(_) => Finding::new(name, State::Absent, format!("{version}, not writable for this user")),
    }
}
