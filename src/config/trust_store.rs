//! The record of what a person allowed: `trust.json` in the state directory, readable and 0600.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::read::reason;
use super::spec::{Configuration, Trust, TrustRequest};
use crate::model::{Fault, Problem};
use crate::util::{private, replace};

/// What a person would have to allow before everything in `configuration` may start.
pub fn pending(configuration: &Configuration) -> Vec<TrustRequest> {
    let tools = configuration.tools.iter().map(|tool| &tool.trust);
    let servers = configuration.servers.iter().map(|server| &server.trust);
    let asked = |trust: &Trust| match trust {
        Trust::Ask(request) => Some(request.clone()),
        Trust::Trusted => None,
    };
    tools.chain(servers).filter_map(asked).collect()
}

/// The most a record may hold before it is refused.
const MAX_BYTES: u64 = 16 << 20;

/// One thing that was allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// The hash of the content.
    pub key: String,
    /// The entry's name, for people.
    pub name: String,
    /// The file it stands in.
    pub file: PathBuf,
    /// What was shown.
    pub lines: Vec<String>,
    /// When, as RFC 3339.
    pub when: String,
}

/// Everything that was allowed.
#[derive(Debug, Default)]
pub struct TrustStore {
    path: Option<PathBuf>,
    allowed: Vec<Allowed>,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    allowed: Vec<Allowed>,
}

impl TrustStore {
    /// Opens the record; one that does not exist is empty.
    ///
    /// # Errors
    /// When it cannot be read or understood, or others may write to it. Then nothing is allowed.
    pub fn open(state_dir: Option<&Path>) -> Result<Self, Problem> {
        let Some(dir) = state_dir else { return Ok(Self::default()) };
        let path = dir.join("trust.json");
        let allowed = read(&path).map_err(|why| {
            let shown = path.display();
            Problem::error(format!("the record of trust {shown} is not used: {why}"))
                .hint("remove it to be asked again")
        })?;
        Ok(Self { path: Some(path), allowed })
    }

    /// Whether this content was allowed.
    pub fn allows(&self, key: &str) -> bool {
        self.allowed.iter().any(|entry| entry.key == key)
    }

    /// What was allowed last under this name in this file.
    pub fn previous(&self, name: &str, file: &Path) -> Option<Vec<String>> {
        let mut same = self.allowed.iter().rev();
        same.find(|e| e.name == name && e.file == file).map(|e| e.lines.clone())
    }

    /// Everything that was allowed, oldest first.
    pub fn list(&self) -> &[Allowed] {
        &self.allowed
    }

    /// Remembers that a person allowed `requests`, `now` being the time since the Unix epoch. What
    /// was allowed before under the same names in the same files is forgotten.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn allow(&mut self, requests: &[TrustRequest], now: Duration) -> Result<(), Fault> {
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let when = jiff::Timestamp::from_second(seconds).map(|t| t.to_string()).unwrap_or_default();
        self.change(|allowed| {
            for request in requests {
                allowed.retain(|e| e.name != request.name || e.file != request.file);
                allowed.push(Allowed {
                    key: request.key.clone(),
                    name: request.name.clone(),
                    file: request.file.clone(),
                    lines: request.lines.clone(),
                    when: when.clone(),
                });
            }
        })
    }

    /// Takes back what was allowed, by name, by file, or by the beginning (8 or more) of the hash.
    /// Gives what was taken back.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn revoke(&mut self, word: &str) -> Result<Vec<Allowed>, Fault> {
        const SHORTEST: usize = 8;
        let path = Path::new(word).canonicalize().unwrap_or_else(|_| PathBuf::from(word));
        let meant = |e: &Allowed| {
            e.name == word || e.file == path || (word.len() >= SHORTEST && e.key.starts_with(word))
        };
        let mut gone = Vec::new();
        self.change(|allowed| {
            gone = allowed.extract_if(.., |entry| meant(entry)).collect();
        })?;
        Ok(gone)
    }

    /// Changes the record under a lock, starting from what is on disk now.
    fn change(&mut self, change: impl FnOnce(&mut Vec<Allowed>)) -> Result<(), Fault> {
        let Some(path) = self.path.clone() else {
            return Err(Fault::config("there is no state directory to remember this in")
                .hint("set HOME, or use --trust for one run"));
        };
        let failed = |why: String| Fault::config(format!("cannot write {}: {why}", path.display()));
        let lock = replace::lock(&path).map_err(|why| failed(reason(&why)))?;
        let mut allowed = read(&path).map_err(failed)?;
        change(&mut allowed);
        let content = Content { version: 1, allowed };
        let text = serde_json::to_string_pretty(&content).map_err(|why| failed(why.to_string()))?;
        private::replace(&path, (text + "\n").as_bytes()).map_err(|why| failed(reason(&why)))?;
        drop(lock);
        self.allowed = content.allowed;
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<Allowed>, String> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(why) => return Err(reason(&why)),
    };
    if meta.mode() & 0o022 != 0 || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err("others may write to it".to_owned());
    }
    if meta.len() > MAX_BYTES {
        return Err("it is too large".to_owned());
    }
    let text = std::fs::read_to_string(path).map_err(|why| reason(&why))?;
    let content: Content = serde_json::from_str(&text).map_err(|why| why.to_string())?;
    if content.version != 1 {
        return Err(format!("its version {} is not known", content.version));
    }
    Ok(content.allowed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn request(key: &str, name: &str) -> TrustRequest {
        TrustRequest {
            key: key.to_owned(),
            name: name.to_owned(),
            file: "/p/mcp.yaml".into(),
            lines: vec![format!("command: {key}")],
            previous: None,
        }
    }

    #[test]
    fn what_was_allowed_is_remembered_and_can_be_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let mut store = TrustStore::open(Some(&state)).unwrap();
        let now = Duration::from_hours(500_000);
        store.allow(&[request("aaaaaaaaaa", "one"), request("bbbbbbbbbb", "two")], now).unwrap();

        let mut again = TrustStore::open(Some(&state)).unwrap();
        assert!(again.allows("aaaaaaaaaa") && again.allows("bbbbbbbbbb") && !again.allows("c"));
        assert_eq!(again.list()[0].when, "2027-01-15T08:00:00Z");
        let previous = again.previous("one", Path::new("/p/mcp.yaml"));
        assert_eq!(previous, Some(vec!["command: aaaaaaaaaa".to_owned()]));

        assert_eq!(again.revoke("bbbbbbbb").unwrap().len(), 1);
        assert_eq!(again.revoke("one").unwrap().len(), 1);
        assert!(TrustStore::open(Some(&state)).unwrap().list().is_empty());

        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state), 0o700);
        assert_eq!(mode(&state.join("trust.json")), 0o600);
    }

    #[test]
    fn a_change_replaces_what_was_allowed_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = TrustStore::open(Some(dir.path())).unwrap();
        store.allow(&[request("old", "one")], Duration::ZERO).unwrap();
        store.allow(&[request("new", "one")], Duration::ZERO).unwrap();
        assert!(!store.allows("old") && store.allows("new"));
    }

    #[test]
    fn two_processes_do_not_lose_each_others_answers() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = TrustStore::open(Some(dir.path())).unwrap();
        let mut two = TrustStore::open(Some(dir.path())).unwrap();
        one.allow(&[request("a", "one")], Duration::ZERO).unwrap();
        two.allow(&[request("b", "two")], Duration::ZERO).unwrap();
        assert_eq!(TrustStore::open(Some(dir.path())).unwrap().list().len(), 2);
    }

    #[test]
    fn a_record_that_others_may_write_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trust.json");
        std::fs::write(&path, "{\"version\":1,\"allowed\":[]}").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(TrustStore::open(Some(dir.path())).is_err());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(TrustStore::open(Some(dir.path())).is_ok());
        std::fs::write(&path, "nonsense").unwrap();
        assert!(TrustStore::open(Some(dir.path())).is_err());
    }
}
