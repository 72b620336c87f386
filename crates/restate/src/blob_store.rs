//! The blob store that workers and clients share: content under its BLAKE3 hash.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use serde::{Deserialize, Serialize};

use crate::EngineError;

/// Address of a blob: the hexadecimal BLAKE3 hash of its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlobHash(String);

impl BlobHash {
    /// The address of this content.
    pub fn of(content: &[u8]) -> Self {
        Self(blake3::hash(content).to_hex().to_string())
    }

    /// Folders of 256 keep directories small.
    fn path(&self) -> ObjectPath {
        let (folder, name) = self.0.split_at_checked(2).unwrap_or(("", &self.0));
        ObjectPath::from_iter(["blobs", folder, name])
    }
}

/// Content-addressed files shared by the workers and clients of an engine.
#[derive(Clone)]
pub struct BlobStore {
    store: Arc<dyn ObjectStore>,
    place: String,
}

impl BlobStore {
    /// The store in a directory, which is created if it does not exist.
    pub fn directory(path: &Path) -> Result<Self, EngineError> {
        let place = path.display().to_string();
        let failed = |cause: String| EngineError::Blob { place: place.clone(), cause };
        std::fs::create_dir_all(path).map_err(|error| failed(error.to_string()))?;
        let store = LocalFileSystem::new_with_prefix(path).map_err(|error| failed(error.to_string()))?;
        Ok(Self { store: Arc::new(store), place })
    }

    /// Stores content. Content that is there already is not written again.
    pub async fn put(&self, content: Bytes) -> Result<BlobHash, EngineError> {
        let hash = BlobHash::of(&content);
        let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(&hash.path(), content.into(), create).await {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => Ok(hash),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Reads content and checks that it is what the address says.
    pub async fn get(&self, hash: &BlobHash) -> Result<Bytes, EngineError> {
        let found = match self.store.get(&hash.path()).await {
            Ok(found) => found.bytes().await,
            Err(error) => Err(error),
        };
        let content = found.map_err(|error| match error {
            object_store::Error::NotFound { .. } => self.lacks(hash, "is missing"),
            error => self.failed(&error),
        })?;
        if BlobHash::of(&content) == *hash { Ok(content) } else { Err(self.lacks(hash, "is damaged")) }
    }

    fn lacks(&self, hash: &BlobHash, what: &str) -> EngineError {
        EngineError::Blob { place: self.place.clone(), cause: format!("blob {} {what}", hash.0) }
    }

    fn failed(&self, error: &object_store::Error) -> EngineError {
        EngineError::Blob { place: self.place.clone(), cause: error.to_string() }
    }
}
