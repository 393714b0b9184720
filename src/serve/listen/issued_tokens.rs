//! The issued tokens as a running server sees them.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::token_store::{IssuedToken, TokenDigest, TokenStore};
use crate::config::spec::ProfileSpec;
use crate::host::{ClientScope, ScopeProfile};
use crate::util::lock::lock;

pub type ProfileCheck = Box<dyn Fn(&str) -> bool + Send + Sync>;

pub struct IssuedTokens {
    store: TokenStore,
    has_profile: ProfileCheck,
    known: Mutex<KnownTokens>,
}

#[derive(Default)]
struct KnownTokens {
    version: Option<FileVersion>,
    tokens: HashMap<TokenDigest, Arc<IssuedToken>>,
    ids: HashSet<String>,
}

/// What is another for every new file: device, inode, size, and when it was changed.
type FileVersion = (u64, u64, u64, i64, i64);

impl IssuedTokens {
    /// The tokens of `store`; `has_profile` knows the profiles of this server.
    pub fn new(store: TokenStore, has_profile: ProfileCheck) -> Self {
        Self { store, has_profile, known: Mutex::default() }
    }

    pub(super) fn find(&self, digest: &TokenDigest, now: Duration) -> Option<Arc<IssuedToken>> {
        let token = self.current().tokens.get(digest).cloned();
        token.filter(|token| !token.is_expired(now))
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.current().ids.contains(id)
    }

    /// What a token lets its client see; `None` when its profile is not one of this server.
    pub(super) fn scope(&self, token: &IssuedToken) -> Option<ClientScope> {
        let mut view = Vec::new();
        if let Some(profile) = &token.profile {
            if !(self.has_profile)(profile) {
                return None;
            }
            view.push(ScopeProfile::Named(profile.clone()));
        }
        if !token.tools.is_empty() {
            let patterns = ProfileSpec { include: token.tools.clone(), ..ProfileSpec::default() };
            view.push(ScopeProfile::Own(Arc::new(patterns)));
        }
        Some(ClientScope { client: token.client.clone(), user: None, views: vec![view] })
    }

    fn current(&self) -> MutexGuard<'_, KnownTokens> {
        let mut current = lock(&self.known);
        let version = std::fs::metadata(self.store.path())
            .map(|meta| (meta.dev(), meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec()))
            .ok();
        if version.is_none() || current.version != version {
            let tokens = self.store.list().unwrap_or_else(|error| {
                tracing::error!(error = error.message(), "no issued token is valid");
                Vec::new()
            });
            let ids = tokens.iter().map(|token| token.id.clone()).collect();
            let digests = tokens.into_iter().filter_map(|t| Some((t.digest()?, Arc::new(t))));
            *current = KnownTokens { version, tokens: digests.collect(), ids };
        }
        current
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::serve::listen::token_store::{TokenGrant, digest};

    const NOW: Duration = Duration::from_secs(1_000_000);

    #[test]
    fn a_change_of_the_file_is_seen_at_the_next_look() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::in_state(dir.path());
        let tokens = IssuedTokens::new(store.clone(), Box::new(|_| false));
        let grant = TokenGrant {
            client: "ci".into(),
            profile: None,
            tools: Vec::new(),
            lifetime: Duration::from_mins(1),
        };
        let (token, issued) = store.issue(grant, NOW).unwrap();
        let digest = digest(token.expose_secret().as_bytes());
        assert_eq!(tokens.find(&digest, NOW).as_deref(), Some(&issued));
        assert!(tokens.has_id(&issued.id) && !tokens.has_id("ci"));
        assert_eq!(tokens.find(&digest, NOW + Duration::from_mins(1)), None);
        std::fs::write(store.path(), "broken").unwrap();
        assert_eq!(tokens.find(&digest, NOW), None, "what cannot be read allows nothing");
        std::fs::remove_file(store.path()).unwrap();
        assert!(!tokens.has_id(&issued.id));
    }

    #[test]
    fn a_profile_that_this_server_does_not_know_allows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::in_state(dir.path());
        let tokens = IssuedTokens::new(store.clone(), Box::new(|name| name == "p"));
        for (profile, views) in [(None, Some(0)), (Some("p"), Some(1)), (Some("q"), None)] {
            let grant = TokenGrant {
                client: "ci".into(),
                profile: profile.map(str::to_owned),
                tools: Vec::new(),
                lifetime: Duration::from_mins(1),
            };
            let (_, issued) = store.issue(grant, NOW).unwrap();
            let scope = tokens.scope(&issued);
            assert_eq!(scope.map(|scope| scope.views[0].len()), views, "{profile:?}");
        }
    }
}
