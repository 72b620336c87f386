//! Proof of who created a journal. A run's permissions are stored in its journal, so only a journal that its
//! user's own runs created, or that the user trusts, may be acted upon. The proof is a keyed hash in the table
//! `owner`: nobody without the key can make one, and it is bound to what a copy of the file does not share, its
//! inode number and creation time.

use std::fmt;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::time::UNIX_EPOCH;

use rusqlite::{Connection, params};

/// A user's secret, which proves that a journal is theirs.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnerKey([u8; 32]);

/// Why a journal is a user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// One of the user's own runs created it.
    Created,
    /// It came from elsewhere, and the user trusts it.
    Trusted,
}

impl OwnerKey {
    /// Length of a key in bytes.
    pub const LENGTH: usize = 32;

    /// A key of these bytes, which must be random and known to the user alone.
    pub fn new(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// The proof for a file.
    pub(crate) fn proof(&self, ownership: Ownership, file: &Metadata) -> blake3::Hash {
        let made = file.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(match ownership {
            Ownership::Created => b"fusee journal, created\n",
            Ownership::Trusted => b"fusee journal, trusted\n",
        });
        hasher.update(&file.ino().to_le_bytes());
        // A file system without creation times leaves the inode number.
        hasher.update(&made.map_or(0, |made| made.as_nanos()).to_le_bytes());
        hasher.finalize()
    }
}

/// Does not show the key.
impl fmt::Debug for OwnerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerKey(…)")
    }
}

/// Writes the proof into a journal that is about to become this file.
pub(crate) fn sign_new(connection: &Connection, key: &OwnerKey, file: &File) -> rusqlite::Result<()> {
    // Without the file's identity there is no proof, and the user has to trust the journal.
    match file.metadata() {
        Ok(file) => write(connection, key.proof(Ownership::Created, &file)),
        Err(_) => Ok(()),
    }
}

/// Writes a proof into a journal.
pub(crate) fn write(connection: &Connection, proof: blake3::Hash) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY CHECK (id = 1), proof BLOB NOT NULL)",
    )?;
    connection
        .execute("INSERT OR REPLACE INTO owner (id, proof) VALUES (1, ?)", params![proof.as_bytes()])
        .map(drop)
}
