//! Which headers an entry may set, and which of them carry credentials.

use reqwest::header::{AUTHORIZATION, HeaderName};

use crate::config::secrets::names_secret;
use crate::model::{Diagnostic, SourceLocation};

/// Headers that belong to HTTP itself: they frame the message, or choose who gets it.
pub(super) const RESERVED_HEADERS: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
];

pub(super) fn header_name(text: &str, place: &SourceLocation) -> Result<HeaderName, Diagnostic> {
    let name = HeaderName::try_from(text).map_err(|_| {
        Diagnostic::error(format!("'{text}' is not a header name")).with_location(place.clone())
    })?;
    if RESERVED_HEADERS.contains(&name.as_str()) {
        return Err(Diagnostic::error(format!("the header '{name}' is set by HTTP itself"))
            .with_hint("leave it out; it is set automatically")
            .with_location(place.clone()));
    }
    Ok(name)
}

pub(super) fn is_authorization(name: &HeaderName) -> bool {
    *name == AUTHORIZATION || names_secret(name.as_str())
}
