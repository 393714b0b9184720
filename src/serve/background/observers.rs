//! Who watches a background host.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::host::link::Observation;
use crate::model::traffic::TraceGateGuard;
use crate::model::{
    CallId, CapturedTraffic, EventSink, HostEvent, TraceGate, Traffic, TrafficSink,
};
use crate::util::lock::lock;

/// Maximum bytes queued for one viewer; anything beyond is dropped, and counted.
const MAX_WAITING_BYTES: usize = 8 << 20;
/// Maximum bytes sent at once, unless a single observation is larger.
const MAX_BATCH_BYTES: usize = 256 << 10;

/// The viewers of a host, as its events and its wires see them.
pub struct ObserverHub {
    gate: TraceGate,
    state: Mutex<HubState>,
}

struct HubState {
    viewers: Vec<Arc<ObserverQueue>>,
    running: HashMap<CallId, HostEvent>,
    /// Turns off tracing of the wires while there is no viewer.
    closed: Option<TraceGateGuard>,
}

struct ObserverQueue {
    lines: mpsc::UnboundedSender<(Arc<str>, OwnedSemaphorePermit)>,
    /// The room for what waits, in bytes.
    room: Arc<Semaphore>,
    lost: AtomicU64,
}

/// The viewer's end. Dropped, it watches no more.
pub struct Observer {
    hub: Arc<ObserverHub>,
    queue: Arc<ObserverQueue>,
    lines: mpsc::UnboundedReceiver<(Arc<str>, OwnedSemaphorePermit)>,
    /// What did not fit into the batch before.
    next: Option<Arc<str>>,
}

impl ObserverHub {
    pub fn new() -> Arc<Self> {
        let gate = TraceGate::default();
        let closed = Some(gate.close());
        let state = HubState { viewers: Vec::new(), running: HashMap::new(), closed };
        Arc::new(Self { gate, state: Mutex::new(state) })
    }

    /// A sink that shows the events of a host to all viewers, and hands them on to `next`.
    pub fn events(self: &Arc<Self>, next: EventSink) -> EventSink {
        let hub = Arc::clone(self);
        EventSink::new(move |event| {
            hub.show_event(&event);
            next.emit(event);
        })
    }

    /// A sink that shows what crosses the wires to all viewers, and hands it on to `next`.
    pub fn traffic(self: &Arc<Self>, next: TrafficSink) -> TrafficSink {
        let (hub, is_always_on) = (Arc::clone(self), next.is_configured());
        let sink = TrafficSink::new(move |traffic: Traffic| {
            hub.show_traffic(&traffic);
            next.emit(traffic);
        });
        if is_always_on { sink } else { sink.with_gate(self.gate.clone()) }
    }

    /// A viewer from now on. It first gets the running calls.
    #[expect(clippy::disallowed_methods, reason = "the bytes of all its lines have a bound")]
    pub fn watch(self: &Arc<Self>) -> Observer {
        let (sender, lines) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(MAX_WAITING_BYTES));
        let queue = Arc::new(ObserverQueue { lines: sender, room, lost: AtomicU64::new(0) });
        let mut state = lock(&self.state);
        queue.push(&Observation::Started.line());
        for started in state.running.values() {
            queue.push(&Observation::Event(started.clone()).line());
        }
        state.viewers.push(Arc::clone(&queue));
        state.closed = None;
        drop(state);
        Observer { hub: Arc::clone(self), queue, lines, next: None }
    }

    fn show_event(&self, event: &HostEvent) {
        let mut state = lock(&self.state);
        match event {
            HostEvent::CallStarted { call_id, .. } => {
                state.running.insert(call_id.clone(), event.clone());
            }
            HostEvent::CallFinished { call_id, .. } => drop(state.running.remove(call_id)),
            _ => {}
        }
        let viewers = state.viewers.clone();
        drop(state);
        if !viewers.is_empty() {
            let line = Observation::Event(event.clone()).line();
            for viewer in &viewers {
                viewer.push(&line);
            }
        }
    }

    fn show_traffic(&self, traffic: &Traffic) {
        let viewers = lock(&self.state).viewers.clone();
        if !viewers.is_empty() {
            let captured = CapturedTraffic::capture(traffic.clone());
            let line = Observation::Traffic(Box::new(captured)).line();
            for viewer in &viewers {
                viewer.push(&line);
            }
        }
    }
}

impl ObserverQueue {
    fn push(&self, line: &Arc<str>) {
        let bytes = u32::try_from(line.len()).unwrap_or(u32::MAX);
        match Arc::clone(&self.room).try_acquire_many_owned(bytes) {
            Ok(room) => drop(self.lines.send((Arc::clone(line), room))),
            Err(_) => drop(self.lost.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl Observer {
    /// The queued observations as sent: one per line. May be dropped while it waits.
    pub async fn next(&mut self) -> String {
        let mut batch = match self.next.take().or_else(|| self.try_next()) {
            Some(line) => line.to_string(),
            None => match self.queue.lost.swap(0, Ordering::Relaxed) {
                // The hub holds a sender as long as this is there.
                0 => self.lines.recv().await.map(|(line, _)| line.to_string()).unwrap_or_default(),
                lost => return Observation::Lost(lost).line().to_string(),
            },
        };
        while let Some(line) = self.try_next() {
            if batch.len() + line.len() > MAX_BATCH_BYTES {
                self.next = Some(line);
                break;
            }
            batch.push('\n');
            batch.push_str(&line);
        }
        batch
    }

    fn try_next(&mut self) -> Option<Arc<str>> {
        self.lines.try_recv().ok().map(|(line, _)| line)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let mut state = lock(&self.hub.state);
        state.viewers.retain(|viewer| !Arc::ptr_eq(viewer, &self.queue));
        if state.viewers.is_empty() {
            state.closed = Some(self.hub.gate.close());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::traffic::TrafficKind;

    fn started(id: &str) -> HostEvent {
        let (call_id, tool) = (CallId(id.into()), "echo".to_owned());
        HostEvent::CallStarted { call_id, tool, parent: None, client: Some("an editor".to_owned()) }
    }

    fn finished(id: &str) -> HostEvent {
        HostEvent::CallFinished {
            call_id: CallId(id.into()),
            tool: "echo".to_owned(),
            success: true,
            is_cancelled: false,
            duration: std::time::Duration::from_millis(5),
        }
    }

    fn stderr_traffic(text: String) -> Traffic {
        let (server, at) = ("a".to_owned(), std::time::Duration::ZERO);
        Traffic { server, sequence: 1, at, call: None, kind: TrafficKind::Stderr(text) }
    }

    /// What is told at once, without the beginning.
    async fn next(viewer: &mut Observer) -> Vec<Observation> {
        loop {
            let mut observations: Vec<_> = Observation::read(&viewer.next().await).collect();
            observations.retain(|observation| !matches!(observation, Observation::Started));
            if !observations.is_empty() {
                return observations;
            }
        }
    }

    #[tokio::test]
    async fn a_viewer_hears_of_the_calls_that_run_and_of_what_comes_then() {
        let hub = ObserverHub::new();
        let events = hub.events(EventSink::discard());
        let wires = hub.traffic(TrafficSink::disabled());
        assert!(wires.is_configured() && !wires.is_enabled(), "nothing is copied for none");
        events.emit(started("one"));
        events.emit(started("two"));
        events.emit(finished("one"));
        let mut viewer = hub.watch();
        assert!(wires.is_enabled());
        let running = next(&mut viewer).await;
        let [Observation::Event(HostEvent::CallStarted { call_id, client, .. })] = &*running else {
            panic!("{running:?}")
        };
        assert_eq!((&*call_id.0, client.as_deref()), ("two", Some("an editor")));
        events.emit(finished("two"));
        wires.emit(stderr_traffic("a line\nand another".to_owned()));
        // Both waited, so both are told at once.
        let observations = next(&mut viewer).await;
        let [
            Observation::Event(HostEvent::CallFinished { success: true, .. }),
            Observation::Traffic(traffic),
        ] = &*observations
        else {
            panic!("{observations:?}")
        };
        let TrafficKind::Stderr(text) = &traffic.traffic.kind else { panic!("{traffic:?}") };
        assert_eq!(text, "a line\nand another");
        drop(viewer);
        assert!(!wires.is_enabled());
    }

    #[tokio::test]
    async fn a_slow_viewer_costs_itself_and_hears_how_much_it_missed() {
        let hub = ObserverHub::new();
        let wires = hub.traffic(TrafficSink::disabled());
        let (mut slow, mut quick) = (hub.watch(), hub.watch());
        let large = "x".repeat(200 << 10);
        let mut messages = 0;
        for _ in 0..100 {
            wires.emit(stderr_traffic(large.clone()));
            assert!(matches!(*next(&mut quick).await, [Observation::Traffic(_)]));
        }
        let lost = loop {
            match *next(&mut slow).await {
                [Observation::Traffic(_)] => messages += 1,
                [Observation::Lost(lost)] => break lost,
                ref other => panic!("more at once than a batch has: {}", other.len()),
            }
        };
        assert_eq!(messages + lost, 100);
        assert!((30..=41).contains(&messages), "{messages} of 200 KiB in 8 MiB");
        wires.emit(stderr_traffic("again".to_owned()));
        assert!(matches!(*next(&mut slow).await, [Observation::Traffic(_)]), "and then goes on");
    }
}
