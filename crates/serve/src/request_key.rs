//! Idempotency keys: a request that is sent again with the same `Idempotency-Key` gets the answer of the first one.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::problem::Problem;

/// Number of keys that are remembered; the oldest are forgotten.
const KEYS: usize = 1024;

/// Longest key in bytes.
const MAX_LENGTH: usize = 200;

type Answer<T> = Result<T, Problem>;

/// An answer that later requests with the same key wait for.
type PendingAnswer<T> = Arc<OnceCell<Answer<T>>>;

/// Answers by key.
pub(crate) struct RequestKeys<T>(Mutex<VecDeque<(String, PendingAnswer<T>)>>);

impl<T> Default for RequestKeys<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> RequestKeys<T> {
    /// Does the work, unless a request with the same key did or does it. The path belongs to the key.
    pub(crate) async fn once(
        &self,
        path: &str,
        headers: &HeaderMap,
        work: impl Future<Output = Answer<T>>,
    ) -> Answer<T> {
        let Some(key) = headers.get("idempotency-key") else { return work.await };
        let key = key.to_str().ok().filter(|key| (1..=MAX_LENGTH).contains(&key.len())).ok_or_else(|| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                format!("an idempotency key has 1 to {MAX_LENGTH} characters"),
            )
        })?;
        let cell = self.cell(format!("{path} {key}"));
        cell.get_or_init(|| work).await.clone()
    }

    fn cell(&self, key: String) -> Arc<OnceCell<Answer<T>>> {
        let mut known = self.0.lock();
        if let Some((_, cell)) = known.iter().find(|(other, _)| *other == key) {
            return Arc::clone(cell);
        }
        if known.len() >= KEYS {
            known.pop_front();
        }
        let cell = Arc::new(OnceCell::new());
        known.push_back((key, Arc::clone(&cell)));
        cell
    }
}
