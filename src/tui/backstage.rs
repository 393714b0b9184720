//! Does what the state wants done, out of sight; what comes of it comes back as events.
//!
//! Owns: the calls that run, and the people's desk: questions that wait for an answer. Never does:
//! decide anything.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::host::ToolHost;
use crate::host::approval::{Approval, ApprovalRequest, Approver};
use crate::host::request::{Arguments, CallRequest, Reach};
use crate::model::{EventSink, Inbox, Question, Reply};

use super::event::{AskId, AskedApproval, Effect, Event, RunId};

/// Does what the state wants done.
pub struct Backstage {
    host: Arc<ToolHost>,
    send: mpsc::Sender<Event>,
    desk: Desk,
    running: HashMap<RunId, CancellationToken>,
}

impl Backstage {
    /// Works with this host, and tells what comes of it here.
    pub fn new(host: Arc<ToolHost>, send: mpsc::Sender<Event>, desk: Desk) -> Self {
        Self { host, send, desk, running: HashMap::new() }
    }

    /// Begins what is wanted, and returns at once.
    pub fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::ListDeclared => self.list(Reach::Declared, Vec::new()),
            Effect::ListServer(server) => {
                self.list(Reach::Servers(vec![server.clone()]), vec![server]);
            }
            Effect::LookAtServers => {
                let servers = self.host.servers();
                self.tell(async move { Event::Servers(servers) });
            }
            Effect::CheckServer(server) => {
                let host = Arc::clone(&self.host);
                self.tell(async move { Event::Servers(host.check_servers(&[server]).await) });
            }
            Effect::Call { run, tool, arguments } => {
                let cancel = CancellationToken::new();
                self.running.retain(|_, cancel| !cancel.is_cancelled());
                self.running.insert(run, cancel.clone());
                let request =
                    CallRequest { cancel, ..CallRequest::new(tool, Arguments::Object(arguments)) };
                let host = Arc::clone(&self.host);
                self.tell(async move {
                    Event::Ended { run, outcome: Box::new(host.call(request).await) }
                });
            }
            Effect::Cancel(run) => {
                if let Some(cancel) = self.running.remove(&run) {
                    cancel.cancel();
                }
            }
            Effect::Approve(id, approval) => self.desk.approve(id, approval),
            Effect::Reply(id, reply) => self.desk.reply(id, Arc::unwrap_or_clone(reply)),
            // Done where the terminal is.
            Effect::Copy(_) | Effect::Redraw | Effect::Suspend | Effect::Quit(_) => {}
        }
    }

    fn list(&self, reach: Reach, servers: Vec<String>) {
        let host = Arc::clone(&self.host);
        self.tell(async move {
            let catalogue = Box::new(host.catalogue(&reach).await);
            Event::Listed { servers, catalogue }
        });
    }

    fn tell(&self, work: impl Future<Output = Event> + Send + 'static) {
        let send = self.send.clone();
        tokio::spawn(async move {
            let event = work.await;
            // The console is gone: nobody wants to know.
            let _unheard = send.send(event).await;
        });
    }
}

/// Where people are asked: questions wait here for their answers.
#[derive(Clone)]
pub struct Desk {
    send: mpsc::Sender<Event>,
    next: Arc<AtomicU64>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    approvals: HashMap<AskId, oneshot::Sender<Approval>>,
    replies: HashMap<AskId, oneshot::Sender<Reply>>,
}

impl Desk {
    /// A desk that tells of questions here.
    pub fn new(send: mpsc::Sender<Event>) -> Self {
        Self { send, next: Arc::default(), waiting: Arc::default() }
    }

    /// A sink for what the host tells. When the console cannot keep up, it is lost.
    pub fn events(&self) -> EventSink {
        let send = self.send.clone();
        EventSink::new(move |event| {
            let _lost = send.try_send(Event::Host(event));
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn approve(&self, id: AskId, approval: Approval) {
        if let Some(waits) = self.waiting().approvals.remove(&id) {
            let _too_late = waits.send(approval);
        }
    }

    fn reply(&self, id: AskId, reply: Reply) {
        if let Some(waits) = self.waiting().replies.remove(&id) {
            let _too_late = waits.send(reply);
        }
    }

    fn id(&self) -> AskId {
        AskId(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Takes a question off the desk when nobody waits for its answer any more.
struct Placed {
    desk: Desk,
    id: AskId,
}

impl Drop for Placed {
    fn drop(&mut self) {
        let mut waiting = self.desk.waiting();
        let open = waiting.approvals.remove(&self.id).is_some()
            | waiting.replies.remove(&self.id).is_some();
        drop(waiting);
        if open {
            let send = self.desk.send.clone();
            let id = self.id;
            // Must not be lost: a dialog nobody waits for would stay.
            tokio::spawn(async move {
                let _gone = send.send(Event::Withdrawn(id)).await;
            });
        }
    }
}

#[async_trait]
impl Approver for Desk {
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval {
        let id = self.id();
        let (answer, waits) = oneshot::channel();
        self.waiting().approvals.insert(id, answer);
        let _placed = Placed { desk: self.clone(), id };
        let preview = match &request.preview {
            Ok(preview) => Ok(format!("{}\n{:#}", preview.summary, preview.request)),
            Err(fault) => Err(fault.message().to_owned()),
        };
        let asked = AskedApproval {
            tool: request.definition.clone(),
            arguments: request.arguments.clone(),
            reason: request.reason.clone(),
            preview,
        };
        let event = Event::Approval { id, asked: Box::new(asked) };
        if self.send.send(event).await.is_err() {
            return Approval::Nobody;
        }
        waits.await.unwrap_or(Approval::Nobody)
    }
}

#[async_trait]
impl Inbox for Desk {
    async fn ask(&self, question: Question) -> Reply {
        let id = self.id();
        let (answer, waits) = oneshot::channel();
        self.waiting().replies.insert(id, answer);
        let _placed = Placed { desk: self.clone(), id };
        let event = Event::Question { id, question: Box::new(question) };
        if self.send.send(event).await.is_err() {
            return Reply::Nobody;
        }
        waits.await.unwrap_or(Reply::Nobody)
    }
}
