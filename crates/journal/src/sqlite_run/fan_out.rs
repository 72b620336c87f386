//! Parallel child branches, the only parallelism within a run.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::{ChildBody, ChildEnd, FanOutEnd, RunAborted};

/// Runs the children, at most `limit` at once, until all have ended or one fails. Dropping the future drops
/// them.
pub(super) async fn run_concurrently(
    children: Vec<ChildBody<'_>>,
    limit: usize,
    cancel: &CancellationToken,
) -> Result<FanOutEnd, RunAborted> {
    let (count, stop) = (children.len(), cancel.child_token());
    let mut waiting = children.into_iter().enumerate();
    let mut end = FanOutEnd::default();
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < limit.max(1)
            && !stop.is_cancelled()
            && let Some((index, child)) = waiting.next()
        {
            end.reports.push(().into());
            let child = child(stop.clone());
            running.push(async move { (index, child.await) });
        }
        let Some((index, ended)) = running.next().await else { break };
        end.reports[index] = match ended? {
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
