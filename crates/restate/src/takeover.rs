//! Taking runs over from workers that are gone. The engine sends an invocation to the address it began on, again and
//! again; if nothing listens there any more, a living worker moves the invocation to itself.

use std::time::Duration;

use crate::Engine;

/// How often a worker looks for runs without one.
const INTERVAL: Duration = Duration::from_secs(2);

/// Moves invocations of dead workers to the deployment `own`, for ever.
pub(crate) async fn watch(engine: Engine, own: String) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Ok(stuck) = engine.stuck(&own).await else { continue };
        for invocation in stuck {
            if let Ok(false) = engine.is_alive(&invocation.deployment).await {
                // If two workers move it, the last one has it; if this fails, the next round tries again.
                let _ = engine.move_invocation(&invocation.id, &own).await;
            }
        }
    }
}
