//! What a background host answers front ends of this program, beyond what it answers any client.

use std::fmt;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, CustomRequest, CustomResult, ErrorCode, ErrorData, MetaObject, Notification,
    ProgressNotificationParam, ProgressToken, ServerNotification,
};
use rmcp::service::{Peer, RequestContext};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::held_sessions::{ConnectionSessions, HeldSessions};
use super::lifetime::HostLifetime;
use super::observers::ObserverHub;
use super::protocol::{self, Payload};
use crate::host::ToolHost;
use crate::host::link::{HostQuery, Observation, ObserveRequest};
use crate::host::offerings::ServerChange;
use crate::host::request::CallOutcome;
use crate::model::{Error, SubscriptionFilter};

/// How many changes wait for a slow front end; then servers are listened to more slowly.
const CHANGE_QUEUE: usize = 64;

pub struct BackgroundService {
    pub host: Arc<ToolHost>,
    pub lifetime: Arc<HostLifetime>,
    /// Who watches what happens in it.
    pub observers: Arc<ObserverHub>,
    /// When sessions end; `None` when sessions have no state of their own.
    pub sessions: Option<Arc<HeldSessions>>,
}

impl fmt::Debug for BackgroundService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundService").finish_non_exhaustive()
    }
}

impl BackgroundService {
    /// Answers a request that is not MCP; `None` for one that no front end makes. `sessions` are those
    /// of its connection.
    pub(in crate::serve) async fn answer(
        &self,
        request: &CustomRequest,
        context: RequestContext<RoleServer>,
        sessions: Option<&ConnectionSessions>,
    ) -> Option<Result<CustomResult, ErrorData>> {
        let params = || request.params.clone().unwrap_or_default();
        Some(match &*request.method {
            protocol::QUERY => self.query(params(), sessions).await,
            protocol::OBSERVE => self.observe(params(), context).await,
            protocol::STATUS => answer(&self.lifetime.status(&self.host)),
            protocol::RECHECK => answer(&self.lifetime.recheck()),
            protocol::STOP => {
                self.lifetime.stop();
                answer(&true)
            }
            _ => return None,
        })
    }

    async fn query(
        &self,
        params: Value,
        sessions: Option<&ConnectionSessions>,
    ) -> Result<CustomResult, ErrorData> {
        let query: HostQuery = payload(params)?;
        if let (Some(sessions), Some(session)) = (sessions, query.session()) {
            sessions.hold(session, false);
        }
        let _running = match query.is_passive() {
            // The call that waits began when it was still admitted.
            _ if matches!(query, HostQuery::Release { .. }) => None,
            true if self.lifetime.recheck() => None,
            true => return Err(ending()),
            false => Some(self.lifetime.begin_call().ok_or_else(ending)?),
        };
        // A front end that goes away ends this future, and with it what it waits for.
        let answered = self.host.answer_query(query, &CancellationToken::new()).await;
        answered.map(text_answer).map_err(|error| unwritable(&error))
    }

    /// Sends observations to a front end until the host has no more; one that leaves or cancels ends
    /// this future.
    async fn observe(
        &self,
        params: Value,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let request: ObserveRequest = payload(params)?;
        if !self.lifetime.recheck() {
            return Err(ending());
        }
        let missing = || ErrorData::invalid_params("it has no progress token", None);
        let token = context.meta.get_progress_token().ok_or_else(missing)?;
        let mut viewer = Viewer { peer: context.peer, token, sent: 0.0 };
        match request {
            ObserveRequest::Activity => {
                let mut observer = self.observers.watch();
                while viewer.show(observer.next().await).await.is_some() {}
            }
            ObserveRequest::Console => {
                let mut observer = self.observers.watch();
                let mut holds = self.host.watch_breakpoints();
                loop {
                    let lines = tokio::select! {
                        lines = observer.next() => lines,
                        news = holds.next() => Observation::Breakpoint(news).line().to_string(),
                    };
                    if viewer.show(lines).await.is_none() {
                        break;
                    }
                }
            }
            ObserveRequest::Changes(filters) => self.show_changes(filters, &mut viewer).await,
        }
        answer(&true)
    }

    async fn show_changes(&self, filters: Vec<(String, SubscriptionFilter)>, viewer: &mut Viewer) {
        let (sender, mut changes) = mpsc::channel(CHANGE_QUEUE);
        let stop = CancellationToken::new();
        let watching = async {
            // A failure was told as the last change of its server.
            let _ended = self.host.watch_servers(filters, &sender, &stop).await;
            drop(sender);
        };
        let showing = async {
            let _stops_watching = stop.clone().drop_guard();
            while let Some(ServerChange { server, change }) = changes.recv().await {
                let line = Observation::Change(server, change).line();
                if viewer.show(line.to_string()).await.is_none() {
                    return;
                }
            }
        };
        tokio::join!(watching, showing);
    }
}

struct Viewer {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    sent: f64,
}

impl Viewer {
    async fn show(&mut self, lines: String) -> Option<()> {
        self.sent += 1.0;
        self.peer.send_notification(observed(self.token.clone(), self.sent, lines)).await.ok()
    }
}

/// Observations, one a line, as the progress of the request that they concern.
pub(in crate::serve) fn observed(
    token: ProgressToken,
    number: f64,
    lines: String,
) -> ServerNotification {
    let progress = ProgressNotificationParam::new(token, number).with_message(lines);
    ServerNotification::ProgressNotification(Notification::new(progress))
}

/// How a call ended, as the result of `tools/call`.
pub(in crate::serve) fn outcome(
    ended: &Result<CallOutcome, Error>,
) -> Result<CallToolResult, ErrorData> {
    let text = serde_json::to_string(ended).map_err(|error| unwritable(&error))?;
    let is_error = ended.as_ref().map_or(true, |outcome| outcome.error().is_some());
    let mut result = CallToolResult::success(Vec::new());
    result.is_error = Some(is_error);
    let text = Value::String(text);
    result.meta = Some(MetaObject(std::iter::once((protocol::OUTCOME.to_owned(), text)).collect()));
    Ok(result)
}

pub(in crate::serve) fn ending() -> ErrorData {
    ErrorData::new(ErrorCode(protocol::NOT_BEGUN), "this host is shutting down", None)
}

fn payload<T: DeserializeOwned>(params: Value) -> Result<T, ErrorData> {
    let payload = serde_json::from_value::<Payload<T>>(params);
    payload
        .map(|payload| payload.payload)
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

fn answer(value: &impl Serialize) -> Result<CustomResult, ErrorData> {
    serde_json::to_string(value).map(text_answer).map_err(|error| unwritable(&error))
}

fn text_answer(text: String) -> CustomResult {
    CustomResult::new(json!(Payload { payload: text }))
}

fn unwritable(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
