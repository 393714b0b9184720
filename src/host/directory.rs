//! Which tools there are and who owns them.
//!
//! Owns: the registered providers in catalogue order, the tools that a program registers, entries
//! that are out of service, the profile, the pins, and the state of servers that stand in for each
//! other. Never does: call a tool, or mask what it finds; the host does both.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;

use super::balancer::Balancer;
use super::circuit::Circuits;
use super::listings::{ListedTool, RegisteredProvider};
use super::registry::{HandlerSource, ToolRegistry};
use super::request::ListScope;
use super::sessions::Sessions;
use crate::catalogue::build::{self, Contribution, describe_origin};
use crate::catalogue::pins::Pins;
use crate::catalogue::{Catalogue, ServerListing, naming, query};
use crate::config::spec::{DisabledEntry, ProfileSpec};
use crate::model::{Error, ErrorKind, ToolDefinition, ToolName};
use crate::provider::ToolProvider;

/// All providers of a host and what is known of them.
pub(super) struct ToolDirectory {
    /// The registry comes last, so that what files declare is listed first.
    pub(super) providers: Vec<Arc<RegisteredProvider>>,
    pub(super) registry: Arc<ToolRegistry>,
    /// The registry's place among the providers.
    registry_provider: Arc<RegisteredProvider>,
    pub(super) pins: Arc<Pins>,
    /// The view that is shown and may be called; everything when there is none.
    pub(super) profile: Option<ProfileSpec>,
    /// Entries out of service, so that asking for one says why.
    pub(super) disabled: Vec<DisabledEntry>,
    /// The share of calls of each server that has a weight.
    pub(super) weights: HashMap<String, f64>,
    pub(super) balance: Balancer,
    pub(super) circuits: Circuits,
    /// Counts the catalogues that were built and the changes of registered tools.
    version: AtomicU64,
    /// Counts the requests that may start something.
    starts: AtomicU64,
}

/// What a [`ToolDirectory`] is made of.
#[derive(Default)]
pub(super) struct DirectoryParts {
    pub(super) providers: Vec<Arc<dyn ToolProvider>>,
    pub(super) pins: Pins,
    pub(super) profile: Option<ProfileSpec>,
    pub(super) disabled: Vec<DisabledEntry>,
    pub(super) weights: HashMap<String, f64>,
}

impl ToolDirectory {
    /// Contacts nobody. `sessions` is where the registry keeps the instances of session tools.
    pub(super) fn new(parts: DirectoryParts, sessions: Arc<Sessions>) -> Self {
        let pins = Arc::new(parts.pins);
        let registry = Arc::new(ToolRegistry::new(sessions));
        // What a program registers itself needs no pin.
        let registry_provider =
            Arc::new(RegisteredProvider::new(Arc::clone(&registry) as _, Arc::default()));
        let registered = |provider| Arc::new(RegisteredProvider::new(provider, Arc::clone(&pins)));
        let mut providers: Vec<_> = parts.providers.into_iter().map(registered).collect();
        providers.push(Arc::clone(&registry_provider));
        Self {
            providers,
            registry,
            registry_provider,
            pins,
            profile: parts.profile,
            disabled: parts.disabled,
            weights: parts.weights,
            balance: Balancer::default(),
            circuits: Circuits::default(),
            version: AtomicU64::new(0),
            starts: AtomicU64::new(0),
        }
    }

    /// The provider of the server with this name.
    pub(super) fn server(&self, name: &str) -> Option<&Arc<RegisteredProvider>> {
        self.providers.iter().find(|provider| provider.server.as_deref() == Some(name))
    }

    /// The names of all servers, in catalogue order.
    pub(super) fn server_names(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().filter_map(|provider| provider.server.as_deref())
    }

    /// The providers that have to be contacted for their lists.
    pub(super) fn remote_providers(&self) -> impl Iterator<Item = &Arc<RegisteredProvider>> {
        self.providers.iter().filter(|provider| provider.is_remote())
    }

    /// One list of everything in the profile; contacts what `scope` says, all at once. Nothing in it
    /// is masked.
    pub(super) async fn catalogue(&self, scope: &ListScope) -> Catalogue {
        let is_contacted = |provider: &RegisteredProvider| match (scope, &provider.server) {
            (ListScope::Declared, _) => !provider.is_remote(),
            (ListScope::Everything, _) | (ListScope::Servers(_), None) => true,
            (ListScope::Servers(names), Some(server)) => names.contains(server),
        };
        let contacted = self.providers.iter().filter(|provider| is_contacted(provider));
        self.mark_start(contacted.map(Arc::as_ref));
        let parts = join_all(self.providers.iter().map(|provider| async {
            if is_contacted(provider) {
                Some(provider.contribute().await)
            } else if *scope == ListScope::Declared {
                Some(provider.contribute_declared())
            } else {
                None
            }
        }))
        .await;
        let (mut local, mut servers): (Vec<Contribution>, Vec<Contribution>) = Default::default();
        for (provider, part) in self.providers.iter().zip(parts) {
            match part {
                Some(part) if provider.server.is_some() => servers.push(part),
                Some(part) => local.push(part),
                None => {}
            }
        }
        let (own, of_servers) = self.out_of_service(scope, &local, &servers);
        local.extend(own);
        servers.extend(of_servers);
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        let mut catalogue = build::build(version, local, servers);
        if let Some(profile) = &self.profile {
            catalogue.tools.retain(|tool| query::is_in_profile(profile, tool));
        }
        if let ListScope::Servers(names) = scope {
            let unknown = names.iter().filter(|name| self.server(name).is_none());
            catalogue.servers.extend(unknown.map(|name| {
                let error = match self.disabled_server(name) {
                    Some(entry) => entry.error(),
                    None => Error::usage(format!("unknown server '{name}'")),
                };
                ServerListing { name: name.clone(), error: Some(error), is_partial: false }
            }));
        }
        catalogue
    }

    /// Notes that one request may start all of these providers.
    pub(super) fn mark_start<'p>(
        &self,
        providers: impl IntoIterator<Item = &'p RegisteredProvider>,
    ) {
        let request = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        providers.into_iter().for_each(|provider| provider.mark_start(request));
    }

    /// What a file declares of a tool whose server did not answer, or whose entry is out of
    /// service: enough to read about, with the reason why it cannot be called.
    pub(super) fn declared_fallback(&self, name: &str, error: &Error) -> Option<ToolDefinition> {
        if error.kind() == ErrorKind::Config {
            return self.disabled_definition(name);
        }
        let is_unanswered = matches!(
            error.kind(),
            ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Auth | ErrorKind::Protocol
        );
        let server = error.server().filter(|_| is_unanswered)?;
        let declared = self.server(server)?.declared();
        let mut tool = ToolDefinition::clone(&declared.find(name)?.definition);
        tool.mark_unavailable(error.clone());
        Some(tool)
    }

    /// The tool of this full name, as far as it is known without contacting anybody.
    pub(super) fn known_tool(&self, full: &str) -> Option<Arc<ListedTool>> {
        find_known(self.providers.iter(), full)
    }

    /// Whether a name that is not known yet may be that of a server's tool.
    pub(super) fn may_be_remote(&self, name: &str) -> bool {
        let all: Vec<&str> = self.remote_providers().filter_map(|m| m.inner.component()).collect();
        let is_owned = !naming::components(name, all.iter().copied()).is_empty();
        is_owned || (!all.is_empty() && !name.contains(['-', '.', '/', ':']))
    }

    /// Whether the profile shows a tool.
    pub(super) fn shows(&self, tool: &ToolDefinition) -> bool {
        self.profile.as_ref().is_none_or(|profile| query::is_in_profile(profile, tool))
    }

    /// Adds a tool of the program.
    ///
    /// # Errors
    /// A usage error for a name that another tool has.
    pub(super) fn register(
        &self,
        definition: ToolDefinition,
        handler: HandlerSource,
    ) -> Result<(), Error> {
        let mut names = std::iter::once(&definition.name).chain(&definition.aliases);
        if let Some(taken) = names.find_map(|name| self.name_conflict(name)) {
            return Err(taken);
        }
        self.registry
            .add(definition, handler)
            .map_err(|name| Error::usage(format!("a tool '{name}' is registered already")))?;
        self.version.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes a tool of the program away; `false` when no such tool is registered.
    pub(super) fn unregister(&self, full: &str) -> bool {
        let is_removed = self.registry.remove(full);
        if is_removed {
            self.version.fetch_add(1, Ordering::Relaxed);
        }
        is_removed
    }

    /// The error for a name that a provider other than the registry has.
    fn name_conflict(&self, name: &ToolName) -> Option<Error> {
        let full = name.full();
        let others = self
            .providers
            .iter()
            .filter(|provider| !Arc::ptr_eq(provider, &self.registry_provider));
        let owner = find_known(others, &full)?;
        let owner = describe_origin(&owner.definition.origin);
        Some(Error::usage(format!("the name '{full}' is taken by the tool {owner}")))
    }
}

fn find_known<'a>(
    mut providers: impl Iterator<Item = &'a Arc<RegisteredProvider>>,
    full: &str,
) -> Option<Arc<ListedTool>> {
    providers.find_map(|provider| {
        let declared = provider.declared().find(full).map(Arc::clone);
        declared.or_else(|| provider.cached_snapshot()?.find(full).map(Arc::clone))
    })
}
