//! Session contexts for the tools that are called, and the sink for viewers.
//!
//! Owns: the session of requests that name none, what it brings along, and putting the context of a
//! call together. Never does: keep records of calls.

use std::path::PathBuf;
use std::sync::Arc;

use super::limits::CallLimits;
use super::request::CallRequest;
use super::sessions::{SessionInfo, Sessions};
use super::variables;
use crate::model::{CallId, EventSink, ToolContext, ToolDefinition};

/// The sessions of a host and its viewers.
pub(super) struct SessionManager {
    /// The session of requests that name none. Its directory, variables and metadata are those of
    /// every session that does not replace them.
    pub(super) base: SessionInfo,
    /// The sessions that live, shared with the registry, which keeps their tools there.
    pub(super) live: Arc<Sessions>,
    /// Hears what happens; may lose events, so that no viewer slows a call down.
    pub(super) events: EventSink,
}

impl Default for SessionManager {
    fn default() -> Self {
        Self {
            base: SessionInfo { cwd: PathBuf::from("."), ..SessionInfo::default() },
            live: Arc::default(),
            events: EventSink::discard(),
        }
    }
}

impl SessionManager {
    /// The session that a request belongs to.
    pub(super) fn session_of<'a>(&'a self, request: &'a CallRequest) -> &'a str {
        request.session.as_deref().unwrap_or(&self.base.session_id)
    }

    /// What a tool is told about the call it runs: the base context, then what its session says,
    /// then what the request says, the later before the earlier. Of variables only those stay that
    /// the tool accepts.
    pub(super) fn context(
        &self,
        request: &CallRequest,
        call_id: CallId,
        tool: &ToolDefinition,
        limits: &CallLimits,
    ) -> ToolContext {
        let session_id = self.session_of(request).to_owned();
        let SessionInfo { mut cwd, mut environment, mut metadata, .. } = self.base.clone();
        if let Some(session) = self.live.info(&session_id) {
            environment.extend(session.environment.clone());
            metadata.extend(session.metadata.clone());
            cwd.clone_from(&session.cwd);
        }
        environment.extend(request.environment.clone());
        variables::retain(&mut environment, tool);
        metadata.extend(request.metadata.clone());
        ToolContext {
            call_id,
            session_id,
            cwd,
            environment,
            metadata,
            cancel: request.cancel.clone(),
            events: self.events.clone(),
            idle_limit: limits.attempt,
            caller: None,
            ancestors: Vec::new(),
        }
    }
}
