//! The access tokens that were issued to clients, in a private file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::model::{Error, ErrorKind};
use crate::util::atomic_file::{self, FileMode};
use crate::util::regular_file::{self, UnreadableFile};

const MAX_TOKENS: usize = 10_000;
/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// How long a token is listed after it expired.
const EXPIRED_KEPT: Duration = Duration::from_hours(24 * 7);
const MAX_CLIENT: usize = 64;
/// How every token begins, so that scanners for secrets know one.
pub(super) const TOKEN_PREFIX: &str = "toolhost_";

/// The SHA-256 hash of a token.
pub(super) type TokenDigest = [u8; 32];

/// The file of issued tokens in the directory of state.
#[derive(Debug, Clone)]
pub struct TokenStore {
    path: PathBuf,
}

#[derive(Debug, Clone)]
pub struct TokenGrant {
    pub client: String,
    /// The profile it is bound to; `None` leaves it what the server offers.
    pub profile: Option<String>,
    /// Patterns over full names of tools, prompts and resources; empty allows all.
    pub tools: Vec<String>,
    pub lifetime: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuedToken {
    pub id: String,
    pub client: String,
    sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Patterns of what the client may use; empty allows all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// When it was issued, in seconds since the Unix epoch.
    pub issued: u64,
    /// When it expires, in seconds since the Unix epoch.
    pub expires: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFileContent {
    version: u32,
    tokens: Vec<IssuedToken>,
}

impl IssuedToken {
    pub fn is_expired(&self, now: Duration) -> bool {
        now.as_secs() >= self.expires
    }

    pub(super) fn digest(&self) -> Option<TokenDigest> {
        URL_SAFE_NO_PAD.decode(&self.sha256).ok()?.try_into().ok()
    }
}

impl TokenStore {
    /// The store in this directory of state. Nothing is made before the first token is issued.
    pub fn in_state(directory: &Path) -> Self {
        Self { path: directory.join("serve/tokens.json") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a token of 256 random bits and keeps its hash; the token itself is only returned.
    pub fn issue(
        &self,
        grant: TokenGrant,
        now: Duration,
    ) -> Result<(SecretString, IssuedToken), Error> {
        check_client(&grant.client)?;
        if let Some(empty) = grant.tools.iter().find(|pattern| pattern.trim().is_empty()) {
            return Err(Error::usage(format!("'{empty}' is not a pattern of tools")));
        }
        let expires = now.checked_add(grant.lifetime).filter(|_| grant.lifetime.as_secs() > 0);
        let Some(expires) = expires else {
            return Err(Error::usage("a token must be valid for at least a second"));
        };
        let token = format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(random::<32>()?));
        let issued = IssuedToken {
            id: format!("{:08x}", u32::from_be_bytes(random()?)),
            client: grant.client,
            sha256: URL_SAFE_NO_PAD.encode(digest(token.as_bytes())),
            profile: grant.profile,
            tools: grant.tools,
            issued: now.as_secs(),
            expires: expires.as_secs(),
        };
        self.change(|tokens| {
            tokens.retain(|stored| !stored.is_expired(now.saturating_sub(EXPIRED_KEPT)));
            if tokens.len() >= MAX_TOKENS {
                let message = format!("{MAX_TOKENS} tokens are stored already");
                return Err(Error::config(message).with_hint("revoke some of them"));
            }
            tokens.push(issued.clone());
            Ok(())
        })?;
        Ok((SecretString::from(token), issued))
    }

    pub fn list(&self) -> Result<Vec<IssuedToken>, Error> {
        let bytes = match regular_file::bytes(&self.path, MAX_FILE) {
            Ok(bytes) => bytes,
            Err(UnreadableFile::System(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(self.error("read", &error)),
        };
        let content: TokenFileContent =
            serde_json::from_slice(&bytes).map_err(|error| self.error("read", &error))?;
        if content.version != 1 {
            let version = content.version;
            let message = format!("{}: version {version} is unknown", self.path.display());
            return Err(Error::config(message).with_hint("it was written by a newer toolhost"));
        }
        Ok(content.tokens)
    }

    /// Removes the token with this id, or else all tokens of the client with this name. Returns
    /// those that were removed.
    pub fn revoke(&self, named: &str) -> Result<Vec<IssuedToken>, Error> {
        let mut revoked = Vec::new();
        self.change(|tokens| {
            let has_id = tokens.iter().any(|token| token.id == named);
            let is_meant = |token: &mut IssuedToken| {
                if has_id { token.id == named } else { token.client == named }
            };
            revoked = tokens.extract_if(.., is_meant).collect();
            if revoked.is_empty() {
                let clients: BTreeSet<&str> = tokens.iter().map(|t| t.client.as_str()).collect();
                let hint = crate::util::spelling::did_you_mean(named, clients)
                    .unwrap_or_else(|| "`toolhost serve token list` shows all tokens".to_owned());
                let message = format!("no token and no client is called '{named}'");
                return Err(Error::usage(message).with_hint(hint));
            }
            Ok(())
        })?;
        Ok(revoked)
    }

    fn change(
        &self,
        edit: impl FnOnce(&mut Vec<IssuedToken>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let turn = atomic_file::lock(&self.path).map_err(|error| self.error("lock", &error))?;
        let mut tokens = self.list()?;
        edit(&mut tokens)?;
        let content = TokenFileContent { version: 1, tokens };
        let bytes = serde_json::to_vec(&content).map_err(|error| self.error("write", &error))?;
        atomic_file::replace(&self.path, &bytes, FileMode::Private)
            .map_err(|error| self.error("write", &error))?;
        drop(turn);
        Ok(())
    }

    fn error(&self, verb: &str, error: &dyn std::fmt::Display) -> Error {
        Error::new(ErrorKind::Config, format!("cannot {verb} {}: {error}", self.path.display()))
    }
}

/// Names go into records and onto terminals, so that only plain characters are taken.
fn check_client(name: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:/+".contains(c);
    if name.is_empty() || name.len() > MAX_CLIENT || !name.chars().all(is_plain) {
        let message = format!("'{name}' is not a valid client name");
        return Err(Error::usage(message)
            .with_hint(format!("letters, digits and -_.@:/+, at most {MAX_CLIENT} characters")));
    }
    Ok(())
}

pub(super) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::internal("the system provides no random numbers"))?;
    Ok(bytes)
}

pub(super) fn digest(token: &[u8]) -> TokenDigest {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use secrecy::ExposeSecret as _;

    use super::*;

    const NOW: Duration = Duration::from_secs(1_000_000);

    fn grant(client: &str) -> TokenGrant {
        let lifetime = Duration::from_mins(1);
        TokenGrant { client: client.to_owned(), profile: None, tools: Vec::new(), lifetime }
    }

    #[test]
    fn only_the_hash_of_a_token_is_kept_in_a_file_of_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::in_state(dir.path());
        assert_eq!(store.list().unwrap(), []);
        let (token, issued) = store.issue(grant("ci"), NOW).unwrap();
        let token = token.expose_secret();
        assert!(token.starts_with(TOKEN_PREFIX) && token.len() == TOKEN_PREFIX.len() + 43);
        let text = std::fs::read_to_string(store.path()).unwrap();
        assert!(!text.contains(token.strip_prefix(TOKEN_PREFIX).unwrap()), "{text}");
        assert_eq!(store.list().unwrap(), std::slice::from_ref(&issued));
        assert_eq!(issued.digest(), Some(digest(token.as_bytes())));
        let mode = std::fs::metadata(store.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!issued.is_expired(NOW) && issued.is_expired(NOW + Duration::from_mins(1)));
    }

    #[test]
    fn a_token_is_revoked_by_its_id_and_a_client_with_all_its_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::in_state(dir.path());
        let issue = |client: &str| store.issue(grant(client), NOW).unwrap().1;
        let (first, second, other) = (issue("ci"), issue("ci"), issue("desk"));
        assert_eq!(store.revoke(&first.id).unwrap(), [first]);
        assert_eq!(store.revoke("ci").unwrap(), [second]);
        assert_eq!(store.list().unwrap(), [other]);
        let error = store.revoke("dask").unwrap_err();
        assert_eq!((error.kind(), error.hint()), (ErrorKind::Usage, Some("did you mean 'desk'?")));
    }

    #[test]
    fn tokens_of_two_writers_are_both_kept() {
        let dir = tempfile::tempdir().unwrap();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = TokenStore::in_state(dir.path());
                std::thread::spawn(move || {
                    for _ in 0..5 {
                        store.issue(grant(&format!("w{writer}")), NOW).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(TokenStore::in_state(dir.path()).list().unwrap().len(), 20);
    }

    #[test]
    fn what_expired_long_ago_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::in_state(dir.path());
        store.issue(grant("old"), NOW).unwrap();
        store.issue(grant("new"), NOW + Duration::from_hours(24 * 8)).unwrap();
        let clients: Vec<String> =
            store.list().unwrap().into_iter().map(|token| token.client).collect();
        assert_eq!(clients, ["new"]);
    }

    #[test]
    fn what_cannot_be_a_grant_is_refused_and_a_broken_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::in_state(dir.path());
        store.issue(grant(&"x".repeat(64)), NOW).unwrap();
        let refused = |grant: TokenGrant| store.issue(grant, NOW).unwrap_err().kind();
        for client in ["", "a b", "a\u{1b}[31m", &"x".repeat(65)] {
            assert_eq!(refused(grant(client)), ErrorKind::Usage, "{client}");
        }
        let tools = vec![" ".to_owned()];
        assert_eq!(refused(TokenGrant { tools, ..grant("a") }), ErrorKind::Usage);
        for lifetime in [Duration::ZERO, Duration::MAX] {
            assert_eq!(refused(TokenGrant { lifetime, ..grant("a") }), ErrorKind::Usage);
        }
        for broken in ["{", r#"{"version":2,"tokens":[]}"#] {
            std::fs::create_dir_all(store.path().parent().unwrap()).unwrap();
            std::fs::write(store.path(), broken).unwrap();
            assert_eq!(refused(grant("a")), ErrorKind::Config);
            assert_eq!(std::fs::read_to_string(store.path()).unwrap(), broken);
        }
    }

    #[test]
    fn a_full_store_takes_no_more_until_a_token_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::in_state(dir.path());
        let (_, issued) = store.issue(grant("old"), NOW).unwrap();
        let content = TokenFileContent { version: 1, tokens: vec![issued; MAX_TOKENS - 1] };
        std::fs::write(store.path(), serde_json::to_vec(&content).unwrap()).unwrap();
        store.issue(grant("last"), NOW).unwrap();
        let error = store.issue(grant("more"), NOW).unwrap_err();
        assert_eq!((error.kind(), error.hint()), (ErrorKind::Config, Some("revoke some of them")));
        store.revoke("last").unwrap();
        store.issue(grant("more"), NOW).unwrap();
    }
}
