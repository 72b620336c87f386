//! A control group around the keeper and so around every command: what all of them together use stays below a bound that
//! the machine survives, however fast it grows. Where no group can be made the supervisors' counting is what there is
//! (`tree`), and it is what bounds a single command everywhere.
//!
//! The group is made by a supervisor, on an order of ours, and taken away by us when the keeper is gone. One that was left
//! behind by a process that was killed is empty, and the next that is made takes it away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use std::os::fd::OwnedFd;

use rustix::net::SendFlags;
use rustix::process::Pid;

use super::allowance::Allowance;
use super::keeper::send_with_descriptors;
use super::{Keeper, spec};

/// Where control groups are mounted.
const MOUNTED: &str = "/sys/fs/cgroup";
/// How a group of ours is called; the keeper's number follows.
const NAME: &str = "fusee-";
/// Groups left behind that are tried to be taken away at once.
const MOST_SWEPT: usize = 64;
/// The least bound on processes and threads: several commands at once, each within its own.
const LEAST_TASKS: u64 = 4096;
/// Longest words about what went wrong.
const MOST_WORDS: usize = 2000;

/// What all commands of a keeper may use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub tasks: u64,
}

impl Bounds {
    /// What the machine survives, and not less than a single command may use.
    #[must_use]
    pub fn around(allowance: &Allowance) -> Self {
        Self {
            memory_bytes: Allowance::usual().memory_bytes.max(allowance.memory_bytes),
            tasks: LEAST_TASKS.max(allowance.processes.saturating_mul(2)),
        }
    }
}

/// A group that stands.
#[derive(Debug)]
pub(super) struct Surrounding {
    /// What it bounds.
    words: String,
    directories: Vec<PathBuf>,
}

impl Keeper {
    /// Bounds what all commands use together, once for a keeper: in words what is bounded, or why nothing is. Commands
    /// that run already are not.
    pub async fn surround(&self, bounds: Bounds) -> Result<&str, &str> {
        let surrounding = self.surrounding().get_or_init(|| ask(self, bounds)).await;
        surrounding.as_ref().map(|standing| standing.words.as_str()).map_err(String::as_str)
    }
}

impl Surrounding {
    /// Takes the group away once its processes have ended.
    pub(super) fn remove(&self) {
        for directory in &self.directories {
            let _ = fs::remove_dir(directory);
        }
    }
}

async fn ask(keeper: &Keeper, bounds: Bounds) -> Result<Surrounding, String> {
    let (answer, _) = keeper.ask(&spec::encode_bounds(bounds)).await.map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match answer.split_first() {
        Some((1, rest)) => {
            let mut parts = rest.split(|byte| *byte == 0).map(text);
            let words = parts.next().unwrap_or_default();
            Ok(Surrounding { words, directories: parts.map(PathBuf::from).collect() })
        }
        Some((_, words)) => Err(text(words)),
        None => Err("the process that makes it ended without a word".to_owned()),
    }
}

/// Makes a group on an order of ours, and answers with what it bounds and where it is.
pub(super) fn answer(keeper: Option<Pid>, bounds: Bounds, received: Vec<OwnedFd>) {
    let Some(control) = received.into_iter().next() else { return };
    let made =
        keeper.ok_or_else(|| "the keeper is gone".to_owned()).and_then(|keeper| surround(keeper, bounds));
    let answer = match made {
        Ok((directories, words)) => {
            let mut answer = vec![1];
            answer.extend(words.bytes());
            for directory in directories {
                answer.push(0);
                answer.extend(directory.as_os_str().as_encoded_bytes());
            }
            answer
        }
        Err(words) => [0].into_iter().chain(words.bytes().take(MOST_WORDS)).collect(),
    };
    let _ = send_with_descriptors(&control, &answer, &[], SendFlags::DONTWAIT);
}

/// What one group can bound.
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

/// The two ways in which kernels have groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Where a group can be made.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    version: Version,
    parent: PathBuf,
    controllers: Vec<Controller>,
}

/// Puts the keeper, and whoever it has started so far, into a group with these bounds. The directories that were made, and
/// in words what they bound; or why there is none.
fn surround(keeper: Pid, bounds: Bounds) -> Result<(Vec<PathBuf>, String), String> {
    let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let places = places(&own, Path::new(MOUNTED), bounds);
    if places.is_empty() {
        return Err("no control group here bounds memory or processes".to_owned());
    }
    let (mut made, mut bounded, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for place in places {
        match make(&place, keeper, bounds) {
            Ok(directory) => {
                made.push(directory);
                bounded.extend(place.controllers.iter().map(|controller| controller.name()));
            }
            Err(error) => failures.push(format!("{}: {error}", place.parent.display())),
        }
    }
    if made.is_empty() { Err(failures.join("; ")) } else { Ok((made, bounded.join(", "))) }
}

fn places(own: &str, mounted: &Path, bounds: Bounds) -> Vec<Place> {
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
                // In a container the path may be one of the machine's, and the mount what is left of it.
                let inside = hierarchy.join(path);
                let parent = if inside.is_dir() { inside } else { hierarchy };
                places.push(Place { version: Version::One, parent, controllers: vec![controller] });
            }
        }
    }
    places.retain(|place| place.parent.is_dir());
    places
}

/// In the unified hierarchy only a group that hands controllers on can have bounded ones in it, and who has processes of its
/// own cannot hand them on. So a group further up may be the place, if none on the way bounds us: what it bounds must
/// stay bounded. Service managers bound the processes of everything they start, generously: such a bound may be left for one
/// that is no higher.
fn unified(mounted: &Path, path: &str, bounds: Bounds) -> Option<Place> {
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
            return Some(Place { version: Version::Two, parent: directory, controllers });
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

fn make(place: &Place, keeper: Pid, bounds: Bounds) -> io::Result<PathBuf> {
    sweep(&place.parent);
    let directory = place.parent.join(format!("{NAME}{}", keeper.as_raw_nonzero()));
    fs::create_dir(&directory)?;
    let fill = || -> io::Result<()> {
        for controller in &place.controllers {
            let (file, most) = match (place.version, controller) {
                (Version::One, Controller::Memory) => ("memory.limit_in_bytes", bounds.memory_bytes),
                (Version::Two, Controller::Memory) => ("memory.max", bounds.memory_bytes),
                (_, Controller::Tasks) => ("pids.max", bounds.tasks),
            };
            fs::write(directory.join(file), most.to_string())?;
            // Memory that is swapped out is not bounded by that. Kernels that do not count it have no such file.
            let _ = match (place.version, controller) {
                (Version::One, Controller::Memory) => {
                    fs::write(directory.join("memory.memsw.limit_in_bytes"), most.to_string())
                }
                (Version::Two, Controller::Memory) => fs::write(directory.join("memory.swap.max"), "0"),
                (_, Controller::Tasks) => Ok(()),
            };
        }
        let members = directory.join("cgroup.procs");
        fs::write(&members, keeper.as_raw_nonzero().to_string())?;
        // Whoever the keeper starts from now on is in it; these it has started before, and one may have ended since.
        let started = fs::read_to_string(format!("/proc/{0}/task/{0}/children", keeper.as_raw_nonzero()));
        for pid in started.unwrap_or_default().split_ascii_whitespace() {
            let _ = fs::write(&members, pid);
        }
        Ok(())
    };
    fill().inspect_err(|_| drop(fs::remove_dir(&directory)))?;
    Ok(directory)
}

/// Takes away groups of ours that nobody is in. The kernel keeps those that somebody is in.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME));
    for entry in ours.take(MOST_SWEPT) {
        let _ = fs::remove_dir(entry.path());
    }
}

#[cfg(test)]
mod tests;
