//! What is renewed while a run goes on: the login that was refused, the session that was forgotten.
//!
//! Owns: doing either once at a time, and not again before something good came of it. Never does:
//! decide what becomes of a call.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};

use super::request::RequestHead;
use super::shop::Shop;
use crate::mcp::credentials::{Challenge, Retry, Shown};
use crate::model::Fault;
use crate::net::words::lossy;

/// How many challenges of one refusal are read.
const CHALLENGES: usize = 5;
/// Characters of one challenge that are read.
const CHALLENGE: usize = 8 << 10;
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The renewals of a run.
#[derive(Default)]
pub(super) struct Renewal {
    running: Option<BoxFuture<'static, Renewed>>,
    /// A login was renewed, and nothing was let in since.
    spent: bool,
    session_renewed: bool,
}

/// What came of one: another head, or none and perhaps why.
pub(super) type Renewed = Result<Option<RequestHead>, Fault>;

impl Renewal {
    /// Whether one is under way.
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// A call was let in: another refusal is worth another renewal.
    pub(super) fn worked(&mut self) {
        self.spent = false;
    }

    /// Puts a refusal to whoever holds the credentials, unless that was in vain the last time.
    pub(super) fn login(
        &mut self,
        shop: &Arc<Shop>,
        tool: &str,
        shown: Option<Shown>,
        (status, fields): (u16, &HeaderMap),
    ) -> bool {
        if self.running.is_some() {
            return true;
        }
        if shop.shared.gate.is_written() || std::mem::replace(&mut self.spent, true) {
            return false;
        }
        shop.doubts().logins += 1;
        let (shop, tool) = (Arc::clone(shop), tool.to_owned());
        let text = |value: &HeaderValue| {
            lossy(value.as_bytes()).chars().take(CHALLENGE).collect::<String>()
        };
        let asked: Vec<String> =
            fields.get_all(WWW_AUTHENTICATE).iter().take(CHALLENGES).map(text).collect();
        let nonce = fields.get(&NONCE).map(text);
        self.running = Some(Box::pin(async move {
            // Somebody else may have renewed it since.
            let newest = RequestHead::new(&shop.shared, &tool).await?;
            if newest.as_ref().is_some_and(|newest| newest.shows_other_than(shown.as_ref())) {
                return Ok(newest);
            }
            let url = shop.url().clone();
            let challenge = Challenge { status, www_authenticate: asked, nonce, url, shown };
            match shop.shared.gate.challenged(challenge).await? {
                Retry::Again => RequestHead::new(&shop.shared, &tool).await,
                Retry::No => Ok(None),
            }
        }));
        true
    }

    /// Begins another session, once in a run.
    pub(super) fn session(&mut self, shop: &Arc<Shop>, tool: &str) {
        if self.running.is_some() || std::mem::replace(&mut self.session_renewed, true) {
            return;
        }
        shop.doubts().sessions += 1;
        let (shop, tool) = (Arc::clone(shop), tool.to_owned());
        self.running = Some(Box::pin(async move {
            Arc::clone(&shop.shared).greet_again().await?;
            RequestHead::new(&shop.shared, &tool).await
        }));
    }

    /// What came of the one that is under way.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Renewed> {
        let Some(running) = &mut self.running else { return Poll::Pending };
        let renewed = running.as_mut().poll(cx);
        if renewed.is_ready() {
            self.running = None;
        }
        renewed
    }
}
