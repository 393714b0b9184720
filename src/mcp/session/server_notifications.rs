//! Notifications of the server: progress, log lines, cancellations, changes.

use serde_json::Value;

use super::{McpSession, ProgressUpdate};
use crate::mcp::message::RawJson;
use crate::mcp::notifications;
use crate::model::{CallId, HostEvent, LogLevel};

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
