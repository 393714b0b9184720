//! How far a client may run ahead of its responses.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use crate::util::lock::lock;
use rmcp::RoleServer;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::RxJsonRpcMessage;
use tokio::sync::Notify;

/// How many requests of one client may be without an answer; calls have a bound of their own below.
pub(super) const MAX_UNANSWERED: usize = 320;
/// How many messages wait for a client to read before nothing more is read of it.
const MAX_UNSENT: usize = 16;

/// What one client is still to be sent.
#[derive(Default)]
pub(super) struct Backlog {
    state: Mutex<BacklogState>,
    sent: Notify,
}

#[derive(Default)]
struct BacklogState {
    unanswered: HashSet<RequestId>,
    unsent: usize,
}

/// A message that waits until the client reads. Dropped when it was sent, or will not be.
pub(super) struct UnsentMessage {
    backlog: Arc<Backlog>,
    answers: Option<RequestId>,
}

impl Backlog {
    /// Waits until the client has read enough for something more to be read of it.
    pub(super) async fn room(&self) {
        loop {
            let sent = self.sent.notified();
            if lock(&self.state).unsent < MAX_UNSENT {
                return;
            }
            sent.await;
        }
    }

    /// Counts a message that was read; `false` for a request more than there may be.
    pub(super) fn admit(&self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        let mut state = lock(&self.state);
        match message {
            JsonRpcMessage::Request(request) => {
                let has_room = state.unanswered.len() < MAX_UNANSWERED;
                has_room && {
                    state.unanswered.insert(request.id.clone());
                    true
                }
            }
            // What its client gave up is not answered.
            JsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    state.unanswered.remove(id);
                }
                true
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        }
    }

    pub(super) fn add(self: &Arc<Self>, message: &ServerJsonRpcMessage) -> UnsentMessage {
        self.add_answer(match message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        })
    }

    pub(super) fn add_answer(self: &Arc<Self>, answers: Option<RequestId>) -> UnsentMessage {
        lock(&self.state).unsent += 1;
        UnsentMessage { backlog: Arc::clone(self), answers }
    }
}

impl Drop for UnsentMessage {
    fn drop(&mut self) {
        let mut state = lock(&self.backlog.state);
        state.unsent -= 1;
        if let Some(id) = &self.answers {
            state.unanswered.remove(id);
        }
        drop(state);
        self.backlog.sent.notify_waiters();
    }
}
