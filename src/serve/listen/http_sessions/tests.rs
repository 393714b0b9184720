//! Sessions that are too many, idle, or of clients that are gone.

use rmcp::transport::Transport as _;
use serde_json::json;

use super::*;

fn client(value: serde_json::Value) -> ClientJsonRpcMessage {
    serde_json::from_value(value).unwrap()
}

fn hello() -> serde_json::Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } })
}

/// A session whose client has introduced itself, and the end of its service.
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
    let state = SessionState::new(serde_json::from_value(hello()).unwrap());
    sessions.store(&id, &state).await.unwrap();
    (id, transport)
}

fn sessions(known: usize, running: usize, few: usize) -> HttpSessions {
    HttpSessions::with_limits(SessionLimits { known, running, few })
}

#[tokio::test]
async fn there_are_no_more_sessions_than_there_may_be() {
    let sessions = sessions(2, 10, 10);
    let (id, _service) = opened(&sessions).await;
    let (_, _other) = opened(&sessions).await;
    assert!(!sessions.has_room());
    assert_eq!(sessions.create_session().await.err(), Some(SessionError::TooMany));
    sessions.delete(&id).await.unwrap();
    assert!(sessions.has_room());
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_loses_its_service_and_gets_another() {
    let sessions = sessions(10, 2, 1);
    let (id, mut service) = opened(&sessions).await;
    assert!(sessions.has_session(&id).await.unwrap());
    assert!(sessions.has_room(), "there may be one more");
    assert!(sessions.has_session(&id).await.unwrap(), "it was used just now");
    let (_, _second) = opened(&sessions).await;
    assert!(!sessions.has_room(), "both were used just now");
    tokio::time::advance(SERVICE_IDLE).await;
    sessions.sweep();
    assert!(service.receive().await.is_none(), "the service was not ended");
    drop(service);
    // The SDK says that the service ended; the session is there.
    sessions.close_session(&id).await.unwrap();
    assert!(!sessions.has_session(&id).await.unwrap());
    assert!(sessions.load(&id).await.unwrap().is_some());
    let restored = sessions.restore_session(Arc::clone(&id)).await.unwrap();
    assert!(matches!(restored, RestoreOutcome::Restored(_)));
    // What runs keeps its service.
    let (busy, _transport) = opened(&sessions).await;
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let _stream = sessions.create_stream(&busy, client(call)).await.unwrap();
    tokio::time::advance(SERVICE_IDLE * 10).await;
    sessions.sweep();
    assert!(sessions.has_session(&busy).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn sessions_of_clients_that_are_gone_are_forgotten() {
    let sessions = sessions(10, 10, 10);
    let (silent, _transport) = sessions.create_session().await.unwrap();
    let (gone, _service) = opened(&sessions).await;
    let (listening, _third) = opened(&sessions).await;
    let _stream = sessions.create_standalone_stream(&listening).await.unwrap();
    let is_known = |id: &SessionId| sessions.session(id).is_ok();
    tokio::time::advance(Duration::from_mins(2)).await;
    sessions.sweep();
    assert!(!is_known(&silent), "it never introduced itself");
    assert!(is_known(&gone) && is_known(&listening));
    tokio::time::advance(Duration::from_mins(31)).await;
    sessions.sweep();
    assert!(!is_known(&gone) && is_known(&listening));
}
