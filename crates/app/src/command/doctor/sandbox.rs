//! Checks which sandbox layers and limits work here, by trying them.

use fusee_engine::tools::Keeper;
use fusee_engine::tools::sandbox::{self, Allowance, Bounds, Layer};

use super::{Finding, State};
use crate::command::Process;

/// Runs the checks.
pub(crate) async fn look(process: &Process) -> Vec<Finding> {
    let mut findings = match &process.keeper {
        Some(keeper) => used(keeper).await,
        None => ["namespaces", "landlock", "seccomp"]
            .map(|name| {
                Finding::new(name, State::Absent, "not tested: the fork server is not running")
            })
            .into(),
    };
    if let Some(keeper) = &process.keeper {
        findings.push(cgroup(keeper).await);
    }
    findings
}

/// The sandbox layers for commands.
async fn used(keeper: &Keeper) -> Vec<Finding> {
    let probed = sandbox::probe(keeper).await;
    let found = |layer: Layer| match layer.missing {
        None => Finding::new(layer.name, State::Ready, layer.does),
        Some(why) => Finding::new(layer.name, State::Absent, why),
    };
    probed.layers.iter().cloned().map(found).collect()
}

/// Whether all commands together can be limited by a cgroup.
async fn cgroup(keeper: &Keeper) -> Finding {
    let name = "cgroup";
    match keeper.surround(Bounds::around(&Allowance::usual())).await {
        Ok(bounded) => Finding::new(name, State::Ready, format!("limits all commands together: {bounded}")),
        Err(why) => {
            let instead = "the processes of each command are counted instead, ten times per second";
            Finding::new(name, State::Absent, format!("{why}; {instead}"))
        }
    }
}
