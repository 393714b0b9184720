//! Which client waits for which call.
//!
//! Owns: the way back from the host to a client: progress and questions of a call go to the client
//! that made it, or one of its nested calls; changes go to all. Never does: speak to a client; that
//! is the work of the call that waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::audit::Masker;
use crate::host::approval::{Approval, ApprovalRequest, Approver};
use crate::host::builder::ToolHostBuilder;
use crate::host::questions::QuestionQueue;
use crate::model::{
    CallId, EventSink, HostEvent, ListKind, LogLevel, Question, QuestionBody, QuestionHandler,
    QuestionReply,
};
use crate::serve::background::protocol::{APPROVE, FrontEndQuestion};

/// How many progress reports wait for a slow client; further ones are dropped.
const PROGRESS_QUEUE: usize = 64;
/// How many questions of one call wait at once.
const QUESTION_QUEUE: usize = 16;
/// How many changes a slow client may be behind; then it is told that everything changed.
const CHANGE_QUEUE: usize = 1_024;

/// The clients that are connected, as the host's questions, approvals and events see them.
pub struct ClientRegistry {
    calls: Mutex<HashMap<CallId, CallLink>>,
    changes: broadcast::Sender<CatalogueChange>,
}

/// Something that every client may want to know.
#[derive(Debug, Clone)]
pub(super) enum CatalogueChange {
    /// Items of a list were added, removed or changed.
    List(ListKind),
    /// A resource that is watched changed.
    Resource(String),
    /// A server or a tool logged a line.
    Log { origin: String, level: LogLevel, text: String },
}

/// A report of how far a call is.
#[derive(Debug)]
pub(super) struct ProgressReport {
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// A question that waits for a client's answer. Dropped, it counts as turned away from.
#[derive(Debug)]
pub(super) struct ClientQuestion {
    /// The server's own name of the question.
    pub(super) key: Option<String>,
    pub(super) body: QuestionBody,
    /// The same for a front end of this program, which asks in its own way.
    pub(super) whole: Box<FrontEndQuestion>,
    pub(super) reply: oneshot::Sender<QuestionReply>,
}

/// The client's end of one call.
pub(super) struct CallWatch {
    pub(super) progress: mpsc::Receiver<ProgressReport>,
    pub(super) questions: mpsc::Receiver<ClientQuestion>,
    registry: Arc<ClientRegistry>,
    call_id: CallId,
}

#[derive(Clone)]
struct CallLink {
    /// The call that the client made; nested calls share its link.
    root: CallId,
    progress: mpsc::Sender<ProgressReport>,
    questions: mpsc::Sender<ClientQuestion>,
}

impl ClientRegistry {
    /// A registry without clients.
    pub fn new() -> Arc<Self> {
        let (changes, _) = broadcast::channel(CHANGE_QUEUE);
        Arc::new(Self { calls: Mutex::default(), changes })
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

    pub(super) fn changes(&self) -> broadcast::Sender<CatalogueChange> {
        self.changes.clone()
    }

    /// Waits for what concerns a call that is about to be made.
    pub(super) fn watch(self: &Arc<Self>, call_id: &CallId) -> CallWatch {
        let (progress, progress_seen) = mpsc::channel(PROGRESS_QUEUE);
        let (questions, questions_seen) = mpsc::channel(QUESTION_QUEUE);
        let link = CallLink { root: call_id.clone(), progress, questions };
        self.calls().insert(call_id.clone(), link);
        CallWatch {
            progress: progress_seen,
            questions: questions_seen,
            registry: Arc::clone(self),
            call_id: call_id.clone(),
        }
    }

    /// Takes an event of the host to the clients that it concerns. Never waits.
    #[doc(hidden)] // for the program's own commands
    pub fn deliver(&self, event: HostEvent) {
        match event {
            HostEvent::CallStarted { call_id, parent: Some(parent), .. } => {
                let mut calls = self.calls();
                if let Some(link) = calls.get(&parent).cloned() {
                    calls.insert(call_id, link);
                }
            }
            HostEvent::CallFinished { call_id, .. } => {
                let mut calls = self.calls();
                // The call of the client itself is forgotten when its answer was taken.
                if calls.get(&call_id).is_some_and(|link| link.root != call_id) {
                    calls.remove(&call_id);
                }
            }
            HostEvent::Progress { call_id, progress, total, message } => {
                if let Some(link) = self.calls().get(&call_id).filter(|link| link.root == call_id) {
                    let _slow_client =
                        link.progress.try_send(ProgressReport { progress, total, message });
                }
            }
            HostEvent::ListChanged { list, .. } => self.announce(CatalogueChange::List(list)),
            HostEvent::ResourceUpdated { uri, .. } => {
                self.announce(CatalogueChange::Resource(uri));
            }
            HostEvent::Log { origin, level, text } => {
                self.announce(CatalogueChange::Log { origin, level, text });
            }
            _ => {}
        }
    }

    pub(super) fn announce(&self, change: CatalogueChange) {
        let _no_client = self.changes.send(change);
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<CallId, CallLink>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the client that waits for a call.
    async fn ask_client(
        &self,
        call: Option<&CallId>,
        key: Option<String>,
        body: QuestionBody,
        whole: FrontEndQuestion,
    ) -> QuestionReply {
        let link = call.and_then(|call| self.calls().get(call).cloned());
        let Some(link) = link else { return QuestionReply::Unattended };
        let (reply, answer) = oneshot::channel();
        if link
            .questions
            .send(ClientQuestion { key, body, whole: Box::new(whole), reply })
            .await
            .is_err()
        {
            return QuestionReply::Unattended;
        }
        answer.await.unwrap_or(QuestionReply::Cancel)
    }
}

impl Drop for CallWatch {
    fn drop(&mut self) {
        self.registry.calls().retain(|_, link| link.root != self.call_id);
    }
}

#[async_trait]
impl QuestionHandler for ClientRegistry {
    async fn ask(&self, question: Question) -> QuestionReply {
        let (call, key) = (question.call.clone(), question.key.clone());
        let (body, whole) = (question.body.clone(), FrontEndQuestion::Server(question));
        self.ask_client(call.as_ref(), key, body, whole).await
    }

    fn allows_concurrent(&self) -> bool {
        true
    }
}

#[async_trait]
impl Approver for ClientRegistry {
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval {
        let body =
            QuestionBody::Form { message: approval_message(request), schema: approval_form() };
        let whole = FrontEndQuestion::Approval(Box::new(request.into()));
        match self.ask_client(request.call.as_ref(), None, body, whole).await {
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
    let arguments = Value::Object(request.arguments.clone());
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
