//! State shared by all lanes of a run.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use url::Url;

use super::warnings::LaneWarnings;
use crate::mcp::transport::http::exchanges::locked;
use crate::mcp::transport::http::{HttpLimits, HttpShared};
use crate::mcp::wire::Arrival;
use crate::model::Error;
use crate::net::address::display_url;
use crate::net::dial::Dialer;
use crate::net::errors::Place;

/// What the lanes to one server share.
pub(super) struct LaneContext {
    pub(super) shared: Arc<HttpShared>,
    pub(super) dialer: Dialer,
    url: Url,
    in_session: bool,
    warnings: Mutex<LaneWarnings>,
}

impl LaneContext {
    pub(super) fn new(shared: Arc<HttpShared>, in_session: bool) -> Result<Self, Error> {
        let url = locked(&shared.url).clone();
        let (socket, insecure) = (shared.socket.clone(), shared.insecure);
        let dialer = Dialer::new(url.clone(), socket, shared.limits.connect, insecure)?;
        Ok(Self { shared, dialer, url, in_session, warnings: Mutex::default() })
    }

    pub(super) fn limits(&self) -> &HttpLimits {
        &self.shared.limits
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { url: &self.url, socket: self.shared.socket.as_deref() }
    }

    /// Whether requests carry the id of a session.
    pub(super) fn in_session(&self) -> bool {
        self.in_session
    }

    /// Whether the requests of the lanes carry credentials.
    pub(super) fn sent_credentials(&self) -> bool {
        self.shared.credential_gate.sent_credentials()
    }

    pub(super) fn with_socket(&self, error: Error) -> Error {
        self.shared.with_socket(error)
    }

    pub(super) fn redact(&self, error: Error) -> Error {
        self.shared.redactor.redact_error(error)
    }

    pub(super) fn warnings(&self) -> MutexGuard<'_, LaneWarnings> {
        locked(&self.warnings)
    }

    pub(super) fn note_mislabelled(&self) {
        self.warnings().mislabelled += 1;
    }

    /// Gives a message that answers no call of the run to the session.
    pub(super) fn forward_to_session(&self, bytes: Bytes) {
        if !self.shared.arrival_sender.try_push(Arrival::Message { bytes, stream_of: None }) {
            self.warnings().undelivered += 1;
        }
    }

    pub(super) fn redirect_error(&self, next: &Url) -> Error {
        Error::denied(format!(
            "{} redirects to {}, which a benchmark run does not follow",
            display_url(&self.url),
            display_url(next)
        ))
        .with_hint("if that is where the server is, use it as the entry's url")
    }
}
