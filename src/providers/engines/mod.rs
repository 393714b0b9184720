//! Engines: storage backends of stores and mailboxes.
//!
//! Owns: the contract [`Engine`], the engines themselves (`memory`, `disk`, `remote`), what an entry
//! may say about them (`config`), and what the kinds over them share (`kind`, `provider`). Never
//! does: know what a value means.
//!
//! An engine keeps *spaces*; a space maps keys to texts. Every write gets a version that no other
//! write of the engine ever had, so that a version tells whether another write came in between.
//! Keys sort by their bytes. Each operation is atomic, whichever processes share the engine, and an
//! operation that was answered has happened.

pub(super) mod config;
#[cfg(test)]
mod conformance;
pub(super) mod disk;
pub(super) mod kind;
mod memory;
mod open_engines;
pub(super) mod provider;
#[cfg(feature = "redis")]
pub(super) mod remote;

use async_trait::async_trait;

use crate::model::Error;

/// A place that keeps texts under keys.
#[async_trait]
pub(super) trait Engine: Send + Sync {
    /// What `key` holds; `None` too when it has expired.
    ///
    /// # Errors
    /// When the engine cannot be used. That holds for every operation.
    async fn read(&self, space: &str, key: &str) -> Result<Option<StoredValue>, Error>;

    /// Writes if the condition and the quota allow it; otherwise nothing changes.
    async fn write(&self, write: WriteRequest) -> Result<WriteOutcome, Error>;

    /// Removes `key` and hands out what it held: of several who take at once, one gets it. With
    /// `version` only if that is the version it holds.
    async fn take(
        &self,
        space: &str,
        key: &str,
        version: Option<u64>,
    ) -> Result<TakeOutcome, Error>;

    /// Keys that begin with `prefix`, in order, after the key `after`.
    async fn page(
        &self,
        space: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KeyPage, Error>;

    /// Removes everything in a space; returns how many keys that were.
    async fn clear(&self, space: &str) -> Result<u64, Error>;

    /// The spaces that hold something and whose names begin with `prefix`, in order, at most
    /// `limit`, each with its number of keys (those that have expired may be counted still).
    async fn spaces(&self, prefix: &str, limit: usize) -> Result<Vec<(String, u64)>, Error>;

    /// Woken after every write; `None` when other processes can write too.
    fn write_notify(&self) -> Option<&tokio::sync::Notify> {
        None
    }

    /// Ends what the engine holds open. Idempotent, bounded in time; a later operation opens it
    /// again.
    async fn close(&self) {}
}

/// The value of a key together with the version of its last write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredValue {
    /// The value as it was written; the engine never looks into it.
    pub(super) value: String,
    /// The version of the write that put it there.
    pub(super) version: u64,
}

/// One write with its conditions and limits.
#[derive(Debug, Clone)]
pub(super) struct WriteRequest {
    /// The space in which the key is written; it need not exist before.
    pub(super) space: String,
    /// The key; `None` makes one from the version, so that such keys sort in order of writing.
    pub(super) key: Option<String>,
    /// The value to keep, as text.
    pub(super) value: String,
    /// What has to hold for the write to happen.
    pub(super) condition: WriteCondition,
    /// What must not be exceeded.
    pub(super) quota: Quota,
    /// How long it is kept, in milliseconds; `None` is for ever.
    pub(super) ttl: Option<u64>,
}

impl WriteRequest {
    /// What an entry counts for in the quota of bytes: its names and its value.
    pub(super) fn size(&self, key: &str) -> u64 {
        (self.space.len() + key.len() + self.value.len()) as u64
    }
}

/// What has to hold for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteCondition {
    /// Write whatever the key holds.
    Any,
    /// Write only while the key holds nothing, or something that has expired.
    Absent,
    /// The key holds this version.
    Version(u64),
}

impl WriteCondition {
    /// Whether it holds for a key that is at `current`.
    fn holds(self, current: Option<u64>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => current.is_none(),
            Self::Version(version) => current == Some(version),
        }
    }
}

/// How much an engine may hold.
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
    /// The value is kept; the answer came after the commit.
    Done {
        /// The key, made up or given.
        key: String,
        /// The version it holds now.
        version: u64,
    },
    /// The condition did not hold; this is the version it holds.
    Conflict(Option<u64>),
    /// The space holds as many keys as it may.
    TooManyKeys,
    /// All spaces together would hold more bytes than they may.
    TooManyBytes,
}

/// How taking a key ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TakeOutcome {
    /// It was there, and is not any more.
    Removed(StoredValue),
    /// The key held nothing, so nothing was removed.
    Absent,
    /// The key holds this version and not the expected one; it was kept.
    Conflict(u64),
}

/// A part of the keys of a space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct KeyPage {
    /// The keys of the page, sorted by their bytes.
    pub(super) items: Vec<KeyInfo>,
    /// Whether there are more after them.
    pub(super) more: bool,
}

/// A key with what is known of its value without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyInfo {
    /// The key as it was written, or as the engine numbered it.
    pub(super) key: String,
    /// The version of the write that put its value there.
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

/// When something that is written `now` expires.
fn expiry(now: u64, ttl: Option<u64>) -> Option<u64> {
    ttl.map(|ttl| now.saturating_add(ttl))
}
