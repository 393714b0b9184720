//! Tests of whole conversations over a wire whose other end the test holds.
//!
//! Time stands still in these tests and jumps to the next timer when everybody waits, so limits of
//! minutes are kept to the millisecond and cost nothing.

mod handshake;
mod listings;
mod offerings;
mod peer;
mod questions;
mod requests;
mod rounds;
mod tasks;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::connection::{ConnectOptions, Connection, RequestOptions, WireOpener};
use super::lifecycle::MODERN;
use super::wire::Wire;
use crate::config::spec::ProtocolChoice;
use crate::model::{CallId, Error, ErrorPhase, EventSink, NoQuestionHandler};
use peer::{FakeServer, wire};

const START: Duration = Duration::from_secs(30);

fn options() -> ConnectOptions {
    ConnectOptions {
        server: "srv".to_owned(),
        protocol: ProtocolChoice::Auto,
        cached_era: None,
        start_timeout: START,
        falls_back_on_silence: true,
        roots: Vec::new(),
        events: EventSink::discard(),
        inbox: Arc::new(NoQuestionHandler),
    }
}

fn opener(wires: impl IntoIterator<Item = Arc<dyn Wire>>) -> WireOpener {
    let wires = Mutex::new(wires.into_iter().collect::<VecDeque<_>>());
    Arc::new(move || {
        let next = wires.lock().unwrap().pop_front();
        next.ok_or_else(|| Error::unreachable("it was started too often"))
    })
}

/// Opens a connection over one wire while `server` plays the other side.
async fn open(
    options: ConnectOptions,
    server: impl AsyncFnOnce(&mut FakeServer),
) -> (Result<Connection, Error>, FakeServer) {
    let (wire, mut peer) = wire();
    let open = opener([wire as Arc<dyn Wire>]);
    let (opened, ()) = tokio::join!(Connection::open(&open, options), server(&mut peer));
    (opened, peer)
}

async fn connected() -> (Connection, FakeServer) {
    let (opened, peer) = open(options(), async |peer| {
        let request = peer.expect("server/discover").await;
        peer.answer(&request, &discovered());
    })
    .await;
    (opened.unwrap(), peer)
}

async fn connected_legacy(
    options: ConnectOptions,
    capabilities: &Value,
) -> (Connection, FakeServer) {
    let options = ConnectOptions { protocol: ProtocolChoice::Legacy, ..options };
    let (opened, peer) = open(options, async |peer| {
        let request = peer.expect("initialize").await;
        let mut result = initialized();
        result["capabilities"] = capabilities.clone();
        peer.answer(&request, &result);
        peer.expect("notifications/initialized").await;
    })
    .await;
    (opened.unwrap(), peer)
}

async fn connected_with(options: ConnectOptions) -> (Connection, FakeServer) {
    let (opened, peer) = open(options, async |peer| {
        let request = peer.expect("server/discover").await;
        peer.answer(&request, &discovered());
    })
    .await;
    (opened.unwrap(), peer)
}

fn part_of(call: &str) -> RequestOptions {
    RequestOptions { call: Some(CallId(call.into())), ..limits() }
}

fn discovered() -> Value {
    json!({ "supportedVersions": [MODERN], "capabilities": { "tools": {} } })
}

fn initialized() -> Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "x" } })
}

/// Ten seconds of silence, a minute in all.
fn limits() -> RequestOptions {
    RequestOptions::with_timeouts(Duration::from_secs(10), Duration::from_mins(1), ErrorPhase::Call)
}
