//! Answering the requests of front ends.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::conversation::{Conversation, OpenQuestions};
use super::request::{FrontEndRequest, FrontEndWork};
use crate::host::ToolHost;
use crate::host::link::{HostQuery, ObserveRequest};
use crate::host::offerings::ServerChange;
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::{ClientAbilities, Error, QuestionAbilities, SubscriptionFilter};
use crate::serve::background::connection::{INTERNAL, LineConnection, answer, error, message};
use crate::serve::background::held_sessions::HeldSessions;
use crate::serve::background::lifetime::HostLifetime;
use crate::serve::background::observers::ObserverHub;
use crate::serve::background::protocol::{
    self, OutcomeMeta, Payload, SentCall, SentObservation, SentOutcome,
};
use crate::serve::catalogue_server::{
    CallUpdate, ClientRegistry, DRAIN, RequestStep, RunningRequest,
};
use crate::util::local_peer::monotonic_time;

/// The minimum level of log lines that front ends are sent.
const LOG_LEVEL: &str = "info";
/// How many changes wait for a slow front end; then servers are listened to more slowly.
const CHANGE_QUEUE: usize = 64;

pub struct FrontEndService {
    pub host: Arc<ToolHost>,
    /// Whom the host's questions and events reach.
    pub clients: Arc<ClientRegistry>,
    pub lifetime: Arc<HostLifetime>,
    /// Who watches what happens in it.
    pub observers: Arc<ObserverHub>,
    /// When sessions end; `None` when sessions have no state of their own.
    pub sessions: Option<Arc<HeldSessions>>,
    pub abort: CancellationToken,
}

impl FrontEndService {
    /// Answers a request, unless its front end leaves before. When `stop` fires, a call has a moment to
    /// end; anything else ends at once. `process` is that of the front end.
    pub(in crate::serve) async fn serve(
        &self,
        request: FrontEndRequest,
        lines: LineConnection,
        process: Option<u32>,
        stop: &CancellationToken,
    ) {
        let (id, end) = (request.id, self.abort.child_token());
        let mut conversation = Conversation::new(lines, end.clone());
        let is_call = matches!(request.work, FrontEndWork::Call(_));
        let draining = async {
            stop.cancelled().await;
            if is_call {
                tokio::time::sleep(DRAIN).await;
            }
            end.cancel();
            std::future::pending().await
        };
        let answer = tokio::select! {
            answer = self.answer(request, &mut conversation, process) => answer,
            answer = draining => answer,
        };
        let is_cut_off = end.is_cancelled();
        match answer {
            // Also when the request found that the host has to end.
            Some(line) if is_cut_off => conversation.send_last(&line).await,
            Some(line) => drop(conversation.send(&line).await),
            None if is_cut_off => {
                let line = error(id, protocol::ENDED, "the host ended during the request");
                conversation.send_last(&line).await;
            }
            None => {}
        }
    }

    /// The line that answers a request; `None` when its front end leaves before, or it has to end.
    async fn answer(
        &self,
        request: FrontEndRequest,
        conversation: &mut Conversation,
        process: Option<u32>,
    ) -> Option<String> {
        let FrontEndRequest { id, work } = request;
        Some(match work {
            FrontEndWork::Call(call) => self.call(id, *call, conversation, process).await?,
            FrontEndWork::Query(query) => {
                conversation.during(Box::pin(self.query(id, *query, process))).await?
            }
            FrontEndWork::Observe(request) => {
                Box::pin(self.observe(id, request, conversation)).await?
            }
            FrontEndWork::Status => payload(id, &self.lifetime.status(&self.host)),
            FrontEndWork::Recheck => payload(id, &self.lifetime.recheck()),
            FrontEndWork::Stop => {
                self.lifetime.stop();
                payload(id, &true)
            }
        })
    }

    async fn call(
        &self,
        id: u64,
        sent: SentCall<CallRequest>,
        conversation: &mut Conversation,
        process: Option<u32>,
    ) -> Option<String> {
        if monotonic_time() > sent.begins_by {
            return Some(error(id, protocol::NOT_BEGUN, "the call came too late"));
        }
        let Some(admitted) = self.lifetime.begin_call() else { return Some(ending(id)) };
        let request = sent.request;
        self.hold_session(request.session.as_deref(), request.keeps_session, process);
        // One that serves others says whose call it is.
        let client_name = request.client_name.or(Some(sent.front_end));
        let call = request.id.filter(|id| !self.clients.is_running(id));
        let call = call.unwrap_or_else(|| self.host.new_call_id());
        let host = Arc::clone(&self.host);
        let mut running =
            RunningRequest::start(&self.clients, call, Some(admitted), false, |id, cancel| {
                let request = CallRequest {
                    id: Some(id),
                    client_name,
                    client: abilities(),
                    cancel,
                    ..request
                };
                async move { host.call(request).await }
            });
        let mut questions = OpenQuestions::default();
        loop {
            tokio::select! {
                biased;
                step = running.next() => match step {
                    RequestStep::Update(update) => {
                        if let Some(line) = notification(update) {
                            conversation.send(&line).await?;
                        }
                    }
                    RequestStep::Question(question) => {
                        if let Some(line) = questions.add(question) {
                            conversation.send(&line).await?;
                        }
                    }
                    RequestStep::Ended(Some(ended)) => return Some(outcome(id, ended)),
                    RequestStep::Ended(None) => {
                        return Some(error(id, INTERNAL, "the call ended without a result"));
                    }
                },
                reply = conversation.next() => {
                    let (number, answer) = reply?;
                    questions.answer(number, answer);
                }
            }
        }
    }

    /// Keeps a session's own state while it can still be used: with `is_named`, because the user named
    /// it, for the host's idle time, and otherwise while its process lives.
    fn hold_session(&self, session: Option<&str>, is_named: bool, process: Option<u32>) {
        let (Some(sessions), Some(session)) = (&self.sessions, session) else { return };
        match process {
            _ if is_named => sessions.hold_named(session),
            Some(pid) => sessions.hold_for_process(session, pid),
            None => {}
        }
    }

    async fn query(&self, id: u64, query: HostQuery, process: Option<u32>) -> String {
        self.hold_session(query.session(), false, process);
        let _running = match query.is_passive() {
            true if self.lifetime.recheck() => None,
            true => return ending(id),
            false => match self.lifetime.begin_call() {
                Some(running) => Some(running),
                None => return ending(id),
            },
        };
        // A front end that goes away ends this future, and with it what it waits for.
        match self.host.answer_query(query, &CancellationToken::new()).await {
            Ok(answer) => payload(id, &answer),
            Err(failed) => error(id, INTERNAL, &failed.to_string()),
        }
    }

    /// Sends observations to a front end until it stops watching, or until the host ends.
    async fn observe(
        &self,
        id: u64,
        request: ObserveRequest,
        conversation: &mut Conversation,
    ) -> Option<String> {
        if !self.lifetime.recheck() {
            return Some(ending(id));
        }
        match request {
            ObserveRequest::Activity => {
                let observer = self.observers.watch();
                loop {
                    let lines = conversation.during(observer.next()).await?;
                    conversation.send(&observed(&lines)).await?;
                }
            }
            ObserveRequest::Changes(changes) => {
                self.show_changes(changes, conversation).await?;
                Some(payload(id, &true))
            }
        }
    }

    async fn show_changes(
        &self,
        filters: Vec<(String, SubscriptionFilter)>,
        conversation: &mut Conversation,
    ) -> Option<()> {
        let (sender, mut changes) = mpsc::channel(CHANGE_QUEUE);
        let stop = conversation.end().child_token();
        let watching = async {
            // A failure was told as the last change of its server.
            let _ended = self.host.watch_servers(filters, &sender, &stop).await;
            drop(sender);
        };
        let showing = async {
            let _stops_watching = stop.clone().drop_guard();
            while let Some(change) = conversation.during(changes.recv()).await? {
                let ServerChange { server, change } = change;
                let line = SentObservation::Change(server, change).line();
                conversation.send(&observed(&line)).await?;
            }
            Some(())
        };
        tokio::join!(watching, showing).1
    }
}

fn abilities() -> ClientAbilities {
    let questions = QuestionAbilities { forms: true, urls: true, sampling: true, roots: false };
    ClientAbilities { log_level: None, questions: Some(questions) }
}

/// An update as a line; `None` for one that a front end does not hear of.
fn notification(update: CallUpdate) -> Option<String> {
    let (method, params) = match update {
        CallUpdate::Progress { progress, total, message } => {
            let params = json!({ "progress": progress, "total": total, "message": message });
            ("notifications/progress", params)
        }
        CallUpdate::Log(line) if line.is_at_least(LOG_LEVEL) => {
            let params = json!({ "level": line.level.0, "logger": line.origin, "data": line.text });
            ("notifications/message", params)
        }
        CallUpdate::Log(_) | CallUpdate::TaskStarted => return None,
    };
    Some(message(&json!({ "method": method, "params": params })))
}

fn outcome(id: u64, ended: Result<CallOutcome, Error>) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct CallResult {
        content: [(); 0],
        is_error: bool,
        #[serde(rename = "_meta")]
        meta: OutcomeMeta,
    }
    let is_error = ended.as_ref().map_or(true, |outcome| outcome.error().is_some());
    let meta = OutcomeMeta { outcome: ended.map(SentOutcome::from) };
    answer(id, &CallResult { content: [], is_error, meta })
}

fn payload(id: u64, payload: &impl Serialize) -> String {
    answer(id, &Payload { payload })
}

fn observed(lines: &str) -> String {
    message(&json!({ "method": protocol::OBSERVED, "params": Payload { payload: lines } }))
}

fn ending(id: u64) -> String {
    error(id, protocol::NOT_BEGUN, "this host is shutting down")
}
