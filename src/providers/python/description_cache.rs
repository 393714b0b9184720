//! A cache of function descriptions, so that listing them starts no interpreter.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::definition::OfferedTool;
use super::pool::WorkerKey;
use crate::config::expanded::ExpandedValues;
use crate::util::atomic_file::{self, FileMode};
use crate::util::hex::hex;
use crate::util::json::map_json;
use crate::util::{private_file, regular_file};

const MAX_ENTRIES: usize = 500;
const MAX_FILE_BYTES: u64 = 8 << 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct CachedDescription {
    stamps: Vec<String>,
    #[serde(flatten)]
    described: OfferedTool,
}

type CachedDescriptions = BTreeMap<String, CachedDescription>;

/// Descriptions of functions by the code they belong to, in memory and in a file.
pub(super) struct DescriptionCache {
    file: Option<PathBuf>,
    entries: Mutex<Option<CachedDescriptions>>,
}

impl DescriptionCache {
    /// A cache in `directory`; none if there is no cache directory.
    pub(super) fn new(directory: Option<PathBuf>) -> Self {
        let file = directory.map(|directory| directory.join("python-describe.json"));
        Self { file, entries: Mutex::default() }
    }

    /// The description of a function, unless a file that it came from has changed.
    pub(super) fn recall(
        &self,
        worker: &WorkerKey,
        module: &str,
        function: &str,
    ) -> Option<OfferedTool> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = entries.get_or_insert_with(|| self.read());
        let cached = entries.get(&name(worker, module, function))?;
        let file = cached.described.meta.about.file.as_ref().map(|file| worker.root.join(file));
        let now = stamps(worker, file.as_deref())?;
        (cached.stamps == now).then(|| cached.described.clone())
    }

    /// Remembers what a function says, unless that contains a value of `expanded`.
    pub(super) fn remember(
        &self,
        worker: &WorkerKey,
        module: &str,
        described: &OfferedTool,
        expanded: &ExpandedValues,
    ) {
        let mut described = described.clone();
        let file = &mut described.meta.about.file;
        let Some(stamps) = stamps(worker, file.as_deref()) else { return };
        // Relative to the root, whose own path may be a secret.
        if let Some(below) = file.as_ref().and_then(|file| file.strip_prefix(&worker.root).ok()) {
            *file = Some(below.to_owned());
        }
        let holds_secret = Cell::new(false);
        let look = |text: &str| {
            holds_secret.set(holds_secret.get() || expanded.occur_in(text));
            String::new()
        };
        map_json(&serde_json::to_value(&described).unwrap_or_default(), &look);
        if holds_secret.get() {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        // Read again: another process may have updated it meanwhile.
        let mut fresh = self.read();
        let name = name(worker, module, &described.name);
        fresh.insert(name, CachedDescription { stamps, described });
        while fresh.len() > MAX_ENTRIES {
            fresh.pop_first();
        }
        self.write(&fresh);
        *entries = Some(fresh);
    }

    fn read(&self) -> CachedDescriptions {
        let text = self.file.as_ref().map(|file| regular_file::text(file, MAX_FILE_BYTES));
        serde_json::from_str(&text.and_then(Result::ok).unwrap_or_default()).unwrap_or_default()
    }

    fn write(&self, entries: &CachedDescriptions) {
        let (Some(file), Ok(text)) = (&self.file, serde_json::to_string(entries)) else { return };
        let Some(directory) = file.parent() else { return };
        let _unremembered = private_file::make_own_directory(directory)
            .and_then(|()| atomic_file::replace(file, text.as_bytes(), FileMode::Private));
    }
}

/// The name of a function in the file: the values of variables must not be readable there.
fn name(worker: &WorkerKey, module: &str, function: &str) -> String {
    let mut hash = Sha256::new();
    let variables = worker.env.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let paths = [&worker.interpreter, &worker.root].map(|path| path.as_os_str().as_encoded_bytes());
    for part in paths.into_iter().chain([module.as_bytes(), function.as_bytes()]).chain(variables) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

fn stamps(worker: &WorkerKey, file: Option<&Path>) -> Option<Vec<String>> {
    let of = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        let mut hash = Sha256::new();
        hash.update(path.as_os_str().as_encoded_bytes());
        Some(format!(
            "{}:{}.{}:{}",
            hex(&hash.finalize()),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.len()
        ))
    };
    std::iter::once(worker.interpreter.as_path()).chain(file).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_holds_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("m.py");
        std::fs::write(&file, "one").unwrap();
        let worker = WorkerKey {
            interpreter: "/bin/sh".into(),
            root: dir.path().into(),
            env: BTreeMap::from([("TOKEN".to_owned(), "s3cret".to_owned())]),
            confinement: None,
            sealed: None,
        };
        let described = serde_json::json!({
            "name": "f", "description": "d", "inputSchema": { "type": "object" },
            "_meta": { "dev.toolhost/tool": { "file": file } },
        });
        let described: OfferedTool = serde_json::from_value(described).unwrap();
        let memory = || DescriptionCache::new(Some(dir.path().join("cache")));
        memory().remember(&worker, "m", &described, &ExpandedValues::default());
        let recalled =
            |function| memory().recall(&worker, "m", function).map(|tool| tool.description);
        assert_eq!(recalled("f"), Some(Some("d".to_owned())));
        assert_eq!(recalled("g"), None);
        let text = std::fs::read_to_string(dir.path().join("cache/python-describe.json")).unwrap();
        assert!(!text.contains("s3cret"));
        std::fs::write(&file, "another").unwrap();
        assert_eq!(recalled("f"), None);
        std::fs::write(dir.path().join("cache/python-describe.json"), "{").unwrap();
        assert_eq!(recalled("f"), None);
    }
}
