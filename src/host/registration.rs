//! Registering tools and sessions while the host runs.
//!
//! Owns: what may be registered under which name, and telling everybody who listens. Never does:
//! keep the tools (`registry`) or the sessions (`sessions`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ToolHost;
use super::registry::{Code, Handler};
use super::sessions::SessionInfo;
use crate::catalogue::build::where_from;
use crate::model::{
    Event, Fault, ListOwner, OfferList, Origin, Source, ToolDefinition, ToolName, ToolScope,
    check_name,
};

impl ToolHost {
    /// Adds a tool that runs `handler`. It is listed, found and called from now on like any other,
    /// and everybody who listens is told with [`Event::ListChanged`].
    ///
    /// Its origin becomes [`Origin::Program`] and its source internal.
    ///
    /// # Errors
    /// A usage fault for a name that is none, or that is taken by a registered tool, a tool of a
    /// file, or one that a server declares or was seen to offer.
    pub fn register(
        &self,
        definition: ToolDefinition,
        handler: impl Handler + 'static,
    ) -> Result<(), Fault> {
        self.add(definition, Code::Global(Arc::new(handler)))
    }

    /// Adds a tool that is made for each session: `factory` makes the handler when the session
    /// calls the tool for the first time, and the handler is dropped when the session ends, when
    /// the tool is unregistered, or when the session has to make room for others (see
    /// [`MAX_SESSIONS`](super::sessions::MAX_SESSIONS)).
    ///
    /// # Errors
    /// As [`ToolHost::register`].
    pub fn register_session<H: Handler + 'static>(
        &self,
        mut definition: ToolDefinition,
        factory: impl Fn(&SessionInfo) -> H + Send + Sync + 'static,
    ) -> Result<(), Fault> {
        definition.scope = ToolScope::Session;
        let factory = move |info: &SessionInfo| Arc::new(factory(info)) as Arc<dyn Handler>;
        self.add(definition, Code::Session(Arc::new(factory)))
    }

    /// Takes a registered tool away, by its full name; calls that run go on. `false` when no such
    /// tool is registered: tools of files and servers cannot be taken away.
    pub fn unregister(&self, name: &str) -> bool {
        let removed = self.registry.remove(name);
        if removed {
            self.list_changed();
        }
        removed
    }

    /// The registered tools, in the order in which they were registered.
    pub fn registered(&self) -> Vec<Arc<ToolDefinition>> {
        self.registry.definitions()
    }

    /// Begins a session, or gives one that lives a new context. Every call that names the session
    /// has its directory, variables and metadata; what a request says itself comes on top. Session
    /// tools are made anew.
    ///
    /// A session need not be opened: one that a call names begins with that call, and has the
    /// context of the host.
    ///
    /// # Errors
    /// A usage fault when [`MAX_SESSIONS`](super::sessions::MAX_SESSIONS) live and none is idle.
    pub fn open_session(&self, info: SessionInfo) -> Result<(), Fault> {
        self.sessions.open(info)
    }

    /// Ends a session and drops the tools made for it. Whether there was one.
    pub fn end_session(&self, id: &str) -> bool {
        self.sessions.end(id)
    }

    fn add(&self, mut definition: ToolDefinition, code: Code) -> Result<(), Fault> {
        definition.origin = Origin::Program;
        definition.source = Source::Internal;
        for name in std::iter::once(&definition.name).chain(&definition.aliases) {
            check_name(&name.full()).map_err(Fault::usage)?;
            if let Some(taken) = self.taken(name) {
                return Err(taken);
            }
        }
        self.registry
            .add(definition, code)
            .map_err(|name| Fault::usage(format!("a tool '{name}' is registered already")))?;
        self.list_changed();
        Ok(())
    }

    /// The fault for a name that another provider has.
    fn taken(&self, name: &ToolName) -> Option<Fault> {
        let full = name.full();
        let others = self.members.iter().filter(|member| !Arc::ptr_eq(member, &self.registered));
        let found = others
            .flat_map(|member| [Some(member.declared()), member.remembered()])
            .flatten()
            .find_map(|list| list.exact(&full).map(Arc::clone))?;
        let whose = where_from(&found.definition.origin);
        Some(Fault::usage(format!("the name '{full}' is taken by the tool {whose}")))
    }

    fn list_changed(&self) {
        self.registered.changed();
        self.version.fetch_add(1, Ordering::Relaxed);
        let (owner, list) = (ListOwner::Program, OfferList::Tools);
        self.events.emit(Event::ListChanged { owner, list });
    }
}

#[cfg(test)]
mod tests;
