//! Reading one JSON document.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;
use url::Url;

use super::address::display_url;
use super::client::{ClientSettings, HttpClient};
use super::response::{MAX_HEADER_BYTES, check_headers};
use crate::model::Error;
use crate::util::tls::TlsPem;

/// The longest document, in bytes.
const MAX_DOCUMENT: usize = 1 << 20;
const DEADLINE: Duration = Duration::from_secs(10);

/// The JSON document at `url`. `requires_public` refuses names that lead to other than public
/// addresses.
pub async fn json<T: DeserializeOwned>(url: &Url, requires_public: bool) -> Result<T, Error> {
    match tokio::time::timeout(DEADLINE, get(url, requires_public)).await {
        Ok(document) => {
            let document = document?;
            serde_json::from_slice(&document)
                .map_err(|error| Error::protocol(format!("{}: {error}", display_url(url))))
        }
        Err(_elapsed) => Err(Error::timeout(format!("{} did not answer", display_url(url)))),
    }
}

async fn get(url: &Url, requires_public: bool) -> Result<Bytes, Error> {
    let settings = ClientSettings {
        connect_timeout: DEADLINE,
        insecure: false,
        allows_link_local: false,
        requires_public,
        tls: TlsPem::default(),
    };
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    let client = HttpClient::new(url, None, &settings, HeaderMap::new())?;
    let mut response = client.send(Method::GET, url, &headers, None).await?;
    check_headers(&response.headers, MAX_HEADER_BYTES)?;
    if !response.status.is_success() {
        let message = format!("{} answered {}", display_url(url), response.status);
        return Err(Error::protocol(message));
    }
    response.body.whole(MAX_DOCUMENT).await
}
