//! Registering tools, providers, components and sessions while the host runs, replacing what it was built
//! with, and why either was not done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::attempt::REMOVAL_GRACE_PERIOD;
use super::function_tool::ToolHandler;
use super::link::HostQuery;
use super::listings::RegisteredProvider;
use super::profiles::KnownProfiles;
use super::registry::{HandlerSource, ProviderTable};
use super::sessions::SessionInfo;
use super::{ToolHost, request};
use crate::catalogue::build::describe_origin;
use crate::catalogue::pins::Pins;
use crate::config::spec::{DisabledEntry, PolicyRule, ProfileSpec};
use crate::model::{
    Error, ErrorKind, HostEvent, InvalidNameError, ListKind, ListOwner, Origin, ToolDefinition,
    ToolName, ToolScope, ToolSource, check_name,
};
use crate::provider::{ComponentConfig, ComponentFactory, ToolProvider};
use crate::util::spelling::did_you_mean;
pub use providers::Removal;

mod providers;

impl ToolHost {
    /// Adds a tool that runs `handler`. It is listed, found and called from now on like any other,
    /// and listeners receive [`HostEvent::ListChanged`].
    ///
    /// Its origin becomes [`Origin::Program`] and its source internal.
    ///
    /// # Errors
    /// An invalid name; a name taken by a registered tool, a tool from a file, or one that a server
    /// declares or has offered; and a closed host.
    pub fn register(
        &self,
        definition: ToolDefinition,
        handler: impl ToolHandler + 'static,
    ) -> Result<(), RegistrationError> {
        self.add(definition, HandlerSource::Global(Arc::new(handler)))
    }

    /// Adds a tool that is created for each session: `factory` creates the handler when the session
    /// first calls the tool, and the handler is dropped when the session ends, when the tool is
    /// unregistered, or when the session has to make room for others (see
    /// [`MAX_SESSIONS`](super::sessions::MAX_SESSIONS)).
    ///
    /// # Errors
    /// Like [`ToolHost::register`].
    pub fn register_session<H: ToolHandler + 'static>(
        &self,
        mut definition: ToolDefinition,
        factory: impl Fn(&SessionInfo) -> H + Send + Sync + 'static,
    ) -> Result<(), RegistrationError> {
        definition.scope = ToolScope::Session;
        let factory = move |info: &SessionInfo| Arc::new(factory(info)) as Arc<dyn ToolHandler>;
        self.add(definition, HandlerSource::Session(Arc::new(factory)))
    }

    /// Removes a registered tool by its full name; running calls continue. Returns `false` if no
    /// such tool is registered: tools from files and servers cannot be removed.
    pub fn unregister(&self, name: &str) -> bool {
        let mut roster = self.directory.roster();
        let Some(removed) = self.directory.registry.remove(name) else { return false };
        roster.remember_tool(&removed);
        drop(roster);
        self.notify_list_changed();
        true
    }

    /// The registered tools, in the order in which they were registered.
    pub fn registered(&self) -> Vec<Arc<ToolDefinition>> {
        self.directory.registry.definitions()
    }

    /// Starts a session, or gives an open one a new context. Every call that names the session has
    /// its directory, variables and metadata; settings of the request are added to them. Session
    /// tools are recreated.
    ///
    /// A session need not be opened: one that a call names starts with that call, and has the
    /// host's context.
    ///
    /// # Errors
    /// A usage error when [`MAX_SESSIONS`](super::sessions::MAX_SESSIONS) are open and none is
    /// idle, and for a user or metadata that calls may not have.
    pub fn open_session(&self, info: SessionInfo) -> Result<(), Error> {
        request::check(info.user_id.as_deref(), &info.metadata)?;
        self.sessions.live.open(info)
    }

    /// Ends a session: drops the tools created for it, and closes the connections that only it
    /// uses. Returns whether it had tools or was opened.
    pub fn end_session(&self, id: &str) -> bool {
        for provider in self.directory.providers().iter() {
            provider.inner.end_session(id);
        }
        if let (Some(link), Ok(runtime)) = (self.link(), Handle::try_current()) {
            let ended = HostQuery::EndSession(id.to_owned());
            runtime.spawn(async move {
                // A host that is gone has ended it.
                let _gone = link.query(&ended, &CancellationToken::new()).await;
            });
        }
        self.sessions.live.end(id)
    }

    /// Reports every server that is registered, removed or replaced.
    #[doc(hidden)] // for the program's own commands
    pub fn server_changes(&self) -> watch::Receiver<u64> {
        self.directory.server_changes.subscribe()
    }

    fn add(
        &self,
        mut definition: ToolDefinition,
        code: HandlerSource,
    ) -> Result<(), RegistrationError> {
        definition.origin = Origin::Program;
        definition.source = ToolSource::Internal;
        let names: Vec<String> = tool_names(&definition).map(ToolName::full).collect();
        names.iter().try_for_each(|name| check_name(name))?;
        let mut roster = self.directory.roster();
        if roster.is_closed {
            return Err(RegistrationError::HostClosed);
        }
        names.iter().try_for_each(|name| self.require_free_tool(name))?;
        roster.forget_removed(|removed| names.iter().any(|name| name == removed));
        self.directory.registry.add(definition, code);
        drop(roster);
        self.notify_list_changed();
        Ok(())
    }

    /// Checks that no tool is known by this full name.
    fn require_free_tool(&self, full: &str) -> Result<(), RegistrationError> {
        let Some(existing) = self.directory.known_tool(full) else { return Ok(()) };
        let owner = format!("the tool {}", describe_origin(&existing.definition.origin));
        Err(RegistrationError::NameTaken { name: full.to_owned(), owner })
    }

    /// Notifies listeners that the program registered or removed something.
    fn notify_list_changed(&self) {
        self.directory.count_version();
        let (owner, list) = (ListOwner::Program, ListKind::Tools);
        self.sessions.events.emit(HostEvent::ListChanged { owner, list });
    }
}

/// All full names that a call of the tool may use.
fn tool_names(tool: &ToolDefinition) -> impl Iterator<Item = &ToolName> {
    std::iter::once(&tool.name).chain(&tool.aliases)
}

/// Why a host did not register or remove something. Nothing changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegistrationError {
    /// The name is taken.
    #[error("the name '{name}' is taken by {owner}")]
    NameTaken {
        /// The name of a tool, component or provider, or a type key.
        name: String,
        /// Who has it, as text: `the MCP server 'github'`, `the tool at tools.yaml:3:5`.
        owner: String,
    },
    /// The name has characters that a name must not have.
    #[error(transparent)]
    InvalidName(#[from] InvalidNameError),
    /// No factory is registered for the type of a component.
    #[error("unknown component type '{key}'")]
    UnknownType {
        /// The type key that was asked for.
        key: String,
        /// The type keys that are registered, sorted.
        known: Vec<String>,
    },
    /// Nothing of this sort is registered under the name.
    #[error("no {sort} is registered under the name '{name}'")]
    NotRegistered {
        /// The name that was asked for.
        name: String,
        /// `component type`, `provider`, `component` or `MCP server`.
        sort: &'static str,
        /// What is registered under the name, as text, if it is of another sort.
        other: Option<String>,
    },
    /// The tool of a component is not named `{component}-{tool}`.
    #[error("the component '{component}' has a tool '{tool}', which is not named after it")]
    ForeignTool {
        /// The name of the component.
        component: String,
        /// The full name of the tool.
        tool: String,
    },
    /// The host was built without a way to reach MCP servers.
    #[error("this host was built without MCP servers")]
    NoClients,
    /// The host is closed, or is being closed.
    #[error("the host is closed")]
    HostClosed,
    /// The factory refused the configuration.
    #[error(transparent)]
    Invalid(Error),
}

impl RegistrationError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownType { known, .. } if known.is_empty() => {
                Some("no component type is registered: register_kind adds one".to_owned())
            }
            Self::UnknownType { key, known } => {
                let types = format!("known types: {}", known.join(", "));
                let near = did_you_mean(key, known.iter().map(String::as_str));
                Some(near.into_iter().chain([types]).collect::<Vec<_>>().join(" "))
            }
            Self::NotRegistered { other: Some(other), .. } => Some(format!("it is {other}")),
            Self::NameTaken { .. } => Some("remove that first, or use another name".to_owned()),
            Self::NoClients => Some("`assembly::host_builder` builds one with them".to_owned()),
            _ => None,
        }
    }
}

impl From<RegistrationError> for Error {
    fn from(error: RegistrationError) -> Self {
        let kind = match error {
            RegistrationError::Invalid(error) => return error,
            RegistrationError::ForeignTool { .. } => ErrorKind::Internal,
            _ => ErrorKind::Usage,
        };
        let hint = error.hint();
        let error = Self::new(kind, error.to_string());
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// What a host offers and by which rules, without what a program registered itself.
#[doc(hidden)] // for the program's own commands
#[derive(Default)]
pub struct HostContents {
    /// The providers in the order of the catalogue. One that the host has already is kept.
    pub providers: Vec<Arc<dyn ToolProvider>>,
    /// Providers of the contents before these whose entries are all among these, some of them
    /// changed: their calls run to completion.
    pub superseded: Vec<Arc<dyn ToolProvider>>,
    /// The rules about calls; the first that matches counts.
    pub policy: Vec<PolicyRule>,
    /// Entries that are out of service.
    pub disabled: Vec<DisabledEntry>,
    /// What the tools were when a person accepted them.
    pub pins: Pins,
    /// What requests see that name no profile; `None` is everything.
    pub profile: Option<ProfileSpec>,
    /// The profiles that requests may name.
    pub profiles: BTreeMap<String, ProfileSpec>,
}

impl ToolHost {
    /// Offers `contents` from now on, instead of what the host was built with or given here before.
    /// Running calls continue; those of a provider that is not among the new ones are cancelled
    /// after [`REMOVAL_GRACE_PERIOD`] unless it is superseded, and then it is closed. Every
    /// listener is notified that the lists changed. Starts and contacts nothing.
    ///
    /// # Errors
    /// A host that is closed, and the name of something that the program registered itself. Nothing
    /// changed then.
    #[doc(hidden)] // for the program's own commands
    pub fn replace_contents(&self, contents: HostContents) -> Result<(), RegistrationError> {
        let HostContents { providers, superseded, policy, disabled, pins, profile, profiles } =
            contents;
        let mut roster = self.directory.roster();
        if roster.is_closed {
            return Err(RegistrationError::HostClosed);
        }
        let old = self.directory.providers();
        let existing = |provider: &Arc<dyn ToolProvider>| {
            let is_same =
                |existing: &&Arc<RegisteredProvider>| Arc::ptr_eq(&existing.inner, provider);
            old.iter().filter(|existing| existing.is_of_files).find(is_same).cloned()
        };
        let mut table: Vec<Arc<RegisteredProvider>> = providers
            .into_iter()
            .map(|provider| {
                let pins = &self.directory.pins;
                existing(&provider).unwrap_or_else(|| RegisteredProvider::of_files(provider, pins))
            })
            .collect();
        let is_kept = |existing: &RegisteredProvider| {
            table.iter().any(|current| std::ptr::eq(Arc::as_ptr(current), existing))
        };
        let (of_files, own): (Vec<_>, Vec<_>) = old.iter().cloned().partition(|p| p.is_of_files);
        let removed: Vec<_> = of_files.into_iter().filter(|existing| !is_kept(existing)).collect();
        let changed: BTreeSet<String> = table
            .iter()
            .filter(|provider| !old.iter().any(|existing| Arc::ptr_eq(existing, provider)))
            .chain(&removed)
            .filter_map(|provider| provider.server.clone())
            .collect();
        let components: BTreeSet<String> =
            table.iter().flat_map(|provider| provider.components()).collect();
        for registered in &own {
            let names = registered.components().into_iter().chain(registered.source.clone());
            if let Some(name) = names.into_iter().find(|name| components.contains(name)) {
                let owner = registered.describe();
                return Err(RegistrationError::NameTaken { name, owner });
            }
        }
        table.extend(own);
        // The rules come first: no tool is offered under those of another configuration.
        self.profiles.replace(KnownProfiles::new(profile, profiles));
        self.pipeline.policy.replace(policy);
        self.directory.pins.replace(pins);
        self.directory.disabled.replace(disabled);
        for provider in &table {
            provider.forget_lists();
        }
        for provider in &removed {
            Self::mark_removed(&mut roster, provider);
        }
        roster.forget_removed(|name| {
            let declares = |provider: &Arc<RegisteredProvider>| provider.known_tool(name).is_some();
            components.contains(name) || table.iter().any(declares)
        });
        self.directory.table.replace(ProviderTable(table));
        drop(roster);
        for provider in removed {
            let is_superseded = superseded.iter().any(|old| Arc::ptr_eq(old, &provider.inner));
            let grace = (!is_superseded).then_some(REMOVAL_GRACE_PERIOD);
            // Not awaited: its calls may continue for a while.
            drop(self.close_removed(provider, grace));
        }
        self.notify_list_changed();
        for server in &changed {
            self.notify_offerings_changed(server);
        }
        Ok(())
    }
}

impl ToolHost {
    /// Adds a component type under a type key. Components of this type can be registered from now
    /// on.
    ///
    /// # Errors
    /// An invalid key, or one that another factory has.
    pub fn register_kind(
        &self,
        key: &str,
        factory: impl ComponentFactory + 'static,
    ) -> Result<(), RegistrationError> {
        check_name(key)?;
        let mut roster = self.directory.roster();
        if roster.factories.contains_key(key) {
            let owner = "a component type that is already registered".to_owned();
            return Err(RegistrationError::NameTaken { name: key.to_owned(), owner });
        }
        roster.factories.insert(key.to_owned(), Arc::new(factory));
        Ok(())
    }

    /// Removes a component type. Existing components of this type stay.
    ///
    /// # Errors
    /// A key that is not registered.
    pub fn unregister_kind(&self, key: &str) -> Result<(), RegistrationError> {
        match self.directory.roster().factories.remove(key) {
            Some(_) => Ok(()),
            None => Err(RegistrationError::NotRegistered {
                name: key.to_owned(),
                sort: "component type",
                other: None,
            }),
        }
    }

    /// The type keys of components that can be registered, sorted.
    pub fn kinds(&self) -> Vec<String> {
        self.directory.roster().factories.keys().cloned().collect()
    }

    /// Adds a component: the factory of its type creates a provider from the configuration. Its
    /// tools are named `{component}-{tool}`; a single tool may have the component's name. Starts
    /// and contacts nothing.
    ///
    /// # Errors
    /// A type key that is not registered, settings that the factory refuses, a tool that is not
    /// named after the component, and as for [`ToolHost::register_provider`].
    pub fn register_component(
        &self,
        key: &str,
        component: &ComponentConfig,
    ) -> Result<(), RegistrationError> {
        let factory = self.factory(key)?;
        check_name(&component.name)?;
        // Not under the lock: it is the program's code, and may read files.
        let provider = factory.build(component).map_err(RegistrationError::Invalid)?;
        let mut new = RegisteredProvider::new(provider, Arc::default());
        new.source = Some(component.name.clone());
        new.component_type = Some(key.to_owned());
        let declared = new.declared();
        let is_own = |name: &ToolName| match name.component() {
            Some(named_after) => named_after == component.name,
            None => name.tool() == component.name,
        };
        if let Some(tool) = declared.tools.iter().find(|tool| !is_own(&tool.definition.name)) {
            return Err(RegistrationError::ForeignTool {
                component: component.name.clone(),
                tool: tool.definition.name.full(),
            });
        }
        self.insert_provider(new)
    }

    /// Adds an MCP server. It is started or contacted when it is first needed.
    ///
    /// # Errors
    /// Settings that are not a server entry, a host without MCP servers, and as for
    /// [`ToolHost::register_provider`].
    pub fn register_client(&self, server: &ComponentConfig) -> Result<(), RegistrationError> {
        let factory = self.directory.roster().client_factory.clone();
        let factory = factory.ok_or(RegistrationError::NoClients)?;
        check_name(&server.name)?;
        let provider = factory.build(server).map_err(RegistrationError::Invalid)?;
        self.insert_provider(RegisteredProvider::new(provider, Arc::default()))
    }

    fn factory(&self, key: &str) -> Result<Arc<dyn ComponentFactory>, RegistrationError> {
        let roster = self.directory.roster();
        roster.factories.get(key).cloned().ok_or_else(|| {
            let known = roster.factories.keys().cloned().collect();
            RegistrationError::UnknownType { key: key.to_owned(), known }
        })
    }
}

#[cfg(test)]
mod provider_tests;
#[cfg(test)]
mod tests;
