//! Keeping the file small: removing ended runs and giving their pages back, in steps so small that others can
//! commit between them and that they need little space themselves.

use rusqlite::{Connection, TransactionBehavior, params};

/// Pages given back at a time. Each may take a few pages of the log until the next checkpoint.
const PAGES: u32 = 256;

/// What a garbage collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Runs removed.
    pub runs: usize,
    /// Bytes in use before.
    pub before: u64,
    /// Bytes in use after.
    pub after: u64,
}

/// Removes ended runs but the newest `keep`, and content that nothing refers to; shrinks the file.
pub(crate) fn collect(connection: &mut Connection, keep: usize) -> rusqlite::Result<Collected> {
    // On a full disk the log's own space may be what is missing.
    checkpoint(connection)?;
    let mut collected = Collected { before: used_bytes(connection)?, ..Collected::default() };
    let mut ended = ended(connection)?;
    ended.truncate(ended.len().saturating_sub(keep));
    for run in ended {
        collected.runs += remove(connection, run)?;
    }
    shrink(connection)?;
    collected.after = used_bytes(connection)?;
    Ok(collected)
}

/// Where the file holds more than it may, removes ended runs, oldest first, until a tenth of that is free or none
/// is left. The pages are used again, so the file stops growing.
pub(crate) fn make_room(connection: &mut Connection, max_bytes: u64) -> rusqlite::Result<()> {
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

/// The ended runs, oldest first.
fn ended(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare("SELECT id FROM runs WHERE status != 'open' ORDER BY id")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Removes one run with all that belongs to it alone.
fn remove(connection: &mut Connection, run: i64) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction
        .prepare_cached(
            "DELETE FROM blobs WHERE id IN (SELECT blob FROM refs WHERE run = ?1) \
             AND NOT EXISTS (SELECT 1 FROM refs AS other WHERE other.blob = blobs.id AND other.run != ?1)",
        )?
        .execute(params![run])?;
    let removed = transaction.prepare_cached("DELETE FROM runs WHERE id = ?")?.execute(params![run])?;
    transaction.commit()?;
    Ok(removed)
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

/// Moves the log into the file and empties it. Readers that are in the way only make it wait for the next time.
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
