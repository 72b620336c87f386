//! A cgroup around the fork server, and so around every command. It keeps the usage of all commands together
//! below a limit that the machine survives, however fast the usage grows. Where no cgroup can be created,
//! only the measurements of the supervisors apply (`usage`); those enforce the limits of each single command
//! everywhere.
//!
//! A supervisor creates the cgroup on request of the main process, and the main process removes it when the
//! fork server is gone. A cgroup left behind by a killed process is empty, and the next one to be created
//! removes it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use std::os::fd::OwnedFd;

use rustix::net::SendFlags;
use rustix::process::Pid;

use super::ForkServer;
use super::fork_server::send_with_descriptors;
use super::limits::CgroupLimits;
use crate::sandbox::fork_server::protocol;

/// Where cgroups are mounted.
const MOUNTED: &str = "/sys/fs/cgroup";
/// Name prefix of a cgroup; the PID of the fork server follows.
const NAME: &str = "fusee-";
/// Maximum number of leftover cgroups that are removed at a time.
const MAX_SWEPT: usize = 64;
/// Maximum length of an error message, in bytes.
const MAX_WORDS: usize = 2000;

/// A cgroup that has been created.
#[derive(Debug)]
pub(super) struct Cgroup {
    /// The limited resources, for messages.
    resources: String,
    directories: Vec<PathBuf>,
}

impl ForkServer {
    /// Limits the usage of all commands together, once per fork server. Returns the limited resources, or why
    /// there are none. Commands that are already running are not limited.
    pub async fn limit_all(&self, bounds: CgroupLimits) -> Result<&str, &str> {
        let cgroup = self.parent_cgroup().get_or_init(|| request_limits(self, bounds)).await;
        cgroup.as_ref().map(|cgroup| cgroup.resources.as_str()).map_err(String::as_str)
    }
}

impl Cgroup {
    /// Removes the cgroup once its processes have ended.
    pub(super) fn remove(&self) {
        for directory in &self.directories {
            let _ = fs::remove_dir(directory);
        }
    }
}

async fn request_limits(fork_server: &ForkServer, bounds: CgroupLimits) -> Result<Cgroup, String> {
    let (answer, _) =
        fork_server.ask(&protocol::encode_bounds(bounds)).await.map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match answer.split_first() {
        Some((1, rest)) => {
            let mut parts = rest.split(|byte| *byte == 0).map(text);
            let resources = parts.next().unwrap_or_default();
            Ok(Cgroup { resources, directories: parts.map(PathBuf::from).collect() })
        }
        Some((_, error)) => Err(text(error)),
        None => Err("the setup process exited without replying".to_owned()),
    }
}

/// Creates the cgroup in a supervisor, and answers with the limited resources and the created directories.
pub(super) fn handle_limit_request(fork_server: Option<Pid>, bounds: CgroupLimits, received: Vec<OwnedFd>) {
    let Some(control) = received.into_iter().next() else { return };
    let made = fork_server
        .ok_or_else(|| "the fork server is gone".to_owned())
        .and_then(|fork_server| limit_all(fork_server, bounds));
    let answer = match made {
        Ok((directories, resources)) => {
            let mut answer = vec![1];
            answer.extend(resources.bytes());
            for directory in directories {
                answer.push(0);
                answer.extend(directory.as_os_str().as_encoded_bytes());
            }
            answer
        }
        Err(error) => [0].into_iter().chain(error.bytes().take(MAX_WORDS)).collect(),
    };
    let _ = send_with_descriptors(&control, &answer, &[], SendFlags::DONTWAIT);
}

/// A resource controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Memory,
    Tasks,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Tasks => "pids",
        }
    }
}

/// cgroup version 1 or 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CgroupVersion {
    One,
    Two,
}

/// Where a cgroup can be created.
#[derive(Debug, PartialEq, Eq)]
struct CgroupParent {
    version: CgroupVersion,
    parent: PathBuf,
    controllers: Vec<Controller>,
}

/// Moves the fork server and the processes it has started so far into a cgroup with these limits. Returns the
/// created directories and the limited resources, or why there are none.
fn limit_all(fork_server: Pid, bounds: CgroupLimits) -> Result<(Vec<PathBuf>, String), String> {
    let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let places = places(&own, Path::new(MOUNTED), bounds);
    if places.is_empty() {
        return Err("no cgroup with a memory or pids controller is available".to_owned());
    }
    let (mut made, mut bounded, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for place in places {
        match make(&place, fork_server, bounds) {
            Ok(directory) => {
                made.push(directory);
                bounded.extend(place.controllers.iter().map(|controller| controller.name()));
            }
            Err(error) => failures.push(format!("{}: {error}", place.parent.display())),
        }
    }
    if made.is_empty() { Err(failures.join("; ")) } else { Ok((made, bounded.join(", "))) }
}

fn places(own: &str, mounted: &Path, bounds: CgroupLimits) -> Vec<CgroupParent> {
    let mut places = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(names), Some(path)) = (parts.next(), parts.next()) else { continue };
        let path = path.trim_start_matches('/');
        if names.is_empty() {
            places.extend(unified(mounted, path, bounds));
            continue;
        }
        for controller in [Controller::Memory, Controller::Tasks] {
            if names.split(',').any(|name| name == controller.name()) {
                let hierarchy = mounted.join(names);
                // In a container the path may be one of the host's, while the mount shows only a part of the
                // hierarchy.
                let inside = hierarchy.join(path);
                let parent = if inside.is_dir() { inside } else { hierarchy };
                places.push(CgroupParent {
                    version: CgroupVersion::One,
                    parent,
                    controllers: vec![controller],
                });
            }
        }
    }
    places.retain(|place| place.parent.is_dir());
    places
}

/// Finds a parent cgroup in the unified hierarchy (version 2).
///
/// Only a cgroup that delegates controllers can have limited children, and a cgroup with processes of its own
/// cannot delegate. So an ancestor may be the parent, provided that no cgroup on the way limits this process:
/// existing limits must stay in force. Service managers set a generous limit on the processes of everything
/// they start; such a limit may be replaced by one that is not higher.
fn unified(mounted: &Path, path: &str, bounds: CgroupLimits) -> Option<CgroupParent> {
    let top = if mounted.join("cgroup.controllers").exists() {
        mounted.to_owned()
    } else {
        mounted.join("unified")
    };
    let mut directory = top.join(path);
    loop {
        let handed_on = fs::read_to_string(directory.join("cgroup.subtree_control")).unwrap_or_default();
        let is_handed_on = |controller: &Controller| {
            handed_on.split_ascii_whitespace().any(|name| name == controller.name())
        };
        let controllers: Vec<Controller> =
            [Controller::Memory, Controller::Tasks].into_iter().filter(is_handed_on).collect();
        if !controllers.is_empty() {
            return Some(CgroupParent { version: CgroupVersion::Two, parent: directory, controllers });
        }
        let bound = |name: &str| {
            let text = fs::read_to_string(directory.join(name)).ok()?;
            (text.trim() != "max").then(|| text.trim().parse::<u64>().unwrap_or(0))
        };
        let is_bounded =
            ["memory.max", "memory.high", "memory.swap.max"].iter().any(|name| bound(name).is_some())
                || bound("pids.max").is_some_and(|most| most < bounds.tasks);
        if is_bounded || directory == top || !directory.pop() {
            return None;
        }
    }
}

fn make(place: &CgroupParent, fork_server: Pid, bounds: CgroupLimits) -> io::Result<PathBuf> {
    remove_leftovers(&place.parent);
    let directory = place.parent.join(format!("{NAME}{}", fork_server.as_raw_nonzero()));
    fs::create_dir(&directory)?;
    let fill = || -> io::Result<()> {
        for controller in &place.controllers {
            let (file, most) = match (place.version, controller) {
                (CgroupVersion::One, Controller::Memory) => ("memory.limit_in_bytes", bounds.memory_bytes),
                (CgroupVersion::Two, Controller::Memory) => ("memory.max", bounds.memory_bytes),
                (_, Controller::Tasks) => ("pids.max", bounds.tasks),
            };
            fs::write(directory.join(file), most.to_string())?;
            // The limit above does not cover swap. Kernels that do not account for swap have no such file.
            let _ = match (place.version, controller) {
                (CgroupVersion::One, Controller::Memory) => {
                    fs::write(directory.join("memory.memsw.limit_in_bytes"), most.to_string())
                }
                (CgroupVersion::Two, Controller::Memory) => fs::write(directory.join("memory.swap.max"), "0"),
                (_, Controller::Tasks) => Ok(()),
            };
        }
        let members = directory.join("cgroup.procs");
        fs::write(&members, fork_server.as_raw_nonzero().to_string())?;
        // Later children inherit the cgroup. These were started before, and one may have ended since.
        let started =
            fs::read_to_string(format!("/proc/{0}/task/{0}/children", fork_server.as_raw_nonzero()));
        for pid in started.unwrap_or_default().split_ascii_whitespace() {
            let _ = fs::write(&members, pid);
        }
        Ok(())
    };
    fill().inspect_err(|_| drop(fs::remove_dir(&directory)))?;
    Ok(directory)
}

/// Removes leftover cgroups of Fusee. The kernel refuses to remove those that have processes.
fn remove_leftovers(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME));
    for entry in ours.take(MAX_SWEPT) {
        let _ = fs::remove_dir(entry.path());
    }
}

#[cfg(test)]
mod tests;
