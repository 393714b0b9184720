//! The bridge between the host and the console: forwards approvals, questions and events.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::host::breakpoints::HoldNews;
use crate::host::link::{Observation, ObservationSink, ObserveRequest};
use crate::host::policy::{Approval, ApprovalRequest, Approver};
use crate::model::{
    CapturedTraffic, EventSink, Question, QuestionHandler, QuestionReply, TraceGate, TrafficSink,
};
use crate::tui::event::{AppEvent, ApprovalPrompt, AskId};
use crate::tui::tasks::EffectRunner;

/// Where the user is asked: questions wait here for their answers.
#[derive(Clone)]
pub struct HostBridge {
    event_tx: mpsc::Sender<AppEvent>,
    next: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
    pending: Arc<Mutex<HashMap<AskId, PendingReply>>>,
    trace_gate: TraceGate,
}

enum PendingReply {
    Approval(oneshot::Sender<Approval>),
    Question(oneshot::Sender<QuestionReply>),
}

impl HostBridge {
    pub fn new(send: mpsc::Sender<AppEvent>) -> Self {
        Self {
            event_tx: send,
            next: Arc::default(),
            lost: Arc::default(),
            pending: Arc::default(),
            trace_gate: TraceGate::default(),
        }
    }

    pub fn sender(&self) -> mpsc::Sender<AppEvent> {
        self.event_tx.clone()
    }

    /// A sink for host events. Events are dropped when the console cannot keep up.
    pub fn event_sink(&self) -> EventSink {
        let bridge = self.clone();
        EventSink::new(move |event| bridge.try_send(AppEvent::Host(event)))
    }

    /// A sink for what crosses the wires. When the console cannot keep up, it is lost.
    pub fn traffic_sink(&self) -> TrafficSink {
        let bridge = self.clone();
        TrafficSink::new(move |traffic| {
            bridge.try_send(AppEvent::Traffic(Box::new(CapturedTraffic::capture(traffic))));
        })
        .with_gate(self.trace_gate())
    }

    /// A sink for the events of an attached host. They are dropped when the console cannot keep up.
    pub fn observation_sink(&self) -> ObservationSink {
        let bridge = self.clone();
        Arc::new(move |seen| match seen {
            Observation::Event(event) => bridge.try_send(AppEvent::Host(event)),
            Observation::Traffic(captured) => bridge.try_send(AppEvent::Traffic(captured)),
            Observation::Lost(count) => {
                bridge.lost.fetch_add(count, Ordering::Relaxed);
            }
            Observation::Breakpoint(news) => bridge.show_breakpoint(news),
            Observation::Started | Observation::Change(..) => {}
        })
    }

    /// The gate that keeps wire traffic from being reported while it is closed.
    pub fn trace_gate(&self) -> TraceGate {
        self.trace_gate.clone()
    }

    pub fn dropped_events(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn show_breakpoint(&self, news: HoldNews) {
        self.send_surely(match news {
            HoldNews::Rules(rules) => AppEvent::outcome(move |state| {
                state.context.breakpoints = rules;
            }),
            HoldNews::Held(held) => AppEvent::Approval {
                id: AskId(self.next.fetch_add(1, Ordering::Relaxed)),
                prompt: Box::new(ApprovalPrompt::of_held(*held)),
            },
            HoldNews::Released(hold) => AppEvent::outcome(move |state| {
                state.inbox.release(hold, &mut state.context);
            }),
        });
    }

    /// Sends what must not be lost, later if the console is busy.
    fn send_surely(&self, event: AppEvent) {
        if let Err(TrySendError::Full(event)) = self.event_tx.try_send(event) {
            let send = self.sender();
            tokio::spawn(async move { send.send(event).await });
        }
    }

    fn try_send(&self, event: AppEvent) {
        if self.event_tx.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<AskId, PendingReply>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn approve(&self, id: AskId, approval: Approval) {
        if let Some(PendingReply::Approval(waits)) = self.pending().remove(&id) {
            let _too_late = waits.send(approval);
        }
    }

    pub fn reply(&self, id: AskId, reply: QuestionReply) {
        if let Some(PendingReply::Question(waits)) = self.pending().remove(&id) {
            let _too_late = waits.send(reply);
        }
    }

    /// Asks the user and waits for the answer; `None` when nobody is there to give one.
    async fn answer<T>(
        &self,
        waiting: fn(oneshot::Sender<T>) -> PendingReply,
        question: impl FnOnce(AskId) -> AppEvent,
    ) -> Option<T> {
        let id = AskId(self.next.fetch_add(1, Ordering::Relaxed));
        let (answer, waits) = oneshot::channel();
        self.pending().insert(id, waiting(answer));
        let _placed = WithdrawOnDrop { bridge: self.clone(), id };
        self.event_tx.send(question(id)).await.ok()?;
        waits.await.ok()
    }
}

/// Withdraws a question from the bridge when dropped, because its call no longer waits.
struct WithdrawOnDrop {
    bridge: HostBridge,
    id: AskId,
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        let waiting = self.bridge.pending().remove(&self.id);
        if waiting.is_some() {
            // Or a dialog that nothing waits for would stay open.
            self.bridge.send_surely(AppEvent::QuestionWithdrawn(self.id));
        }
    }
}

#[async_trait]
impl Approver for HostBridge {
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval {
        let prompt = Box::new(ApprovalPrompt::of(request));
        let question = |id| AppEvent::Approval { id, prompt };
        let answer = self.answer(PendingReply::Approval, question).await;
        answer.unwrap_or(Approval::Unavailable)
    }
}

#[async_trait]
impl QuestionHandler for HostBridge {
    async fn ask(&self, question: Question) -> QuestionReply {
        let question = |id| AppEvent::Question { id, question: Box::new(question) };
        let answer = self.answer(PendingReply::Question, question).await;
        answer.unwrap_or(QuestionReply::Unattended)
    }

    fn allows_concurrent(&self) -> bool {
        true
    }
}

impl EffectRunner {
    /// Tells what happens in the attached host from now on, and that it ended. Without one it tells that.
    pub fn observe_attached(&mut self) {
        let host = Arc::clone(&self.deps.host);
        let cancel = CancellationToken::new();
        self.observing = Some(cancel.clone().drop_guard());
        let (bridge, send) = (self.bridge.clone(), self.bridge.sender());
        let shown = bridge.observation_sink();
        tokio::spawn(async move {
            let pid = host.attached_pid();
            let attached = AppEvent::outcome(move |state| state.attached(pid));
            let Some(pid) = pid else {
                let _unheard = send.send(attached).await;
                return;
            };
            // Said when nothing is missed any more.
            let attached = Mutex::new(Some(attached));
            let sink: ObservationSink = Arc::new(move |seen| {
                let attached = attached.lock().unwrap_or_else(PoisonError::into_inner).take();
                // Before what is observed, unless the console is too busy to take it in.
                if let Some(attached) = attached {
                    bridge.send_surely(attached);
                }
                shown(seen);
            });
            let _ended = host.observe_link(ObserveRequest::Console, &sink, &cancel).await;
            if !cancel.is_cancelled() {
                host.detach();
                let detached = AppEvent::outcome(move |state| state.detached(pid));
                let _unheard = send.send(detached).await;
            }
        });
    }
}
