//! Who a bearer token belongs to, and the token that network clients must send.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::{FlockOperation, flock};
use secrecy::{ExposeSecret as _, SecretString};

use super::access::AccessError;
use super::issued_tokens::IssuedTokens;
use super::oauth::ProtectedResource;
use super::token_store::{TOKEN_PREFIX, TokenDigest, digest, random};
use crate::host::ClientScope;
use crate::model::Error;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::{atomic_file, private_file};

/// The time between two checks that the token of a connected client is still valid.
const RECHECK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) enum Requester {
    /// The one who runs the server: everything that it serves may be used.
    Owner,
    Client(AuthenticatedClient),
}

#[derive(Debug, Clone)]
pub(super) struct AuthenticatedClient {
    /// What no other client has: the id of a token that was issued here, or a hash of what an
    /// authorization server says.
    pub(super) key: String,
    pub(super) scope: ClientScope,
    /// Until when the token is valid, in time since the Unix epoch.
    pub(super) expires: Duration,
    pub(super) is_issued_here: bool,
}

pub struct Authenticator {
    owner: Option<TokenDigest>,
    issued: Option<IssuedTokens>,
    pub(super) resource: Option<ProtectedResource>,
}

impl Authenticator {
    /// Takes the token of the owner, when there is one, issued tokens, when there is a store, and
    /// over HTTP those of an authorization server, when there is a resource.
    pub fn new(
        owner: Option<&SecretString>,
        issued: Option<IssuedTokens>,
        resource: Option<ProtectedResource>,
    ) -> Self {
        let owner = owner.map(|token| digest(token.expose_secret().as_bytes()));
        Self { owner, issued, resource }
    }

    /// Whose this token is, which an authorization server may have to be asked about.
    pub(super) async fn authenticate_anywhere(
        &self,
        token: &str,
    ) -> Result<Requester, AccessError> {
        match (self.authenticate(token), &self.resource) {
            (Err(AccessError::Token), Some(resource)) if !token.starts_with(TOKEN_PREFIX) => {
                resource.authenticate(token, now()).await.map(Requester::Client)
            }
            (outcome, _) => outcome,
        }
    }

    pub(super) fn authenticate(&self, token: &str) -> Result<Requester, AccessError> {
        let digest = digest(token.as_bytes());
        // Digests are compared, so the time that it takes says nothing about the token.
        if self.owner == Some(digest) {
            return Ok(Requester::Owner);
        }
        let issued = self.issued.as_ref().ok_or(AccessError::Token)?;
        let token = issued.find(&digest, now()).ok_or(AccessError::Token)?;
        let scope = issued.scope(&token).ok_or(AccessError::Profile)?;
        let (key, expires) = (token.id.clone(), Duration::from_secs(token.expires));
        Ok(Requester::Client(AuthenticatedClient { key, scope, expires, is_issued_here: true }))
    }

    /// Waits until a client's token was revoked or is past `expires`, which may grow meanwhile.
    pub(super) async fn until_invalid(
        &self,
        client: &AuthenticatedClient,
        expires: impl Fn() -> Duration,
    ) {
        loop {
            let left = expires().saturating_sub(now());
            let is_there = || self.issued.as_ref().is_some_and(|all| all.has_id(&client.key));
            if left.is_zero() || (client.is_issued_here && !is_there()) {
                return;
            }
            tokio::time::sleep(left.min(RECHECK)).await;
        }
    }
}

fn now() -> Duration {
    SystemClock.unix()
}

const PREFIX: &str = "token-";

#[derive(Debug)]
pub struct TokenFile {
    token: SecretString,
    path: PathBuf,
    /// Its lock shows that the server lives.
    _file: File,
}

impl TokenFile {
    /// Makes a token of 256 random bits and writes it to a file that only this user can read. Those
    /// of servers that were killed are removed.
    pub fn create(directory: &Path) -> Result<Self, Error> {
        let fail = |error: io::Error| {
            Error::config(format!("cannot store a token in {}: {error}", directory.display()))
                .with_hint("set TOOLHOST_SERVE_TOKEN to your own token")
        };
        let token = URL_SAFE_NO_PAD.encode(random::<32>()?);
        private_file::make_directory(directory).map_err(fail)?;
        let mut path = directory.join(format!("{PREFIX}{}", std::process::id()));
        // A file that is made is not judged before it is locked.
        let _turn = atomic_file::lock(&path).map_err(fail)?;
        // What cannot be removed stays for the next time.
        let _left = remove_abandoned(directory);
        if path.exists() {
            // That of a server in another container, whose process has the same number.
            path.as_mut_os_string().push(format!("-{}", uuid::Uuid::new_v4().simple()));
        }
        let mut file = private_file::create_new(&path).map_err(fail)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| fail(errno.into()))?;
        file.write_all(token.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(fail)?;
        Ok(Self { token: SecretString::from(token), path, _file: file })
    }

    pub fn token(&self) -> &SecretString {
        &self.token
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _gone_already = std::fs::remove_file(&self.path);
    }
}

/// Removes the tokens whose servers hold no lock on them.
fn remove_abandoned(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)?.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let file = private_file::open_lock(&entry.path())?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::serve::listen::token_store::{TokenGrant, TokenStore};

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn the_owner_is_who_has_the_owners_token() {
        let all = Authenticator::new(Some(&"sesame".into()), None, None);
        assert!(matches!(all.authenticate("sesame"), Ok(Requester::Owner)));
        for other in ["", "Sesame", "sesame ", "toolhost_sesame"] {
            assert_eq!(all.authenticate(other).err(), Some(AccessError::Token), "{other}");
        }
    }

    #[test]
    fn a_client_is_told_about_the_authorization_server_where_there_is_one() {
        let url = "http://127.0.0.1:1/mcp".parse().unwrap();
        let resource = ProtectedResource::new("https://as.example", url, Vec::new(), Vec::new());
        assert!(Authenticator::new(None, None, Some(resource.unwrap())).resource.is_some());
        assert!(Authenticator::new(None, None, None).resource.is_none());
    }

    #[tokio::test]
    async fn a_client_stays_until_its_token_expires_or_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::in_state(dir.path());
        let (profile, tools) = (None, Vec::new());
        let grant = TokenGrant { client: "ci".into(), profile, tools, lifetime: MINUTE };
        let (token, _) = store.issue(grant, now()).unwrap();
        let issued = IssuedTokens::new(store.clone(), Box::new(|_| false));
        let all = Authenticator::new(None, Some(issued), None);
        let Ok(Requester::Client(own)) = all.authenticate(token.expose_secret()) else {
            panic!("an issued token is a client's");
        };
        let key = "of an issuer".to_owned();
        let other = AuthenticatedClient { key, is_issued_here: false, ..own.clone() };
        let ends = |client: &AuthenticatedClient, left: Duration| {
            let expires = now() + left;
            all.until_invalid(client, move || expires).now_or_never().is_some()
        };
        for client in [&own, &other] {
            assert!(!ends(client, MINUTE) && ends(client, Duration::ZERO), "{client:?}");
        }
        store.revoke("ci").unwrap();
        assert!(ends(&own, MINUTE) && !ends(&other, MINUTE));
    }

    #[test]
    fn a_token_goes_with_its_server_however_that_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (killed, living) = (dir.path().join("token-1"), dir.path().join("token-2"));
        std::fs::write(&killed, "a").unwrap();
        let held = private_file::open_lock(&living).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        let own = TokenFile::create(dir.path()).unwrap();
        assert!(!killed.exists() && living.exists() && own.path().exists());
        drop(own);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn servers_with_the_same_process_id_leave_each_other_their_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let one = TokenFile::create(dir.path()).unwrap();
        let other = TokenFile::create(dir.path()).unwrap();
        let stored = |file: &TokenFile| std::fs::read_to_string(file.path()).unwrap();
        for file in [&one, &other] {
            assert_eq!(stored(file).trim_end(), file.token().expose_secret());
        }
        drop(one);
        assert_eq!(stored(&other).trim_end(), other.token().expose_secret());
    }
}
