//! The background host that an earlier run like this one used.
//!
//! Owns: one small file for each working directory and set of options, beside the sockets: the identity
//! of the host, and the evidence for it. A run for which the evidence still holds uses that host without
//! reading its configuration. Never does: decide what counts as evidence.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::runtime_directory::RuntimeDirectory;
use crate::assembly::host_evidence::HostEvidence;
use crate::config::environment::Environment;
use crate::util::{private_file, regular_file};

/// Prefix of the file names.
const PREFIX: &str = "last-";
/// The maximum size of a file in bytes.
const MAX_BYTES: u64 = 256 << 10;

/// Remembers a host for runs in one directory with the same options.
pub struct HostMemory {
    directory: RuntimeDirectory,
    path: PathBuf,
}

/// What a file holds.
#[derive(Serialize, Deserialize)]
struct RememberedHost {
    identity: String,
    evidence: HostEvidence,
}

impl HostMemory {
    /// The remembered host of runs with these options in the working directory.
    pub fn of(
        directory: &RuntimeDirectory,
        arguments: &[OsString],
        environment: &dyn Environment,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        (environment.cwd(), arguments).hash(&mut hasher);
        let path = directory.path().join(format!("{PREFIX}{:016x}", hasher.finish()));
        Self { directory: directory.clone(), path }
    }

    /// The socket of the remembered host, if the evidence for it still holds. The host may be gone.
    pub fn socket(&self, environment: &dyn Environment, key: &[u8]) -> Option<PathBuf> {
        let RememberedHost { identity, evidence } = read(&self.path)?;
        evidence.holds(environment, key).then(|| self.directory.socket(&identity))
    }

    /// Remembers a host. A failure only costs later runs some time.
    pub fn remember(&self, identity: &str, evidence: HostEvidence) {
        self.forget_gone_hosts();
        let remembered = RememberedHost { identity: identity.to_owned(), evidence };
        let Ok(bytes) = serde_json::to_vec(&remembered) else { return };
        let _absent = std::fs::remove_file(&self.path);
        // Another run may write it at the same time; either version is right.
        if let Ok(mut file) = private_file::create_new(&self.path) {
            let _unreadable_if_cut = file.write_all(&bytes);
        }
    }

    /// Removes the files about hosts that have ended.
    fn forget_gone_hosts(&self) {
        let Ok(entries) = std::fs::read_dir(self.directory.path()) else { return };
        for entry in entries.flatten() {
            let is_memory = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
            let path = entry.path();
            let is_there =
                || read(&path).is_some_and(|host| self.directory.socket(&host.identity).exists());
            if is_memory && !is_there() {
                let _gone_meanwhile = std::fs::remove_file(&path);
            }
        }
    }
}

/// Reads a file; `None` for one that is missing, incomplete or names something other than a socket.
fn read(path: &Path) -> Option<RememberedHost> {
    let bytes = regular_file::bytes(path, MAX_BYTES).ok()?;
    let remembered: RememberedHost = serde_json::from_slice(&bytes).ok()?;
    let is_identity = remembered.identity.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_identity.then_some(remembered)
}
