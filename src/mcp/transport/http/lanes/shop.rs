//! What all lanes of a run share.
//!
//! Owns: the way to the wire they belong to, and how another connection is made. Never does: carry
//! a call.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use url::Url;

use super::doubts::Doubts;
use crate::mcp::transport::http::running::locked;
use crate::mcp::transport::http::{HttpLimits, Shared};
use crate::mcp::wire::Arrival;
use crate::model::Fault;
use crate::net::address::show;
use crate::net::dial::Dialer;

/// What lanes share.
pub(super) struct Shop {
    pub(super) shared: Arc<Shared>,
    pub(super) dialer: Dialer,
    url: Url,
    in_session: bool,
    doubts: Mutex<Doubts>,
}

impl Shop {
    pub(super) fn new(shared: Arc<Shared>, in_session: bool) -> Result<Self, Fault> {
        let url = locked(&shared.url).clone();
        let (socket, insecure) = (shared.socket.clone(), shared.insecure);
        let dialer = Dialer::new(url.clone(), socket, shared.limits.connect, insecure)?;
        Ok(Self { shared, dialer, url, in_session, doubts: Mutex::default() })
    }

    pub(super) fn limits(&self) -> &HttpLimits {
        &self.shared.limits
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Whether requests carry the id of a session.
    pub(super) fn in_session(&self) -> bool {
        self.in_session
    }

    /// Whether requests carry credentials.
    pub(super) fn authorized(&self) -> bool {
        self.shared.gate.authorized()
    }

    /// Says over which socket something was refused.
    pub(super) fn placed(&self, fault: Fault) -> Fault {
        self.shared.placed(fault)
    }

    /// The fault without secrets.
    pub(super) fn clean(&self, fault: Fault) -> Fault {
        self.shared.secrets.clean_fault(fault)
    }

    pub(super) fn doubts(&self) -> MutexGuard<'_, Doubts> {
        locked(&self.doubts)
    }

    pub(super) fn labelled(&self) {
        self.doubts().labelled += 1;
    }

    /// Gives a message that answers no call of the run to the session.
    pub(super) fn hand_over(&self, bytes: Bytes) {
        if !self.shared.outbox.offer(Arrival::Message { bytes, stream_of: None }) {
            self.doubts().undelivered += 1;
        }
    }

    /// The fault of a redirect that an ordinary call would follow.
    pub(super) fn redirected(&self, next: &Url) -> Fault {
        Fault::denied(format!(
            "{} redirects to {}, which a run of calls does not follow",
            show(&self.url),
            show(next)
        ))
        .hint("if that is where the server is, write it into the entry's url")
    }
}
