//! The directory of tools: which exist, which provider owns each, and which may be offered to
//! others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use tokio::sync::watch;

use super::ToolHost;
use super::listings::{ListedTool, RegisteredProvider};
use super::policy::Decision;
use super::profiles::ProfileView;
use super::registry::{ProviderLease, ProviderTable, Roster, ToolRegistry};
use super::request::ListScope;
use super::sessions::Sessions;
use crate::catalogue::build::{self, Contribution};
use crate::catalogue::pins::Pins;
use crate::catalogue::{Catalogue, ServerListing, naming};
use crate::config::spec::{DisabledEntry, FileRole};
use crate::model::{Error, ErrorKind, PinState, ToolDefinition, ToolStatus};
use crate::provider::ToolProvider;
use crate::util::lock::Current;

/// All providers of a host and what is known of them.
pub(super) struct ToolDirectory {
    pub(super) table: Current<ProviderTable>,
    /// Held while names are compared and taken, so that of two who want one name one gets it.
    roster: Mutex<Roster>,
    pub(super) registry: Arc<ToolRegistry>,
    pub(super) pins: Arc<Current<Pins>>,
    /// Entries out of service, so that asking for one says why.
    pub(super) disabled: Current<[DisabledEntry]>,
    /// The end of a command line that names its server, with a leading space; empty if the servers
    /// are defined in files.
    pub(super) command_end: String,
    version: AtomicU64,
    /// Counts the servers that were registered, removed or replaced.
    pub(super) server_changes: watch::Sender<u64>,
    starts: AtomicU64,
}

impl ToolDirectory {
    /// Contacts no server. `sessions` is where the registry keeps the instances of session tools.
    pub(super) fn new(
        providers: Vec<Arc<dyn ToolProvider>>,
        pins: Pins,
        disabled: Vec<DisabledEntry>,
        command_end: String,
        roster: Roster,
        sessions: Arc<Sessions>,
    ) -> Self {
        let pins = Arc::new(Current::new(pins));
        let registry = Arc::new(ToolRegistry::new(sessions));
        // What a program registers itself needs no pin.
        let own = Arc::new(RegisteredProvider::new(Arc::clone(&registry) as _, Arc::default()));
        let registered = |provider| RegisteredProvider::of_files(provider, &pins);
        let providers = providers.into_iter().map(registered).chain([own]).collect();
        Self {
            table: Current::new(ProviderTable(providers)),
            roster: Mutex::new(roster),
            registry,
            pins,
            disabled: Current::new(disabled),
            command_end,
            version: AtomicU64::new(0),
            server_changes: watch::Sender::new(0),
            starts: AtomicU64::new(0),
        }
    }

    pub(super) fn providers(&self) -> Arc<ProviderTable> {
        self.table.get()
    }

    pub(super) fn roster(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next version of the catalogue.
    pub(super) fn count_version(&self) -> u64 {
        self.version.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn server(&self, name: &str) -> Option<ProviderLease> {
        ProviderLease::of(self.providers().server(name)?)
    }

    /// The share of requests that the server with this name gets of what several offer.
    pub(super) fn weight_of(&self, name: &str) -> Option<f64> {
        self.providers().server(name)?.weight
    }

    pub(super) fn server_names(&self) -> Vec<String> {
        self.providers().iter().filter_map(|provider| provider.server.clone()).collect()
    }

    /// One list of everything that `view` shows; contacts what `scope` says, all at once, but no
    /// server of which `view` shows nothing. Nothing in it is masked.
    pub(super) async fn catalogue(&self, scope: &ListScope, view: &ProfileView) -> Catalogue {
        let table = self.providers();
        let is_contacted = |provider: &RegisteredProvider| match (scope, &provider.server) {
            (ListScope::Declared, _) => !provider.is_remote(),
            (ListScope::Everything, _) | (ListScope::Servers(_), None) => true,
            (ListScope::Servers(names), Some(server)) => names.contains(server),
        };
        let contacted = table.iter().filter(|p| view.may_show(p) && is_contacted(p));
        self.mark_start(contacted.map(Arc::as_ref));
        let parts = join_all(table.iter().map(|provider| async {
            if !view.may_show(provider) {
                None
            } else if is_contacted(provider) {
                Some(provider.contribute().await)
            } else if *scope == ListScope::Declared {
                Some(provider.declared().contribution())
            } else {
                None
            }
        }))
        .await;
        let (mut local, mut servers): (Vec<Contribution>, Vec<Contribution>) = Default::default();
        for (provider, part) in table.iter().zip(parts) {
            match part {
                // Removed while the others were asked.
                Some(_) if provider.is_removed() => {}
                Some(part) if provider.server.is_some() => servers.push(part),
                Some(part) => local.push(part),
                None => {}
            }
        }
        let (own, of_servers) = self.out_of_service(scope, &local, &servers);
        local.extend(own);
        servers.extend(of_servers);
        let mut catalogue = build::build(self.count_version(), local, servers);
        catalogue.tools.retain(|tool| view.shows(tool));
        if let ListScope::Servers(names) = scope {
            let missing = names.iter().filter_map(|name| {
                let is_named =
                    |entry: &DisabledEntry| entry.role == FileRole::Servers && entry.name == *name;
                let error = match (table.server(name), self.disabled_entry(is_named)) {
                    (Some(server), _) if !view.may_show(server) => view.refusal(name),
                    (Some(_), _) => return None,
                    (None, Some(entry)) => entry.error(),
                    (None, None) => Error::usage(format!("unknown server '{name}'")),
                };
                Some(ServerListing { name: name.clone(), error: Some(error), is_partial: false })
            });
            catalogue.servers.extend(missing);
        }
        catalogue
    }

    pub(super) fn mark_start<'p>(
        &self,
        providers: impl IntoIterator<Item = &'p RegisteredProvider>,
    ) {
        let request = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        for provider in providers {
            let _earlier = provider.first_start.set(request);
        }
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

    /// The tool of this full name, as far as it is known without contacting a server.
    pub(super) fn known_tool(&self, full: &str) -> Option<Arc<ListedTool>> {
        self.providers().known_tool(full).map(|(_, tool)| tool)
    }

    /// Whether a name that is not known yet may be that of a server's tool.
    pub(super) fn may_be_remote(&self, name: &str) -> bool {
        let table = self.providers();
        let all: Vec<&str> = table.remote().filter_map(|m| m.inner.component()).collect();
        let is_owned = !naming::components(name, all.iter().copied()).is_empty();
        is_owned || (!all.is_empty() && !name.contains(['-', '.', '/', ':']))
    }
}

/// A tool that may be offered.
#[derive(Debug, Clone)]
pub struct OfferableTool {
    /// Its definition, with known secrets masked.
    pub definition: Arc<ToolDefinition>,
    /// Whether a person has to approve each call.
    pub needs_approval: bool,
}

impl ToolHost {
    /// The tools of a catalogue that may be offered, in its order.
    pub fn offerable_tools(&self, catalogue: &Catalogue) -> Vec<OfferableTool> {
        let usable = catalogue.tools.iter().filter(|tool| is_usable(tool));
        let offered = usable.filter_map(|tool| {
            let needs_approval = match self.decision(tool) {
                Decision::Allow(_) => false,
                Decision::Ask(_) => true,
                Decision::Deny(_) => return None,
            };
            let mut definition = Arc::clone(tool);
            self.pipeline.masker.definition(&mut definition);
            Some(OfferableTool { definition, needs_approval })
        });
        offered.collect()
    }
}

fn is_usable(tool: &ToolDefinition) -> bool {
    tool.unavailable_reason.is_none()
        && !matches!(tool.status, ToolStatus::Unavailable | ToolStatus::Untrusted)
        && !matches!(tool.pin_state, PinState::Changed(_))
}
