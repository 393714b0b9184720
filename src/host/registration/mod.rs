//! Registering tools, providers, components and sessions while the host runs.

mod components;
mod error;
mod providers;
mod replacement;

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ToolHost;
use super::caller;
use super::handler::ToolHandler;
use super::link::HostQuery;
use super::registry::HandlerSource;
use super::sessions::SessionInfo;
use crate::catalogue::build::describe_origin;
use crate::model::{
    Error, HostEvent, ListKind, ListOwner, Origin, ToolDefinition, ToolName, ToolScope, ToolSource,
    check_name,
};

pub use error::RegistrationError;
pub use providers::Removal;
pub use replacement::HostContents;

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
        caller::check(info.user_id.as_deref(), &info.metadata)?;
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

#[cfg(test)]
mod provider_tests;
#[cfg(test)]
mod tests;
