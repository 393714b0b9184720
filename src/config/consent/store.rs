//! The trust store: `trust.json` in the state directory, mode 0600.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::decision::ProjectRecord;
use super::trust_request::TrustRequest;
use crate::config::read::reason;
use crate::model::{Diagnostic, Error};
use crate::util::atomic_file::{self, FileMode};
use crate::util::regular_file::{self, UnreadableFile};

/// Maximum size of a record; a larger one is refused.
const MAX_BYTES: u64 = 64 << 20;
const VERSION: u32 = 2;
const MAX_REFUSALS: usize = 1_000;

#[derive(Debug, thiserror::Error)]
enum TrustFileError {
    #[error("{}", reason(.0))]
    Io(#[from] io::Error),
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    #[error("it would be too large")]
    WouldBeTooLarge,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("this build does not support version {0}")]
    UnknownVersion(u32),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredRefusal {
    root: PathBuf,
    digest: String,
    /// When, as RFC 3339 in UTC; empty in records of earlier versions.
    #[serde(rename = "when", default)]
    refused_at: String,
}

#[derive(Debug, Default)]
pub struct TrustStore {
    path: Option<PathBuf>,
    content: TrustFileContent,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFileContent {
    version: u32,
    #[serde(default)]
    projects: Vec<Arc<ProjectRecord>>,
    #[serde(default)]
    refused: Vec<StoredRefusal>,
}

impl TrustStore {
    pub fn file(state_dir: &Path) -> PathBuf {
        state_dir.join("trust.json")
    }

    /// Opens the record; one that does not exist is empty. The per-entry data of version 1
    /// is not carried over: the user is asked about each project again, as a whole.
    pub fn open(state_dir: Option<&Path>) -> Result<Self, Diagnostic> {
        let Some(dir) = state_dir else { return Ok(Self::default()) };
        let path = Self::file(dir);
        let content = read(&path).map_err(|why| {
            let shown = path.display();
            Diagnostic::error(format!("the trust store {shown} is ignored: {why}"))
                .with_hint("remove it to be asked again")
        })?;
        Ok(Self { path: Some(path), content })
    }

    pub fn project(&self, root: &Path) -> Option<&Arc<ProjectRecord>> {
        self.content.projects.iter().find(|project| project.root == root)
    }

    /// When this content of a project was refused, as RFC 3339; empty if that is unknown.
    pub fn refused_at(&self, root: &Path, digest: &str) -> Option<&str> {
        let mut refused = self.content.refused.iter();
        let refusal = refused.find(|r| r.root == root && r.digest == digest)?;
        Some(&refusal.refused_at)
    }

    pub fn list(&self) -> &[Arc<ProjectRecord>] {
        &self.content.projects
    }

    /// Records that the user trusts what `request` shows, `now` being the time since the Unix
    /// epoch. With `allows_code_changes`, code below the root may change from now on.
    pub fn trust(
        &mut self,
        request: &TrustRequest,
        allows_code_changes: bool,
        now: Duration,
    ) -> Result<(), Error> {
        let project = Arc::new(ProjectRecord {
            root: request.root.clone(),
            trusted_at: timestamp(now),
            allows_code_changes,
            bundle: request.bundle.clone(),
        });
        let root = &request.root;
        tracing::info!(root = ?root, allows_code_changes, "project trusted by a person");
        self.update(|content| {
            content.projects.retain(|stored| stored.root != request.root);
            content.refused.retain(|refusal| refusal.root != request.root);
            content.projects.push(project);
        })
    }

    /// Records that the user does not trust what `request` shows. What was trusted before stays
    /// trusted for its own content.
    pub fn refuse(&mut self, request: &TrustRequest, now: Duration) -> Result<(), Error> {
        let refusal = StoredRefusal {
            root: request.root.clone(),
            digest: request.bundle.digest(),
            refused_at: timestamp(now),
        };
        tracing::info!(root = ?refusal.root, "project refused by a person");
        self.update(|content| {
            content.refused.retain(|stored| stored.root != refusal.root);
            content.refused.push(refusal);
            let surplus = content.refused.len().saturating_sub(MAX_REFUSALS);
            content.refused.drain(..surplus);
        })
    }

    /// Forgets what was trusted in and below `directory`, refusals too. Returns what was forgotten.
    pub fn revoke(&mut self, directory: &Path) -> Result<Vec<Arc<ProjectRecord>>, Error> {
        let gone = |root: &Path| root == directory || root.starts_with(directory);
        let exists = self.content.projects.iter().any(|project| gone(&project.root))
            || self.content.refused.iter().any(|refusal| gone(&refusal.root));
        let mut forgotten = Vec::new();
        if exists {
            tracing::info!(directory = ?directory, "trust revoked");
            self.update(|content| {
                forgotten = content.projects.extract_if(.., |p| gone(&p.root)).collect();
                content.refused.retain(|refusal| !gone(&refusal.root));
            })?;
        }
        Ok(forgotten)
    }

    /// Updates the latest state of the file, so that processes do not overwrite each other's
    /// answers.
    fn update(&mut self, change: impl FnOnce(&mut TrustFileContent)) -> Result<(), Error> {
        let Some(path) = self.path.clone() else {
            return Err(Error::config("there is no state directory to store this in")
                .with_hint("set HOME, or use --trust for one run"));
        };
        self.content = rewrite(&path, change)
            .map_err(|error| Error::config(format!("cannot write {}: {error}", path.display())))?;
        Ok(())
    }
}

/// A time since the Unix epoch as RFC 3339 in UTC.
fn timestamp(now: Duration) -> String {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map(|t| t.to_string()).unwrap_or_default()
}

/// Reads, changes and writes the record, while other processes wait. Returns what was written.
fn rewrite(
    path: &Path,
    change: impl FnOnce(&mut TrustFileContent),
) -> Result<TrustFileContent, TrustFileError> {
    let _lock = atomic_file::lock(path)?;
    let mut content = read(path)?;
    change(&mut content);
    content.version = VERSION;
    let text = serde_json::to_string(&content)? + "\n";
    if text.len() as u64 > MAX_BYTES {
        return Err(TrustFileError::WouldBeTooLarge);
    }
    atomic_file::replace(path, text.as_bytes(), FileMode::Private)?;
    Ok(content)
}

fn read(path: &Path) -> Result<TrustFileContent, TrustFileError> {
    if path.is_symlink() {
        return Err(UnreadableFile::Special("a symbolic link").into());
    }
    let Some(bytes) = regular_file::own_bytes(path, MAX_BYTES)? else {
        return Ok(TrustFileContent::default());
    };
    let content: TrustFileContent = serde_json::from_slice(&bytes)?;
    match content.version {
        VERSION => Ok(content),
        1 => Ok(TrustFileContent::default()),
        other => Err(TrustFileError::UnknownVersion(other)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::super::bundle::Bundle;
    use super::*;

    fn request(root: &str, replaces: &str) -> TrustRequest {
        let bundle = Bundle { replaced_names: vec![replaces.to_owned()], ..Bundle::default() };
        TrustRequest { root: root.into(), bundle, ..TrustRequest::default() }
    }

    #[test]
    fn what_was_trusted_is_remembered_and_can_be_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let mut store = TrustStore::open(Some(&state)).unwrap();
        let now = Duration::from_hours(500_000);
        store.trust(&request("/p", "one"), false, now).unwrap();
        store.trust(&request("/p/deep", "two"), true, now).unwrap();

        let mut again = TrustStore::open(Some(&state)).unwrap();
        let project = again.project(Path::new("/p")).unwrap();
        assert_eq!(
            (project.trusted_at.as_str(), project.allows_code_changes),
            ("2027-01-15T08:00:00Z", false)
        );
        assert!(again.project(Path::new("/p/deep")).unwrap().allows_code_changes);
        assert!(again.project(Path::new("/other")).is_none());

        assert_eq!(again.revoke(Path::new("/q")).unwrap().len(), 0);
        assert_eq!(again.revoke(Path::new("/p")).unwrap().len(), 2);
        assert!(TrustStore::open(Some(&state)).unwrap().list().is_empty());

        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state), 0o700);
        assert_eq!(mode(&state.join("trust.json")), 0o600);
    }

    #[test]
    fn a_refusal_holds_for_its_content_until_the_project_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = TrustStore::open(Some(dir.path())).unwrap();
        let (one, two) = (request("/p", "one"), request("/p", "two"));
        store.refuse(&one, Duration::ZERO).unwrap();
        let refused = |store: &TrustStore, request: &TrustRequest| {
            store.refused_at(&request.root, &request.bundle.digest()).map(str::to_owned)
        };
        assert_eq!(refused(&store, &one).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(refused(&store, &two), None);
        let other = request("/q", "one");
        store.refuse(&other, Duration::ZERO).unwrap();
        store.refuse(&two, Duration::ZERO).unwrap();
        let all = [&one, &two, &other];
        assert_eq!(all.map(|it| refused(&store, it).is_some()), [false, true, true]);
        store.revoke(Path::new("/q")).unwrap();
        assert_eq!(all.map(|it| refused(&store, it).is_some()), [false, true, false]);
        store.trust(&one, false, Duration::ZERO).unwrap();
        assert_eq!(refused(&store, &two), None);
    }

    #[test]
    fn two_processes_do_not_lose_each_others_answers() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = TrustStore::open(Some(dir.path())).unwrap();
        let mut two = TrustStore::open(Some(dir.path())).unwrap();
        one.trust(&request("/a", "x"), false, Duration::ZERO).unwrap();
        two.trust(&request("/b", "x"), false, Duration::ZERO).unwrap();
        assert_eq!(TrustStore::open(Some(dir.path())).unwrap().list().len(), 2);
    }

    #[test]
    fn a_store_that_is_not_the_users_alone_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trust.json");
        let mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        std::fs::write(&path, r#"{"version":2}"#).unwrap();
        // Writable by everybody, by the group alone, by others alone.
        for bits in [0o666, 0o660, 0o620, 0o602] {
            mode(bits);
            let diagnostic = TrustStore::open(Some(dir.path())).unwrap_err();
            assert!(
                diagnostic.message.contains("other users can write"),
                "{bits:o}: {}",
                diagnostic.message
            );
        }
        mode(0o640);
        assert!(TrustStore::open(Some(dir.path())).is_ok());
        mode(0o600);
        for broken in ["nonsense", "", "[]", r#"{"version":3}"#, r#"{"version":2,"projects":7}"#] {
            std::fs::write(&path, broken).unwrap();
            assert!(TrustStore::open(Some(dir.path())).is_err(), "{broken}");
        }
        std::fs::write(&path, r#"{"version":1,"allowed":[]}"#).unwrap();
        assert!(TrustStore::open(Some(dir.path())).unwrap().list().is_empty());
        std::fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(TrustStore::open(Some(dir.path())).is_err(), "a link");
    }
}
