//! Tests of version negotiation with difficult servers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::peer::{refusal, wire};
use super::{START, connected, discovered, initialized, limits, open, opener, options};
use crate::config::spec::ProtocolChoice;
use crate::mcp::connection::{ConnectOptions, Connection};
use crate::mcp::wire::Wire;
use crate::model::{Era, ErrorKind, ErrorPhase, EventSink};

#[tokio::test(start_paused = true)]
async fn a_modern_server_needs_one_question() {
    let (connection, mut peer) = connected().await;
    assert_eq!(connection.agreement.era, Era::Modern);
    assert!(connection.protocol_warnings().is_empty());
    assert!(peer.rest().is_empty(), "a modern server is told nothing more");
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_told_that_it_is_initialized() {
    let (opened, mut peer) = open(options(), async |peer| {
        let request = peer.expect("server/discover").await;
        peer.refuse(&request);
        let request = peer.expect("initialize").await;
        peer.answer(&request, &initialized());
        peer.expect("notifications/initialized").await;
    })
    .await;
    assert_eq!(opened.unwrap().agreement.era, Era::Legacy);
    assert!(peer.rest().is_empty());
}

#[tokio::test(start_paused = true)]
async fn silence_brings_initialize_and_a_late_discover_still_wins() {
    let start = Instant::now();
    let (opened, peer) = open(options(), async |peer| {
        let discover = peer.expect("server/discover").await;
        let initialize = peer.expect("initialize").await;
        assert_eq!(start.elapsed().as_secs(), 2);
        peer.answer(&discover, &discovered());
        peer.answer(&initialize, &initialized());
    })
    .await;
    let connection = opened.unwrap();
    assert_eq!(connection.agreement.era, Era::Modern);
    // The other half of the handshake is nothing to wonder about.
    tokio::task::yield_now().await;
    assert!(connection.protocol_warnings().is_empty(), "{:?}", connection.protocol_warnings());
    drop(peer);
}

#[tokio::test(start_paused = true)]
async fn an_error_without_an_id_refuses_the_newest_request() {
    let (opened, _peer) = open(options(), async |peer| {
        peer.expect("server/discover").await;
        peer.send(&refusal(&json!(null)));
        let request = peer.expect("initialize").await;
        peer.answer(&request, &initialized());
    })
    .await;
    assert_eq!(opened.unwrap().agreement.era, Era::Legacy);
}

#[tokio::test(start_paused = true)]
async fn two_refusals_on_one_line_do_not_swallow_the_next_step() {
    let start = Instant::now();
    let (opened, _peer) = open(options(), async |peer| {
        let request = peer.expect("server/discover").await;
        let refusal = refusal(&request["id"]).to_string();
        peer.line(&format!("{refusal}{refusal}"));
        let request = peer.expect("initialize").await;
        peer.answer(&request, &initialized());
    })
    .await;
    assert_eq!(opened.unwrap().agreement.era, Era::Legacy);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_agreements_on_one_line_counts() {
    let (opened, _peer) = open(options(), async |peer| {
        let discover = peer.expect("server/discover").await;
        let initialize = peer.expect("initialize").await;
        let one = json!({ "jsonrpc": "2.0", "id": discover["id"], "result": discovered() });
        let two = json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": initialized() });
        peer.line(&format!("{one}{two}"));
    })
    .await;
    assert_eq!(opened.unwrap().agreement.era, Era::Modern);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_question_that_was_not_asked_decides_nothing() {
    let legacy = ConnectOptions { protocol: ProtocolChoice::Legacy, ..options() };
    let (opened, _peer) = open(legacy, async |peer| {
        let request = peer.expect("initialize").await;
        let id = request["id"].as_i64().unwrap();
        for guess in [id - 1, id + 1] {
            peer.send(&json!({ "jsonrpc": "2.0", "id": guess, "result": discovered() }));
        }
        peer.answer(&request, &initialized());
    })
    .await;
    let connection = opened.unwrap();
    assert_eq!(connection.agreement.era, Era::Legacy);
    assert_eq!(connection.protocol_warnings().len(), 2, "{:?}", connection.protocol_warnings());
}

#[tokio::test(start_paused = true)]
async fn questions_of_the_server_are_answered_during_the_handshake_or_after_it() {
    let (opened, mut peer) = open(options(), async |peer| {
        let request = peer.expect("server/discover").await;
        peer.send(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
        assert_eq!(peer.next().await, json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
        peer.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "roots/list" }));
        peer.refuse(&request);
        let request = peer.expect("initialize").await;
        peer.answer(&request, &initialized());
        peer.expect("notifications/initialized").await;
    })
    .await;
    let _connection = opened.unwrap();
    let reply = peer.next().await;
    assert_eq!(reply["id"], 7, "{reply}");
    assert_eq!(reply["error"]["code"], -32601, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_before_the_handshake_is_over_is_heard_and_bounded() {
    let recorded = Arc::new(std::sync::Mutex::new(Vec::new()));
    let ear = Arc::clone(&recorded);
    let events = EventSink::new(move |event| ear.lock().unwrap().push(event));
    let (opened, _peer) = open(ConnectOptions { events, ..options() }, async |peer| {
        let request = peer.expect("server/discover").await;
        let log = |text: &str| {
            let params = json!({ "level": "info", "data": text });
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
        };
        peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        for _ in 0..50 {
            peer.send(&log(&"x".repeat(200_000)));
        }
        peer.answer(&request, &discovered());
    })
    .await;
    let connection = opened.unwrap();
    assert_eq!(connection.tool_list_version(), 1);
    let recorded = recorded.lock().unwrap().len();
    assert!((2..=10).contains(&recorded), "{recorded} events were kept");
    assert!(connection.protocol_warnings().iter().any(|d| d.contains("too much")));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_of_the_question_is_started_once_more() {
    let ((first, mut dying), (second, mut fresh)) = (wire(), wire());
    let open = opener([first as Arc<dyn Wire>, second]);
    let (opened, ()) = tokio::join!(Connection::open(&open, options()), async {
        dying.expect("server/discover").await;
        dying.close("the process exited with 2");
        let request = fresh.expect("initialize").await;
        fresh.answer(&request, &initialized());
    });
    assert_eq!(opened.unwrap().agreement.era, Era::Legacy);
    assert!(dying.is_closed() && !fresh.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_each_time_is_told_with_its_words() {
    let ((first, one), (second, two)) = (wire(), wire());
    one.close("the process exited with 2");
    two.close("the process exited with 3");
    let open = opener([first as Arc<dyn Wire>, second]);
    let error = Connection::open(&open, options()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.message(), "the process exited with 3");
    assert_eq!((error.server(), error.phase()), (Some("srv"), Some(ErrorPhase::Handshake)));
    assert!(one.is_closed() && two.is_closed());
}

#[tokio::test(start_paused = true)]
async fn silence_ends_at_the_start_timeout_whatever_else_is_said() {
    let start = Instant::now();
    let (opened, peer) = open(options(), async |peer| {
        // Noise is no sign of life that counts.
        while !peer.is_closed() {
            peer.line("still loading");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    })
    .await;
    let error = opened.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(start.elapsed().as_secs(), START.as_secs());
    assert!(error.details().iter().any(|l| l.contains("still loading")), "{error:?}");
    assert!(peer.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_connection_works_after_each_kind_of_handshake() {
    let (connection, mut peer) = connected().await;
    let options = limits();
    let (answer, ()) = tokio::join!(connection.request("ping", json!({}), &options), async {
        let request = peer.expect("ping").await;
        peer.answer(&request, &json!({ "fine": true }));
    });
    assert_eq!(answer.unwrap().get(), r#"{"fine":true}"#);
}
