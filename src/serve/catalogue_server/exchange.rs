//! One request of a client during which servers may ask questions, from arrival to response.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ErrorData, GetExtensions as _, InputRequests, InputRequiredResult,
    InputResponses, Notification, ProgressNotificationParam, ServerNotification, ServerResult,
};
use rmcp::service::{OriginatingRequestId, RequestContext};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::changes::{self, DEFAULT_LEVEL};
use super::client_registry::ClientQuestion;
use super::running_request::{ParkedRequest, RequestKey, RequestStep, RunningRequest};
use super::{CatalogueServer, questions};
use crate::host::link::Observation;
use crate::host::request::{self, ItemRequest};
use crate::model::{CallId, ClientAbilities, HostEvent, JsonObject, QuestionReply, TraceContext};
use crate::providers::mcp::call::{METADATA, SESSION, USER};
use crate::serve::background::service;
use crate::serve::is_modern;
use crate::serve::shared_room::MessagePlace;

/// Fires when the session over HTTP that a request belongs to has ended.
#[derive(Clone)]
pub(in crate::serve) struct SessionEnded(pub(in crate::serve) CancellationToken);

pub(super) struct ClientRequest {
    pub(super) key: RequestKey,
    /// The state of the round before.
    pub(super) state: Option<String>,
    /// Answers to questions, by their names.
    pub(super) answers: Option<InputResponses>,
    pub(super) context: RequestContext<RoleServer>,
    /// The minimum level of the lines that are logged for it, where its client says that.
    pub(super) level: Option<&'static str>,
    /// The id by which its client knows it; `None`: the host chooses one.
    pub(super) id: Option<CallId>,
    /// Whether its client is a front end of this program, which is told and asked in its own way.
    pub(super) is_front_end: bool,
}

impl CatalogueServer {
    /// Answers a request: a new one by `work`, and the retry of one that waits by its outcome. The client
    /// may have to come back, with answers or for the result.
    pub(super) async fn exchange<F>(
        self: &Arc<Self>,
        request: ClientRequest,
        work: impl FnOnce(Arc<Self>, RequestKey, ItemRequest) -> F,
    ) -> Result<ServerResult, ErrorData>
    where
        F: Future<Output = Result<ServerResult, ErrorData>> + Send + 'static,
    {
        let ClientRequest { key, state, answers, context, level, id, is_front_end } = request;
        let mut answers = answers.unwrap_or_default();
        let (is_modern, capabilities) = (is_modern(&context), context.client_capabilities());
        let session_ended = context.extensions.get::<SessionEnded>();
        let session_ended = session_ended.map(|ended| ended.0.clone()).unwrap_or_default();
        let log_level = level.or((!is_modern).then_some(DEFAULT_LEVEL));
        let mut waiting = Vec::new();
        let mut running = if let Some(state) = &state {
            let Some(parked) = self.parked.take(state, &key) else {
                let message =
                    "this requestState does not belong to a waiting request of this client";
                return Err(ErrorData::invalid_params(message, None));
            };
            for (name, question) in parked.questions {
                match answers.remove(&name).filter(Value::is_object) {
                    Some(answer) => questions::answer_question(question, answer),
                    None => waiting.push(question),
                }
            }
            parked.running
        } else {
            let questions = Some(questions::abilities(capabilities.as_ref()));
            let client = ClientAbilities { log_level: level, questions };
            let item = ItemRequest { id, client, ..self.item_request(&context, &key.session) };
            let own = key.clone();
            self.start(item, place(&context), |server, item| work(server, own, item))?
        };
        // Asked in this task: over HTTP that is what ties them to the stream of the request.
        let mut pending = FuturesUnordered::new();
        let mut updates = 0.0;
        let mut progress_before = f64::NEG_INFINITY;
        loop {
            if !waiting.is_empty() {
                return self.require_input(key, running, waiting);
            }
            let step = tokio::select! {
                () = context.ct.cancelled() => {
                    return Err(ErrorData::internal_error("the request was cancelled", None));
                }
                () = session_ended.cancelled() => {
                    return Err(ErrorData::internal_error("the session ended", None));
                }
                Some(()) = pending.next(), if !pending.is_empty() => continue,
                step = running.next() => step,
            };
            match step {
                RequestStep::Update(HostEvent::TaskStarted { .. }) => {
                    let takes_tasks = key.method == "tools/call"
                        && is_modern
                        && capabilities.as_ref().is_some_and(ClientCapabilities::supports_tasks);
                    if takes_tasks {
                        let capabilities = capabilities.clone();
                        match self.tasks.begin(&key.session, running, capabilities, &self.stop) {
                            Ok(task) => return Ok(ServerResult::CreateTaskResult(task)),
                            // One too many is waited for.
                            Err(same) => running = same,
                        }
                    }
                }
                RequestStep::Update(event) => {
                    let notification = if is_front_end {
                        updates += 1.0;
                        front_end_update(&context, event, updates)
                    } else {
                        update(&context, event, log_level, &mut progress_before)
                    };
                    if let Some(mut notification) = notification {
                        // Over HTTP that is what ties it to the stream of the request.
                        let origin = OriginatingRequestId(context.id.clone());
                        notification.extensions_mut().insert(origin);
                        let _client_gone = context.peer.send_notification(notification).await;
                    }
                }
                RequestStep::Question(first) => {
                    for question in std::iter::once(first).chain(running.more_questions()) {
                        let answer = question.key.as_ref().and_then(|key| answers.remove(key));
                        if is_front_end {
                            pending.push(questions::ask(context.peer.clone(), question, true));
                        } else if !questions::is_supported(&question.body, capabilities.as_ref()) {
                            let _gone = question.reply.send(QuestionReply::Unattended);
                        } else if let Some(answer) = answer.filter(Value::is_object) {
                            // A client may come back without a state, and a server may need none.
                            questions::answer_question(question, answer);
                        } else if is_modern {
                            waiting.push(question);
                        } else {
                            pending.push(questions::ask(context.peer.clone(), question, false));
                        }
                    }
                }
                RequestStep::Ended(ended) => return ended,
            }
        }
    }

    /// What a request of `own_session` says about its sender, which tools and servers may know: whose
    /// it is, the trace that it belongs to (W3C), and what else is in its `_meta`.
    pub(super) fn item_request(
        &self,
        context: &RequestContext<RoleServer>,
        own_session: &str,
    ) -> ItemRequest {
        let text = |key: &str| context.meta.get(key).and_then(Value::as_str);
        // No client with its own token enters the session of another by naming it.
        let session = match text(SESSION).filter(|name| request::check_user(name).is_ok()) {
            Some(name) if self.is_for_one_client => format!("{own_session}/{name}"),
            Some(name) => name.to_owned(),
            None => own_session.to_owned(),
        };
        let mut metadata = JsonObject::new();
        if let Some(client) = context.client_info() {
            metadata.insert("client".into(), Value::String(client.name));
        }
        let plain = context.meta.get(METADATA).and_then(Value::as_object).into_iter().flatten();
        let is_of_protocol = |key: &str| {
            matches!(key, "progressToken" | "traceparent" | "tracestate")
                || request::is_reserved(key)
        };
        let members = context.meta.0.0.iter().chain(plain).filter(|(key, _)| !is_of_protocol(key));
        metadata.extend(members.map(|(key, value)| (key.clone(), value.clone())));
        let trace =
            text("traceparent").map(|parent| TraceContext::parse(parent, text("tracestate")));
        ItemRequest {
            session: Some(session),
            user_id: self.user.clone().or_else(|| text(USER).map(str::to_owned)),
            metadata,
            trace: trace.and_then(Result::ok),
            cancel: context.ct.clone(),
            ..ItemRequest::default()
        }
    }

    /// Begins a request.
    ///
    /// # Errors
    /// That the host is about to end.
    fn start<F>(
        self: &Arc<Self>,
        item: ItemRequest,
        place: Option<Arc<MessagePlace>>,
        work: impl FnOnce(Arc<Self>, ItemRequest) -> F,
    ) -> Result<RunningRequest, ErrorData>
    where
        F: Future<Output = Result<ServerResult, ErrorData>> + Send + 'static,
    {
        let background = self.settings.background.as_ref();
        let admitted = background.map(|background| background.lifetime.begin_call());
        let admitted = admitted.map(|guard| guard.ok_or_else(service::ending)).transpose()?;
        let id = item.id.clone().filter(|id| !self.clients.is_running(id));
        let call = id.unwrap_or_else(|| self.host.new_call_id());
        let is_heavy = place.as_ref().is_some_and(|place| place.is_heavy());
        Ok(RunningRequest::start(&self.clients, call, admitted, is_heavy, |id, cancel| {
            let work = work(Arc::clone(self), ItemRequest { id: Some(id), cancel, ..item });
            async move {
                let _held = place;
                work.await
            }
        }))
    }

    /// Ends the request with questions; its work goes on and waits.
    fn require_input(
        &self,
        key: RequestKey,
        running: RunningRequest,
        waiting: Vec<ClientQuestion>,
    ) -> Result<ServerResult, ErrorData> {
        let mut requests = InputRequests::new();
        let mut questions = Vec::new();
        for (number, question) in waiting.into_iter().enumerate() {
            let own = question.key.clone().filter(|key| !requests.contains_key(key));
            let name = own.unwrap_or_else(|| format!("input-{}", number + 1));
            requests.insert(name.clone(), questions::input_request_of(&question.body)?);
            questions.push((name, question));
        }
        let parked = ParkedRequest { key, running, questions };
        let Some(state) = self.parked.park(parked) else {
            let message = "too many requests are waiting for input from clients; try again later";
            return Err(ErrorData::internal_error(message, None));
        };
        let required = InputRequiredResult::new(Some(requests), Some(state));
        Ok(ServerResult::InputRequiredResult(required))
    }
}

/// What the client of a request is told of an event: its progress, or what was logged.
fn update(
    context: &RequestContext<RoleServer>,
    event: HostEvent,
    least: Option<&str>,
    progress_before: &mut f64,
) -> Option<ServerNotification> {
    match event {
        HostEvent::Progress { progress, total, message, .. } => {
            let token = context.meta.get_progress_token()?;
            // It has to increase, and the tool does not know of the wait for a person.
            *progress_before = progress.max(progress_before.next_up());
            let mut update = ProgressNotificationParam::new(token, *progress_before);
            (update.total, update.message) = (total, message);
            Some(ServerNotification::ProgressNotification(Notification::new(update)))
        }
        HostEvent::Log { ref level, .. } if !level.is_below(least?) => changes::notification(event),
        _ => None,
    }
}

/// The same for a front end of this program.
fn front_end_update(
    context: &RequestContext<RoleServer>,
    event: HostEvent,
    number: f64,
) -> Option<ServerNotification> {
    if matches!(&event, HostEvent::Log { level, .. } if level.is_below(DEFAULT_LEVEL)) {
        return None;
    }
    let lines = Observation::Event(event).line().to_string();
    Some(service::observed(context.meta.get_progress_token()?, number, lines))
}

/// The memory that a request takes while its work goes on; over HTTP its head has that.
fn place(context: &RequestContext<RoleServer>) -> Option<Arc<MessagePlace>> {
    match context.extensions.get::<http::request::Parts>() {
        Some(head) => head.extensions.get().cloned(),
        None => context.extensions.get().cloned(),
    }
}
