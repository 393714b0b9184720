//! The port to random identifiers.

#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes identities that were not used before.
pub trait Ids: Send + Sync {
    /// A fresh identity; sorts by time of creation.
    fn next(&self) -> String;
}

/// Version 7 UUIDs: unique across processes, sorted by time.
#[derive(Debug, Default, Clone, Copy)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn next(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}

/// `id-1`, `id-2`, … for tests.
#[cfg(test)]
#[derive(Debug, Default)]
pub struct CountingIds(AtomicU64);

#[cfg(test)]
impl Ids for CountingIds {
    fn next(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
