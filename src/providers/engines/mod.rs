//! Engines: storage backends of stores and mailboxes.
//!
//! Owns: the contract [`Engine`], the engines themselves (`disk`, also in memory, and `remote`), what an entry
//! may say about them (`config`), and what the kinds over them share (`kind`). Never
//! does: know what a value means.
//!
//! An engine keeps *spaces*; a space maps keys to texts. Every write gets a version that no other
//! write of the engine ever had, so a changed version shows that another write came in between.
//! Keys sort by their bytes. Each operation is atomic, whichever processes share the engine, and an
//! operation that was answered has happened.
//! Entries of one place share one engine, as long as any of them is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use secrecy::ExposeSecret as _;
use serde::Serialize;

use crate::model::Error;
use crate::util::clock::{Clock, SystemClock};
use config::EngineLocation;
use disk::SqliteEngine;

pub(super) mod config;
#[cfg(test)]
mod conformance;
pub(super) mod disk;
pub(super) mod kind;
#[cfg(feature = "redis")]
pub(super) mod remote;

/// A place that keeps texts under keys.
#[async_trait]
pub(super) trait Engine: Send + Sync {
    /// The value of `key`; also `None` if it has expired.
    async fn read(&self, space: &str, key: &str) -> Result<Option<StoredValue>, Error>;

    /// Writes if the condition and the quota allow it; otherwise nothing changes.
    async fn write(&self, write: WriteRequest) -> Result<WriteOutcome, Error>;

    /// Removes `key` and returns its value: of several concurrent callers, one gets it. With
    /// `version`, only if that is its version.
    async fn take(
        &self,
        space: &str,
        key: &str,
        version: Option<u64>,
    ) -> Result<TakeOutcome, Error>;

    /// Keys that start with `prefix`, in order, after the key `after`.
    async fn page(
        &self,
        space: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KeyPage, Error>;

    /// Removes everything in a space; returns the number of keys.
    async fn clear(&self, space: &str) -> Result<u64, Error>;

    /// The non-empty spaces whose names start with `prefix`, in order, at most
    /// `limit`, each with its number of keys (those that have expired may be counted still).
    async fn spaces(&self, prefix: &str, limit: usize) -> Result<Vec<(String, u64)>, Error>;

    /// Woken after every write; `None` when other processes can write too.
    fn write_notify(&self) -> Option<&tokio::sync::Notify> {
        None
    }

    /// Closes what the engine has open. Idempotent, bounded in time; a later operation opens it
    /// again.
    async fn close(&self) {}
}

/// The value of a key together with the version of its last write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredValue {
    /// The value as it was written; the engine never looks into it.
    pub(super) value: String,
    pub(super) version: u64,
}

#[derive(Debug, Clone)]
pub(super) struct WriteRequest {
    /// The space in which the key is written; it need not exist before.
    pub(super) space: String,
    /// The key; `None` makes one from the version, so that such keys sort in order of writing.
    pub(super) key: Option<String>,
    pub(super) value: String,
    pub(super) condition: WriteCondition,
    /// What must not be exceeded.
    pub(super) quota: Quota,
    /// How long it is kept, in milliseconds; `None` is for ever.
    pub(super) ttl: Option<u64>,
}

impl WriteRequest {
    /// What an entry counts towards the quota of bytes: its names and its value.
    pub(super) fn size(&self, key: &str) -> u64 {
        (self.space.len() + key.len() + self.value.len()) as u64
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteCondition {
    Any,
    /// Write only if the key has no value, or one that has expired.
    Absent,
    /// The key must have this version.
    Version(u64),
}

impl WriteCondition {
    /// Whether it is met for a key at version `current`.
    fn holds(self, current: Option<u64>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => current.is_none(),
            Self::Version(version) => current == Some(version),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quota {
    /// The most keys of one space; others do not count.
    pub(super) keys: u64,
    /// Bytes of all spaces together: names, keys and values.
    pub(super) bytes: u64,
}

impl Quota {
    /// The refusal of a write that would bring a space to `keys` and the whole to `bytes`, if it
    /// is one. What makes the store smaller is never refused.
    fn refuses(self, keys: (u64, u64), bytes: (u64, u64)) -> Option<WriteOutcome> {
        if keys.1 > self.keys && keys.1 > keys.0 {
            return Some(WriteOutcome::TooManyKeys);
        }
        (bytes.1 > self.bytes && bytes.1 > bytes.0).then_some(WriteOutcome::TooManyBytes)
    }
}

/// The outcome of a write; all but `Done` changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// The value is stored; the answer came after the commit.
    Done {
        key: String,
        version: u64,
    },
    /// The condition was not met; this is the current version.
    Conflict(Option<u64>),
    TooManyKeys,
    TooManyBytes,
}

/// How taking a key ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TakeOutcome {
    /// It was there, and is not any more.
    Removed(StoredValue),
    /// The key had no value, so nothing was removed.
    Absent,
    /// The key has this version instead of the expected one; it was kept.
    Conflict(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct KeyPage {
    pub(super) items: Vec<KeyInfo>,
    /// Whether there are more after them.
    pub(super) more: bool,
}

/// A key, with what is known about its value without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct KeyInfo {
    pub(super) key: String,
    pub(super) version: u64,
    /// The length of its value.
    pub(super) bytes: u64,
}

/// The key that a write without one gets: versions as text that sorts as they do.
fn numbered(version: u64) -> String {
    format!("{version:020}")
}

/// Wall time in milliseconds since 1970.
fn millis(clock: &dyn crate::util::clock::Clock) -> u64 {
    u64::try_from(clock.unix().as_millis()).unwrap_or(u64::MAX)
}

fn expiry(now: u64, ttl: Option<u64>) -> Option<u64> {
    ttl.map(|ttl| now.saturating_add(ttl))
}

#[derive(Default)]
struct OpenEngines(Mutex<BTreeMap<String, Weak<Arc<dyn Engine>>>>);

/// An entry's share of an engine. Whoever gives back the last one closes the engine.
type EngineLease = Arc<Arc<dyn Engine>>;

impl OpenEngines {
    /// The engine for a place; `component` names what entries of the kind `kind` keep there.
    fn lease(&self, kind: &str, location: &EngineLocation, component: &str) -> EngineLease {
        let identity = match location {
            EngineLocation::Memory => format!("{kind} memory {component}"),
            EngineLocation::Disk(file) => format!("{kind} disk {file:?}"),
            EngineLocation::Redis { url, .. } => {
                format!("{kind} redis {component} {}", url.expose_secret())
            }
        };
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, engine| engine.strong_count() > 0);
        open.get(&identity).and_then(Weak::upgrade).unwrap_or_else(|| {
            let lease = Arc::new(new_engine(location, component));
            open.insert(identity, Arc::downgrade(&lease));
            lease
        })
    }
}

#[cfg_attr(not(feature = "redis"), expect(unused_variables, reason = "only Redis stores several"))]
fn new_engine(location: &EngineLocation, component: &str) -> Arc<dyn Engine> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    match location {
        EngineLocation::Disk(file) => Arc::new(SqliteEngine::new(Some(file.clone()), clock)),
        #[cfg(feature = "redis")]
        EngineLocation::Redis { url, host } => {
            let (url, host) = (url.clone(), host.clone());
            Arc::new(remote::RedisEngine::new(url, host, component, clock))
        }
        _ => Arc::new(SqliteEngine::new(None, clock)),
    }
}
