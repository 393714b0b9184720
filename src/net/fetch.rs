//! Reading one JSON document.

use std::time::Duration;

use bytes::BytesMut;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;
use url::Url;

use super::address::display_url;
use super::client::{self, ClientSettings};
use super::errors;
use super::response::{MAX_HEADER_BYTES, ResponseBody, check_headers, too_large};
use crate::model::Error;

/// The longest document, in bytes.
const MAX_DOCUMENT: usize = 1 << 20;
/// From the name lookup to the last byte.
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

async fn get(url: &Url, requires_public: bool) -> Result<BytesMut, Error> {
    let settings = ClientSettings {
        connect_timeout: DEADLINE,
        insecure: false,
        allows_link_local: false,
        requires_public,
    };
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    let request = client::build(url, &settings, headers)?.get(url.clone());
    let response =
        request.send().await.map_err(|cause| errors::no_response(&cause, url, DEADLINE))?;
    check_headers(response.headers(), MAX_HEADER_BYTES)?;
    let status = response.status();
    if !status.is_success() {
        return Err(Error::protocol(format!("{} answered {status}", display_url(url))));
    }
    let (mut body, mut document) = (ResponseBody::new(response), BytesMut::new());
    while let Some(chunk) = body.next().await.map_err(|cut| body.broken(cut, document.len()))? {
        if document.len() + chunk.len() > MAX_DOCUMENT {
            return Err(too_large(MAX_DOCUMENT));
        }
        document.extend_from_slice(&chunk);
    }
    Ok(document)
}
