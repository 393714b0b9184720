//! One `tools/call` of a client, from its request to its answer.
//!
//! Owns: the call while it runs and what a client is told meanwhile. The call runs in a task of its
//! own, so that a client that is slow to read holds up nothing but itself; when the client goes away
//! or cancels, so is the call.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, InputRequests, InputRequiredResult,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client_registry::{CallWatch, ClientQuestion, ProgressReport};
use super::parked_calls::{CallKey, ParkedCall};
use super::{CatalogueServer, front_ends, questions, result};
use crate::host::request::{CallArguments, CallOutcome, CallRequest, LookupScope};
use crate::model::{Error, ErrorKind, JsonObject, QuestionReply, TraceContext};
use crate::serve::background::lifetime::RunningCallGuard;

/// A call that runs in the background. Dropped, it is cancelled.
pub(super) struct RunningCall {
    outcome: JoinHandle<Result<CallOutcome, Error>>,
    watch: CallWatch,
    /// A front end takes the whole outcome.
    is_of_front_end: bool,
    _running: Option<RunningCallGuard>,
    _cancelled_when_dropped: DropGuard,
}

/// What happened to a running call.
enum CallStep {
    Progress(ProgressReport),
    Question(ClientQuestion),
    Ended(Box<Result<CallOutcome, Error>>),
}

impl CatalogueServer {
    /// Answers a `tools/call`.
    pub(super) async fn call_tool(
        &self,
        session: &str,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let key = CallKey {
            session: session.to_owned(),
            name: request.name.to_string(),
            arguments: request.arguments.take().unwrap_or_default(),
        };
        let mut waiting = Vec::new();
        let mut running = match &request.request_state {
            Some(state) => {
                let Some(parked) = self.parked.take(state, &key) else {
                    let words = "this requestState belongs to no call of yours that waits";
                    return Err(ErrorData::invalid_params(words, None));
                };
                let answers = request.input_responses.take().unwrap_or_default();
                for (name, question) in parked.questions {
                    match answers.get(&name) {
                        Some(answer) => answer_question(question, answer.clone()),
                        None => waiting.push(question),
                    }
                }
                parked.running
            }
            None => self.start(&key, &context)?,
        };
        loop {
            if !waiting.is_empty() {
                return self.require_input(key, running, waiting);
            }
            let step = tokio::select! {
                () = context.ct.cancelled() => {
                    return Err(ErrorData::internal_error("the call was cancelled", None));
                }
                step = running.next() => step,
            };
            match step {
                CallStep::Progress(progress) => report(&context, progress).await,
                CallStep::Question(first) => {
                    let capabilities = context.client_capabilities();
                    for question in std::iter::once(first).chain(running.more_questions()) {
                        if !questions::is_supported(&question.body, capabilities.as_ref()) {
                            let _gone = question.reply.send(QuestionReply::Unattended);
                        } else if is_modern(&context) {
                            waiting.push(question);
                        } else {
                            let asking = questions::ask(
                                context.peer.clone(),
                                question,
                                running.is_of_front_end,
                            );
                            tokio::spawn(asking);
                        }
                    }
                }
                CallStep::Ended(ended) if running.is_of_front_end => {
                    return front_ends::outcome(&ended).map(Into::into);
                }
                CallStep::Ended(ended) => {
                    return match *ended {
                        Ok(outcome) => Ok(result::of_outcome(outcome).into()),
                        Err(error) => self.refusal(&key.name, &error).await,
                    };
                }
            }
        }
    }

    /// Begins a call.
    ///
    /// # Errors
    /// A front end's request that cannot be read, and a host that is about to end.
    fn start(
        &self,
        key: &CallKey,
        context: &RequestContext<RoleServer>,
    ) -> Result<RunningCall, ErrorData> {
        let running = self.admit_call()?;
        let sent = self.front_end_request(context)?;
        let is_of_front_end = sent.is_some();
        let call_id = self.host.new_call_id();
        let offered = self.tools.known();
        let name = offered.find(&key.name).map_or(key.name.as_str(), |tool| &tool.full_name);
        let cancel = CancellationToken::new();
        let request = sent.unwrap_or_else(|| CallRequest {
            assume_yes: self.settings.assume_yes,
            session: Some(key.session.clone()),
            metadata: metadata(context),
            trace: trace(context),
            ..CallRequest::new(name, CallArguments::Object(key.arguments.clone()))
        });
        let request = CallRequest {
            id: Some(call_id.clone()),
            client: context.client_info().map(|client| client.name),
            cancel: cancel.clone(),
            ..request
        };
        let watch = self.clients.watch(&call_id);
        let host = Arc::clone(&self.host);
        let outcome = tokio::spawn(async move { host.call(request).await });
        Ok(RunningCall {
            outcome,
            watch,
            is_of_front_end,
            _running: running,
            _cancelled_when_dropped: cancel.drop_guard(),
        })
    }

    /// Ends the request with questions; the call goes on and waits.
    fn require_input(
        &self,
        key: CallKey,
        running: RunningCall,
        waiting: Vec<ClientQuestion>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut asked = InputRequests::new();
        let mut questions = Vec::new();
        for (number, question) in waiting.into_iter().enumerate() {
            let own = question.key.clone().filter(|key| !asked.contains_key(key));
            let name = own.unwrap_or_else(|| format!("input-{}", number + 1));
            let request = questions::input_request(&question.body)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            asked.insert(name.clone(), request);
            questions.push((name, question));
        }
        let parked = ParkedCall { key, running, questions, taken: None };
        let Some(state) = self.parked.park(parked) else {
            let words = "too many calls wait for answers of their clients; try again later";
            return Err(ErrorData::internal_error(words, None));
        };
        Ok(InputRequiredResult::new(Some(asked), Some(state)).into())
    }

    /// What a client hears of a call that was not dispatched.
    async fn refusal(&self, name: &str, error: &Error) -> Result<CallToolResponse, ErrorData> {
        let is_unknown = error.kind() == ErrorKind::Usage
            && self
                .host
                .find(name, &LookupScope::default())
                .await
                .is_err_and(|e| e.kind() == ErrorKind::Usage);
        if is_unknown {
            return Err(ErrorData::invalid_params(result::words(error), None));
        }
        Ok(result::of_error(error).into())
    }
}

impl RunningCall {
    async fn next(&mut self) -> CallStep {
        tokio::select! {
            // What was said before the end is told before the end.
            biased;
            Some(progress) = self.watch.progress.recv() => CallStep::Progress(progress),
            Some(question) = self.watch.questions.recv() => CallStep::Question(question),
            outcome = &mut self.outcome => CallStep::Ended(Box::new(outcome.unwrap_or_else(|failed| {
                Err(Error::internal(format!("the call ended without a result: {failed}")))
            }))),
        }
    }

    fn more_questions(&mut self) -> Vec<ClientQuestion> {
        std::iter::from_fn(|| self.watch.questions.try_recv().ok()).collect()
    }
}

fn answer_question(question: ClientQuestion, answer: Value) {
    let reply = questions::read(&question.body, answer);
    let _gone = question.reply.send(reply);
}

async fn report(context: &RequestContext<RoleServer>, progress: ProgressReport) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let mut update = ProgressNotificationParam::new(token, progress.progress);
    update.total = progress.total;
    update.message = progress.message;
    let _client_gone = context.peer.notify_progress(update).await;
}

/// What tools may know of the client: its name.
fn metadata(context: &RequestContext<RoleServer>) -> JsonObject {
    let mut metadata = JsonObject::new();
    if let Some(client) = context.client_info() {
        metadata.insert("client".into(), Value::String(client.name));
    }
    metadata
}

/// The trace that a call belongs to (W3C), as its `_meta` says.
fn trace(context: &RequestContext<RoleServer>) -> Option<TraceContext> {
    let text = |key: &str| context.meta.get(key).and_then(Value::as_str);
    TraceContext::parse(text("traceparent")?, text("tracestate")).ok()
}

/// Whether the request belongs to the stateless era, in which a server cannot ask the client.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}
