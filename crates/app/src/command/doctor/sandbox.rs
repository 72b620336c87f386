//! What confines commands here, by trying, and what the system offers that is not used yet.

use std::fs;
use std::path::Path;

use fusee_engine::tools::Keeper;
use fusee_engine::tools::sandbox::{self, Layer, Strength};

use super::{Finding, State};
use crate::command::Process;

const UNUSED: &str = "available, not used yet by this build";

/// Looks at every layer.
pub(crate) async fn look(process: &Process) -> Vec<Finding> {
    let mut findings = match &process.keeper {
        Some(keeper) => used(keeper).await,
        None => ["namespaces", "landlock", "seccomp"]
            .map(|name| {
                Finding::new(name, State::Absent, "no process keeps commands, so it could not be tried")
            })
            .into(),
    };
    findings.push(cgroup());
    findings
}

/// The layers that commands run in, by trying.
async fn used(keeper: &Keeper) -> Vec<Finding> {
    let probed = sandbox::probe(keeper).await;
    let found = |layer: Layer| match layer.missing {
        None if layer.name == "landlock" && probed.strength == Strength::Namespaces => {
            Finding::new(layer.name, State::Unused, layer.does)
        }
        None => Finding::new(layer.name, State::Ready, layer.does),
        Some(why) => Finding::new(layer.name, State::Absent, why),
    };
    probed.layers.iter().cloned().map(found).collect()
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
