//! The sessions of a host, each with its context and its own instances of tools, and the sink for viewers.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::attempt::CallLimits;
use super::function_tool::ToolHandler;
use super::request::{CallRequest, ItemRequest};
use super::variables;
use crate::config::references::call_may_set;
use crate::model::{
    CallId, ClientAbilities, Error, EventSink, JsonObject, ToolContext, ToolDefinition,
    TraceContext,
};

/// Maximum number of open sessions. When another one starts, the one that has been idle longest is
/// ended.
pub const MAX_SESSIONS: usize = 1_000;

/// The context of a session.
#[derive(Debug, Clone)]
pub struct SessionInfo {
    /// The id by which calls name the session.
    pub session_id: Arc<str>,
    /// The user on whose behalf its calls are made, instead of the host's.
    pub user_id: Option<String>,
    /// The working directory of its user.
    pub cwd: Arc<Path>,
    /// Variables for the tools it calls.
    pub environment: BTreeMap<String, String>,
    /// Free-form metadata for the tools it calls.
    pub metadata: JsonObject,
}

impl Default for SessionInfo {
    fn default() -> Self {
        Self {
            session_id: Arc::default(),
            user_id: None,
            cwd: Path::new(".").into(),
            environment: BTreeMap::new(),
            metadata: JsonObject::new(),
        }
    }
}

/// An instance of a session tool, created by the first call that needs it.
type ToolInstance = Arc<OnceLock<Arc<dyn ToolHandler>>>;

#[derive(Default)]
struct LiveSession {
    info: Arc<SessionInfo>,
    /// Whether it was opened by name, so that its context applies to every call.
    is_explicit: bool,
    instances: HashMap<String, ToolInstance>,
    /// When it was last used, as an increasing number.
    used: u64,
    /// Each call under way holds one more.
    busy: Arc<()>,
}

impl LiveSession {
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.busy) == 1
    }
}

/// The open sessions, at most [`MAX_SESSIONS`].
#[derive(Default)]
pub(super) struct Sessions(Mutex<SessionTable>);

#[derive(Default)]
struct SessionTable {
    live: HashMap<String, LiveSession>,
    uses: u64,
}

/// Keeps a session from being dropped while one of its tools runs.
pub(super) struct SessionLease {
    pub(super) info: Arc<SessionInfo>,
    pub(super) instance: ToolInstance,
    _busy: Arc<()>,
}

impl Sessions {
    /// Starts a session, or gives an open one a new context; its tools are then recreated.
    ///
    /// # Errors
    /// A usage error when too many sessions are open and none is idle.
    pub(super) fn open(&self, info: SessionInfo) -> Result<(), Error> {
        let mut table = self.lock();
        let session = table.session(&info.session_id)?;
        session.is_explicit = true;
        session.info = Arc::new(info);
        session.instances.clear();
        Ok(())
    }

    /// Ends a session: its tools are dropped as soon as nothing runs in them. Returns whether it
    /// was open.
    pub(super) fn end(&self, id: &str) -> bool {
        // Dropped after the lock is released: what a tool does then is its own affair.
        let ended = self.lock().live.remove(id);
        ended.is_some()
    }

    /// The context of a session that was opened by name.
    pub(super) fn info(&self, id: &str) -> Option<Arc<SessionInfo>> {
        let table = self.lock();
        table.live.get(id).filter(|session| session.is_explicit).map(|s| Arc::clone(&s.info))
    }

    /// Enters a session to use its instance of `tool`. One that was not opened starts now, with
    /// this context.
    ///
    /// # Errors
    /// Like [`Sessions::open`].
    pub(super) fn acquire(&self, info: SessionInfo, tool: &str) -> Result<SessionLease, Error> {
        let mut table = self.lock();
        let session = table.session(&info.session_id)?;
        if !session.is_explicit && session.instances.is_empty() {
            session.info = Arc::new(info);
        }
        Ok(SessionLease {
            info: Arc::clone(&session.info),
            instance: Arc::clone(session.instances.entry(tool.to_owned()).or_default()),
            _busy: Arc::clone(&session.busy),
        })
    }

    pub(super) fn drop_tool(&self, tool: &str) {
        let mut table = self.lock();
        let instances: Vec<_> =
            table.live.values_mut().filter_map(|s| s.instances.remove(tool)).collect();
        drop(table);
        drop(instances);
    }

    /// Ends all sessions, when the host is closed.
    pub(super) fn clear(&self) {
        let ended = std::mem::take(&mut self.lock().live);
        drop(ended);
    }

    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTable {
    /// The session with this name, now marked as most recently used.
    fn session(&mut self, id: &str) -> Result<&mut LiveSession, Error> {
        if !self.live.contains_key(id) && self.live.len() >= MAX_SESSIONS {
            let idle = self.live.iter().filter(|(_, session)| session.is_idle());
            let oldest = idle.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else {
                return Err(Error::usage(format!("{MAX_SESSIONS} sessions are in use"))
                    .with_hint("end one of them first"));
            };
            self.live.remove(&oldest);
        }
        self.uses += 1;
        let session = self.live.entry(id.to_owned()).or_default();
        session.used = self.uses;
        Ok(session)
    }
}

#[derive(Default)]
pub(super) struct SessionManager {
    /// The session of requests that name none. Its directory, variables and metadata are those of
    /// every session that does not replace them.
    pub(super) base: SessionInfo,
    pub(super) trace: Option<TraceContext>,
    pub(super) live: Arc<Sessions>,
    /// Hears what happens; may lose events, so that no viewer slows a call down.
    pub(super) events: EventSink,
}

impl SessionManager {
    pub(super) fn session_of<'a>(&'a self, request: &'a CallRequest) -> &'a str {
        request.session.as_deref().unwrap_or(&self.base.session_id)
    }

    /// What surrounds a request: the base context, then what its session says, then what the request
    /// says, the later before the earlier. No tool has chosen among the variables yet.
    pub(super) fn caller_info(&self, request: &CallRequest) -> SessionInfo {
        let session = self.session_of(request);
        let mut info = self.info(session, request.user_id.as_ref(), &request.metadata);
        info.environment.extend(request.environment.clone());
        if let Some(cwd) = &request.cwd {
            info.cwd = cwd.as_path().into();
        }
        info
    }

    fn info(&self, session: &str, user: Option<&String>, metadata: &JsonObject) -> SessionInfo {
        let mut info = self.base.clone();
        if session != &*info.session_id {
            info.session_id = session.into();
        }
        if let Some(session) = self.live.info(&info.session_id) {
            info.environment.extend(session.environment.clone());
            info.metadata.extend(session.metadata.clone());
            info.cwd.clone_from(&session.cwd);
            info.user_id = session.user_id.clone().or(info.user_id);
        }
        info.metadata.extend(metadata.clone());
        info.user_id = user.cloned().or(info.user_id);
        info
    }

    /// The context that a server gets with a request for one of its offerings. Of the variables of
    /// the session only those stay that the server's entry names.
    pub(super) fn offering_context(
        &self,
        request: &ItemRequest,
        call_id: CallId,
        context_env: &[String],
    ) -> ToolContext {
        let session = request.session.as_deref().unwrap_or(&self.base.session_id);
        let mut info = self.info(session, request.user_id.as_ref(), &request.metadata);
        info.environment.retain(|name, _| call_may_set(name, context_env));
        let trace = request.trace.as_ref().or(self.trace.as_ref());
        self.context_of(call_id, info, trace, (request.client, &request.cancel))
    }

    pub(super) fn trace_of<'a>(&'a self, request: &'a CallRequest) -> Option<&'a TraceContext> {
        request.trace.as_ref().or(self.trace.as_ref())
    }

    /// The context that a tool gets for a call. Only those variables remain that the tool accepts.
    pub(super) fn context(
        &self,
        request: &CallRequest,
        call_id: CallId,
        tool: &ToolDefinition,
        limits: &CallLimits,
    ) -> ToolContext {
        let mut info = self.caller_info(request);
        variables::retain(&mut info.environment, tool);
        let client = (request.client, &request.cancel);
        let context = self.context_of(call_id, info, self.trace_of(request), client);
        // Of two limits that end together, the one of the whole call is named.
        let is_shorter = limits.attempt < limits.total;
        let idle_limit = if is_shorter {
            limits.attempt
        } else {
            limits.total.saturating_add(Duration::from_secs(1))
        };
        ToolContext { idle_limit, ..context }
    }

    fn context_of(
        &self,
        call_id: CallId,
        info: SessionInfo,
        trace: Option<&TraceContext>,
        (client, cancel): (ClientAbilities, &CancellationToken),
    ) -> ToolContext {
        ToolContext {
            call_id,
            session_id: info.session_id,
            user_id: info.user_id,
            trace: trace.cloned(),
            cwd: info.cwd,
            environment: info.environment,
            metadata: info.metadata,
            cancel: cancel.clone(),
            client,
            events: self.events.clone(),
            idle_limit: ToolContext::IDLE_LIMIT,
            caller: None,
            ancestors: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: &str) -> SessionInfo {
        SessionInfo { session_id: id.into(), ..SessionInfo::default() }
    }

    #[test]
    fn the_session_idle_the_longest_makes_room() {
        let sessions = Sessions::default();
        let busy = sessions.acquire(info("0"), "t").unwrap();
        for id in 1..MAX_SESSIONS {
            sessions.open(info(&id.to_string())).unwrap();
        }
        sessions.open(info("1")).unwrap();
        sessions.open(info("new")).unwrap();
        assert_eq!(sessions.lock().live.len(), MAX_SESSIONS);
        // 0 is in use and 1 was used again, so 2 is the oldest.
        assert!(sessions.lock().live.contains_key("0"));
        assert!(sessions.info("1").is_some() && sessions.info("2").is_none());
        drop(busy);
        sessions.open(info("newer")).unwrap();
        assert!(!sessions.lock().live.contains_key("0"));
    }

    #[test]
    fn when_all_are_in_use_none_is_dropped() {
        let sessions = Sessions::default();
        let _all: Vec<SessionLease> = (0..MAX_SESSIONS)
            .map(|id| sessions.acquire(info(&id.to_string()), "t").unwrap())
            .collect();
        assert_eq!(sessions.open(info("new")).unwrap_err().message(), "1000 sessions are in use");
    }

    #[test]
    fn a_session_that_was_not_opened_has_no_context_of_its_own() {
        let sessions = Sessions::default();
        drop(sessions.acquire(info("s"), "t").unwrap());
        assert!(sessions.info("s").is_none());
        assert!(sessions.end("s"));
        assert!(!sessions.end("s"));
    }
}
