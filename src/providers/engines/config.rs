//! The engine an entry asks for, and its quotas.
//!
//! | the entry says | the engine is |
//! |---|---|
//! | none, `storage_type: memory` | memory |
//! | `storage_type: disk`, or `path` or `persist` | a file |
//! | `storage_type: redis`, or `url` | a Redis server |

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

use super::{Quota, disk};
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::Diagnostic;
use crate::provider::ProviderDeps;
use crate::util::hex::hex;
use crate::util::units;

/// The keys of an entry that choose and bound an engine; a kind adds them to its own.
pub(in crate::providers) const KEYS: [&str; 10] = [
    "storage_type",
    "path",
    "persist",
    "url",
    "sync",
    "ttl",
    "max_keys",
    "max_key_bytes",
    "max_value_bytes",
    "max_total_bytes",
];

/// Those of [`KEYS`] in which variables are expanded, besides the ones where they always are.
pub(in crate::providers) const EXPAND: [&str; 2] = ["path", "persist"];

/// The engines, as spelled in a file.
const STORAGE_TYPES: [&str; 4] = ["memory", "disk", "redis", "postgresql"];

/// The default limits, and the maximum an entry may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers) struct EngineLimits {
    pub(in crate::providers) quota: Quota,
    pub(in crate::providers) max_key_bytes: u64,
    pub(in crate::providers) max_value_bytes: u64,
}

/// The maximum for limits without their own bound.
const UNBOUNDED: u64 = u64::MAX >> 1;
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

/// Reads what an entry says; `component` is the name its tools share.
pub(in crate::providers) fn read(
    spec: &ToolSpec,
    component: &str,
    defaults: EngineLimits,
    writable: bool,
    context: &ProviderDeps,
) -> Result<EngineConfig, Vec<Diagnostic>> {
    let entry = &spec.entry;
    let mut diagnostics = Vec::new();
    let place = place(spec, component, writable, context).map_err(|p| diagnostics.push(p)).ok();
    let mut bound = |key: &str, default: u64, most: u64| match entry.get(key) {
        None => default,
        Some(node) => size(node, most).unwrap_or_else(|diagnostic| {
            diagnostics.push(diagnostic);
            default
        }),
    };
    let limits = EngineLimits {
        quota: Quota {
            keys: bound("max_keys", defaults.quota.keys, UNBOUNDED),
            bytes: bound("max_total_bytes", defaults.quota.bytes, UNBOUNDED),
        },
        max_key_bytes: bound("max_key_bytes", defaults.max_key_bytes, MAX_KEY_BYTES),
        max_value_bytes: bound("max_value_bytes", defaults.max_value_bytes, MAX_VALUE_BYTES),
    };
    let ttl = entry.get("ttl").filter(|node| !node.is_null()).map(ttl).transpose();
    let ttl = ttl.map_err(|diagnostic| diagnostics.push(diagnostic)).ok().flatten();
    match place {
        Some(place) if diagnostics.is_empty() => Ok(EngineConfig { location: place, limits, ttl }),
        _ => Err(diagnostics),
    }
}

fn size(node: &ConfigNode, most: u64) -> Result<u64, Diagnostic> {
    let text = node.as_scalar_text()?;
    units::size(&text).filter(|size| (1..=most).contains(size)).ok_or_else(|| {
        let range = if most < UNBOUNDED {
            format!("from 1 to {}", units::show_size(most))
        } else {
            "of at least 1".to_owned()
        };
        let message = format!("expected a number or a size such as 64KiB, {range}, found '{text}'");
        Diagnostic::error(message).with_location(node.location())
    })
}

fn ttl(node: &ConfigNode) -> Result<u64, Diagnostic> {
    let ttl = node.as_duration()?.as_millis();
    u64::try_from(ttl)
        .ok()
        .filter(|ttl| (1..=u64::MAX >> 20).contains(ttl))
        .ok_or_else(|| node.expected("a duration of at least 1ms"))
}

pub(in crate::providers) fn storage_type(entry: &ConfigNode) -> Result<&'static str, Diagnostic> {
    let file = entry.get_any(&["path", "persist"]);
    let Some(node) = entry.get("storage_type").filter(|node| !node.is_null()) else {
        return Ok(if file.is_some() {
            "disk"
        } else if entry.get("url").is_some() {
            "redis"
        } else {
            "memory"
        });
    };
    let word = node.as_text()?;
    let Some(kind) = STORAGE_TYPES.into_iter().find(|kind| *kind == word) else {
        let diagnostic = Diagnostic::error(format!(
            "'{word}' is not a type of storage; it is one of {}",
            STORAGE_TYPES.join(", ")
        ));
        let diagnostic = diagnostic.with_suggestion(word, STORAGE_TYPES);
        return Err(diagnostic.with_location(node.location()));
    };
    Ok(if kind == "memory" && file.is_some() { "disk" } else { kind })
}

fn place(
    spec: &ToolSpec,
    component: &str,
    writable: bool,
    context: &ProviderDeps,
) -> Result<EngineLocation, Diagnostic> {
    let entry = &spec.entry;
    let kind = storage_type(entry)?;
    let sync = match entry.get("sync").filter(|node| !node.is_null()) {
        None => disk::SyncMode::default(),
        Some(node) => disk::SyncMode::parse(node.as_text()?)
            .ok_or_else(|| node.expected("full, normal or off"))?,
    };
    match kind {
        "disk" => {
            let file = file(spec, component, context)?;
            Ok(EngineLocation::Disk(disk::StoreFile { writable, sync, ..file }))
        }
        "redis" => redis(entry),
        // A store of this type is handed to a server before any engine is chosen.
        "postgresql" => Err(Diagnostic::error("only a store can be of type postgresql")
            .with_hint("this can be kept in memory, on disk or in redis")
            .with_location(
                entry.get("storage_type").map_or_else(|| entry.location(), ConfigNode::location),
            )),
        _ => Ok(EngineLocation::Memory),
    }
}

fn file(
    spec: &ToolSpec,
    component: &str,
    context: &ProviderDeps,
) -> Result<disk::StoreFile, Diagnostic> {
    let file = disk::StoreFile {
        path: PathBuf::new(),
        within: None,
        own_directory: false,
        writable: true,
        sync: disk::SyncMode::Full,
    };
    let Some((_, node)) = spec.entry.get_any(&["path", "persist"]).filter(|(_, n)| !n.is_null())
    else {
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
    let text = node.as_text()?;
    if text.is_empty() || text.ends_with('/') || text.contains('\0') {
        return Err(node.expected("the path of a file"));
    }
    let path = resolved(&spec.base_dir, text);
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

fn redis(entry: &ConfigNode) -> Result<EngineLocation, Diagnostic> {
    let Some(node) = entry.get("url") else {
        return Err(Diagnostic::error("a store in Redis needs a 'url'")
            .with_hint("write one such as redis://127.0.0.1:6379/0")
            .with_location(entry.location()));
    };
    let text = node.as_text()?;
    // The text may contain a password, so no message repeats it.
    let url = url::Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "redis" && url.has_host())
        .ok_or_else(|| node.expected("an address such as redis://127.0.0.1:6379/0"))?;
    let host = format!("{}:{}", url.host_str().unwrap_or_default(), url.port().unwrap_or(6379));
    if cfg!(not(feature = "redis")) {
        return Err(Diagnostic::error("this build of toolhost cannot use Redis")
            .with_hint("build it with: cargo install toolhost --features redis")
            .with_location(node.location()));
    }
    Ok(EngineLocation::Redis { url: text.into(), host })
}

pub(in crate::providers) fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let text = |key: &str| entry.get(key).and_then(|node| node.as_text().ok());
    let file = text("path").or_else(|| text("persist"));
    let address = |url: &str| match url::Url::parse(url) {
        // Without what may be a password.
        Ok(url) if url.has_host() && !url.as_str().contains("${") => {
            let host = url.host_str().unwrap_or_default();
            format!("redis at {host}:{}", url.port().unwrap_or(6379))
        }
        _ => "redis at the address of 'url'".to_owned(),
    };
    let mut effects = Vec::new();
    match storage_type(entry) {
        Ok("disk") => effects.push(EntryEffect::Writes(match file {
            Some(file) => {
                site.real(file).map_or_else(|| file.to_owned(), |p| p.display().to_string())
            }
            None => "its own file in the state directory".to_owned(),
        })),
        Ok("redis") => {
            let whom = text("url").map_or_else(|| "redis".to_owned(), address);
            effects.push(EntryEffect::Contacts(whom));
        }
        Ok("postgresql") => {
            let server = text("mcp_server").unwrap_or("?");
            effects.push(EntryEffect::Renames(server.to_owned()));
        }
        // What is said besides the engine is still looked at: it may become one by a later change.
        Ok(_) => {}
        Err(_) => effects.push(EntryEffect::Other("keeps values somewhere unknown".to_owned())),
    }
    effects
}

impl EngineLocation {
    /// What a tool touches, as a line for `inspect`.
    pub(in crate::providers) fn touches(&self, writes: bool) -> String {
        match self {
            Self::Memory => "keeps values in memory while toolhost runs".to_owned(),
            Self::Disk(file) if writes => {
                format!("writes {} ({})", file.path.display(), file.sync.explanation())
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
