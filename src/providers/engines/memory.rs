//! The in-memory engine: values are lost when the process ends.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{
    Engine, KeyInfo, KeyPage, StoredValue, TakeOutcome, WriteOutcome, WriteRequest, expiry, millis,
    numbered,
};
use crate::model::Error;
use crate::util::clock::Clock;

/// An engine whose values live as long as this process.
pub(super) struct MemoryEngine {
    clock: Arc<dyn Clock>,
    inner: Mutex<MemoryState>,
    write_notify: Notify,
}

#[derive(Default)]
struct MemoryState {
    spaces: BTreeMap<String, BTreeMap<String, MemoryEntry>>,
    /// When what expires, soonest first.
    expiring: BTreeSet<(u64, String, String)>,
    bytes: u64,
    version: u64,
}

struct MemoryEntry {
    entry: StoredValue,
    size: u64,
    expires: Option<u64>,
}

impl MemoryEngine {
    /// An empty engine; `clock` decides when values expire.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, inner: Mutex::default(), write_notify: Notify::new() }
    }

    /// The entries that have not expired.
    fn inner(&self) -> MutexGuard<'_, MemoryState> {
        let now = millis(self.clock.as_ref());
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((at, space, key)) = inner.expiring.first().cloned()
            && at <= now
        {
            inner.remove(&space, &key);
        }
        inner
    }
}

impl MemoryState {
    fn get(&self, space: &str, key: &str) -> Option<&MemoryEntry> {
        self.spaces.get(space)?.get(key)
    }

    fn remove(&mut self, space: &str, key: &str) -> Option<StoredValue> {
        let keys = self.spaces.get_mut(space)?;
        let stored = keys.remove(key)?;
        if keys.is_empty() {
            self.spaces.remove(space);
        }
        self.bytes -= stored.size;
        if let Some(at) = stored.expires {
            self.expiring.remove(&(at, space.to_owned(), key.to_owned()));
        }
        Some(stored.entry)
    }

    fn write(&mut self, write: WriteRequest, now: u64) -> WriteOutcome {
        let version = self.version + 1;
        let key = write.key.clone().unwrap_or_else(|| numbered(version));
        let current = self.get(&write.space, &key);
        let at = current.map(|stored| stored.entry.version);
        if !write.condition.holds(at) {
            return WriteOutcome::Conflict(at);
        }
        let keys = self.spaces.get(&write.space).map_or(0, BTreeMap::len) as u64;
        let size = write.size(&key);
        let bytes = self.bytes - current.map_or(0, |stored| stored.size) + size;
        let refused =
            write.quota.refuses((keys, keys + u64::from(at.is_none())), (self.bytes, bytes));
        if let Some(refused) = refused {
            return refused;
        }
        self.remove(&write.space, &key);
        let expires = expiry(now, write.ttl);
        self.expiring.extend(expires.map(|at| (at, write.space.clone(), key.clone())));
        let stored =
            MemoryEntry { entry: StoredValue { value: write.value, version }, size, expires };
        self.spaces.entry(write.space).or_default().insert(key.clone(), stored);
        (self.bytes, self.version) = (bytes, version);
        WriteOutcome::Done { key, version }
    }
}

#[async_trait]
impl Engine for MemoryEngine {
    async fn read(&self, space: &str, key: &str) -> Result<Option<StoredValue>, Error> {
        Ok(self.inner().get(space, key).map(|stored| stored.entry.clone()))
    }

    async fn write(&self, write: WriteRequest) -> Result<WriteOutcome, Error> {
        let written = self.inner().write(write, millis(self.clock.as_ref()));
        self.write_notify.notify_waiters();
        Ok(written)
    }

    async fn take(
        &self,
        space: &str,
        key: &str,
        version: Option<u64>,
    ) -> Result<TakeOutcome, Error> {
        let mut inner = self.inner();
        let at = inner.get(space, key).map(|stored| stored.entry.version);
        Ok(match (at, version) {
            (Some(at), Some(wanted)) if at != wanted => TakeOutcome::Conflict(at),
            _ => inner.remove(space, key).map_or(TakeOutcome::Absent, TakeOutcome::Removed),
        })
    }

    async fn page(
        &self,
        space: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KeyPage, Error> {
        let inner = self.inner();
        let Some(keys) = inner.spaces.get(space) else { return Ok(KeyPage::default()) };
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let mut matches = keys
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix));
        let items = matches
            .by_ref()
            .take(limit)
            .map(|(key, stored)| KeyInfo {
                key: key.clone(),
                version: stored.entry.version,
                bytes: stored.entry.value.len() as u64,
            })
            .collect();
        Ok(KeyPage { items, more: matches.next().is_some() })
    }

    async fn clear(&self, space: &str) -> Result<u64, Error> {
        let mut inner = self.inner();
        let keys: Vec<String> =
            inner.spaces.get(space).map(|keys| keys.keys().cloned().collect()).unwrap_or_default();
        for key in &keys {
            inner.remove(space, key);
        }
        Ok(keys.len() as u64)
    }

    async fn spaces(&self, prefix: &str, limit: usize) -> Result<Vec<(String, u64)>, Error> {
        let inner = self.inner();
        let matches = inner.spaces.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        Ok(matches
            .take_while(|(name, _)| name.starts_with(prefix))
            .take(limit)
            .map(|(name, keys)| (name.clone(), keys.len() as u64))
            .collect())
    }

    fn write_notify(&self) -> Option<&Notify> {
        Some(&self.write_notify)
    }
}
