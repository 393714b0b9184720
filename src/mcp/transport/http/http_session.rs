//! The negotiated state of an HTTP session: session id and protocol version.

use reqwest::header::HeaderValue;

use crate::model::Era;

/// The longest session id that is sent back, in bytes.
const MAX_SESSION_ID: usize = 4096;

#[derive(Default)]
pub(super) struct HttpSession {
    id: Option<HeaderValue>,
    agreement: Option<(Era, Option<HeaderValue>)>,
}

impl HttpSession {
    /// Notes the outcome of the handshake. A version that no header can carry is not sent; the
    /// layer above decides whether it is acceptable at all.
    pub(super) fn set_agreement(&mut self, era: Era, version: &str) {
        self.agreement = Some((era, HeaderValue::try_from(version).ok()));
    }

    /// Notes the session id the server gave with its answer to `initialize`; the warning about one
    /// that cannot be used.
    pub(super) fn set_id(&mut self, id: &HeaderValue) -> Option<String> {
        let bytes = id.as_bytes();
        if bytes.len() > MAX_SESSION_ID {
            return Some(format!("a session id of {} bytes is not used", bytes.len()));
        }
        if bytes.is_empty() || !bytes.iter().all(|b| (0x21..=0x7e).contains(b)) {
            return Some("a session id that is not visible ASCII is not used".to_owned());
        }
        self.id = Some(id.clone());
        None
    }

    /// The session id; the modern era has none.
    pub(super) fn id(&self) -> Option<HeaderValue> {
        self.id.clone().filter(|_| self.era() != Some(Era::Modern))
    }

    pub(super) fn take_id(&mut self) -> Option<HeaderValue> {
        let id = self.id();
        self.id = None;
        id
    }

    pub(super) fn agreement(&self) -> Option<(Era, Option<HeaderValue>)> {
        self.agreement.clone()
    }

    pub(super) fn era(&self) -> Option<Era> {
        self.agreement.as_ref().map(|(era, _)| *era)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_session_id_is_not_used() {
        let mut session = HttpSession::default();
        for id in [&b"a b"[..], b"", b"caf\xe9", &[b'S'; 4097]] {
            let id = HeaderValue::from_bytes(id).unwrap();
            assert!(session.set_id(&id).is_some(), "{id:?}");
            assert!(session.id().is_none());
        }
        assert_eq!(session.set_id(&HeaderValue::from_static("abc")), None);
        assert!(session.id().is_some());
    }

    #[test]
    fn the_modern_era_has_no_session() {
        let mut session = HttpSession::default();
        assert_eq!(session.set_id(&HeaderValue::from_static("abc")), None);
        session.set_agreement(Era::Modern, "2026-07-28");
        assert!(session.id().is_none());
    }
}
