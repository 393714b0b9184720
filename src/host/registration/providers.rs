//! Providers that come and go while the host runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::{RegistrationError, tool_names};
use crate::host::listings::RegisteredProvider;
use crate::host::registry::{ProviderTable, Roster};
use crate::host::{ToolHost, attempt};
use crate::model::{HostEvent, ListKind, ListOwner, ToolName, check_name};
use crate::provider::ToolProvider;

/// The outcome of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// How many calls and requests were still running after
    /// [`REMOVAL_GRACE_PERIOD`](attempt::REMOVAL_GRACE_PERIOD), and were cancelled.
    pub cancelled: usize,
}

impl ToolHost {
    /// Adds a provider under its own name. Its tools are listed, found and called from now on like
    /// all others, and listeners receive [`HostEvent::ListChanged`]. Starts and contacts nothing.
    ///
    /// # Errors
    /// An invalid or taken name, a component or tool whose name another provider has, and a closed
    /// host.
    pub fn register_provider(
        &self,
        source: &str,
        provider: Arc<dyn ToolProvider>,
    ) -> Result<(), RegistrationError> {
        // What the program's own code says needs no pin.
        let mut new = RegisteredProvider::new(provider, Arc::default());
        new.source = Some(source.to_owned());
        self.insert_provider(new)
    }

    /// Removes a provider by the name it was registered under; one that the host was built with has
    /// the name of its component. New calls get an error that says it was removed. Running calls
    /// may finish; after [`REMOVAL_GRACE_PERIOD`](attempt::REMOVAL_GRACE_PERIOD) they are cancelled.
    /// Then the provider is closed, even if the caller no longer waits.
    ///
    /// A tool that removes its own provider waits for itself, and is cancelled after that time.
    ///
    /// # Errors
    /// A name that no provider is registered under.
    pub async fn unregister_provider(&self, source: &str) -> Result<Removal, RegistrationError> {
        self.remove_provider(source, "provider").await
    }

    /// Removes a component, like [`ToolHost::unregister_provider`] does a provider.
    ///
    /// # Errors
    /// A name that no component is registered under.
    pub async fn unregister_component(&self, name: &str) -> Result<Removal, RegistrationError> {
        self.remove_provider(name, "component").await
    }

    /// Removes an MCP server, like [`ToolHost::unregister_provider`] does a provider: its process
    /// is stopped and its connection closed.
    ///
    /// # Errors
    /// A name that no MCP server has.
    pub async fn unregister_client(&self, name: &str) -> Result<Removal, RegistrationError> {
        self.remove_provider(name, "MCP server").await
    }

    /// The names of the providers, components and MCP servers that can be removed, in the order of
    /// the catalogue.
    pub fn sources(&self) -> Vec<String> {
        let providers = self.directory.providers();
        providers.iter().filter_map(|provider| provider.source.clone()).collect()
    }

    /// Adds a provider to the others, before the registry of single tools.
    pub(super) fn insert_provider(
        &self,
        provider: RegisteredProvider,
    ) -> Result<(), RegistrationError> {
        let source = provider.source.clone().unwrap_or_default();
        check_name(&source)?;
        let declared = provider.declared();
        let components = provider.components();
        let names: Vec<String> = declared
            .tools
            .iter()
            .flat_map(|tool| tool_names(&tool.definition).map(ToolName::full))
            .collect();
        components.iter().try_for_each(|name| check_name(name))?;
        let server = provider.server.clone();

        let mut roster = self.directory.roster();
        if roster.is_closed {
            return Err(RegistrationError::HostClosed);
        }
        let table = self.directory.providers();
        for name in std::iter::once(&source).chain(&components) {
            let has_name = |existing: &&Arc<RegisteredProvider>| {
                existing.source.as_ref() == Some(name) || existing.components().contains(name)
            };
            if let Some(existing) = table.iter().find(has_name) {
                let (name, owner) = (name.clone(), existing.describe());
                return Err(RegistrationError::NameTaken { name, owner });
            }
        }
        names.iter().try_for_each(|name| self.require_free_tool(name))?;
        roster.forget_removed(|name| {
            components.contains(name) || names.iter().any(|existing| existing == name)
        });
        let mut providers = table.0.clone();
        // The registry of single tools stays the last one.
        providers.insert(providers.len().saturating_sub(1), Arc::new(provider));
        self.directory.table.replace(ProviderTable(providers));
        drop(roster);
        self.notify_provider_changed(server);
        Ok(())
    }

    async fn remove_provider(
        &self,
        name: &str,
        sort: &'static str,
    ) -> Result<Removal, RegistrationError> {
        let provider = self.take_provider(name, sort)?;
        // A provider that panics while it is closed is gone as well.
        let grace = Some(attempt::REMOVAL_GRACE_PERIOD);
        Ok(Removal { cancelled: self.close_removed(provider, grace).await.unwrap_or_default() })
    }

    /// Closes a provider that new calls no longer find as soon as it is unused, cancelling the uses
    /// left after `grace`; `None` waits for all of them. Returns how many uses were cancelled. It
    /// is closed even if the result is not awaited.
    pub(super) fn close_removed(
        &self,
        provider: Arc<RegisteredProvider>,
        grace: Option<Duration>,
    ) -> JoinHandle<usize> {
        let host = self.weak_self.clone();
        tokio::spawn(async move {
            let cancelled = drain(&provider, grace).await;
            // Each provider bounds its shutdown; the bound here is for one that does not.
            let close = provider.inner.close();
            let _elapsed = tokio::time::timeout(attempt::STOP_GRACE_PERIOD * 2, close).await;
            if let Some(host) = host.upgrade() {
                let mut roster = host.directory.roster();
                roster.leaving.retain(|leaving| !Arc::ptr_eq(leaving, &provider));
            }
            cancelled
        })
    }

    /// Removes a provider from the table, so that new calls no longer find it.
    fn take_provider(
        &self,
        name: &str,
        sort: &'static str,
    ) -> Result<Arc<RegisteredProvider>, RegistrationError> {
        let mut roster = self.directory.roster();
        let table = self.directory.providers();
        let registered = table.source(name);
        let Some(provider) = registered.filter(|provider| provider.sort() == sort) else {
            let other = registered.map(|provider| provider.describe());
            let name = name.to_owned();
            return Err(RegistrationError::NotRegistered { name, sort, other });
        };
        let others = table.iter().filter(|other| !Arc::ptr_eq(other, provider));
        self.directory.table.replace(ProviderTable(others.cloned().collect()));
        Self::mark_removed(&mut roster, provider);
        drop(roster);
        self.notify_provider_changed(provider.server.clone());
        Ok(Arc::clone(provider))
    }

    /// Prevents new uses of a provider that is no longer in the table.
    pub(super) fn mark_removed(roster: &mut Roster, provider: &Arc<RegisteredProvider>) {
        provider.users.close();
        roster.remember_provider(provider);
        roster.leaving.push(Arc::clone(provider));
    }

    /// Notifies listeners; for a server, also that its other lists changed.
    fn notify_provider_changed(&self, server: Option<String>) {
        self.notify_list_changed();
        if let Some(server) = server {
            self.notify_offerings_changed(&server);
        }
    }

    pub(super) fn notify_offerings_changed(&self, server: &str) {
        self.directory.server_changes.send_modify(|count| *count += 1);
        for list in [ListKind::Prompts, ListKind::Resources] {
            let owner = ListOwner::Server(server.to_owned());
            self.sessions.events.emit(HostEvent::ListChanged { owner, list });
        }
    }
}

/// Waits until a removed provider is unused, and cancels uses that take too long. Returns how many
/// were cancelled.
async fn drain(provider: &RegisteredProvider, grace: Option<Duration>) -> usize {
    let Some(grace) = grace else {
        provider.users.wait().await;
        return 0;
    };
    if tokio::time::timeout(grace, provider.users.wait()).await.is_ok() {
        return 0;
    }
    provider.stop.cancel();
    let cancelled = provider.users.len();
    // Tools that do not stop when cancelled end with the provider.
    let _elapsed =
        tokio::time::timeout(attempt::STOP_GRACE_PERIOD * 2, provider.users.wait()).await;
    cancelled
}
