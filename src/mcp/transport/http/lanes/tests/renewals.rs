//! Tests of logins that are refused, and sessions that expire, in the middle of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use secrecy::SecretString;

use super::super::super::HttpTarget;
use super::super::super::tests::{call as ordinary_call, target};
use super::*;
use crate::mcp::credentials::{Challenge, ChallengeOutcome, Credentials, bearer_header};
use crate::model::Era;

/// Tokens with a number, each of which a refusal brings the next of, as long as there are some.
#[derive(Debug, Default)]
struct Numbered {
    newest: AtomicUsize,
    challenges: AtomicUsize,
    last: usize,
}

#[async_trait]
impl Credentials for Numbered {
    async fn authorization(&self) -> Result<Option<SecretString>, Error> {
        let token = format!("planted-{}", self.newest.load(Ordering::Relaxed));
        Ok(Some(bearer_header(&token)))
    }

    async fn handle_challenge(&self, challenge: Challenge) -> Result<ChallengeOutcome, Error> {
        assert_eq!(challenge.www_authenticate, ["Bearer error=\"invalid_token\""]);
        // Others come to the same conclusion meanwhile.
        tokio::task::yield_now().await;
        self.challenges.fetch_add(1, Ordering::Relaxed);
        let newest = self.newest.load(Ordering::Relaxed);
        if newest == self.last {
            return Ok(ChallengeOutcome::Refused);
        }
        self.newest.store(newest + 1, Ordering::Relaxed);
        Ok(ChallengeOutcome::Retry)
    }
}

fn refused() -> TestResponse {
    let challenge = "WWW-Authenticate: Bearer error=\"invalid_token\"";
    TestResponse::full("401 Unauthorized", &[challenge], "")
}

fn wire_with(peer: &TestServer, credentials: &Arc<Numbered>) -> HttpWire {
    let credentials = Arc::clone(credentials) as Arc<dyn Credentials>;
    let wire = HttpWire::connect(HttpTarget { credentials, ..target(peer.url("/mcp")) }).unwrap();
    wire.set_agreement(Era::Legacy, "2025-11-25");
    wire
}

#[tokio::test]
async fn a_refused_login_is_renewed_once_for_all_lanes() {
    let peer = TestServer::start(|_, request| match request.header("authorization") {
        Some("Bearer planted-1") => result(request),
        _ => refused(),
    })
    .await;
    let credentials = Arc::new(Numbered { last: 5, ..Numbered::default() });
    let mut lanes = lanes_of(&wire_with(&peer, &credentials), 4).await;
    for ticket in 0..4 {
        send(&mut lanes, ticket).await;
    }
    for _ in 0..4 {
        assert!(ended(&mut lanes).await.answer.unwrap().is_plain);
    }
    assert_eq!(credentials.challenges.load(Ordering::Relaxed), 1);
    assert_eq!(peer.requests().len(), 8);
    assert!(call(&mut lanes, 4).await.unwrap().is_plain);
    assert_eq!(peer.requests().len(), 9);
}

#[tokio::test]
async fn a_refusal_that_stands_is_counted_and_not_argued_with() {
    let peer = TestServer::start(|_, _| refused()).await;
    let credentials = Arc::new(Numbered { last: 3, ..Numbered::default() });
    let mut lanes = lanes_of(&wire_with(&peer, &credentials), 2).await;
    for ticket in 0..2 {
        send(&mut lanes, ticket).await;
    }
    for _ in 0..2 {
        let error =
            is_error(ended(&mut lanes).await.answer, ErrorKind::Auth, "refused the credentials");
        assert!(!format!("{error:?}").contains("planted"));
    }
    for ticket in 2..5 {
        is_error(call(&mut lanes, ticket).await, ErrorKind::Auth, "401");
    }
    assert_eq!(credentials.challenges.load(Ordering::Relaxed), 1);
    // Two were sent twice.
    assert_eq!(peer.requests().len(), 7);
    let warnings = lanes.protocol_warnings();
    assert!(warnings.iter().any(|warning| warning.contains("token renewals")), "{warnings:?}");
}

#[tokio::test]
async fn where_nothing_can_be_renewed_the_refusal_stands_at_once() {
    let peer = TestServer::start(|_, _| refused()).await;
    let credentials = Arc::new(Numbered::default());
    let mut lanes = lanes_of(&wire_with(&peer, &credentials), 1).await;
    is_error(call(&mut lanes, 0).await, ErrorKind::Auth, "401");
    assert_eq!(peer.requests().len(), 1);
}

#[tokio::test]
async fn a_forgotten_session_is_begun_again_once() {
    let begun = Arc::new(AtomicUsize::new(0));
    let sessions = Arc::clone(&begun);
    let peer = TestServer::start(move |_, request| {
        if request.body.contains("\"initialize\"") {
            let session = format!("Mcp-Session-Id: s{}", begun.fetch_add(1, Ordering::Relaxed));
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, request.id());
            return TestResponse::full(
                "200 OK",
                &["Content-Type: application/json", &session],
                body,
            );
        }
        if request.method != "POST" || request.body.contains("notifications/") {
            return TestResponse::accepted();
        }
        match request.header("mcp-session-id") {
            Some("s1") => result(request),
            _ => TestResponse::full("404 Not Found", &[], ""),
        }
    })
    .await;
    let wire = HttpWire::connect(target(peer.url("/mcp"))).unwrap();
    assert!(ordinary_call(&wire, 1, "initialize").await.error.is_none());
    wire.set_agreement(Era::Legacy, "2025-11-25");
    let mut lanes = lanes_of(&wire, 2).await;
    for ticket in 0..2 {
        send(&mut lanes, ticket).await;
    }
    for _ in 0..2 {
        is_error(
            ended(&mut lanes).await.answer,
            ErrorKind::Unreachable,
            "no longer knows the session",
        );
    }
    for ticket in 2..6 {
        assert!(call(&mut lanes, ticket).await.unwrap().is_plain);
    }
    assert_eq!(sessions.load(Ordering::Relaxed), 2);
    let initialized = |request: &&TestRequest| request.body.contains("notifications/initialized");
    assert_eq!(peer.requests().iter().filter(initialized).count(), 1);
}
