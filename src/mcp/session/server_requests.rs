//! Requests of the server: answered beside everything else, and counted as open questions until
//! their answers are handed over.
//!
//! Notifications of the server: progress, log lines, cancellations, changes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::{McpSession, ProgressUpdate};
use crate::mcp::message::RawJson;
use crate::mcp::notifications;
use crate::mcp::questions::OpenQuestion;
use crate::mcp::responder::{self, QuestionContext, QuestionRefusal};
use crate::mcp::wire::OutgoingFrame;
use crate::model::{CallId, HostEvent, LogLevel};

/// How long a question may wait that no request of ours waits for…
const UNRELATED_QUESTION_TIMEOUT: Duration = Duration::from_mins(5);
/// …and any other, should the request that waits for it never end.
const QUESTION_TIMEOUT: Duration = Duration::from_hours(24);

impl McpSession {
    pub(super) fn handle_request(
        self: &Arc<Self>,
        id: Value,
        method: String,
        params: Option<RawJson>,
        of: Option<i64>,
    ) {
        let key = id.to_string();
        if !id.is_string() && id.as_i64().is_none() {
            let text = format!("a {method} request has the id {key}; it gets no response");
            return self.add_warning(&text);
        }
        let params = match params.map(|raw| raw.parse()).transpose() {
            Ok(params) => params.unwrap_or_default(),
            Err(error) => {
                let text = format!("a {method} request could not be read: {}", error.message());
                return self.add_warning(&text);
            }
        };
        if let Err(reason) = self.open_question(key.clone(), &method, of) {
            return self.add_warning(&format!("a {method} request gets no response: {reason}"));
        }
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let question = ServerQuestion { session: &session, id, key };
            session.closed_token.run_until_cancelled(question.answer(&method, &params)).await;
        });
    }

    /// Takes note of a question and of the requests that may be waiting for its answer: the one on
    /// whose stream it came, or all that are part of calls.
    fn open_question(
        &self,
        key: String,
        method: &str,
        of: Option<i64>,
    ) -> Result<(), &'static str> {
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
                pending.news.notify_one();
            }
        }
        state.questions.open(key, OpenQuestion::new(method, requests, call))
    }

    fn close_question(&self, key: &str) {
        let mut state = self.state();
        for id in state.questions.close(key) {
            if let Some(pending) = state.pending.get(&id) {
                pending.news.notify_one();
            }
        }
    }

    /// The call that a question belongs to. Where that is not certain while another call has a question
    /// of its own, it waits for that to end: who is asked in its place would be somebody else.
    async fn call_of_question(&self, key: &str) -> Option<CallId> {
        let mut has_to_wait = false;
        loop {
            let ended = self.request_ended.notified();
            {
                let state = self.state();
                if let [request] = state.questions.requests(key) {
                    return state.pending.get(request)?.call.clone();
                }
                has_to_wait |= state.questions.is_behind_another(key);
            }
            if !has_to_wait {
                return None;
            }
            ended.await;
        }
    }

    pub fn remember_page(&self, id: &str) {
        self.state().questions.remember_page(id);
    }
}

/// A question of the server, open until its answer is handed over or dropped.
struct ServerQuestion<'a> {
    session: &'a McpSession,
    id: Value,
    key: String,
}

impl ServerQuestion<'_> {
    async fn answer(&self, method: &str, params: &Value) {
        let answer = self.find_answer(method, params).await;
        // The server took its question back: it wants no answer.
        let question = self.session.state().questions.get(&self.key);
        if question.is_some_and(|question| question.is_withdrawn) {
            return;
        }
        let answer = answer.map_err(|refusal| refusal.error());
        let frame = OutgoingFrame::response(self.id.clone(), answer);
        // An answer that cannot be handed over is the server's loss.
        let _unheard = self.session.wire.send(frame).await;
    }

    async fn find_answer(&self, method: &str, params: &Value) -> Result<Value, QuestionRefusal> {
        let (session, respondent) = (self.session, &self.session.respondent);
        let Some(open) = session.state().questions.get(&self.key) else {
            return responder::withdrawn_answer(method);
        };
        if let Some(page) = params.get("elicitationId").and_then(Value::as_str) {
            session.remember_page(page);
        }
        let limit = if open.is_unrelated { UNRELATED_QUESTION_TIMEOUT } else { QUESTION_TIMEOUT };
        let needs_call = respondent.inbox.asks_callers() && responder::needs_person(method);
        let answer = timeout(limit, async {
            let call = match open.call {
                None if needs_call => session.call_of_question(&self.key).await,
                call => call,
            };
            let occasion = QuestionContext { call, ..QuestionContext::default() };
            respondent.answer(method, params, &occasion).await
        });
        tokio::select! {
            biased;
            () = open.cancelled.cancelled() => responder::withdrawn_answer(method),
            answer = answer => match answer {
                Ok(answer) => answer.map(|answered| answered.result),
                Err(_elapsed) => responder::withdrawn_answer(method),
            },
        }
    }
}

impl Drop for ServerQuestion<'_> {
    fn drop(&mut self) {
        self.session.close_question(&self.key);
    }
}

impl McpSession {
    /// A notification of the server, which came on the stream of the request `of` if the wire has
    /// such streams.
    pub(super) fn handle_notification(
        &self,
        method: &str,
        params: Option<RawJson>,
        of: Option<i64>,
    ) {
        let Ok(params) = params.map(|raw| raw.parse()).transpose() else {
            return self.add_warning(&format!("a {method} notification could not be read"));
        };
        let params = params.unwrap_or_default();
        match method {
            "notifications/progress" => self.handle_progress(&params),
            "notifications/message" => self.handle_log(&params, of),
            "notifications/cancelled" => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                self.state().questions.withdraw(&id);
            }
            "notifications/elicitation/complete" => {
                let id = params.get("elicitationId").and_then(Value::as_str).unwrap_or_default();
                let is_page = self.state().questions.take_page(id);
                if is_page {
                    let text = "it reports that the URL elicitation is complete".to_owned();
                    self.events.emit(HostEvent::Notice { origin: self.server.clone(), text });
                }
            }
            "notifications/tasks" | "notifications/tasks/status" => {
                self.task_updated.notify_waiters();
            }
            _ => match notifications::read(method, &params) {
                Ok(Some(news)) => {
                    self.state().notifications.publish(&news);
                    if let Some(event) = news.event(&self.server) {
                        self.events.emit(event);
                    }
                }
                Ok(None) => {}
                Err(flaw) => self.add_warning(&format!("a {method} notification {flaw}")),
            },
        }
    }

    fn handle_progress(&self, params: &Value) {
        let token = params.get("progressToken").and_then(Value::as_i64);
        let progress = params.get("progress").and_then(Value::as_f64).filter(|p| p.is_finite());
        let (Some(token), Some(progress)) = (token, progress) else { return };
        let listener = {
            let mut state = self.state();
            if let Some(pending) = state.pending.get_mut(&token) {
                pending.has_progressed = true;
                pending.news.notify_one();
            }
            state.progress.get(&token).cloned()
        };
        let Some(listener) = listener else { return };
        listener(ProgressUpdate {
            done: progress,
            total: params.get("total").and_then(Value::as_f64).filter(|t| t.is_finite()),
            message: params.get("message").and_then(Value::as_str).map(str::to_owned),
        });
    }

    /// The call that a line belongs to: by its stream or by a token it carries, else the only call
    /// there is.
    fn call_of_line(&self, params: &Value, of: Option<i64>) -> Option<CallId> {
        let token = || params.get("_meta")?.get("progressToken")?.as_i64();
        let state = self.state();
        if let Some(id) = of.or_else(token) {
            return state.pending.get(&id)?.call.clone();
        }
        let mut calls = state.pending.values().filter_map(|pending| pending.call.as_ref());
        calls.next().filter(|only| calls.all(|other| other == *only)).cloned()
    }

    fn handle_log(&self, params: &Value, of: Option<i64>) {
        let text = match params.get("data") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => return,
        };
        let level = params.get("level").and_then(Value::as_str).unwrap_or("info").to_owned();
        self.events.emit(HostEvent::Log {
            origin: self.server.clone(),
            call_id: self.call_of_line(params, of),
            level: LogLevel(level),
            text,
        });
    }
}
