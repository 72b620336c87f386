//! Garbage collection: removes ended runs and returns their pages to the file system. It works in small
//! steps, so that others can commit in between and little extra disk space is needed.

use rusqlite::{Connection, TransactionBehavior, params};

use crate::RunId;

/// Pages vacuumed per step. Each may occupy a few WAL pages until the next checkpoint.
const PAGES: u32 = 256;

/// Result of a garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    /// Number of runs removed.
    pub runs: usize,
    /// Bytes in use before the collection.
    pub before: u64,
    /// Bytes in use after the collection.
    pub after: u64,
}

/// Removes all ended runs except the newest `keep`, and content that is no longer referenced; shrinks the
/// file.
pub(crate) fn collect(connection: &mut Connection, keep: usize) -> rusqlite::Result<GcReport> {
    // On a full disk, the space taken by the WAL may be exactly what is missing.
    checkpoint(connection)?;
    let mut collected = GcReport { before: used_bytes(connection)?, ..GcReport::default() };
    let mut ended = ended(connection)?;
    ended.truncate(ended.len().saturating_sub(keep));
    for run in ended {
        collected.runs += remove(connection, run)?;
    }
    shrink(connection)?;
    collected.after = used_bytes(connection)?;
    Ok(collected)
}

/// If the file exceeds `max_bytes`, removes ended runs, oldest first, until usage is at 90 % of it or no
/// ended run is left. The freed pages are reused, so the file stops growing.
pub(crate) fn evict(connection: &mut Connection, max_bytes: u64) -> rusqlite::Result<()> {
    if used_bytes(connection)? <= max_bytes {
        return Ok(());
    }
    for run in ended(connection)? {
        if used_bytes(connection)? <= max_bytes / 10 * 9 {
            break;
        }
        remove(connection, run)?;
    }
    Ok(())
}

/// Removes open runs without a step for which `is_dead` holds: they were killed before they started, can never
/// be resumed, and their names are free again.
pub(crate) fn remove_unstarted(
    connection: &mut Connection,
    is_dead: impl Fn(&RunId) -> bool,
) -> rusqlite::Result<()> {
    let unstarted: Vec<(i64, String)> = connection
        .prepare_cached(
            "SELECT id, name FROM runs WHERE status = 'open' \
             AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.run = runs.id)",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (run, name) in unstarted {
        if name.parse().is_ok_and(|name| is_dead(&name)) {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // One that was at work when it was listed may have ended since, which also releases its lock.
            let is_unstarted = "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND status = 'open' \
                                AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.run = ?1))";
            if transaction.query_row(is_unstarted, params![run], |row| row.get(0))? {
                remove_rows(&transaction, run)?;
            }
            transaction.commit()?;
        }
    }
    Ok(())
}

/// Row ids of the ended runs, oldest first.
fn ended(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare("SELECT id FROM runs WHERE status != 'open' ORDER BY id")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Removes one run and the content only it refers to.
fn remove(connection: &mut Connection, run: i64) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let removed = remove_rows(&transaction, run)?;
    transaction.commit()?;
    Ok(removed)
}

fn remove_rows(transaction: &Connection, run: i64) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "DELETE FROM blobs WHERE id IN (SELECT blob FROM refs WHERE run = ?1) \
             AND NOT EXISTS (SELECT 1 FROM refs AS other WHERE other.blob = blobs.id AND other.run != ?1)",
        )?
        .execute(params![run])?;
    transaction.prepare_cached("DELETE FROM runs WHERE id = ?")?.execute(params![run])
}

fn shrink(connection: &Connection) -> rusqlite::Result<()> {
    let mut free = pragma(connection, "freelist_count")?;
    while free > 0 {
        let mut statement = connection.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        let mut pages = statement.query([])?;
        while pages.next()?.is_some() {}
        checkpoint(connection)?;
        let left = pragma(connection, "freelist_count")?;
        if left >= free {
            break;
        }
        free = left;
    }
    checkpoint(connection)
}

/// Moves the WAL into the database file and truncates it. Active readers merely postpone this to the next
/// call.
fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let (pages, free) = (pragma(connection, "page_count")?, pragma(connection, "freelist_count")?);
    Ok(pages.saturating_sub(free) * pragma(connection, "page_size")?)
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}
