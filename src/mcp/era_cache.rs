//! A cache of each server's protocol era, so that detection runs once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use sha2::{Digest as _, Sha256};

use crate::model::Era;
use crate::util::atomic_file::{self, FileMode};
use crate::util::hex::hex;
use crate::util::private_file;

const MAX_SERVERS: usize = 500;

/// The eras that servers spoke last time, by command line or address.
#[derive(Debug, Default)]
pub struct EraCache {
    file: Option<PathBuf>,
    known: Mutex<Option<BTreeMap<String, String>>>,
}

impl EraCache {
    /// A cache in `file`; disabled when there is no cache directory.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, known: Mutex::default() }
    }

    pub fn get(&self, key: &str) -> Option<Era> {
        let mut servers = self.known.lock().ok()?;
        let servers = servers.get_or_insert_with(|| self.read());
        match servers.get(key).map(String::as_str) {
            Some("legacy") => Some(Era::Legacy),
            Some("modern") => Some(Era::Modern),
            _ => None,
        }
    }

    /// Remembers what is true now; writes only when that is news.
    pub fn insert(&self, key: &str, era: Era) {
        if self.get(key) == Some(era) {
            return;
        }
        let Ok(mut servers) = self.known.lock() else { return };
        // Read again: another process may have learned something meanwhile.
        let mut fresh = self.read();
        fresh.remove(key);
        while fresh.len() >= MAX_SERVERS {
            fresh.pop_first();
        }
        fresh.insert(key.to_owned(), era.as_str().to_owned());
        self.write(&fresh);
        *servers = Some(fresh);
    }

    fn read(&self) -> BTreeMap<String, String> {
        let text = self.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    fn write(&self, servers: &BTreeMap<String, String>) {
        let (Some(file), Ok(text)) = (&self.file, serde_json::to_string_pretty(servers)) else {
            return;
        };
        let Some(directory) = file.parent() else { return };
        let _unremembered = private_file::make_own_directory(directory)
            .and_then(|()| atomic_file::replace(file, text.as_bytes(), FileMode::Private));
    }
}

/// The key of a server: what would be started, or where it is.
pub fn key(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_survives_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cache/eras.json");
        let key = key(&["server", "--stdio"]);
        EraCache::new(Some(file.clone())).insert(&key, Era::Legacy);
        assert_eq!(EraCache::new(Some(file)).get(&key), Some(Era::Legacy));
    }

    #[test]
    fn a_broken_file_is_forgiven() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("eras.json");
        std::fs::write(&file, "{").unwrap();
        let memory = EraCache::new(Some(file));
        assert_eq!(memory.get("x"), None);
        memory.insert("x", Era::Modern);
        assert_eq!(memory.get("x"), Some(Era::Modern));
    }

    #[test]
    fn a_full_cache_remembers_the_newest_server_whatever_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("eras.json");
        let full: BTreeMap<_, _> =
            (0..MAX_SERVERS).map(|n| (format!("m{n:03}"), "legacy")).collect();
        std::fs::write(&file, serde_json::to_string(&full).unwrap()).unwrap();
        EraCache::new(Some(file.clone())).insert("a", Era::Modern);
        let memory = EraCache::new(Some(file));
        assert_eq!(memory.get("a"), Some(Era::Modern));
        assert_eq!(memory.read().len(), MAX_SERVERS);
    }

    #[test]
    fn keys_do_not_run_together() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
    }
}
