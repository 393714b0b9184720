//! `headers` and `auth` of a server.

use secrecy::SecretString;
use url::Url;

use super::{FileContext, Findings};
use crate::config::keys::AUTH;
use crate::config::node::{Node, NodeValue};
use crate::config::secrets::looks_secret;
use crate::config::spec::AuthSpec;
use crate::model::Problem;

/// The headers of every request; their values are secrets.
pub fn headers(entry: &Node, findings: &mut Findings) -> Vec<(String, SecretString)> {
    let Some(node) = entry.get("headers").filter(|n| !n.is_null()) else { return Vec::new() };
    let mut headers = Vec::new();
    for (key, value) in findings.take(node.as_map()).unwrap_or_default() {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if key.text.is_empty() || !key.text.bytes().all(is_token) {
            findings.error(node.place_of(key), format!("'{}' is no header name", key.text));
            continue;
        }
        let Some(text) = findings.take(value.as_scalar_text()) else { continue };
        if text.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
            let message =
                format!("the value of the header '{}' holds a control character", key.text);
            findings.error(value.place(), message);
            continue;
        }
        headers.push((key.text.clone(), SecretString::from(text)));
    }
    headers
}

/// How to authenticate.
pub fn resolve(entry: &Node, file: &FileContext<'_>, findings: &mut Findings) -> AuthSpec {
    let Some(node) = entry.get("auth").filter(|n| !n.is_null()) else { return AuthSpec::None };
    if let NodeValue::Text(word) = &node.value {
        if word != "none" {
            findings.problems.push(
                Problem::error(format!("'{word}' is no way to authenticate"))
                    .hint("write auth: { type: bearer, token_env_var: NAME }")
                    .at(node.place()),
            );
        }
        return AuthSpec::None;
    }
    let Some(entries) = findings.take(node.as_map()) else { return AuthSpec::None };
    for (key, _) in entries {
        if crate::config::keys::canonical(AUTH, &key.text).is_none() {
            findings.unknown_key(node, key, AUTH, &[]);
        }
    }
    let word = match node.get("type") {
        Some(node) => match findings.take(node.as_text()) {
            Some(word) => word,
            None => return AuthSpec::None,
        },
        None => "bearer",
    };
    match word {
        "none" => AuthSpec::None,
        "bearer" => findings
            .take(bearer(node, file))
            .map_or(AuthSpec::None, |(token, variable)| AuthSpec::Bearer { token, variable }),
        "oauth" | "client_credentials" => {
            let place = node.get("type").unwrap_or(node).place();
            findings.error(place, format!("auth type '{word}' is not in this version yet"));
            AuthSpec::None
        }
        other => {
            let place = node.get("type").unwrap_or(node).place();
            let known = "bearer, none, oauth, client_credentials";
            findings.error(place, format!("'{other}' is no auth type; it is one of {known}"));
            AuthSpec::None
        }
    }
}

fn bearer(node: &Node, file: &FileContext<'_>) -> Result<(SecretString, Option<String>), Problem> {
    if let Some(token) = node.get("token") {
        return Ok((SecretString::from(token.as_text()?.to_owned()), None));
    }
    let Some(named) = node.get("token_env_var") else {
        return Err(Problem::error("bearer needs 'token_env_var'")
            .hint("name the variable that holds the token")
            .at(node.place()));
    };
    let variable = named.as_text()?;
    let is_name = variable.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name || looks_secret(variable) {
        // Not quoted: it may be the token itself.
        return Err(Problem::error("'token_env_var' takes the name of a variable, not a token")
            .hint("put the token into a variable and name that")
            .at(named.place()));
    }
    match file.environment.var(variable).filter(|value| !value.trim().is_empty()) {
        Some(token) => Ok((SecretString::from(token.trim().to_owned()), Some(variable.to_owned()))),
        None => Err(Problem::error(format!(
            "in 'auth.token_env_var': the variable {variable} is not set"
        ))
        .hint(format!("set {variable} to the token"))
        .at(named.place())),
    }
}

/// Warns when a secret would cross a network in the clear.
pub fn check_transport(url: &Url, sends_secrets: bool, at: &Node, findings: &mut Findings) {
    let local = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && sends_secrets && !local {
        findings.warn(at.place(), "credentials are sent unencrypted; use https");
    }
}
