//! Taking over runs from dead workers. The engine keeps sending an invocation to the address it began on; if nothing
//! answers there any more, a live worker moves the invocation to itself.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Engine;

/// Interval at which a worker looks for runs of dead workers.
const INTERVAL: Duration = Duration::from_secs(2);

/// Moves invocations of dead workers to the deployment `own`, in an endless loop.
pub(crate) async fn watch(engine: Engine, own: String) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Ok(invocations) = engine.elsewhere(&own).await else { continue };
        let mut alive = BTreeMap::new();
        for invocation in invocations {
            let is_alive = match alive.get(&invocation.deployment) {
                Some(known) => *known,
                None => {
                    // If the engine does not answer, nothing can be moved either.
                    let is_alive = engine.is_alive(&invocation.deployment).await.unwrap_or(true);
                    alive.insert(invocation.deployment, is_alive);
                    is_alive
                }
            };
            if !is_alive {
                // If two workers move it, the last one has it; if this fails, the next round tries again.
                let _ = engine.move_invocation(&invocation.id, &own).await;
            }
        }
    }
}
