//! Sessions that are too many, or of clients that are gone.

use futures_util::{FutureExt as _, StreamExt as _};
use rmcp::transport::Transport as _;
use serde_json::json;

use super::*;
use crate::host::ToolHost;
use crate::serve::catalogue_server::{ClientRegistry, ServeSettings};
use crate::serve::listen::bounded_stream::MAX_UNANSWERED;

fn client(value: serde_json::Value) -> ClientJsonRpcMessage {
    serde_json::from_value(value).unwrap()
}

fn hello() -> serde_json::Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } })
}

async fn opened(sessions: &HttpSessions) -> (SessionId, ServedSessionTransport) {
    let (id, mut transport) = sessions.create_session().await.unwrap();
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello() });
    let answering = async {
        transport.receive().await.unwrap();
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                             "serverInfo": { "name": "test", "version": "1" } });
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
        transport.send(serde_json::from_value(answer).unwrap()).await.unwrap();
    };
    let (answer, ()) = tokio::join!(sessions.initialize_session(&id, client(request)), answering);
    answer.unwrap();
    (id, transport)
}

fn sessions() -> Arc<HttpSessions> {
    sessions_within(SharedRoom::new(KEPT_ANSWERS))
}

fn sessions_within(answers: SharedRoom) -> Arc<HttpSessions> {
    let clients = ClientRegistry::new();
    let host = clients.attach(ToolHost::builder()).build();
    let (settings, stop) = (ServeSettings::default(), CancellationToken::new());
    let server = CatalogueServer::new(host, clients, settings, stop.clone());
    HttpSessions::new(&server, "http", answers, stop)
}

async fn ask_and_leave(
    sessions: &HttpSessions,
    (id, service): &mut (SessionId, ServedSessionTransport),
    number: u64,
    length: usize,
) {
    let ping = json!({ "jsonrpc": "2.0", "id": number, "method": "ping" });
    drop(sessions.create_stream(id, client(ping)).await.unwrap());
    service.receive().await.unwrap();
    let content = json!([{ "type": "text", "text": "x".repeat(length) }]);
    let result = json!({ "content": content });
    let answer = json!({ "jsonrpc": "2.0", "id": number, "result": result });
    service.send(serde_json::from_value(answer).unwrap()).await.unwrap();
}

/// What a client reads that comes back to the stream with this number: the text of each message.
async fn come_back(
    sessions: &HttpSessions,
    id: &SessionId,
    stream: u64,
) -> Result<Vec<String>, SessionError> {
    // The first is that of the handshake.
    let events = sessions.resume(id, format!("0/{}", stream + 1)).await?;
    let messages = events.map(|event| serde_json::to_string(&event.message).unwrap());
    Ok(messages.collect().await)
}

#[tokio::test]
async fn one_session_has_only_so_many_answers_that_its_client_did_not_read() {
    let sessions = sessions();
    let mut one = opened(&sessions).await;
    let (first, last) = (0, session::MAX_KEPT_ANSWERS as u64);
    for number in first..=last {
        ask_and_leave(&sessions, &mut one, number, 10).await;
    }
    assert_eq!(come_back(&sessions, &one.0, first).await, Err(SessionError::UnknownEvent));
    let messages = come_back(&sessions, &one.0, last).await.unwrap();
    assert!(messages[0].contains("xxxxxxxxxx"), "{messages:?}");
}

#[tokio::test(start_paused = true)]
async fn answers_that_clients_do_not_read_are_kept_up_to_a_number_of_bytes() {
    let common = SharedRoom::new(KEPT_ANSWERS);
    let sessions = sessions_within(common.of_one_token());
    let mut one = opened(&sessions).await;
    let answer = 1 << 20;
    let fitting = (KEPT_ANSWERS.1 / answer) as u64 - 1;
    for number in 0..=fitting {
        ask_and_leave(&sessions, &mut one, number, answer).await;
    }
    let messages = come_back(&sessions, &one.0, fitting - 1).await.unwrap();
    assert!(messages[0].len() > answer, "{}", messages[0].len());
    let messages = come_back(&sessions, &one.0, fitting).await.unwrap();
    assert!(
        messages[0].contains("\"error\"") && messages[0].contains("was dropped"),
        "{messages:?}"
    );
    // The client of another token still has its share.
    let others = sessions_within(common.of_one_token());
    let mut other = opened(&others).await;
    ask_and_leave(&others, &mut other, 1, answer).await;
    assert!(come_back(&others, &other.0, 0).await.unwrap()[0].len() > answer);
    // What is forgotten makes room.
    tokio::time::advance(Duration::from_mins(2)).await;
    sessions.sweep();
    let mut later = opened(&sessions).await;
    ask_and_leave(&sessions, &mut later, 1, answer).await;
    let messages = come_back(&sessions, &later.0, 0).await.unwrap();
    assert!(messages[0].len() > answer, "{}", messages[0].len());
}

#[tokio::test]
async fn a_session_has_only_so_many_requests_without_an_answer() {
    let sessions = sessions();
    let (id, mut service) = opened(&sessions).await;
    for number in 0..MAX_UNANSWERED as u64 {
        let ping = json!({ "jsonrpc": "2.0", "id": number, "method": "ping" });
        drop(sessions.create_stream(&id, client(ping)).await.unwrap());
        service.receive().await.unwrap();
    }
    let one_more = json!({ "jsonrpc": "2.0", "id": "more", "method": "ping" });
    let events = sessions.create_stream(&id, client(one_more)).await.unwrap();
    let messages = events.map(|event| serde_json::to_string(&event.message).unwrap());
    let messages: Vec<_> = messages.collect().await;
    // Its stream is not kept: no event to resume from comes before.
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].contains("waiting for responses") && messages[0].contains("\"more\""),
        "{messages:?}"
    );
}

#[tokio::test]
async fn there_are_no_more_sessions_than_there_may_be() {
    let sessions = sessions();
    let (id, _service) = opened(&sessions).await;
    for _ in 1..MAX_SESSIONS {
        sessions.create_session().await.unwrap();
    }
    assert!(!sessions.has_room());
    assert_eq!(sessions.create_session().await.err(), Some(SessionError::TooMany));
    sessions.close_session(&id).await.unwrap();
    assert!(sessions.has_room());
}

#[tokio::test(start_paused = true)]
async fn sessions_of_clients_that_are_gone_are_forgotten() {
    let sessions = sessions();
    let (silent, _transport) = sessions.create_session().await.unwrap();
    let (ended, _service) = opened(&sessions).await;
    let (listening, _third) = opened(&sessions).await;
    let _stream = sessions.create_standalone_stream(&listening).await.unwrap();
    let is_known = |id: &SessionId| sessions.session(id).is_ok();
    tokio::time::advance(Duration::from_mins(2)).await;
    sessions.sweep();
    assert!(!is_known(&silent), "it never introduced itself");
    assert!(is_known(&ended) && is_known(&listening));
    tokio::time::advance(Duration::from_mins(31)).await;
    sessions.sweep();
    assert!(!is_known(&ended) && is_known(&listening));
}

fn change(list: &str) -> ServerJsonRpcMessage {
    let method = format!("notifications/{list}/list_changed");
    serde_json::from_value(json!({ "jsonrpc": "2.0", "method": method })).unwrap()
}

#[tokio::test]
async fn a_client_that_does_not_read_its_stream_misses_changes_and_costs_no_more() {
    let sessions = sessions();
    let (id, mut service) = opened(&sessions).await;
    let mut stream = Box::pin(sessions.create_standalone_stream(&id).await.unwrap());
    for _ in 0..1_000 {
        service.send(change("tools")).await.unwrap();
    }
    let events = std::iter::from_fn(|| stream.next().now_or_never()).count();
    assert!((1..50).contains(&events), "{events} are kept");
}

#[tokio::test]
async fn a_stream_opened_again_begins_with_what_no_stream_was_there_for() {
    let sessions = sessions();
    let (id, mut service) = opened(&sessions).await;
    for list in ["tools", "prompts"] {
        service.send(change(list)).await.unwrap();
        let mut stream = Box::pin(sessions.create_standalone_stream(&id).await.unwrap());
        let event = serde_json::to_string(&stream.next().await.unwrap().message).unwrap();
        assert!(event.contains(list), "{event}");
    }
}

#[tokio::test]
async fn further_streams_that_stay_silent_are_few() {
    let sessions = sessions();
    let (id, _service) = opened(&sessions).await;
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(Box::pin(sessions.create_standalone_stream(&id).await.unwrap()));
    }
    assert!(matches!(streams[1].next().now_or_never(), Some(None)), "the oldest one ends");
    assert!(streams[2].next().now_or_never().is_none());
}
