//! Renewing a refused login or an expired session during a run.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use secrecy::SecretString;

use super::context::LaneContext;
use super::request_head::RequestHead;
use crate::mcp::credentials::{Challenge, ChallengeOutcome};
use crate::model::Error;
use crate::net::excerpt::lossy;

/// How many challenges of one refusal are read.
const MAX_CHALLENGES: usize = 5;
/// Characters of one challenge that are read.
const CHALLENGE_CHARS: usize = 8 << 10;

#[derive(Default)]
pub(super) struct LaneRenewal {
    running: Option<BoxFuture<'static, LaneRenewalResult>>,
    has_renewed_login: bool,
    has_renewed_session: bool,
}

/// The outcome of a renewal: another head, or none and perhaps why.
pub(super) type LaneRenewalResult = Result<Option<RequestHead>, Error>;

impl LaneRenewal {
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// A call was accepted: another refusal is worth another renewal.
    pub(super) fn mark_accepted(&mut self) {
        self.has_renewed_login = false;
    }

    /// Passes a refusal to the holder of the credentials, unless the last renewal did not help.
    pub(super) fn renew_login(
        &mut self,
        context: &Arc<LaneContext>,
        tool: &str,
        shown: Option<SecretString>,
        (status, fields): (u16, &HeaderMap),
    ) -> bool {
        if self.running.is_some() {
            return true;
        }
        if context.shared.credential_gate.has_user_authorization()
            || std::mem::replace(&mut self.has_renewed_login, true)
        {
            return false;
        }
        context.warnings().logins += 1;
        let (context, tool) = (Arc::clone(context), tool.to_owned());
        let text = |value: &HeaderValue| {
            lossy(value.as_bytes()).chars().take(CHALLENGE_CHARS).collect::<String>()
        };
        let challenges: Vec<String> =
            fields.get_all(WWW_AUTHENTICATE).iter().take(MAX_CHALLENGES).map(text).collect();
        self.running = Some(Box::pin(async move {
            // Another task may have renewed it since.
            let newest = RequestHead::new(&context.shared, &tool).await?;
            if newest.as_ref().is_some_and(|newest| newest.has_other_credentials(shown.as_ref())) {
                return Ok(newest);
            }
            let url = context.url().clone();
            let challenge =
                Challenge { status, www_authenticate: challenges, url, authorization: shown };
            match context.shared.credential_gate.handle_challenge(challenge).await? {
                ChallengeOutcome::Retry => RequestHead::new(&context.shared, &tool).await,
                ChallengeOutcome::Refused => Ok(None),
            }
        }));
        true
    }

    pub(super) fn renew_session(&mut self, context: &Arc<LaneContext>, tool: &str) {
        if self.running.is_some() || std::mem::replace(&mut self.has_renewed_session, true) {
            return;
        }
        context.warnings().sessions += 1;
        let (context, tool) = (Arc::clone(context), tool.to_owned());
        self.running = Some(Box::pin(async move {
            Arc::clone(&context.shared).reinitialize_session().await?;
            RequestHead::new(&context.shared, &tool).await
        }));
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<LaneRenewalResult> {
        let Some(running) = &mut self.running else { return Poll::Pending };
        let renewed = running.as_mut().poll(cx);
        if renewed.is_ready() {
            self.running = None;
        }
        renewed
    }
}
