//! The providers of a host at one moment.

use std::ops::Deref;
use std::sync::Arc;

use tokio_util::task::task_tracker::TaskTrackerToken;

use super::listings::{ListedTool, RegisteredProvider};

/// The providers in catalogue order. The registry of single tools comes last, so that what files
/// declare is listed first.
#[derive(Default)]
pub(super) struct ProviderTable(pub(super) Vec<Arc<RegisteredProvider>>);

impl ProviderTable {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Arc<RegisteredProvider>> {
        self.0.iter()
    }

    pub(super) fn server(&self, name: &str) -> Option<&Arc<RegisteredProvider>> {
        self.iter().find(|provider| provider.server.as_deref() == Some(name))
    }

    pub(super) fn source(&self, name: &str) -> Option<&Arc<RegisteredProvider>> {
        self.iter().find(|provider| provider.source.as_deref() == Some(name))
    }

    pub(super) fn remote(&self) -> impl Iterator<Item = &Arc<RegisteredProvider>> {
        self.iter().filter(|provider| provider.is_remote())
    }

    /// The tool of this full name and who has it, as far as known without contacting a server.
    pub(super) fn known_tool(
        &self,
        full: &str,
    ) -> Option<(&Arc<RegisteredProvider>, Arc<ListedTool>)> {
        self.iter().find_map(|provider| Some((provider, provider.known_tool(full)?)))
    }
}

/// A provider that is not closed while this is held: its removal waits, within bounds.
pub(super) struct ProviderLease {
    pub(super) provider: Arc<RegisteredProvider>,
    _user: TaskTrackerToken,
}

impl ProviderLease {
    /// `None` once the provider is removed.
    pub(super) fn of(provider: &Arc<RegisteredProvider>) -> Option<Self> {
        Some(Self { provider: Arc::clone(provider), _user: provider.begin_use()? })
    }
}

impl Deref for ProviderLease {
    type Target = RegisteredProvider;

    fn deref(&self) -> &RegisteredProvider {
        &self.provider
    }
}
