//! What went wrong, as faults: what the SDK's state machine says, and what only a person can mend.

use rmcp::transport::auth::AuthError;
use serde_json::json;

use super::Settings;
use super::http::AuthHttp;
use crate::mcp::credentials::Challenge;
use crate::model::Fault;
use crate::net::address::show;
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
                .detail(format!("at {}", show(&url)))
        }
        AuthError::AuthorizationServersUnavailable { authorization_servers, .. } => {
            Fault::auth("none of the authorization servers that the server names can be used")
                .details(authorization_servers.iter().take(5).map(|server| cut(server)))
                .hint("a private one has to be written down: auth: { type: oauth, issuer: URL }")
        }
        AuthError::DiscoveryRequestFailed { url, source } => {
            let place = show(&url);
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

/// The fault of a server that wants a login that only a person can make; `over` is why the last
/// one ended.
pub(super) fn login_wanted(
    settings: &Settings,
    challenge: &Challenge,
    over: Option<&str>,
) -> Fault {
    let place = show(&challenge.url);
    let fault = Fault::auth(match (over, &challenge.shown) {
        (Some(_), _) => format!("the login at {place} is over: 401 Unauthorized"),
        (None, Some(_)) => format!("{place} refused the credentials: 401 Unauthorized"),
        (None, None) => format!("{place} wants credentials: 401 Unauthorized"),
    });
    let login = format!("toolhost auth login {}", settings.server);
    let known = settings.required || challenge.shown.is_some() || over.is_some();
    let hint = if known {
        format!("log in with: {login}")
    } else {
        let token = "auth: { type: bearer, token_env_var: NAME }";
        format!("log in with: {login}, or give the entry {token}")
    };
    refused(fault.details(over.map(str::to_owned)), challenge).hint(hint)
}

/// The fault of a server that wants scopes that were not granted.
pub(super) fn more_wanted(settings: &Settings, challenge: &Challenge, scopes: &[String]) -> Fault {
    let place = show(&challenge.url);
    let flags: Vec<String> =
        scopes.iter().take(10).map(|scope| format!("--scope {}", quoted(scope))).collect();
    let wanted = cut(&scopes.join(" "));
    let fault = Fault::auth(format!("{place} wants more than was granted: {wanted}"));
    let command = format!("toolhost auth login {} {}", settings.server, flags.join(" "));
    refused(fault, challenge).hint(format!("allow it with: {command}"))
}

/// A scope as a word of a shell: a server chose it, and a person may paste it.
fn quoted(scope: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:/+@-".contains(c);
    let scope = cut(scope);
    if scope.chars().all(plain) { scope } else { format!("'{}'", scope.replace('\'', r"'\''")) }
}

fn refused(fault: Fault, challenge: &Challenge) -> Fault {
    let said = challenge.www_authenticate.iter();
    fault
        .details(said.map(|value| format!("www-authenticate: {}", cut(value))))
        .data(json!({ "http_status": challenge.status }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_one_word_of_a_shell() {
        assert_eq!(quoted("mcp:tools/read"), "mcp:tools/read");
        assert_eq!(quoted("$(touch x)"), "'$(touch x)'");
        assert_eq!(quoted("a';b"), r"'a'\'';b'");
    }
}
