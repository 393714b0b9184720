//! The people's desk: what waits here waits for a person, and what is told here is shown to one.
//!
//! Owns: open questions, and the way of what the host tells to the console. Never does: answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use crate::host::approval::{Approval, ApprovalRequest, Approver};
use crate::model::{EventSink, Inbox, Question, Reply, Shutter, TrafficSink};
use crate::tui::event::wire::Seen;
use crate::tui::event::{AskId, AskedApproval, Event};

/// Where people are asked: questions wait here for their answers.
#[derive(Clone)]
pub struct Desk {
    send: mpsc::Sender<Event>,
    next: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
    waiting: Arc<Mutex<Waiting>>,
    shutter: Shutter,
}

#[derive(Default)]
struct Waiting {
    approvals: HashMap<AskId, oneshot::Sender<Approval>>,
    replies: HashMap<AskId, oneshot::Sender<Reply>>,
}

impl Desk {
    /// A desk that tells of questions here.
    pub fn new(send: mpsc::Sender<Event>) -> Self {
        Self {
            send,
            next: Arc::default(),
            lost: Arc::default(),
            waiting: Arc::default(),
            shutter: Shutter::default(),
        }
    }

    /// A sink for what the host tells. When the console cannot keep up, it is lost.
    pub fn events(&self) -> EventSink {
        let desk = self.clone();
        EventSink::new(move |event| desk.tell(Event::Host(event)))
    }

    /// A sink for what crosses the wires. When the console cannot keep up, it is lost.
    pub fn traffic(&self) -> TrafficSink {
        let desk = self.clone();
        TrafficSink::new(move |traffic| desk.tell(Event::Traffic(Box::new(Seen::of(traffic)))))
            .behind(self.shutter())
    }

    /// Keeps what crosses the wires from being told while it is closed.
    pub fn shutter(&self) -> Shutter {
        self.shutter.clone()
    }

    /// How many events were lost until now.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn tell(&self, event: Event) {
        if self.send.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn approve(&self, id: AskId, approval: Approval) {
        if let Some(waits) = self.waiting().approvals.remove(&id) {
            let _too_late = waits.send(approval);
        }
    }

    pub(super) fn reply(&self, id: AskId, reply: Reply) {
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
            identity: request.identity.clone(),
            call: request.call.clone(),
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

    fn takes_many(&self) -> bool {
        true
    }
}
