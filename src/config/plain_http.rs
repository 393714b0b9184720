//! Whether credentials may be sent to an address without TLS.

use url::Url;

use super::typed::Located;
use crate::model::{Diagnostic, EntryOrigin, Layer};
use crate::util::hosts::is_loopback;

/// What `insecure` of an entry says: whether its credentials may be sent unencrypted.
pub fn insecure(
    written: Option<&Located<bool>>,
    origin: Option<&EntryOrigin>,
) -> Result<bool, Diagnostic> {
    match written {
        Some(allowed)
            if allowed.value && origin.is_none_or(|origin| origin.layer != Layer::User) =>
        {
            Err(allowed
                .error("'insecure' is only allowed in your own configuration directory")
                .with_hint(
                    "a file of a project cannot allow credentials over plain http; use https",
                ))
        }
        written => Ok(written.is_some_and(|allowed| allowed.value)),
    }
}

pub fn unencrypted(url: &Url, sends_credentials: bool, insecure: bool) -> Option<Diagnostic> {
    let refused = sends_credentials && !insecure && url.scheme() != "https" && !is_loopback(url);
    refused.then(|| {
        Diagnostic::error("credentials would travel unencrypted").with_hint(
            "use https, or set 'insecure: true' in an entry in your own configuration directory",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_travel_encrypted_or_not_at_all() {
        let refused = |url: &str| unencrypted(&url.parse().unwrap(), true, false).is_some();
        for url in ["http://api.example/", "http://10.0.0.1/", "http://localhost.example/"] {
            assert!(refused(url), "{url}");
            assert!(unencrypted(&url.parse().unwrap(), false, false).is_none(), "{url}");
            assert!(unencrypted(&url.parse().unwrap(), true, true).is_none(), "{url}");
        }
        for url in
            ["https://api.example/", "http://127.0.0.1:8/", "http://[::1]/", "http://a.localhost/"]
        {
            assert!(!refused(url), "{url}");
        }
    }
}
