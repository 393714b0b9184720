//! Authorization errors: those of the SDK's state machine, and those that need the user to act.

use rmcp::transport::auth::AuthError;

use super::OAuthSettings;
use super::http::AuthHttp;
use crate::mcp::credentials::Challenge;
use crate::model::Error;
use crate::net::address::display_url;
use crate::net::response::truncate;
use crate::util::text::shell_quoted;

pub(super) fn from_auth_error(error: AuthError, http: &AuthHttp) -> Error {
    if let Some(trouble) = http.take_last_error() {
        return trouble;
    }
    let text = truncate(&error.to_string());
    match error {
        AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => {
            Error::auth("the authorization server is not the expected one")
                .with_detail(format!("expected: {}", truncate(&expected_issuer)))
                .with_detail(format!("named itself: {}", truncate(&received_issuer)))
        }
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => {
            Error::auth("the authorization server does not state its issuer")
                .with_detail(format!("expected: {}", truncate(&expected_issuer)))
        }
        AuthError::ProtectedResourceMetadataInvalid { url, reason } => {
            Error::auth("the server's resource metadata cannot be used")
                .with_detail(truncate(&reason.to_string()))
                .with_detail(format!("at {}", display_url(&url)))
        }
        AuthError::AuthorizationServersUnavailable { authorization_servers, .. } => {
            Error::auth("none of the authorization servers that the server names can be used")
                .with_details(authorization_servers.iter().take(5).map(|server| truncate(server)))
                .with_hint(
                    "configure a private one in the entry: auth: { type: oauth, issuer: URL }",
                )
        }
        AuthError::DiscoveryRequestFailed { url, source } => {
            let place = display_url(&url);
            Error::unreachable(format!("{place} cannot be used: {}", truncate(&source.to_string())))
        }
        AuthError::PkceUnsupported => {
            Error::auth("the authorization server does not support PKCE with S256")
        }
        AuthError::RegistrationFailed(why) => {
            Error::auth("the authorization server does not register toolhost")
                .with_detail(truncate(&why))
                .with_hint(
                    "register a client there and write: auth: { type: oauth, client_id: ID }",
                )
        }
        AuthError::TokenExchangeFailed(why) => {
            Error::auth("the authorization server issued no token").with_detail(truncate(&why))
        }
        _ => Error::auth(text),
    }
}

/// The error of a server that wants a login that only a person can make; `over` is why the last
/// one ended.
pub(super) fn login_required(
    settings: &OAuthSettings,
    challenge: &Challenge,
    over: Option<&str>,
) -> Error {
    let place = display_url(&challenge.url);
    let error = Error::auth(match (over, &challenge.authorization) {
        (Some(_), _) => format!("the login at {place} is over: 401 Unauthorized"),
        (None, Some(_)) => format!("{place} refused the credentials: 401 Unauthorized"),
        (None, None) => format!("{place} requires credentials: 401 Unauthorized"),
    });
    let login = login_command(settings);
    let explained = settings.is_required || challenge.authorization.is_some() || over.is_some();
    let hint = if explained {
        format!("log in with: {login}")
    } else {
        let token = if settings.is_ad_hoc {
            "use --header 'Authorization: Bearer ${NAME}'"
        } else {
            "give the entry auth: { type: bearer, token_env_var: NAME }"
        };
        format!("log in with: {login}, or {token}")
    };
    with_challenge(error.with_details(over.map(str::to_owned)), challenge).with_hint(hint)
}

fn login_command(settings: &OAuthSettings) -> String {
    let server = if settings.is_ad_hoc {
        format!("--server-url {}", shell_quoted(&[display_url(&settings.url)]))
    } else {
        settings.server.clone()
    };
    format!("toolhost auth login {server}")
}

/// The error of a server that wants scopes that were not granted.
pub(super) fn scopes_required(
    settings: &OAuthSettings,
    challenge: &Challenge,
    scopes: &[String],
) -> Error {
    let place = display_url(&challenge.url);
    // A server chose them, and a person may paste them.
    let flag = |scope: &String| format!("--scope {}", shell_quoted(&[truncate(scope)]));
    let flags: Vec<String> = scopes.iter().take(10).map(flag).collect();
    let scope_text = truncate(&scopes.join(" "));
    let error = Error::auth(format!("{place} requires more than was granted: {scope_text}"));
    let command = format!("{} {}", login_command(settings), flags.join(" "));
    with_challenge(error, challenge).with_hint(format!("allow it with: {command}"))
}

fn with_challenge(error: Error, challenge: &Challenge) -> Error {
    let headers = challenge.www_authenticate.iter();
    error
        .with_details(headers.map(|value| format!("www-authenticate: {}", truncate(value))))
        .with_http_status(challenge.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_one_word_of_a_shell() {
        let url = url::Url::parse("https://srv.example/mcp").unwrap();
        let settings = OAuthSettings::new("srv", url.clone());
        let challenge =
            Challenge { status: 403, www_authenticate: Vec::new(), url, authorization: None };
        let scopes = ["mcp:tools/read", "$(touch x)", "a';b"].map(str::to_owned);
        let error = scopes_required(&settings, &challenge, &scopes);
        let flags = r"--scope mcp:tools/read --scope '$(touch x)' --scope 'a'\'';b'";
        assert!(error.hint().unwrap().ends_with(flags), "{error:?}");
    }
}
