//! A cache of function descriptions, so that listing them starts no interpreter.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::worker_pool::WorkerKey;
use crate::config::expanded::ExpandedValues;
use crate::util::atomic_file::{self, FileMode};
use crate::util::private_file;

/// How many functions are remembered.
const MAX_ENTRIES: usize = 500;
/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FunctionDescription {
    /// The first paragraph of its docstring.
    pub(super) description: Option<String>,
    pub(super) input_schema: Value,
    /// What the schema cannot express.
    #[serde(default, rename = "doubts")]
    pub(super) warnings: Vec<String>,
    pub(super) file: Option<PathBuf>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct CachedDescription {
    stamps: Vec<String>,
    #[serde(flatten)]
    described: FunctionDescription,
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
    ) -> Option<FunctionDescription> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = entries.get_or_insert_with(|| self.read());
        let cached = entries.get(&name(worker, module, function))?;
        let mut described = cached.described.clone();
        described.file = described.file.map(|file| worker.root.join(file));
        let now = stamps(worker, described.file.as_deref())?;
        (cached.stamps == now).then_some(described)
    }

    /// Remembers what functions of one worker say: module, function and description of each. What
    /// says a value of `expanded` is not remembered.
    pub(super) fn remember(
        &self,
        descriptions: &[(&WorkerKey, &str, &str, &FunctionDescription)],
        expanded: &ExpandedValues,
    ) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        // Read again: another process may have updated it meanwhile.
        let mut fresh = self.read();
        for (worker, module, function, described) in descriptions {
            if let Some(stamps) = stamps(worker, described.file.as_deref()) {
                let mut described = (*described).clone();
                let below = |file: PathBuf| match file.strip_prefix(&worker.root) {
                    Ok(below) => below.to_owned(),
                    Err(_) => file,
                };
                described.file = described.file.map(below);
                if serde_json::to_value(&described)
                    .is_ok_and(|value| contains_expanded_value(&value, expanded))
                {
                    continue;
                }
                fresh.insert(
                    name(worker, module, function),
                    CachedDescription { stamps, described },
                );
            }
        }
        while fresh.len() > MAX_ENTRIES {
            fresh.pop_first();
        }
        self.write(&fresh);
        *entries = Some(fresh);
    }

    fn read(&self) -> CachedDescriptions {
        let Some(file) = &self.file else { return CachedDescriptions::new() };
        if std::fs::metadata(file).map_or(0, |meta| meta.len()) > MAX_FILE_BYTES {
            return CachedDescriptions::new();
        }
        let text = std::fs::read_to_string(file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
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
    hex(hash)
}

fn contains_expanded_value(value: &Value, expanded: &ExpandedValues) -> bool {
    match value {
        Value::String(text) => expanded.occur_in(text),
        Value::Array(items) => items.iter().any(|item| contains_expanded_value(item, expanded)),
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| expanded.occur_in(key) || contains_expanded_value(value, expanded)),
        _ => false,
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

fn stamps(worker: &WorkerKey, file: Option<&Path>) -> Option<Vec<String>> {
    let of = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        let mut hash = Sha256::new();
        hash.update(path.as_os_str().as_encoded_bytes());
        Some(format!("{}:{}.{}:{}", hex(hash), meta.mtime(), meta.mtime_nsec(), meta.len()))
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
            session: None,
        };
        let described = FunctionDescription {
            description: Some("d".into()),
            input_schema: serde_json::json!({ "type": "object" }),
            warnings: Vec::new(),
            file: Some(file.clone()),
        };
        let memory = || DescriptionCache::new(Some(dir.path().join("cache")));
        memory().remember(&[(&worker, "m", "f", &described)], &ExpandedValues::default());
        assert_eq!(memory().recall(&worker, "m", "f"), Some(described));
        assert_eq!(memory().recall(&worker, "m", "g"), None);
        let text = std::fs::read_to_string(dir.path().join("cache/python-describe.json")).unwrap();
        assert!(!text.contains("s3cret"));
        std::fs::write(&file, "another").unwrap();
        assert_eq!(memory().recall(&worker, "m", "f"), None);
        std::fs::write(dir.path().join("cache/python-describe.json"), "{").unwrap();
        assert_eq!(memory().recall(&worker, "m", "f"), None);
    }
}
