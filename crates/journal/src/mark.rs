//! High-water marks: how long each run was, stored outside the database. SQLite ends its log at the first frame
//! with a wrong checksum, so a flipped bit makes a journal shorter without an error, and a resume would repeat
//! commands that ran already. `journal.db-marks` has one slot per run, written after each commit.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use parking_lot::Mutex;

use crate::ops::WriteOp;
use crate::{JournalError, RunStatus, schema};

/// Size of a slot: key, events, steps, intents, ended, checksum.
const SLOT: usize = 48;

/// Length of a run: rows of each kind, and whether it has ended. Never decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) events: u64,
    pub(crate) steps: u64,
    /// Steps whose effect may have happened, and must not happen again.
    pub(crate) intents: u64,
    pub(crate) ended: bool,
}

impl Mark {
    /// Length of a run that consists of these rows.
    pub(crate) fn from_rows(rows: &[WriteOp]) -> Self {
        let mut mark = Self::default();
        rows.iter().for_each(|row| mark.add(row));
        mark
    }

    fn add(&mut self, op: &WriteOp) {
        match op {
            WriteOp::Event { .. } => self.events += 1,
            WriteOp::Step { .. } => self.steps += 1,
            WriteOp::Intent { .. } => {
                self.steps += 1;
                self.intents += 1;
            }
            WriteOp::Status { status, .. } => self.ended = *status != RunStatus::Open,
            WriteOp::Conclusion { .. } | WriteOp::Content { .. } | WriteOp::Taken { .. } => {}
        }
    }

    fn encode(self, key: i64) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        let fields = [key as u64, self.events, self.steps, self.intents, u64::from(self.ended)];
        for (place, field) in slot.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let sum = blake3::hash(&slot[..SLOT - 8]);
        slot[SLOT - 8..].copy_from_slice(&sum.as_bytes()[..8]);
        slot
    }

    /// `None` for a slot that was never written, belongs to another run, or is damaged.
    fn decode(key: i64, slot: &[u8; SLOT]) -> Option<Self> {
        let field = |at: usize| {
            slot.get(at * 8..)
                .and_then(|rest| rest.first_chunk())
                .map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let mark = Self { events: field(1), steps: field(2), intents: field(3), ended: field(4) != 0 };
        (mark.encode(key) == *slot).then_some(mark)
    }
}

/// The file of marks. Without one, nothing is checked.
pub(crate) struct Marks {
    file: Option<File>,
    /// Marks of the runs of this process.
    known: Mutex<HashMap<i64, Mark>>,
}

impl Marks {
    pub(crate) fn open_to_write(journal: &Path) -> Result<Self, JournalError> {
        let path = schema::sibling_path(journal, "-marks");
        let file = schema::private_file()
            .read(true)
            .truncate(false)
            .open(path)
            .map_err(|error| JournalError::from_io(journal, &error))?;
        Ok(Self { file: Some(file), known: Mutex::default() })
    }

    pub(crate) fn open_to_read(journal: &Path) -> Self {
        Self { file: File::open(schema::sibling_path(journal, "-marks")).ok(), known: Mutex::default() }
    }

    pub(crate) fn read(&self, key: i64) -> Option<Mark> {
        let mut slot = [0; SLOT];
        self.file.as_ref()?.read_exact_at(&mut slot, offset(key)?).ok()?;
        Mark::decode(key, &slot)
    }

    /// Key of the newest run that has a mark, 0 if there is none.
    pub(crate) fn newest_run(&self) -> i64 {
        let length = self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |file| file.len());
        let newest = i64::try_from(length / SLOT as u64).unwrap_or(0);
        if self.read(newest).is_some() { newest } else { 0 }
    }

    /// Sets the mark of a run that starts or resumes in this process.
    pub(crate) fn set(&self, key: i64, mark: Mark) {
        self.known.lock().insert(key, mark);
        self.write(key, mark);
    }

    /// Records a commit.
    pub(crate) fn advance(&self, key: i64, ops: &[WriteOp]) {
        let mut known = self.known.lock();
        let mark = known.entry(key).or_insert_with(|| self.read(key).unwrap_or_default());
        ops.iter().for_each(|op| mark.add(op));
        let mark = *mark;
        drop(known);
        self.write(key, mark);
    }

    fn write(&self, key: i64, mark: Mark) {
        if let (Some(file), Some(offset)) = (&self.file, offset(key)) {
            // A mark that is not written is too low, which hides a loss but never reports one wrongly.
            let _: io::Result<()> = file.write_all_at(&mark.encode(key), offset);
        }
    }
}

/// Offset of a run's slot; run keys start at 1.
fn offset(key: i64) -> Option<u64> {
    u64::try_from(key).ok()?.checked_sub(1)?.checked_mul(SLOT as u64)
}
