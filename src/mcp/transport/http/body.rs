//! Reading a whole message from a response body.

use bytes::{Bytes, BytesMut};

use super::arrival_queue::LargeMessagePermit;
use super::exchanges::HttpExchange;
use crate::model::Error;
use crate::net::response::{ResponseBody, too_large};

/// All of `body`, of which `begun` was already read.
pub(super) async fn read_to_end(
    body: &mut ResponseBody,
    begun: Bytes,
    limit: usize,
    bulk: &mut LargeMessagePermit,
    exchange: &HttpExchange,
) -> Result<Bytes, Error> {
    if body.content_length.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let mut first = Some(begun).filter(|begun| !begun.is_empty());
    let mut rest = BytesMut::new();
    loop {
        let held = first.as_ref().map_or(0, Bytes::len) + rest.len();
        let chunk = match body.next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(cut) => return Err(body.broken(cut, held)),
        };
        if held + chunk.len() > limit {
            return Err(too_large(limit));
        }
        exchange.add_bytes_read(chunk.len());
        bulk.reserve(held + chunk.len()).await;
        if first.is_none() && rest.is_empty() {
            // Most bodies are one chunk, which need not be copied.
            first = Some(chunk);
            continue;
        }
        if let Some(first) = first.take() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&chunk);
    }
    Ok(first.unwrap_or_else(|| rest.freeze()))
}
