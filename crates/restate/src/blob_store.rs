//! The blob store that workers and clients share: content under its BLAKE3 hash.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::client::{HttpClient, HttpConnector};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, RetryConfig};
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
    /// Whether the store can write only what is not there. Not every S3 server can, and writing the same content twice
    /// does no harm.
    creates: bool,
}

/// How often a request to S3 is repeated, and how long at most.
const RETRIES: usize = 5;
const RETRY_TIME: Duration = Duration::from_secs(30);

/// The HTTP client that the rest of fusee uses.
#[derive(Debug)]
struct OwnClient(reqwest::Client);

impl HttpConnector for OwnClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

/// Bucket and prefix of a URL.
fn parse_s3(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("s3://")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    (!bucket.is_empty()).then_some((bucket, prefix))
}

impl BlobStore {
    /// The store in a directory, which is created if it does not exist.
    pub fn directory(path: &Path) -> Result<Self, EngineError> {
        let place = path.display().to_string();
        let failed = |cause: String| EngineError::Blob { place: place.clone(), cause };
        std::fs::create_dir_all(path).map_err(|error| failed(error.to_string()))?;
        let store = LocalFileSystem::new_with_prefix(path).map_err(|error| failed(error.to_string()))?;
        Ok(Self { store: Arc::new(store), place, creates: true })
    }

    /// The store in a bucket of S3-compatible storage: `s3://BUCKET` or `s3://BUCKET/PREFIX`. `variables` are those of
    /// the environment; the ones that begin with `AWS_` give region, endpoint and credentials.
    pub fn s3(
        url: &str,
        variables: impl IntoIterator<Item = (String, String)>,
        http: reqwest::Client,
    ) -> Result<Self, EngineError> {
        let failed = |cause: String| EngineError::Blob { place: url.to_owned(), cause };
        let (bucket, prefix) =
            parse_s3(url).ok_or_else(|| failed("not of the form s3://BUCKET/PREFIX".to_owned()))?;
        let mut builder = AmazonS3Builder::new();
        for (name, value) in variables {
            let key = name.starts_with("AWS_").then(|| name.to_ascii_lowercase().parse().ok()).flatten();
            if let Some(key) = key {
                builder = builder.with_config(key, value);
            }
        }
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIME, ..RetryConfig::default() };
        let builder = builder.with_bucket_name(bucket).with_retry(retry).with_http_connector(OwnClient(http));
        let store = builder.build().map_err(|error| failed(error.to_string()))?;
        let store = PrefixStore::new(store, ObjectPath::from(prefix));
        Ok(Self { store: Arc::new(store), place: url.to_owned(), creates: false })
    }

    /// Stores content. Content that is there already is not written again.
    pub async fn put(&self, content: Bytes) -> Result<BlobHash, EngineError> {
        let hash = BlobHash::of(&content);
        // Most content is there already, and asking is cheaper than writing it beside and giving up.
        if self.store.head(&hash.path()).await.is_ok() {
            return Ok(hash);
        }
        let mode = if self.creates { PutMode::Create } else { PutMode::Overwrite };
        let create = PutOptions { mode, ..PutOptions::default() };
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
            object_store::Error::NotFound { .. } => {
                self.lacks(hash, "is missing; all workers and clients must use the same blob store")
            }
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
