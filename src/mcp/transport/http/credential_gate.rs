//! Adding credentials to each request, and renewing them after a refusal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::HttpShared;
use super::exchanges::HttpExchange;
use crate::mcp::credentials::{Challenge, ChallengeOutcome};
use crate::mcp::wire::OutgoingFrame;
use crate::model::Error;
use crate::net::response::{OriginResponse, lossy};

const MAX_AUTHORIZATIONS: usize = 3;
const MAX_CHALLENGES: usize = 5;
const CHALLENGE_SIZE: usize = 8 << 10;

impl HttpShared {
    /// Sends one HTTP request with the credentials there are, and again when a refusal changed
    /// them. The response may still be a refusal.
    pub(super) async fn send_with_credentials(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        frame: Option<&OutgoingFrame>,
        exchange: Option<&Arc<HttpExchange>>,
    ) -> Result<OriginResponse, Error> {
        for attempt in 0.. {
            let authorization = self.add_credentials(&mut headers).await?;
            let response = self
                .send_following_redirects(method.clone(), url, &headers, frame, exchange)
                .await?;
            if self.has_user_authorization
                || attempt == MAX_AUTHORIZATIONS
                || !matches!(response.status.as_u16(), 401 | 403)
            {
                return Ok(response);
            }
            let challenge =
                challenge(response.status, &response.headers, &response.url, authorization);
            match self.credentials.handle_challenge(challenge).await? {
                ChallengeOutcome::Retry => {}
                ChallengeOutcome::Refused => return Ok(response),
            }
        }
        Err(Error::internal("an infinite loop ended"))
    }

    /// Puts what there is to show into the headers of a request, in place of what was shown before.
    pub(super) async fn add_credentials(
        &self,
        headers: &mut HeaderMap,
    ) -> Result<Option<SecretString>, Error> {
        if self.has_user_authorization {
            return Ok(None);
        }
        let authorization = self.credentials.authorization().await?;
        self.sent_credentials.store(authorization.is_some(), Ordering::Relaxed);
        headers.remove(AUTHORIZATION);
        if let Some(authorization) = &authorization {
            headers.insert(AUTHORIZATION, sensitive_value(&AUTHORIZATION, authorization)?);
            self.redactor.add_secret(AUTHORIZATION.as_str(), authorization);
        }
        Ok(authorization)
    }
}

pub(super) fn sensitive_value(
    name: &HeaderName,
    value: &SecretString,
) -> Result<HeaderValue, Error> {
    let mut header = HeaderValue::try_from(value.expose_secret()).map_err(|_| {
        Error::config(format!("the value of the header '{name}' contains a control character"))
            .with_hint("the usual cause is a line break at the end of a token file")
    })?;
    header.set_sensitive(true);
    Ok(header)
}

/// What is put to the holder of the credentials after a refusal.
fn challenge(
    status: StatusCode,
    headers: &HeaderMap,
    url: &Url,
    authorization: Option<SecretString>,
) -> Challenge {
    let text = |value: &HeaderValue| {
        let bytes = value.as_bytes();
        lossy(bytes.get(..CHALLENGE_SIZE).unwrap_or(bytes)).into_owned()
    };
    Challenge {
        status: status.as_u16(),
        www_authenticate: headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .take(MAX_CHALLENGES)
            .map(text)
            .collect(),
        url: url.clone(),
        authorization,
    }
}
