//! Requests of the server: handed to the SDK, and counted as open questions until they end.

use rmcp::RoleClient;
use rmcp::model::{CustomRequest, JsonRpcMessage, JsonRpcRequest, RequestId, ServerRequest};
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;

use super::McpSession;
use crate::mcp::message::RawJson;
use crate::mcp::protocol_warning::ProtocolWarning;
use crate::mcp::questions::{OpenQuestion, QuestionRejection};
use crate::model::CallId;

impl McpSession {
    /// A request of the server, of any kind. It goes to the SDK with its raw parameters.
    pub(super) fn handle_request(
        &self,
        id: Value,
        method: &str,
        params: Option<RawJson>,
        of: Option<i64>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let key = id.to_string();
        let Ok(request_id) = serde_json::from_value::<RequestId>(id) else {
            let method = method.to_owned();
            self.add_warning(ProtocolWarning::UnusableRequestId { method, id: key });
            return None;
        };
        let params = match params.map(|raw| raw.parse()).transpose() {
            Ok(params) => params,
            Err(error) => {
                self.add_warning(ProtocolWarning::UnreadableRequest {
                    method: method.to_owned(),
                    reason: error.message().to_owned(),
                });
                return None;
            }
        };
        if let Err(reason) = self.open_question(key, method, of) {
            let method = method.to_owned();
            self.add_warning(ProtocolWarning::RejectedRequest { method, reason });
            return None;
        }
        let request = ServerRequest::CustomRequest(CustomRequest::new(method, params));
        Some(JsonRpcMessage::Request(JsonRpcRequest::new(request_id, request)))
    }

    /// Takes note of a question and of the requests that may be waiting for its answer: the one on
    /// whose stream it came, or all that are part of calls.
    fn open_question(
        &self,
        key: String,
        method: &str,
        of: Option<i64>,
    ) -> Result<(), QuestionRejection> {
        let mut guard = self.state();
        let state = &mut *guard;
        let of = of.filter(|id| state.pending.contains_key(id));
        let waiting = state.pending.iter().filter(|(id, pending)| match of {
            Some(of) => **id == of,
            None => pending.call.is_some(),
        });
        let mut waiting: Vec<(i64, Option<CallId>)> =
            waiting.map(|(id, pending)| (*id, pending.call.clone())).collect();
        let call = match waiting.as_mut_slice() {
            [(_, call)] => call.take(),
            _ => None,
        };
        let requests: Vec<i64> = waiting.into_iter().map(|(id, _)| id).collect();
        for id in &requests {
            if let Some(pending) = state.pending.get(id) {
                pending.woken.notify_one();
            }
        }
        state.questions.open(key, OpenQuestion::new(method, requests, call))
    }

    pub(super) fn close_question(&self, id: &RequestId) {
        let Ok(key) = serde_json::to_string(id) else { return };
        let mut state = self.state();
        for id in state.questions.close(&key) {
            if let Some(pending) = state.pending.get(&id) {
                pending.woken.notify_one();
            }
        }
    }

    pub fn question(&self, id: &RequestId) -> Option<OpenQuestion> {
        self.state().questions.get(&serde_json::to_string(id).ok()?)
    }

    /// The call that a question belongs to. Where that is not certain while another call has a question
    /// of its own, it waits for that to end: who is asked in its place would be somebody else.
    pub async fn call_of_question(&self, id: &RequestId) -> Option<CallId> {
        let key = serde_json::to_string(id).ok()?;
        let mut has_to_wait = false;
        loop {
            let ended = self.request_ended.notified();
            {
                let state = self.state();
                if let [request] = state.questions.requests(&key) {
                    return state.pending.get(request)?.call.clone();
                }
                has_to_wait |= state.questions.is_behind_another(&key);
            }
            if !has_to_wait {
                return None;
            }
            ended.await;
        }
    }

    pub(super) fn is_withdrawn(&self, id: &RequestId) -> bool {
        self.question(id).is_some_and(|question| question.is_withdrawn)
    }

    /// Remembers a page that the server asked to open, to recognise it when it is reported as done.
    pub fn remember_page(&self, id: &str) {
        self.state().questions.remember_page(id);
    }
}
