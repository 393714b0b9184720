//! The peer of a connection, played by a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::mcp::message::Incoming;
use crate::mcp::wire::{Arrival, OutgoingFrame, Wire};
use crate::model::Error;

/// More than any test says before the other side listens.
const QUEUE: usize = 10_000;

/// A wire whose other end is a [`FakeServer`].
pub struct FakeWire {
    arrivals: Mutex<mpsc::Receiver<Arrival>>,
    sent: mpsc::Sender<Value>,
    shared: Arc<FakeWireState>,
}

#[derive(Default)]
struct FakeWireState {
    closed: CancellationToken,
    stuck: AtomicBool,
    /// How many sends wait because of that.
    waiting: AtomicUsize,
}

/// The test's end.
pub struct FakeServer {
    arrivals: mpsc::Sender<Arrival>,
    sent: mpsc::Receiver<Value>,
    shared: Arc<FakeWireState>,
}

pub fn wire() -> (Arc<FakeWire>, FakeServer) {
    let (arrivals, receiver) = mpsc::channel(QUEUE);
    let (sender, sent) = mpsc::channel(QUEUE);
    let shared = Arc::new(FakeWireState::default());
    let wire =
        FakeWire { arrivals: Mutex::new(receiver), sent: sender, shared: Arc::clone(&shared) };
    (Arc::new(wire), FakeServer { arrivals, sent, shared })
}

impl FakeServer {
    /// The next message of the client, which must have this method.
    pub async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub async fn next(&mut self) -> Value {
        self.sent.recv().await.expect("the client is there")
    }

    /// Everything the client has sent that the test has not read.
    pub fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.sent.try_recv().ok()).collect()
    }

    pub fn send(&self, message: &Value) {
        self.line(&message.to_string());
    }

    pub fn send_on_stream(&self, request: &Value, message: &Value) {
        let incoming = Incoming::read(message.to_string().into());
        self.arrives(Arrival::Message { incoming, stream_of: Some(request["id"].clone()) });
    }

    /// Says something that need not be a message.
    pub fn line(&self, text: &str) {
        let incoming = Incoming::read(Bytes::copy_from_slice(text.as_bytes()));
        self.arrives(Arrival::Message { incoming, stream_of: None });
    }

    pub fn answer(&self, request: &Value, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    pub fn refuse(&self, request: &Value) {
        self.send(&refusal(&request["id"]));
    }

    pub fn fail(&self, request: &Value, error: Error) {
        self.arrives(Arrival::Failed { id: request["id"].clone(), error });
    }

    /// Ends the wire.
    pub fn close(&self, why: &str) {
        self.arrives(Arrival::Closed(Error::unreachable(why.to_owned())));
    }

    pub fn stop_reading(&self) {
        self.shared.stuck.store(true, Ordering::SeqCst);
    }

    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::SeqCst)
    }

    pub fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    fn arrives(&self, arrival: Arrival) {
        match self.arrivals.try_send(arrival) {
            Err(mpsc::error::TrySendError::Full(_)) => panic!("the test says too much at once"),
            // A client that is gone hears nothing, as on a real wire.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
        }
    }
}

/// "Method not found".
pub fn refusal(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no" } })
}

#[async_trait]
impl Wire for FakeWire {
    async fn send(&self, frame: OutgoingFrame) -> Result<(), Error> {
        if self.shared.stuck.load(Ordering::SeqCst) {
            self.shared.waiting.fetch_add(1, Ordering::SeqCst);
            self.shared.closed.cancelled().await;
        }
        let message = serde_json::from_slice(&frame.bytes).unwrap();
        let sent = self.sent.try_send(message);
        sent.map_err(|_| Error::unreachable("the peer is gone"))
    }

    async fn receive(&self) -> Arrival {
        let mut arrivals = self.arrivals.lock().await;
        tokio::select! {
            biased;
            () = self.shared.closed.cancelled() => {}
            arrival = arrivals.recv() => if let Some(arrival) = arrival {
                return arrival;
            }
        }
        Arrival::Closed(Error::unreachable("the connection is closed"))
    }

    async fn close(&self) {
        self.shared.closed.cancel();
    }
}
