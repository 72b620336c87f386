//! A worker that does nothing: it records as many entries of the same size as a run of fusee, and waits as long as the
//! model takes. No worker on Restate can be faster.

use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::Load;

/// Word that starts this program as the worker.
pub(crate) const COMMAND: &str = "floor-worker";

/// Name of the service.
pub(crate) const SERVICE: &str = "Floor";

/// What a run does.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Work {
    turns: u64,
    model_ms: u64,
    entries: u64,
    bytes: u64,
}

impl Work {
    pub(crate) fn new(load: &Load, entries: u64, bytes: u64) -> Self {
        Self { turns: load.turns as u64, model_ms: load.model_ms, entries, bytes }
    }
}

struct Floor;

#[workflow]
impl Floor {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, work: Json<Work>) -> Result<(), HandlerError> {
        let Json(work) = work;
        for n in 0..work.entries {
            // The waits are spread over the entries.
            let waits = (n + 1) * work.turns / work.entries > n * work.turns / work.entries;
            let pause = Duration::from_millis(if waits { work.model_ms } else { 0 });
            let content = "x".repeat(usize::try_from(work.bytes).unwrap_or_default());
            ctx.run(move || async move {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                Ok(content)
            })
            .name(format!("entry {n}"))
            .await?;
        }
        Ok(())
    }
}

/// Serves for ever, with connections like those of `fusee worker`.
pub(crate) async fn serve(listen: &str) {
    let endpoint = HyperEndpoint::new(Endpoint::builder().bind(Floor.into_service_definition()).build());
    let listener = TcpListener::bind(listen).await.expect("a port");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let connection = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), endpoint.clone());
        tokio::spawn(connection);
    }
}
