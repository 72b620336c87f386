//! What the runs of one process share: open journals and open models.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee::engine::journal::Journal;
use fusee::engine::model::{Connection, Model, ResolvedModel};
use parking_lot::Mutex;

use crate::process::error::CliError;

/// Journals of this process, by file: one writer serves all runs of a journal.
#[derive(Clone, Default)]
pub(crate) struct OpenJournals(Arc<Mutex<BTreeMap<PathBuf, Journal>>>);

impl OpenJournals {
    /// The journal in this file: opened with `open`, unless this process has it open already.
    pub(crate) fn get_or_open(
        &self,
        file: &Path,
        open: impl FnOnce() -> Result<Journal, CliError>,
    ) -> Result<Journal, CliError> {
        let mut known = self.0.lock();
        if let Some(journal) = known.get(file)
            && file.exists()
        {
            return Ok(journal.clone());
        }
        let journal = open()?;
        known.insert(file.to_owned(), journal.clone());
        Ok(journal)
    }
}

/// Models of this process, by connection: runs share network connections, and a script continues where the run
/// before left it.
#[derive(Clone, Default)]
pub(crate) struct OpenModels(Arc<Mutex<Vec<OpenModel>>>);

struct OpenModel {
    name: String,
    connection: Connection,
    model: Arc<dyn Model>,
}

impl OpenModels {
    /// The model with this connection: opened with `open`, unless this process has it open already.
    pub(crate) fn get_or_open(
        &self,
        resolved: &ResolvedModel,
        open: impl FnOnce() -> Result<Arc<dyn Model>, CliError>,
    ) -> Result<Arc<dyn Model>, CliError> {
        let mut known = self.0.lock();
        let same = |it: &&OpenModel| it.name == resolved.name && it.connection == resolved.connection;
        if let Some(same) = known.iter().find(same) {
            return Ok(Arc::clone(&same.model));
        }
        let model = open()?;
        let (name, connection) = (resolved.name.clone(), resolved.connection.clone());
        known.push(OpenModel { name, connection, model: Arc::clone(&model) });
        Ok(model)
    }
}
