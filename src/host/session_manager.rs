//! Session contexts for the tools that are called, and the sink for viewers.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::limits::CallLimits;
use super::request::{CallRequest, ItemRequest};
use super::sessions::{SessionInfo, Sessions};
use super::variables;
use crate::config::variables::call_may_set;
use crate::model::{
    CallId, ClientAbilities, EventSink, JsonObject, ToolContext, ToolDefinition, TraceContext,
};

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
        ToolContext { idle_limit: limits.attempt, ..context }
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
