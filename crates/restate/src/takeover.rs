//! Taking runs over from workers that are gone. The engine sends an invocation to the address it began on, again and
//! again; if nothing answers there any more, a living worker moves the invocation to itself.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Engine;

/// How often a worker looks for runs without one.
const INTERVAL: Duration = Duration::from_secs(2);

/// Moves invocations of dead workers to the deployment `own`, for ever.
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
