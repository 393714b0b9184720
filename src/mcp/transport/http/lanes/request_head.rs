//! The request head, serialised once for all calls of a run.

use std::io::Write as _;

use bytes::Bytes;
use reqwest::header::{HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use url::Url;

use super::super::exchanges::locked;
use super::super::{HttpShared, headers};
use crate::mcp::wire::{FrameKind, OutgoingFrame};
use crate::model::Error;

/// The head of every request: all bytes before the body.
pub(super) struct RequestHead {
    /// Everything up to the headers that differ.
    fixed_lines: Vec<u8>,
    pub(super) authorization: Option<SecretString>,
    pub(super) in_session: bool,
}

impl RequestHead {
    /// The head of a call of `tool`, with the credentials and the session there are now. `None`
    /// when the credentials are made for one request each.
    pub(super) async fn new(shared: &HttpShared, tool: &str) -> Result<Option<Self>, Error> {
        let url = locked(&shared.url).clone();
        let mut all = headers::post(&call(tool), &locked(&shared.session))?;
        let in_session = all.contains_key(&headers::SESSION);
        let shown = shared.add_credentials(&mut all).await?;
        all.insert(USER_AGENT, HeaderValue::from_static(crate::net::client::USER_AGENT));
        for name in shared.entry_headers.keys() {
            if !all.contains_key(name) {
                shared.entry_headers.get_all(name).iter().for_each(|value| {
                    all.append(name, value.clone());
                });
            }
        }
        Ok(Some(Self { fixed_lines: head_lines(&url, &all), authorization: shown, in_session }))
    }

    /// Whether its credentials are not those that were refused.
    pub(super) fn has_other_credentials(&self, refused: Option<&SecretString>) -> bool {
        let text = |shown: &SecretString| shown.expose_secret().to_owned();
        self.authorization.as_ref().map(text) != refused.map(text)
    }

    pub(super) fn write(&self, own: &[u8], body: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.fixed_lines);
        out.extend_from_slice(own);
        out.extend_from_slice(b"content-length: ");
        // Writing to memory does not fail.
        write!(out, "{}", body.len()).ok();
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
    }
}

/// The lines of a request's own headers (`Mcp-Param-*`).
pub fn param_header_lines(pairs: &[(String, String)]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    for (name, value) in pairs {
        line(&headers::parameter_name(name)?, &headers::header_value(value)?, &mut out);
    }
    Ok(out)
}

fn call(tool: &str) -> OutgoingFrame {
    OutgoingFrame {
        bytes: Bytes::new(),
        call: None,
        kind: FrameKind::Request {
            id: Value::Null,
            method: "tools/call".to_owned(),
            name: Some(tool.to_owned()),
            headers: Vec::new(),
        },
    }
}

fn head_lines(url: &Url, headers: &HeaderMap) -> Vec<u8> {
    let mut out = format!("POST {}", url.path()).into_bytes();
    if let Some(query) = url.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let host = url.host_str().unwrap_or_default();
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    if let Ok(host) = HeaderValue::try_from(host) {
        line(&HOST, &host, &mut out);
    }
    headers.iter().for_each(|(name, value)| line(name, value, &mut out));
    out
}

fn line(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}
