//! Logins that are refused, and sessions that are forgotten, in the middle of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::super::super::HttpTarget;
use super::super::super::tests::{call as ordinary_call, target};
use super::*;
use crate::mcp::credentials::{Asked, Challenge, Credentials, Retry, Shown};
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
    async fn show(&self, _: Asked<'_>) -> Result<Option<Shown>, Fault> {
        let token = format!("planted-{}", self.newest.load(Ordering::Relaxed));
        Ok(Some(Shown::bearer(&token.into())))
    }

    async fn challenged(&self, challenge: Challenge) -> Result<Retry, Fault> {
        assert_eq!(challenge.www_authenticate, ["Bearer error=\"invalid_token\""]);
        // Others come to the same conclusion meanwhile.
        tokio::task::yield_now().await;
        self.challenges.fetch_add(1, Ordering::Relaxed);
        let newest = self.newest.load(Ordering::Relaxed);
        if newest == self.last {
            return Ok(Retry::No);
        }
        self.newest.store(newest + 1, Ordering::Relaxed);
        Ok(Retry::Again)
    }
}

fn refused() -> Reply {
    let challenge = "WWW-Authenticate: Bearer error=\"invalid_token\"";
    Reply::full("401 Unauthorized", &[challenge], "")
}

fn wire_with(peer: &Peer, credentials: &Arc<Numbered>) -> HttpWire {
    let credentials = Arc::clone(credentials) as Arc<dyn Credentials>;
    let wire = HttpWire::connect(HttpTarget { credentials, ..target(peer.url("/mcp")) }).unwrap();
    wire.agreed(Era::Legacy, "2025-11-25");
    wire
}

#[tokio::test]
async fn a_refused_login_is_renewed_once_for_all_lanes() {
    let peer = Peer::start(|_, heard| match heard.header("authorization") {
        Some("Bearer planted-1") => result(heard),
        _ => refused(),
    })
    .await;
    let credentials = Arc::new(Numbered { last: 5, ..Numbered::default() });
    let mut lanes = lanes_of(&wire_with(&peer, &credentials), 4).await;
    for ticket in 0..4 {
        send(&mut lanes, ticket).await;
    }
    for _ in 0..4 {
        assert!(ended(&mut lanes).await.came.unwrap().plain);
    }
    assert_eq!(credentials.challenges.load(Ordering::Relaxed), 1);
    assert_eq!(peer.heard().len(), 8);
    assert!(call(&mut lanes, 4).await.unwrap().plain);
    assert_eq!(peer.heard().len(), 9);
}

#[tokio::test]
async fn a_refusal_that_stands_is_counted_and_not_argued_with() {
    let peer = Peer::start(|_, _| refused()).await;
    let credentials = Arc::new(Numbered { last: 3, ..Numbered::default() });
    let mut lanes = lanes_of(&wire_with(&peer, &credentials), 2).await;
    for ticket in 0..2 {
        send(&mut lanes, ticket).await;
    }
    for _ in 0..2 {
        let fault =
            is_fault(ended(&mut lanes).await.came, FaultKind::Auth, "refused the credentials");
        assert!(!format!("{fault:?}").contains("planted"));
    }
    for ticket in 2..5 {
        is_fault(call(&mut lanes, ticket).await, FaultKind::Auth, "401");
    }
    assert_eq!(credentials.challenges.load(Ordering::Relaxed), 1);
    // Two were sent twice.
    assert_eq!(peer.heard().len(), 7);
    let doubts = lanes.doubts();
    assert!(doubts.iter().any(|doubt| doubt.contains("login")), "{doubts:?}");
}

#[tokio::test]
async fn where_nothing_can_be_renewed_the_refusal_stands_at_once() {
    let peer = Peer::start(|_, _| refused()).await;
    let credentials = Arc::new(Numbered::default());
    let mut lanes = lanes_of(&wire_with(&peer, &credentials), 1).await;
    is_fault(call(&mut lanes, 0).await, FaultKind::Auth, "401");
    assert_eq!(peer.heard().len(), 1);
}

#[tokio::test]
async fn a_forgotten_session_is_begun_again_once() {
    let begun = Arc::new(AtomicUsize::new(0));
    let sessions = Arc::clone(&begun);
    let peer = Peer::start(move |_, heard| {
        if heard.body.contains("\"initialize\"") {
            let session = format!("Mcp-Session-Id: s{}", begun.fetch_add(1, Ordering::Relaxed));
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, heard.id());
            return Reply::full("200 OK", &["Content-Type: application/json", &session], body);
        }
        if heard.method != "POST" || heard.body.contains("notifications/") {
            return Reply::accepted();
        }
        match heard.header("mcp-session-id") {
            Some("s1") => result(heard),
            _ => Reply::full("404 Not Found", &[], ""),
        }
    })
    .await;
    let wire = HttpWire::connect(target(peer.url("/mcp"))).unwrap();
    assert!(ordinary_call(&wire, 1, "initialize").await.fault.is_none());
    wire.agreed(Era::Legacy, "2025-11-25");
    let mut lanes = lanes_of(&wire, 2).await;
    for ticket in 0..2 {
        send(&mut lanes, ticket).await;
    }
    for _ in 0..2 {
        is_fault(ended(&mut lanes).await.came, FaultKind::Unreachable, "forgot the session");
    }
    for ticket in 2..6 {
        assert!(call(&mut lanes, ticket).await.unwrap().plain);
    }
    assert_eq!(sessions.load(Ordering::Relaxed), 2);
    let initialized = |heard: &&Heard| heard.body.contains("notifications/initialized");
    assert_eq!(peer.heard().iter().filter(initialized).count(), 1);
}
