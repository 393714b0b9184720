//! What the SDK's state machine says went wrong, as a fault.

use rmcp::transport::auth::AuthError;

use super::http::AuthHttp;
use crate::model::Fault;
use crate::net::words::cut;

/// The fault an error means. When a request came to nothing, that is the reason.
pub(super) fn translate(error: AuthError, http: &AuthHttp) -> Fault {
    if let Some(trouble) = http.take_trouble() {
        return trouble;
    }
    let text = cut(&error.to_string());
    match error {
        AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => {
            Fault::auth("the authorization server is not the one it should be")
                .detail(format!("expected: {}", cut(&expected_issuer)))
                .detail(format!("named itself: {}", cut(&received_issuer)))
        }
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => {
            Fault::auth("the authorization server does not say who it is")
                .detail(format!("expected: {}", cut(&expected_issuer)))
        }
        AuthError::ProtectedResourceMetadataInvalid { url, reason } => {
            Fault::auth("the server's resource metadata cannot be used")
                .detail(cut(&reason.to_string()))
                .detail(format!("at {}", crate::net::address::show(&url)))
        }
        AuthError::AuthorizationServersUnavailable { authorization_servers, .. } => {
            Fault::auth("none of the authorization servers that the server names can be used")
                .details(authorization_servers.iter().take(5).map(|server| cut(server)))
                .hint("a private one has to be written down: auth: { type: oauth, issuer: URL }")
        }
        AuthError::DiscoveryRequestFailed { url, source } => {
            let place = crate::net::address::show(&url);
            Fault::unreachable(format!("{place} cannot be used: {}", cut(&source.to_string())))
        }
        AuthError::PkceUnsupported => {
            Fault::auth("the authorization server does not support PKCE with S256")
        }
        AuthError::RegistrationFailed(why) => {
            Fault::auth("the authorization server does not register toolhost")
                .detail(cut(&why))
                .hint("register a client there and write: auth: { type: oauth, client_id: ID }")
        }
        AuthError::TokenExchangeFailed(why) => {
            Fault::auth("the authorization server gave no token").detail(cut(&why))
        }
        _ => Fault::auth(text),
    }
}
