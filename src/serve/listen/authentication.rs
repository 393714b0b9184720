//! Who a bearer token belongs to.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use super::access::AccessError;
use super::issued_tokens::IssuedTokens;
use super::oauth::ProtectedResource;
use super::token_store::{TOKEN_PREFIX, TokenDigest, digest};
use crate::host::ClientScope;
use crate::util::clock::{Clock as _, SystemClock};

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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

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
}
