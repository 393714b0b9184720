//! Which headers an entry may set, and which of them carry credentials.

use reqwest::header::{AUTHORIZATION, HeaderName};

use crate::config::secrets::names_secret;
use crate::model::Diagnostic;
use crate::util::text::is_one_of;

/// Headers that belong to HTTP itself: they frame the message, or choose who gets it.
const RESERVED_HEADERS: &str = "host connection content-length transfer-encoding \
    accept-encoding upgrade te trailer keep-alive";

pub(super) fn header_name(text: &str) -> Result<HeaderName, Diagnostic> {
    let name = HeaderName::try_from(text)
        .map_err(|_| Diagnostic::error(format!("'{text}' is not a header name")))?;
    if is_one_of(name.as_str(), RESERVED_HEADERS) {
        return Err(Diagnostic::error(format!("the header '{name}' is set by HTTP itself"))
            .with_hint("leave it out; it is set automatically"));
    }
    Ok(name)
}

pub(super) fn is_authorization(name: &HeaderName) -> bool {
    *name == AUTHORIZATION || names_secret(name.as_str())
}
