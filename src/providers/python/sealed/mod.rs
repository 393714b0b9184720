//! Sealed code: compared with what the user trusted when a worker starts and, by the guard in the
//! worker (`shim/guard.py`), at each import.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::code::{self, PackageEnvironment};
use crate::model::{Error, ErrorPhase};
use crate::util::hex::hex;
use crate::util::regular_file::{self, UnreadableFile};

/// The largest interpreter there may be, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

type HashManifest = BTreeMap<PathBuf, String>;

/// The code an entry may run, and what else decides how its interpreter is started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SealedCode {
    files: Arc<HashManifest>,
    root: PathBuf,
    base_dir: PathBuf,
    python: Option<String>,
    /// Whether the entry itself sets `PYTHONPATH`; one that is passed on is the user's own.
    sets_path: bool,
    /// Whether the entry decides where the packages of the user would be.
    sets_home: bool,
}

impl SealedCode {
    /// The code of an entry with these directories, interpreter and variables.
    pub(super) fn new(
        files: Arc<HashManifest>,
        root: &Path,
        base_dir: &Path,
        python: Option<&str>,
        env: &BTreeMap<String, String>,
    ) -> Self {
        Self {
            files,
            root: root.to_path_buf(),
            base_dir: base_dir.to_path_buf(),
            python: python.map(str::to_owned),
            sets_path: env.contains_key("PYTHONPATH"),
            sets_home: ["HOME", "PYTHONUSERBASE"].iter().any(|name| env.contains_key(*name)),
        }
    }

    fn environment(&self, interpreter: &Path) -> Option<PackageEnvironment> {
        PackageEnvironment::of(interpreter, &[&self.root, &self.base_dir])
    }

    /// Compares what an interpreter runs before the guard stands: its own file, and those that say
    /// where its standard library is.
    pub(super) async fn check_start(&self, interpreter: &Path) -> Result<(), Error> {
        let mut paths = code::interpreter_config_files(interpreter);
        if code::is_hashed(self.python.as_deref(), self.environment(interpreter).as_ref()) {
            paths.push(interpreter.to_path_buf());
        }
        let files = Arc::clone(&self.files);
        let compared = tokio::task::spawn_blocking(move || {
            paths.iter().try_for_each(|file| compare(&files, file))
        });
        compared.await.unwrap_or_else(|error| Err(Error::internal(error.to_string())))
    }

    /// The options of the interpreter: nothing but the standard library is imported, and no variable
    /// decides which that is, before the guard stands.
    pub(super) fn options(&self, env: &BTreeMap<String, String>) -> Vec<String> {
        let mut options = vec!["-E".to_owned(), "-S".to_owned()];
        if self.sets_home {
            options.push("-s".to_owned());
        }
        if let Some(mode @ ("0" | "1")) = env.get("PYTHONUTF8").map(String::as_str) {
            options.extend(["-X".to_owned(), format!("utf8={mode}")]);
        }
        options
    }

    /// The first line for the guard of a worker: the code that may be loaded.
    pub(super) fn guard(&self, interpreter: &Path, env: &BTreeMap<String, String>) -> Value {
        let environment = self.environment(interpreter);
        let path = env.get("PYTHONPATH").map(String::as_str).unwrap_or_default();
        let path = path.split(':').filter(|place| !place.is_empty());
        let path: Vec<String> = path.map(|place| text(&self.root.join(place))).collect();
        let (path, own_path) = if self.sets_path { (path, Vec::new()) } else { (Vec::new(), path) };
        let files: serde_json::Map<String, Value> =
            self.files.iter().map(|(path, hash)| (text(path), hash.as_str().into())).collect();
        let packages = environment.iter().flat_map(PackageEnvironment::packages);
        json!({
            "files": files,
            "path": path,
            "own_path": own_path,
            "recorded_packages": packages.map(|place| text(&place)).collect::<Vec<_>>(),
        })
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Compares one file with the manifest. The system's own files are not in it.
fn compare(files: &HashManifest, file: &Path) -> Result<(), Error> {
    let denied = |real: &Path, what: &str| {
        Err(Error::denied(format!("'{}' {what}", real.display()))
            .with_phase(ErrorPhase::Start)
            .with_hint("review what changed, and allow it with 'toolhost trust'"))
    };
    let Ok(real) = file.canonicalize() else { return denied(file, "is gone") };
    match files.get(&real) {
        Some(expected) => match hash_of(&real) {
            Ok(hash) if hash == *expected => Ok(()),
            Ok(_) => denied(&real, "changed since it was trusted"),
            Err(error) => denied(&real, &format!("cannot be compared: {error}")),
        },
        None if code::only_root_writes(&real) => Ok(()),
        None => denied(&real, "is not part of what was trusted"),
    }
}

/// The SHA-256 of a file, in lower-case hexadecimal.
fn hash_of(file: &Path) -> Result<String, UnreadableFile> {
    Ok(hex(&Sha256::digest(regular_file::bytes(file, MAX_FILE_BYTES)?)))
}

#[cfg(test)]
pub(super) fn manifest_of(files: &[PathBuf]) -> Arc<HashManifest> {
    Arc::new(files.iter().map(|file| (file.clone(), hash_of(file).unwrap())).collect())
}

#[cfg(test)]
pub(super) mod tests;
