//! Notices that a journal has changed, for streams of runs that other processes work on. One task per journal looks at
//! the file's log; however many streams there are, an unchanged journal costs one `stat` per interval.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

/// Polling interval.
const INTERVAL: Duration = Duration::from_millis(200);

/// Polls after which readers are woken in any case: two writes within one tick of the file system's clock look like one.
const ALWAYS: u32 = 10;

/// A watch on one journal.
#[derive(Clone)]
pub(crate) struct JournalWatch(watch::Receiver<()>);

impl JournalWatch {
    /// Watches a journal until the last clone is dropped.
    pub(crate) fn start(journal: &Path) -> Self {
        let mut log = journal.to_owned().into_os_string();
        log.push("-wal");
        let files = [journal.to_owned(), log.into()];
        let (sender, receiver) = watch::channel(());
        tokio::spawn(async move {
            let (mut before, mut looks) = (None, 0);
            while !sender.is_closed() {
                tokio::time::sleep(INTERVAL).await;
                let now: [Option<(SystemTime, u64)>; 2] = files.each_ref().map(|file| {
                    let found = std::fs::metadata(file).ok()?;
                    Some((found.modified().ok()?, found.len()))
                });
                looks += 1;
                if before != Some(now) || looks % ALWAYS == 0 {
                    before = Some(now);
                    sender.send_replace(());
                }
            }
        });
        Self(receiver)
    }

    /// Waits until the journal may have changed since the last call.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
