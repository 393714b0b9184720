//! The way of telemetry to a collector: the shared HTTP client in the place of the exporter's own.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use reqwest::header::HeaderMap;
use tokio::runtime::Handle;
use url::Url;

use super::client::{ClientSettings, HttpClient as OriginClient};
use super::posted_body::PostedBody;
use crate::util::tls::TlsPem;

/// The most of a collector's answer that is read, in bytes; it says what was refused.
const MAX_ANSWER: usize = 64 << 10;

/// Sends the exporter's requests. The exporter waits on its own thread, so the work is done by the
/// runtime that calls are made on.
#[derive(Debug)]
pub struct OtlpHttpClient {
    runtime: Handle,
    timeout: Duration,
    client: OnceLock<OriginClient>,
}

impl OtlpHttpClient {
    /// A client for one endpoint, whose requests may take `timeout` each.
    pub fn new(runtime: Handle, timeout: Duration) -> Self {
        Self { runtime, timeout, client: OnceLock::new() }
    }

    /// The client, made with the first request: only that says where it goes.
    fn client(&self, url: &Url) -> Result<OriginClient, HttpError> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let settings = ClientSettings {
            connect_timeout: self.timeout,
            insecure: false,
            allows_link_local: false,
            requires_public: false,
            tls: TlsPem::default(),
        };
        let client = OriginClient::new(url, None, &settings, HeaderMap::new())?;
        Ok(self.client.get_or_init(|| client).clone())
    }
}

#[async_trait]
impl HttpClient for OtlpHttpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string())?;
        let (client, timeout) = (self.client(&url)?, self.timeout);
        let work = async move {
            let body = Some(PostedBody::new(body, None));
            let mut answer = client.send(head.method, &url, &head.headers, body).await?;
            let mut response = Response::new(answer.body.beginning(MAX_ANSWER).await);
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok::<_, HttpError>(response)
        };
        self.runtime.spawn(async move { tokio::time::timeout(timeout, work).await? }).await?
    }
}
