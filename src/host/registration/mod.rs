//! Registering tools and sessions while the host runs.
//!
//! Owns: what may be registered under which name, and telling everybody who listens. Never does:
//! keep the tools (`registry`) or the sessions (`sessions`).

use std::sync::Arc;

use super::ToolHost;
use super::caller;
use super::handler::ToolHandler;
use super::registry::HandlerSource;
use super::sessions::SessionInfo;
use crate::model::{
    Error, HostEvent, ListKind, ListOwner, Origin, ToolDefinition, ToolScope, ToolSource,
    check_name,
};

impl ToolHost {
    /// Adds a tool that runs `handler`. It is listed, found and called from now on like any other,
    /// and everybody who listens is told with [`HostEvent::ListChanged`].
    ///
    /// Its origin becomes [`Origin::Program`] and its source internal.
    ///
    /// # Errors
    /// A usage error for a name that is none, or that is taken by a registered tool, a tool of a
    /// file, or one that a server declares or was seen to offer.
    pub fn register(
        &self,
        definition: ToolDefinition,
        handler: impl ToolHandler + 'static,
    ) -> Result<(), Error> {
        self.add(definition, HandlerSource::Global(Arc::new(handler)))
    }

    /// Adds a tool that is made for each session: `factory` makes the handler when the session
    /// calls the tool for the first time, and the handler is dropped when the session ends, when
    /// the tool is unregistered, or when the session has to make room for others (see
    /// [`MAX_SESSIONS`](super::sessions::MAX_SESSIONS)).
    ///
    /// # Errors
    /// As [`ToolHost::register`].
    pub fn register_session<H: ToolHandler + 'static>(
        &self,
        mut definition: ToolDefinition,
        factory: impl Fn(&SessionInfo) -> H + Send + Sync + 'static,
    ) -> Result<(), Error> {
        definition.scope = ToolScope::Session;
        let factory = move |info: &SessionInfo| Arc::new(factory(info)) as Arc<dyn ToolHandler>;
        self.add(definition, HandlerSource::Session(Arc::new(factory)))
    }

    /// Takes a registered tool away, by its full name; calls that run go on. `false` when no such
    /// tool is registered: tools of files and servers cannot be taken away.
    pub fn unregister(&self, name: &str) -> bool {
        let removed = self.directory.unregister(name);
        if removed {
            self.notify_list_changed();
        }
        removed
    }

    /// The registered tools, in the order in which they were registered.
    pub fn registered(&self) -> Vec<Arc<ToolDefinition>> {
        self.directory.registry.definitions()
    }

    /// Begins a session, or gives one that lives a new context. Every call that names the session
    /// has its directory, variables and metadata; what a request says itself comes on top. Session
    /// tools are made anew.
    ///
    /// A session need not be opened: one that a call names begins with that call, and has the
    /// context of the host.
    ///
    /// # Errors
    /// A usage error when [`MAX_SESSIONS`](super::sessions::MAX_SESSIONS) live and none is idle, and
    /// for a user or metadata that no call may have.
    pub fn open_session(&self, info: SessionInfo) -> Result<(), Error> {
        caller::check(info.user_id.as_deref(), &info.metadata)?;
        self.sessions.live.open(info)
    }

    /// Ends a session and drops the tools made for it. Whether there was one.
    pub fn end_session(&self, id: &str) -> bool {
        self.sessions.live.end(id)
    }

    fn add(&self, mut definition: ToolDefinition, code: HandlerSource) -> Result<(), Error> {
        definition.origin = Origin::Program;
        definition.source = ToolSource::Internal;
        for name in std::iter::once(&definition.name).chain(&definition.aliases) {
            check_name(&name.full()).map_err(|error| Error::usage(error.to_string()))?;
        }
        self.directory.register(definition, code)?;
        self.notify_list_changed();
        Ok(())
    }

    fn notify_list_changed(&self) {
        let (owner, list) = (ListOwner::Program, ListKind::Tools);
        self.sessions.events.emit(HostEvent::ListChanged { owner, list });
    }
}

#[cfg(test)]
mod tests;
