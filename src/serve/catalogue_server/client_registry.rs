//! Which client waits for which call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::audit::Masker;
use crate::host::builder::ToolHostBuilder;
use crate::host::policy::{Approval, ApprovalRequest, Approver};
use crate::host::questions::QuestionQueue;
use crate::model::{
    CallId, EventSink, HostEvent, Question, QuestionBody, QuestionHandler, QuestionReply,
};
use crate::serve::background::protocol::{APPROVE, FrontEndQuestion};
use crate::util::lock::lock;

/// How many reports and log lines of a call wait for a slow client; further ones are dropped.
const UPDATE_QUEUE: usize = 64;
const QUESTION_QUEUE: usize = 16;
/// How many changes a slow client may be behind; beyond that it is told that everything changed.
const CHANGE_QUEUE: usize = 1_024;

/// The clients that are connected, as the host's questions, approvals and events see them.
pub struct ClientRegistry {
    calls: Mutex<HashMap<CallId, CallLink>>,
    changes: broadcast::Sender<HostEvent>,
    /// Whether there are front ends of this program among them. Servers then have the roots of their
    /// entries only, as they have without a background host.
    serves_front_ends: bool,
}

#[derive(Debug)]
pub(super) enum AskedOfClient {
    /// An answer of its person, or of its model.
    Question(QuestionBody),
    Roots,
}

/// A question that waits for a client's answer. Dropped, it counts as turned away from.
#[derive(Debug)]
pub(super) struct ClientQuestion {
    pub(super) key: Option<String>,
    pub(super) body: AskedOfClient,
    /// The same for a front end of this program, which asks in its own way, as a text; it has no roots.
    pub(super) whole: Option<String>,
    pub(super) reply: oneshot::Sender<QuestionReply>,
}

pub(super) struct CallWatch {
    /// Its progress, what is logged for it, and that it became a task.
    pub(super) updates: mpsc::Receiver<HostEvent>,
    pub(super) questions: mpsc::Receiver<ClientQuestion>,
    registry: Arc<ClientRegistry>,
    call_id: CallId,
}

#[derive(Clone)]
struct CallLink {
    /// The call that the client made; nested calls share its link.
    root: CallId,
    updates: mpsc::Sender<HostEvent>,
    questions: mpsc::Sender<ClientQuestion>,
}

impl ClientRegistry {
    /// A registry without clients.
    pub fn new() -> Arc<Self> {
        Self::with(false)
    }

    /// A registry for front ends of this program.
    pub fn of_front_ends() -> Arc<Self> {
        Self::with(true)
    }

    fn with(serves_front_ends: bool) -> Arc<Self> {
        let (changes, _) = broadcast::channel(CHANGE_QUEUE);
        Arc::new(Self { calls: Mutex::default(), changes, serves_front_ends })
    }

    /// Lets the clients answer what a host asks and see what happens in it, before it is built.
    pub fn attach(self: &Arc<Self>, host: ToolHostBuilder) -> ToolHostBuilder {
        let questions = QuestionQueue::new(Arc::clone(self) as _, Masker::default());
        host.approver(Arc::clone(self) as _).questions(Arc::new(questions)).events(self.events())
    }

    /// A sink that takes the events of a host to the clients that they concern.
    pub fn events(self: &Arc<Self>) -> EventSink {
        let clients = Arc::clone(self);
        EventSink::new(move |event| clients.deliver(event))
    }

    /// What changes from now on that clients may want to know.
    pub(super) fn changes(&self) -> broadcast::Receiver<HostEvent> {
        self.changes.subscribe()
    }

    /// Waits for what concerns a call that is about to be made.
    pub(super) fn watch(self: &Arc<Self>, call_id: &CallId) -> CallWatch {
        let (updates, updates_seen) = mpsc::channel(UPDATE_QUEUE);
        let (questions, questions_seen) = mpsc::channel(QUESTION_QUEUE);
        let link = CallLink { root: call_id.clone(), updates, questions };
        lock(&self.calls).insert(call_id.clone(), link);
        CallWatch {
            updates: updates_seen,
            questions: questions_seen,
            registry: Arc::clone(self),
            call_id: call_id.clone(),
        }
    }

    pub(super) fn is_running(&self, call_id: &CallId) -> bool {
        lock(&self.calls).contains_key(call_id)
    }

    /// Takes an event of the host to the clients that it concerns. Never waits.
    #[doc(hidden)] // for the program's own commands
    pub fn deliver(&self, event: HostEvent) {
        match event {
            HostEvent::CallStarted { call_id, parent: Some(parent), .. } => {
                let mut calls = lock(&self.calls);
                if let Some(link) = calls.get(&parent).cloned() {
                    calls.insert(call_id, link);
                }
            }
            HostEvent::CallFinished { call_id, .. } => {
                let mut calls = lock(&self.calls);
                // The call of the client itself is forgotten when its answer was taken.
                if calls.get(&call_id).is_some_and(|link| link.root != call_id) {
                    calls.remove(&call_id);
                }
            }
            HostEvent::Progress { ref call_id, .. } | HostEvent::TaskStarted { ref call_id } => {
                if let Some(link) =
                    lock(&self.calls).get(call_id).filter(|link| link.root == *call_id)
                {
                    let _slow_client = link.updates.try_send(event);
                }
            }
            HostEvent::Log { origin, call_id: Some(call_id), level, text } => {
                let link = lock(&self.calls).get(&call_id).cloned();
                let root = link.as_ref().map(|link| link.root.clone());
                let line = HostEvent::Log { origin, call_id: root, level, text };
                let _slow_client = match link {
                    Some(link) => link.updates.try_send(line).is_ok(),
                    None => self.changes.send(line).is_ok(),
                };
            }
            HostEvent::ListChanged { .. }
            | HostEvent::ResourceUpdated { .. }
            | HostEvent::Log { .. } => {
                let _no_client = self.changes.send(event);
            }
            _ => {}
        }
    }

    async fn ask_client(
        &self,
        call: Option<&CallId>,
        key: Option<String>,
        body: AskedOfClient,
        whole: Option<FrontEndQuestion<&ApprovalRequest<'_>>>,
    ) -> QuestionReply {
        let link = call.and_then(|call| lock(&self.calls).get(call).cloned());
        let Some(link) = link else { return QuestionReply::Unattended };
        let (reply, answer) = oneshot::channel();
        let whole = whole.filter(|_| self.serves_front_ends);
        let whole = whole.and_then(|whole| serde_json::to_string(&whole).ok());
        if link.questions.send(ClientQuestion { key, body, whole, reply }).await.is_err() {
            return QuestionReply::Unattended;
        }
        answer.await.unwrap_or(QuestionReply::Cancel)
    }
}

impl Drop for CallWatch {
    fn drop(&mut self) {
        lock(&self.registry.calls).retain(|_, link| link.root != self.call_id);
    }
}

#[async_trait]
impl QuestionHandler for ClientRegistry {
    async fn ask(&self, question: Question) -> QuestionReply {
        let (call, key) = (question.call.clone(), question.key.clone());
        let body = AskedOfClient::Question(question.body.clone());
        let whole = FrontEndQuestion::Server(question);
        self.ask_client(call.as_ref(), key, body, Some(whole)).await
    }

    fn offers_roots(&self) -> bool {
        !self.serves_front_ends
    }

    async fn list_roots(&self, call: Option<&CallId>, key: Option<&str>) -> Vec<Value> {
        let key = key.map(str::to_owned);
        match self.ask_client(call, key, AskedOfClient::Roots, None).await {
            QuestionReply::Accept(Value::Array(roots)) => roots,
            _ => Vec::new(),
        }
    }

    fn allows_concurrent(&self) -> bool {
        true
    }

    fn asks_callers(&self) -> bool {
        true
    }
}

#[async_trait]
impl Approver for ClientRegistry {
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval {
        let body =
            QuestionBody::Form { message: approval_message(request), schema: approval_form() };
        let body = AskedOfClient::Question(body);
        let whole = FrontEndQuestion::Approval(request);
        match self.ask_client(request.call.as_ref(), None, body, Some(whole)).await {
            QuestionReply::Accept(answer) if answer.get(APPROVE) == Some(&Value::Bool(true)) => {
                Approval::Granted
            }
            QuestionReply::Unattended => Approval::Unavailable,
            QuestionReply::Accept(_) | QuestionReply::Decline | QuestionReply::Cancel => {
                Approval::Refused
            }
        }
    }
}

fn approval_message(request: &ApprovalRequest<'_>) -> String {
    let name = request.definition.name.full();
    let arguments = Value::Object(request.arguments.clone().into_owned());
    format!("Run '{name}' with {arguments}? {}", request.reason)
}

fn approval_form() -> Value {
    json!({
        "type": "object",
        "properties": {
            APPROVE: { "type": "boolean", "title": "Run it", "default": false },
        },
        "required": [APPROVE],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::host::ToolHost;
    use crate::serve::catalogue_server::{CatalogueServer, ServeSettings, ServedIdentity};
    use crate::serve::listen::stream::serve_stream;

    #[tokio::test]
    async fn a_client_that_says_more_than_once_that_it_is_ready_is_told_once() {
        let clients = ClientRegistry::new();
        let host = clients.attach(ToolHost::builder()).build();
        let stop = CancellationToken::new();
        let settings = ServeSettings::default();
        let server = CatalogueServer::new(host, Arc::clone(&clients), settings, stop.clone());
        let (mut near, far) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(far);
        let identity = ServedIdentity { session: "test".to_owned(), is_alone: true };
        let serving = serve_stream(&server, identity, input, output, &stop);
        let client = async {
            let hello = json!({
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
            });
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            for message in [
                json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }),
                ready.clone(),
                ready,
                json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }),
            ] {
                near.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            }
            let mut answers = BufReader::new(&mut near).lines();
            while !answers.next_line().await.unwrap().unwrap().contains("\"id\":1") {}
            assert_eq!(clients.changes.receiver_count(), 1);
            stop.cancel();
        };
        let (_ended, ()) = tokio::join!(serving, client);
    }
}
