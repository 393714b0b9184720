//! Reading a response body within bounds.
//!
//! Owns: gathering a whole body up to a limit that counts after decompression, and the beginning
//! of one that is no message. Never does: interpret it.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

use super::queue::Bulk;
use super::running::Exchange;
use super::trouble::{Cut, in_body};
use crate::model::Fault;
use crate::util::units::show_size;

/// A response body.
pub(super) struct Body {
    response: Response,
    /// Announced length, when there is one and nothing is decompressed.
    expected: Option<u64>,
}

impl Body {
    pub(super) fn new(response: Response) -> Self {
        let expected = response.content_length();
        Self { response, expected }
    }

    /// Whether the headers already say that nothing comes.
    pub(super) fn is_empty(&self) -> bool {
        self.expected == Some(0)
    }

    /// The next bytes, `None` at the regular end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Cut> {
        self.response.chunk().await.map_err(|error| in_body(&error))
    }

    /// The first bytes, up to `limit`; a body that breaks is as long as what came of it.
    pub(super) async fn beginning(&mut self, limit: usize) -> Bytes {
        let mut bytes = BytesMut::new();
        while bytes.len() < limit {
            let Ok(Some(chunk)) = self.next().await else { break };
            bytes.extend_from_slice(&chunk);
        }
        bytes.freeze()
    }

    /// All of the body, of which `begun` was read before.
    ///
    /// # Errors
    /// When it is longer than `limit`, or does not come to its end; nothing partial is returned.
    pub(super) async fn whole(
        &mut self,
        begun: Bytes,
        limit: usize,
        bulk: &mut Bulk,
        exchange: &Exchange,
    ) -> Result<Bytes, Fault> {
        if self.expected.is_some_and(|length| length > limit as u64) {
            return Err(too_large(limit));
        }
        let mut first = Some(begun).filter(|begun| !begun.is_empty());
        let mut rest = BytesMut::new();
        loop {
            let chunk = match self.next().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(cut) => return Err(self.cut_fault(cut, first.as_ref(), &rest)),
            };
            let held = first.as_ref().map_or(0, Bytes::len) + rest.len();
            if held + chunk.len() > limit {
                return Err(too_large(limit));
            }
            exchange.read(chunk.len());
            bulk.holding(held + chunk.len()).await;
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

    fn cut_fault(&self, cut: Cut, first: Option<&Bytes>, rest: &BytesMut) -> Fault {
        let came = show_size((first.map_or(0, Bytes::len) + rest.len()) as u64);
        match (cut, self.expected) {
            (Cut::Lost(reason), _) => {
                Fault::unreachable(format!("{reason} in the middle of the answer"))
                    .detail(format!("{came} had come"))
            }
            (Cut::Short, Some(expected)) => Fault::protocol(format!(
                "the answer ended early: {came} of {} came",
                show_size(expected)
            )),
            (Cut::Short, None) => Fault::protocol(format!("the answer ended early, after {came}")),
            (Cut::Broken(reason), _) => {
                Fault::protocol(format!("the answer's HTTP body is broken: {reason}"))
                    .detail(format!("{came} had come"))
            }
        }
    }
}

/// The fault for a message above the limit.
pub(super) fn too_large(limit: usize) -> Fault {
    Fault::protocol(format!("the answer is larger than the limit of {}", show_size(limit as u64)))
}
