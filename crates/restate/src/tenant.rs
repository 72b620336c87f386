//! Limits per tenant: how many runs of one tenant a worker executes concurrently. Further ones wait for a slot.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of a worker, by tenant.
#[derive(Debug)]
pub(crate) struct TenantPlaces {
    limit: Option<usize>,
    places: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The slot that a run occupies, released on drop. Without a limit there is nothing to hold.
pub(crate) struct TenantPlace(
    #[expect(dead_code, reason = "held for its drop")] Option<OwnedSemaphorePermit>,
);

impl TenantPlaces {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self { limit, places: Mutex::default() }
    }

    /// Waits for a slot, in the order of arrival. All runs without a tenant count as one tenant.
    pub(crate) async fn enter(&self, tenant: Option<&str>) -> TenantPlace {
        let Some(limit) = self.limit else { return TenantPlace(None) };
        let places = {
            let mut known = self.places.lock();
            // A tenant of which nothing works or waits is forgotten.
            known.retain(|_, places| places.available_permits() < limit || Arc::strong_count(places) > 1);
            let new = || Arc::new(Semaphore::new(limit));
            Arc::clone(known.entry(tenant.unwrap_or_default().to_owned()).or_insert_with(new))
        };
        // Never closed.
        TenantPlace(places.acquire_owned().await.ok())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::TenantPlaces;

    async fn enters(places: &TenantPlaces, tenant: &str) -> Option<super::TenantPlace> {
        tokio::time::timeout(Duration::from_millis(50), places.enter(Some(tenant))).await.ok()
    }

    #[tokio::test]
    async fn a_tenant_at_its_limit_waits_and_others_do_not() {
        let places = TenantPlaces::new(Some(2));
        let first = enters(&places, "a").await.expect("a place");
        let _second = enters(&places, "a").await.expect("a place");
        assert!(enters(&places, "a").await.is_none(), "the limit");
        let other = enters(&places, "b").await.expect("another tenant has its own places");
        drop((first, other));
        assert!(enters(&places, "a").await.is_some(), "a place that was given back");
        assert_eq!(places.places.lock().len(), 1, "a tenant without runs is forgotten");
        let unlimited = TenantPlaces::new(None);
        let (one, two) = (enters(&unlimited, "a").await, enters(&unlimited, "a").await);
        assert!(one.is_some() && two.is_some());
    }
}
