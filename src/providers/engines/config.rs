//! The engine an entry asks for, and its quotas.
//!
//! | the entry says | the engine is |
//! |---|---|
//! | none, `storage_type: memory` | memory |
//! | `storage_type: disk`, or `path` or `persist` | a file |
//! | `storage_type: redis`, or `url` | a Redis server |

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::Quota;
use super::disk::{self, Durability};
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, ByteSize, Located, Timespan, UNBOUNDED};
use crate::model::{Diagnostic, Diagnostics};
use crate::provider::ProviderDeps;
use crate::util::hex::hex;

/// The keys of an entry that choose and bound an engine.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(in crate::providers) struct EngineKeys {
    /// Where values are kept; default: disk with 'path', redis with 'url', else memory.
    storage_type: Option<Located<StorageType>>,
    /// The file of a store on disk; default: one in the state directory.
    #[serde(alias = "persist")]
    path: Option<Located<String>>,
    /// The address of a Redis server, such as redis://127.0.0.1:6379/0.
    url: Option<Located<String>>,
    /// When a write to disk counts as written; default: full.
    sync: Option<Durability>,
    /// How long values are kept; default: for ever.
    ttl: Option<Located<Timespan>>,
    /// The most keys or messages, of each session or mailbox.
    max_keys: Option<ByteSize<UNBOUNDED>>,
    /// The longest key, in bytes.
    max_key_bytes: Option<ByteSize<MAX_KEY_BYTES>>,
    /// The longest value, in bytes of its JSON.
    max_value_bytes: Option<ByteSize<MAX_VALUE_BYTES>>,
    /// The size of everything together, names, keys and values.
    max_total_bytes: Option<ByteSize<UNBOUNDED>>,
}

/// Where values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::providers) enum StorageType {
    Memory,
    Disk,
    Redis,
    Postgresql,
}

impl EngineKeys {
    pub(in crate::providers) fn storage_type(&self) -> StorageType {
        match self.storage_type.as_deref() {
            Some(StorageType::Memory) | None if self.path.is_some() => StorageType::Disk,
            Some(named) => *named,
            None if self.url.is_some() => StorageType::Redis,
            None => StorageType::Memory,
        }
    }
}

/// Those of the keys in which variables are expanded, besides the ones where they always are.
pub(in crate::providers) const EXPAND: [&str; 2] = ["path", "persist"];

/// The default limits, and the maximum an entry may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers) struct EngineLimits {
    pub(in crate::providers) quota: Quota,
    pub(in crate::providers) max_key_bytes: u64,
    pub(in crate::providers) max_value_bytes: u64,
}

/// The largest `max_value_bytes`: arguments of a call are not longer either.
const MAX_VALUE_BYTES: u64 = 16 << 20;
/// The largest value of `max_key_bytes`, in bytes.
const MAX_KEY_BYTES: u64 = 4 << 10;

#[derive(Debug, Clone)]
pub(in crate::providers) enum EngineLocation {
    /// In this process: values are gone when it ends.
    Memory,
    /// In a `SQLite` file, which other processes may have open too.
    Disk(disk::StoreFile),
    Redis {
        /// The address, with any credentials in it.
        url: SecretString,
        /// Host and port without credentials, for messages and `touches`.
        host: String,
    },
}

#[derive(Debug, Clone)]
pub(in crate::providers) struct EngineConfig {
    pub(in crate::providers) location: EngineLocation,
    pub(in crate::providers) limits: EngineLimits,
    /// How long values are kept, in milliseconds; `None` is for ever.
    pub(in crate::providers) ttl: Option<u64>,
}

/// What an entry says; `component` is the name its tools share.
pub(in crate::providers) fn resolve(
    spec: &ToolSpec,
    keys: &EngineKeys,
    component: &str,
    defaults: EngineLimits,
    writable: bool,
    context: &ProviderDeps,
) -> Result<EngineConfig, Diagnostic> {
    let limits = EngineLimits {
        quota: Quota {
            keys: keys.max_keys.map_or(defaults.quota.keys, |size| size.0),
            bytes: keys.max_total_bytes.map_or(defaults.quota.bytes, |size| size.0),
        },
        max_key_bytes: keys.max_key_bytes.map_or(defaults.max_key_bytes, |size| size.0),
        max_value_bytes: keys.max_value_bytes.map_or(defaults.max_value_bytes, |size| size.0),
    };
    let location = place(spec, keys, component, writable, context)?;
    let ttl = keys.ttl.as_ref().map(ttl).transpose()?;
    Ok(EngineConfig { location, limits, ttl })
}

fn ttl(ttl: &Located<Timespan>) -> Result<u64, Diagnostic> {
    u64::try_from(ttl.0.as_millis())
        .ok()
        .filter(|ttl| (1..=u64::MAX >> 20).contains(ttl))
        .ok_or_else(|| ttl.error("expected a duration of at least 1ms"))
}

fn place(
    spec: &ToolSpec,
    keys: &EngineKeys,
    component: &str,
    writable: bool,
    context: &ProviderDeps,
) -> Result<EngineLocation, Diagnostic> {
    match keys.storage_type() {
        StorageType::Memory => Ok(EngineLocation::Memory),
        StorageType::Disk => {
            let file = file(spec, keys, component, context)?;
            let sync = keys.sync.unwrap_or_default();
            Ok(EngineLocation::Disk(disk::StoreFile { writable, sync, ..file }))
        }
        StorageType::Redis => redis(spec, keys),
        // A store of this type is handed to a server before any engine is chosen.
        StorageType::Postgresql => {
            let place = keys.storage_type.as_ref().map_or(&spec.location, |named| &named.location);
            Err(Diagnostic::error("only a store can be of type postgresql")
                .with_hint("this can be kept in memory, on disk or in redis")
                .with_location(place.clone()))
        }
    }
}

fn file(
    spec: &ToolSpec,
    keys: &EngineKeys,
    component: &str,
    context: &ProviderDeps,
) -> Result<disk::StoreFile, Diagnostic> {
    let file = disk::StoreFile {
        path: PathBuf::new(),
        within: None,
        own_directory: false,
        writable: true,
        sync: Durability::Full,
    };
    let Some(written) = &keys.path else {
        let Some(state) = &context.state_dir else {
            return Err(Diagnostic::error("there is no home directory to keep this store in")
                .with_hint("set 'path: …'")
                .with_location(spec.location.clone()));
        };
        // Components of two projects may share a name and never a store.
        let place = format!("{}\0{component}", spec.base_dir.display());
        let stem: String = component.chars().take(64).collect();
        let directory = state.join("stores");
        let path = directory.join(format!("{stem}-{}.db", hash(&place, 6)));
        return Ok(disk::StoreFile { path, own_directory: true, ..file });
    };
    if written.is_empty() || written.ends_with('/') || written.contains('\0') {
        return Err(written.error("expected the path of a file"));
    }
    let path = resolved(&spec.base_dir, written);
    // Outside of the file's own directory the person was asked, with the whole path; inside, a link
    // must not lead to a path that was not asked about.
    let within = path.starts_with(&spec.base_dir).then(|| spec.base_dir.clone());
    Ok(disk::StoreFile { path, within, ..file })
}

/// A path relative to a file's directory, without `.` and `..`.
fn resolved(base_dir: &Path, text: &str) -> PathBuf {
    use std::path::Component;
    let mut path = PathBuf::new();
    for part in base_dir.join(text).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
    }
    path
}

fn redis(spec: &ToolSpec, keys: &EngineKeys) -> Result<EngineLocation, Diagnostic> {
    let Some(text) = &keys.url else {
        return Err(Diagnostic::error("a store in Redis needs a 'url'")
            .with_hint("write one such as redis://127.0.0.1:6379/0")
            .with_location(spec.location.clone()));
    };
    // The text may contain a password, so no message repeats it.
    let url = url::Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "redis" && url.has_host())
        .ok_or_else(|| text.error("expected an address such as redis://127.0.0.1:6379/0"))?;
    let host = format!("{}:{}", url.host_str().unwrap_or_default(), url.port().unwrap_or(6379));
    if cfg!(not(feature = "redis")) {
        return Err(text
            .error("this build of toolhost cannot use Redis")
            .with_hint("build it with: cargo install toolhost --features redis"));
    }
    Ok(EngineLocation::Redis { url: text.as_str().into(), host })
}

pub(in crate::providers) fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let diagnostics = Diagnostics::default();
    let Some(keys) = typed::read_part::<EngineKeys>(entry, &diagnostics) else {
        return Vec::new();
    };
    let address = |url: &str| match url::Url::parse(url) {
        // Without what may be a password.
        Ok(url) if url.has_host() && !url.as_str().contains("${") => {
            let host = url.host_str().unwrap_or_default();
            format!("redis at {host}:{}", url.port().unwrap_or(6379))
        }
        _ => "redis at the address of 'url'".to_owned(),
    };
    match keys.storage_type() {
        StorageType::Disk => vec![EntryEffect::Writes(match keys.path.as_deref() {
            Some(file) => {
                site.real(file).map_or_else(|| file.clone(), |path| path.display().to_string())
            }
            None => "its own file in the state directory".to_owned(),
        })],
        StorageType::Redis => {
            let whom = keys.url.as_deref().map_or_else(|| "redis".to_owned(), |url| address(url));
            vec![EntryEffect::Contacts(whom)]
        }
        // What is said besides the engine is still looked at: it may become one by a later change.
        StorageType::Memory if diagnostics.is_empty() => Vec::new(),
        StorageType::Memory | StorageType::Postgresql => {
            vec![EntryEffect::Other("keeps values somewhere unknown".to_owned())]
        }
    }
}

impl EngineLocation {
    /// What a tool touches, as a line for `inspect`.
    pub(in crate::providers) fn touches(&self, writes: bool) -> String {
        match self {
            Self::Memory => "keeps values in memory while toolhost runs".to_owned(),
            Self::Disk(file) if writes => {
                let lost = match file.sync {
                    Durability::Full => "each write is flushed to the disk before it returns",
                    Durability::Normal => "a power cut may lose the last writes",
                    Durability::Off => "never waits for the disk: a power cut may damage the store",
                };
                format!("writes {} ({lost})", file.path.display())
            }
            Self::Disk(file) => format!("reads {}", file.path.display()),
            Self::Redis { host, .. } => format!("talks to redis at {host}"),
        }
    }

    pub(in crate::providers) fn place(&self) -> String {
        match self {
            Self::Memory => "in memory".to_owned(),
            Self::Disk(file) => format!("in {}", file.path.display()),
            Self::Redis { host, .. } => format!("in redis at {host}"),
        }
    }

    /// What kind of place it is, for descriptions: those reach models and fingerprints, and should
    /// be the same on every machine.
    pub(in crate::providers) fn kind(&self) -> &'static str {
        match self {
            Self::Memory => "in memory",
            Self::Disk(_) => "on disk",
            Self::Redis { .. } => "in redis",
        }
    }
}

/// The name of a session's part of an engine. Sessions are named by callers, so the name is hashed:
/// the hash is short, plain and reveals nothing.
pub(in crate::providers) fn session_space(kind: &str, session: Option<&str>) -> String {
    match session {
        None => kind.to_owned(),
        Some(session) => format!("{kind}@{}", hash(session, 16)),
    }
}

pub(in crate::providers) fn hash(text: &str, bytes: usize) -> String {
    hex(&Sha256::digest(text.as_bytes())[..bytes])
}
