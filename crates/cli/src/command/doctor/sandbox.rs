//! Checks which sandbox layers and limits work here, by trying them.

use fusee::engine::tools::ForkServer;
use fusee::engine::tools::sandbox::{self, CgroupLimits, ResourceLimits, SandboxLayer};

use super::{CheckState, DoctorCheck};
use crate::process::Process;

/// Runs the checks.
pub(crate) async fn check(process: &Process) -> Vec<DoctorCheck> {
    let mut findings = match &process.fork_server {
        Some(fork_server) => used(fork_server).await,
        None => ["namespaces", "landlock", "seccomp"]
            .map(|name| {
                DoctorCheck::new(name, CheckState::Absent, "not tested: the fork server is not running")
            })
            .into(),
    };
    if let Some(fork_server) = &process.fork_server {
        findings.push(cgroup(fork_server).await);
    }
    findings
}

/// The sandbox layers for commands.
async fn used(fork_server: &ForkServer) -> Vec<DoctorCheck> {
    let probed = sandbox::probe(fork_server).await;
    let found = |layer: SandboxLayer| match layer.missing {
        None => DoctorCheck::new(layer.name, CheckState::Ready, layer.does),
        Some(why) => DoctorCheck::new(layer.name, CheckState::Absent, why),
    };
    probed.layers.iter().cloned().map(found).collect()
}

/// Whether all commands together can be limited by a cgroup.
async fn cgroup(fork_server: &ForkServer) -> DoctorCheck {
    let name = "cgroup";
    match fork_server.limit_all(CgroupLimits::protecting_machine(&ResourceLimits::defaults())).await {
        Ok(bounded) => {
            DoctorCheck::new(name, CheckState::Ready, format!("limits all commands together: {bounded}"))
        }
        Err(why) => {
            let instead = "the processes of each command are counted instead, ten times per second";
            DoctorCheck::new(name, CheckState::Absent, format!("{why}; {instead}"))
        }
    }
}
