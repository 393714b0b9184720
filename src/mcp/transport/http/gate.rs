//! Being let in: credentials go with a request, and a refusal is put to whoever holds them.
//!
//! Owns: [`Gate`], the loop around one HTTP request until it is let in, refused for good, or was
//! tried often enough. Never does: get a token by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, Response};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::Shared;
use super::running::Exchange;
use crate::mcp::credentials::{Asked, Challenge, Credentials, Retry, Shown};
use crate::mcp::wire::Frame;
use crate::model::Fault;
use crate::net::words::lossy;

/// How often one request may change what it shows.
const AUTHORIZATIONS: usize = 3;
/// How many challenges of one answer are read.
const CHALLENGES: usize = 5;
/// Bytes of one challenge that are read.
const CHALLENGE_SIZE: usize = 8 << 10;

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The credentials of a wire.
pub(super) struct Gate {
    credentials: Arc<dyn Credentials>,
    /// The newest request carried credentials, of whatever origin.
    authorized: AtomicBool,
    /// The user wrote `Authorization` among the headers: nothing else is shown.
    written: bool,
}

impl Gate {
    pub(super) fn new(credentials: Arc<dyn Credentials>, written: bool) -> Self {
        Self { credentials, authorized: AtomicBool::new(written), written }
    }

    /// Whether the user wrote `Authorization` among the headers.
    pub(super) fn is_written(&self) -> bool {
        self.written
    }

    /// Puts a refusal to whoever holds the credentials.
    pub(super) async fn challenged(&self, challenge: Challenge) -> Result<Retry, Fault> {
        self.credentials.challenged(challenge).await
    }

    /// Whether the newest request carried credentials.
    pub(super) fn authorized(&self) -> bool {
        self.authorized.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Sends one HTTP request with the credentials there are, and again when a refusal changed
    /// them. The response may still be a refusal.
    pub(super) async fn exchange(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        frame: Option<&Frame>,
        exchange: Option<&Arc<Exchange>>,
    ) -> Result<Response, Fault> {
        for attempt in 0.. {
            let mut headers = headers.clone();
            let shown = self.show(method.as_str(), url, &mut headers).await?;
            let response = self.attempt(method.clone(), url, headers, frame, exchange).await?;
            if self.gate.written
                || attempt == AUTHORIZATIONS
                || !matches!(response.status().as_u16(), 401 | 403)
            {
                return Ok(response);
            }
            let challenge = challenge(&response, shown);
            match self.gate.credentials.challenged(challenge).await? {
                Retry::Again => {}
                Retry::No => return Ok(response),
            }
        }
        Err(Fault::internal("a loop without an end ended"))
    }

    /// Puts what there is to show into the headers of a request.
    pub(super) async fn show(
        &self,
        method: &str,
        url: &Url,
        headers: &mut HeaderMap,
    ) -> Result<Option<Shown>, Fault> {
        if self.gate.written {
            return Ok(None);
        }
        let shown = self.gate.credentials.show(Asked { method, url }).await?;
        self.gate.authorized.store(shown.is_some(), Ordering::Relaxed);
        if let Some(Shown { authorization, proof }) = &shown {
            headers.insert(AUTHORIZATION, sensitive(&AUTHORIZATION, authorization)?);
            self.secrets.learn(AUTHORIZATION.as_str(), authorization);
            if let Some(proof) = proof {
                headers.insert(DPOP, sensitive(&DPOP, proof)?);
            }
        }
        Ok(shown)
    }
}

/// A header's value that is kept out of every message.
fn sensitive(name: &HeaderName, value: &SecretString) -> Result<HeaderValue, Fault> {
    let mut header = HeaderValue::try_from(value.expose_secret()).map_err(|_| {
        Fault::config(format!("the value of the header '{name}' holds a control character"))
            .hint("a line break at the end of a token file is the usual cause")
    })?;
    header.set_sensitive(true);
    Ok(header)
}

fn challenge(response: &Response, shown: Option<Shown>) -> Challenge {
    let text = |value: &HeaderValue| {
        let bytes = value.as_bytes();
        lossy(bytes.get(..CHALLENGE_SIZE).unwrap_or(bytes)).into_owned()
    };
    let headers = response.headers();
    Challenge {
        status: response.status().as_u16(),
        www_authenticate: headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .take(CHALLENGES)
            .map(text)
            .collect(),
        nonce: headers.get(DPOP_NONCE).map(text),
        url: response.url().clone(),
        shown,
    }
}
