//! Parallel child branches, the only parallelism within a run.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::SqliteRun;
use crate::{ChildBody, ChildEnd, FanOutEnd, RunAborted};

/// Runs the children, at most `limit` at once, until all have ended or one fails. Dropping the future drops
/// them. What a child did is committed when it ends, so that it is not lost while the others work.
pub(super) async fn run_concurrently(
    children: Vec<ChildBody<'_>>,
    limit: usize,
    cancel: &CancellationToken,
    engine: &SqliteRun,
) -> Result<FanOutEnd, RunAborted> {
    let (count, stop) = (children.len(), cancel.child_token());
    let mut waiting = children.into_iter().enumerate();
    let ended_count = &AtomicUsize::new(0);
    let mut end = FanOutEnd::default();
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < limit.max(1)
            && !stop.is_cancelled()
            && let Some((index, child)) = waiting.next()
        {
            end.reports.push(().into());
            let child = child(stop.clone());
            running.push(async move {
                let ended = child.await;
                // After the last one, the step itself is recorded with it.
                let is_last = ended_count.fetch_add(1, Ordering::Relaxed) + 1 == count;
                if ended.is_ok() && !is_last {
                    engine.commit_effects().await?;
                }
                Ok::<_, RunAborted>((index, ended?))
            });
        }
        let Some(next) = running.next().await else { break };
        let (index, ended) = next?;
        end.reports[index] = match ended {
            ChildEnd::Done(report) => report,
            ChildEnd::Stopped(report) => {
                end.stopped.push(index);
                report
            }
            ChildEnd::Failed(report) => {
                end.failed.get_or_insert(index);
                stop.cancel();
                report
            }
        };
    }
    end.cancelled = end.failed.is_none() && (!end.stopped.is_empty() || end.reports.len() < count);
    Ok(end)
}
