//! Checks which sandbox layers and limits work here, by trying them.

use fusee_engine::tools::ForkServer;
use fusee_engine::tools::sandbox::{self, CgroupLimits, ResourceLimits, SandboxLayer};

use super::{CheckState, DoctorCheck};
use crate::process::Process;

/// Runs the checks.
pub(crate) async fn look(process: &Process) -> Vec<DoctorCheck> {
    let mut findings = match &process.keeper {
        Some(keeper) => used(keeper).await,
        None => ["namespaces", "landlock", "seccomp"]
            .map(|name| {
                DoctorCheck::new(name, CheckState::Absent, "not tested: the fork server is not running")
            })
            .into(),
    };
    if let Some(keeper) = &process.keeper {
        findings.push(cgroup(keeper).await);
    }
    findings
}

/// The sandbox layers for commands.
async fn used(keeper: &ForkServer) -> Vec<DoctorCheck> {
    let probed = sandbox::probe(keeper).await;
    let found = |layer: SandboxLayer| match layer.missing {
        None => DoctorCheck::new(layer.name, CheckState::Ready, layer.does),
        Some(why) => DoctorCheck::new(layer.name, CheckState::Absent, why),
    };
    probed.layers.iter().cloned().map(found).collect()
}

/// Whether all commands together can be limited by a cgroup.
async fn cgroup(keeper: &ForkServer) -> DoctorCheck {
    let name = "cgroup";
    match keeper.limit_all(CgroupLimits::around(&ResourceLimits::defaults())).await {
        Ok(bounded) => {
            DoctorCheck::new(name, CheckState::Ready, format!("limits all commands together: {bounded}"))
        }
        Err(why) => {
            let instead = "the processes of each command are counted instead, ten times per second";
            DoctorCheck::new(name, CheckState::Absent, format!("{why}; {instead}"))
        }
    }
}
