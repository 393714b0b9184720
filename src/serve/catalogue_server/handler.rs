//! One connected client, as the SDK hands its requests over.
#![expect(deprecated, reason = "the older era has subscriptions and levels of its own")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, InputResponses,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, ServerResult, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::{RoleServer, ServerHandler};
use serde::Deserialize as _;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::changes::{self, ClientState, ResourceWatch, known_level};
use super::exchange::ClientRequest;
use super::lean::{self, LeanCall};
use super::running_request::RequestKey;
use super::tool_list::{ServedTool, ServedTools, wire_tool};
use super::{CatalogueServer, ServedIdentity, ended, mixed_up, questions};
use crate::host::request::CallRequest;
use crate::model::JsonObject;
use crate::serve::background::held_sessions::{ConnectionSessions, HeldSessions};
use crate::serve::background::{protocol, service};
use crate::serve::is_modern;
use crate::util::lock::lock;

/// How many calls of one client may run or wait for their turn at once.
const MAX_CALLS: usize = 256;
const MAX_WATCHED: usize = 256;

/// Fires when the listener that a request came by is about to end: subscriptions end first.
#[derive(Clone)]
pub(in crate::serve) struct ListenerClosing(pub(in crate::serve) CancellationToken);

pub struct ServedClient {
    server: Arc<CatalogueServer>,
    identity: ServedIdentity,
    state: Arc<ClientState>,
    pub(in crate::serve) calls: TaskTracker,
    /// Fires when the client is gone or the server ends; firing it cancels what the client waits
    /// for.
    pub(in crate::serve) gone: CancellationToken,
    _gone_when_dropped: DropGuard,
    /// Where it calls as a front end of this program.
    sessions: Option<ConnectionSessions>,
}

impl CatalogueServer {
    /// A client that has just connected. `identity` tells its parked calls and its session tools
    /// from those of others.
    #[doc(hidden)] // for its own transports
    pub fn connect(self: &Arc<Self>, identity: ServedIdentity) -> ServedClient {
        let gone = self.stop.child_token();
        let state = ClientState { takes_logs: identity.is_alone, ..ClientState::default() };
        let background = self.settings.background.as_ref();
        let sessions = background.and_then(|background| background.sessions.as_ref());
        ServedClient {
            server: Arc::clone(self),
            identity,
            state: Arc::new(state),
            calls: TaskTracker::new(),
            _gone_when_dropped: gone.clone().drop_guard(),
            gone,
            sessions: sessions.map(HeldSessions::of_connection),
        }
    }
}

impl ServedClient {
    /// The whole call that a front end of this program makes; `None` for any other client.
    fn front_end_call(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallRequest>, ErrorData> {
        let call = context.meta.get(protocol::CALL).filter(|_| self.server.is_background());
        let Some(call) = call else { return Ok(None) };
        let call = CallRequest::deserialize(call);
        let call = call.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        if let (Some(sessions), Some(session)) = (&self.sessions, &call.session) {
            sessions.hold(session, call.keeps_session);
        }
        Ok(Some(call))
    }

    /// The tools that a client may call: those that need approval only where it can be asked for.
    fn callable<'t>(
        &self,
        offered: &'t ServedTools,
        context: &RequestContext<RoleServer>,
    ) -> impl Iterator<Item = &'t ServedTool> + use<'t> {
        let can_ask = questions::can_fill_forms(context.client_capabilities().as_ref());
        let is_free = self.server.settings.assume_yes || can_ask;
        offered.values().filter(move |tool| is_free || !tool.needs_approval)
    }

    /// The session that a request belongs to: over HTTP that of its header, which the older era has. In
    /// the newer one nothing has looked whether there is such a session.
    fn session(&self, context: &RequestContext<RoleServer>) -> String {
        let head = context.extensions.get::<http::request::Parts>();
        let head = head.filter(|_| !is_modern(context));
        let id = head.and_then(|head| head.headers.get(HEADER_SESSION_ID)?.to_str().ok());
        let own = &self.identity.session;
        id.map_or_else(|| own.clone(), |id| served_session(own, id))
    }

    fn request(
        &self,
        context: RequestContext<RoleServer>,
        method: &'static str,
        (name, arguments): (String, Option<JsonObject>),
        (state, answers): (Option<String>, Option<InputResponses>),
    ) -> ClientRequest {
        let (session, arguments) = (self.session(&context), arguments.unwrap_or_default());
        // In the newer era what the request says, and none without.
        let level = if is_modern(&context) {
            context.meta.log_level().and_then(known_level)
        } else {
            *lock(&self.state.level)
        };
        let key = RequestKey { session, method, name, arguments };
        ClientRequest { key, state, answers, level, id: None, is_front_end: false, context }
    }

    /// Answers a request by `work`, unless too many of this client run or the client is gone.
    fn bounded<'a, T: Send>(
        &'a self,
        work: impl Future<Output = Result<T, ErrorData>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, ErrorData>> {
        // Boxed: it is most of what a connection holds.
        Box::pin(async move {
            if self.calls.len() >= MAX_CALLS {
                let message = format!(
                    "{MAX_CALLS} calls of this client are already running; wait for one to end"
                );
                return Err(ErrorData::internal_error(message, None));
            }
            let _counted = self.calls.token();
            match self.gone.run_until_cancelled(work).await {
                Some(answer) if answer.is_ok() || !self.gone.is_cancelled() => answer,
                // The host found that it has to end, and did nothing.
                Some(Err(error)) if error.code.0 == protocol::NOT_BEGUN => Err(error),
                Some(_) | None => Err(ended()),
            }
        })
    }

    /// Sends a client of the newer era what it subscribed to, until it disconnects.
    async fn subscription(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut watches: Vec<Arc<ResourceWatch>> = Vec::new();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            if self.server.host.has_resource(uri).await {
                watches.push(self.server.watched.watch(&self.server.host, uri));
            }
        }
        let head = context.request_context().extensions.get::<http::request::Parts>();
        let closing = head.and_then(|head| head.extensions.get::<ListenerClosing>());
        let closing = closing.map(|closing| closing.0.clone()).unwrap_or_default();
        let accepted = context.accepted();
        let is_wanted = |change: &_| changes::is_subscribed(accepted, &watches, change);
        let (changes, sink) = (self.server.clients.changes(), context.sink());
        let telling = changes::forward(changes, is_wanted, |sent| sink.send(sent));
        tokio::select! {
            () = context.cancelled() => {}
            () = self.gone.cancelled() => {}
            () = closing.cancelled() => {}
            () = telling => {}
        }
        Ok(())
    }

    pub(in crate::serve) fn session_guard(&self) -> SessionGuard {
        SessionGuard { server: Arc::clone(&self.server), session: self.identity.session.clone() }
    }
}

/// The name that a session over HTTP has in the host; `own` is that of all sessions with its token.
pub(in crate::serve) fn served_session(own: &str, id: &str) -> String {
    format!("{own}-{id}")
}

/// When dropped, ends the session of a client that has its own connection.
pub(in crate::serve) struct SessionGuard {
    server: Arc<CatalogueServer>,
    session: String,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.server.end_session(&self.session);
    }
}

/// The SDK moves what answers a request several times before it runs, with room for the largest of
/// these functions: what takes much room is boxed in each.
impl ServerHandler for ServedClient {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_tool_list_changed()
                .enable_resources()
                .enable_resources_subscribe()
                .enable_resources_list_changed()
                .enable_prompts()
                .enable_prompts_list_changed()
                .enable_completions()
                .enable_logging()
                .enable_tasks()
                .build(),
        )
        .with_server_info(Implementation::new("toolhost", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = self.server.offered_tools().await;
        let tools = self.callable(&offered, &context);
        let Some(whole) = &self.server.settings.lean else {
            let tools = tools.map(|tool| tool.wire.clone()).collect();
            return Ok(ListToolsResult::with_all_items(tools));
        };
        let own = lean::definitions().into_iter().map(|tool| wire_tool(&tool, tool.name.full()));
        let whole = tools.filter(|tool| lean::is_whole(tool, whole)).map(|tool| tool.wire.clone());
        Ok(ListToolsResult::with_all_items(own.chain(whole).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.latest_tools().get(name).map(|tool| tool.wire.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let (name, arguments) = if self.server.settings.lean.is_some() {
            match LeanCall::read(name.into(), arguments) {
                LeanCall::Tool(name, arguments) => (name, arguments),
                own => {
                    let offered = self.server.offered_tools().await;
                    let tools = self.callable(&offered, &context);
                    return Ok(own.answer(&tools.collect::<Vec<_>>()).into());
                }
            }
        } else {
            (name.into(), arguments)
        };
        let front_end_call = self.front_end_call(&context)?;
        let (what, round) = ((name, arguments), (request_state, input_responses));
        let mut request = self.request(context, "tools/call", what, round);
        request.is_front_end = front_end_call.is_some();
        request.id = front_end_call.as_ref().and_then(|call| call.id.clone());
        self.bounded(self.server.answer_call(request, front_end_call)).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.state.is_ready.swap(true, Ordering::Relaxed) {
            return;
        }
        let (changes, client) = (self.server.clients.changes(), Arc::clone(&self.state));
        let telling = async move {
            let is_wanted = |change: &_| client.includes(change);
            changes::forward(changes, is_wanted, |sent| context.peer.send_notification(sent)).await;
        };
        tokio::spawn(self.gone.clone().run_until_cancelled_owned(telling));
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *lock(&self.state.level) = known_level(request.level);
        Ok(())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(Box::pin(self.server.list_resources()).await)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(Box::pin(self.server.list_resource_templates()).await)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let ReadResourceRequestParams { uri, input_responses, request_state, .. } = request;
        let round = (request_state, input_responses);
        let request = self.request(context, "resources/read", (uri, None), round);
        let answer = self.server.exchange(request, |server, key, item| async move {
            server.read_resource(&key.name, &item).await.map(ServerResult::ReadResourceResult)
        });
        match self.bounded(answer).await? {
            ServerResult::ReadResourceResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(required) => Ok(required.into()),
            _ => Err(mixed_up()),
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.truncate(MAX_WATCHED);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        Box::pin(self.subscription(context)).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !Box::pin(self.server.host.has_resource(&request.uri)).await {
            let message = format!("no server lists the resource '{}'", request.uri);
            return Err(ErrorData::resource_not_found(message, None));
        }
        let mut watched = lock(&self.state.watched);
        if watched.len() >= MAX_WATCHED {
            let message = format!("one client may watch {MAX_WATCHED} resources");
            return Err(ErrorData::invalid_params(message, None));
        }
        let uri = request.uri;
        watched
            .entry(uri)
            .or_insert_with_key(|uri| self.server.watched.watch(&self.server.host, uri));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        drop(lock(&self.state.watched).remove(&request.uri));
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(Box::pin(self.server.list_prompts()).await)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let GetPromptRequestParams { name, arguments, input_responses, request_state, .. } =
            request;
        let round = (request_state, input_responses);
        let request = self.request(context, "prompts/get", (name, arguments), round);
        let answer = self.server.exchange(request, |server, key, item| async move {
            server.get_prompt(&key, &item).await.map(ServerResult::GetPromptResult)
        });
        match self.bounded(answer).await? {
            ServerResult::GetPromptResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(required) => Ok(required.into()),
            _ => Err(mixed_up()),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(background) = &self.server.settings.background {
            if self.gone.is_cancelled() {
                return Err(service::ending());
            }
            let cancelled = context.ct.clone();
            let answer = background.answer(&request, context, self.sessions.as_ref());
            let answer = Box::pin(cancelled.run_until_cancelled(answer));
            match self.gone.run_until_cancelled(answer).await {
                Some(Some(Some(answer))) => return answer,
                Some(Some(None)) => {}
                Some(None) | None => return Err(ended()),
            }
        }
        let CustomRequest { method, .. } = request;
        let message = if method.starts_with("tasks/") {
            format!(
                "{method}: tasks of revision 2025-11-25 are not served; call the tool, its end is \
                 waited for"
            )
        } else {
            method
        };
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.server.tasks.get(&self.session(&context), &request.task_id)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let UpdateTaskParams { task_id, input_responses, .. } = request;
        self.server.tasks.update(&self.session(&context), &task_id, input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.tasks.cancel(&self.session(&context), &request.task_id)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let item = self.server.item_request(&context, &self.session(&context));
        Box::pin(self.server.complete(request, &item)).await
    }
}
