//! `headers` and `auth` of a server.

use secrecy::SecretString;
use url::Url;

use super::EntryDiagnostics;
use crate::config::consent::Expander;
use crate::config::keys::AUTH;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::secrets::looks_secret;
use crate::config::spec::{AuthSpec, OAuthRequestSpec};
use crate::model::Diagnostic;

/// The headers of every request; their values are secrets.
pub fn headers(
    entry: &ConfigNode,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Vec<(String, SecretString)> {
    let Some(node) = entry.get("headers").filter(|n| !n.is_null()) else { return Vec::new() };
    let mut headers = Vec::new();
    for (key, value) in entry_diagnostics.ok_or_report(node.as_map()).unwrap_or_default() {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if key.text.is_empty() || !key.text.bytes().all(is_token) {
            entry_diagnostics
                .error(node.location_of(key), format!("invalid header name '{}'", key.text));
            continue;
        }
        let Some(text) = entry_diagnostics.ok_or_report(value.as_scalar_text()) else { continue };
        if text.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
            let message =
                format!("the value of the header '{}' contains a control character", key.text);
            entry_diagnostics.error(value.location(), message);
            continue;
        }
        headers.push((key.text.clone(), SecretString::from(text)));
    }
    headers
}

/// Reads `auth` of a server's entry; an error that leaves nothing usable makes the entry fail.
pub fn resolve(
    entry: &ConfigNode,
    expander: &Expander<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> AuthSpec {
    let written = entry.get_any(&["auth", "oauth"]).filter(|(_, node)| !node.is_null());
    let Some((spelling, node)) = written else { return AuthSpec::Unset };
    if let NodeValue::Bool(false) = node.value {
        return AuthSpec::None;
    }
    if let NodeValue::Text(word) = &node.value {
        if word != "none" {
            entry_diagnostics.diagnostics.push(
                Diagnostic::error(format!("unknown authentication '{word}'"))
                    .with_hint("write auth: { type: bearer, token_env_var: NAME }")
                    .with_location(node.location()),
            );
        }
        return AuthSpec::None;
    }
    let Some(entries) = entry_diagnostics.ok_or_report(node.as_map()) else {
        return AuthSpec::None;
    };
    for (key, _) in entries {
        if crate::config::keys::canonical(AUTH, &key.text).is_none() {
            entry_diagnostics.unknown_key(node, key, AUTH, &[]);
        }
    }
    let word = match node.get("type") {
        Some(node) => match entry_diagnostics.ok_or_report(node.as_text()) {
            Some(word) => word,
            None => return AuthSpec::None,
        },
        // A token means bearer; any other key belongs to a login.
        None if spelling == "auth" && entries.is_empty() => "bearer",
        None if node.get_any(&["token", "token_env_var"]).is_some() => "bearer",
        None => "oauth",
    };
    let read = match word {
        "none" => Ok(AuthSpec::None),
        "bearer" => {
            bearer(node, expander).map(|(token, variable)| AuthSpec::Bearer { token, variable })
        }
        "oauth" => login(node),
        "client_credentials" => program(node),
        other => {
            let location = node.get("type").unwrap_or(node).location();
            let types = "bearer, none, oauth, client_credentials";
            Err(Diagnostic::error(format!("unknown auth type '{other}'; expected one of {types}"))
                .with_location(location))
        }
    };
    entry_diagnostics.ok_or_report(read).unwrap_or(AuthSpec::None)
}

fn login(node: &ConfigNode) -> Result<AuthSpec, Diagnostic> {
    let client_id = text(node, "client_id")?;
    let client_secret = text(node, "client_secret")?.map(SecretString::from);
    if let (None, Some(_), Some(key)) = (&client_id, &client_secret, find(node, "client_secret")) {
        return Err(
            Diagnostic::error("'client_secret' needs 'client_id'").with_location(key.location())
        );
    }
    let redirect_port = match find(node, "redirect_port") {
        None => None,
        Some(node) => match u16::try_from(node.as_count()?) {
            Ok(port) if port > 0 => Some(port),
            _ => {
                return Err(Diagnostic::error("a port must be between 1 and 65535")
                    .with_location(node.location()));
            }
        },
    };
    let client_metadata_url = address(node, "client_metadata_url")?;
    Ok(AuthSpec::OAuth {
        client_id,
        client_secret,
        client_metadata_url,
        redirect_port,
        request: Box::new(oauth_request(node)?),
    })
}

fn program(node: &ConfigNode) -> Result<AuthSpec, Diagnostic> {
    let Some(client_id) = text(node, "client_id")? else {
        return Err(Diagnostic::error("client_credentials needs 'client_id'")
            .with_location(node.location()));
    };
    let Some(client_secret) = text(node, "client_secret")?.map(SecretString::from) else {
        return Err(Diagnostic::error("client_credentials needs 'client_secret'")
            .with_hint("as a reference: ${VAR} or ${file:PATH}")
            .with_location(node.location()));
    };
    let token_url = address(node, "token_url")?;
    Ok(AuthSpec::ClientCredentials {
        client_id,
        client_secret,
        token_url,
        request: Box::new(oauth_request(node)?),
    })
}

fn oauth_request(node: &ConfigNode) -> Result<OAuthRequestSpec, Diagnostic> {
    let scopes = match find(node, "scopes") {
        Some(node) => node.as_texts()?,
        None => Vec::new(),
    };
    let scopes =
        scopes.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect();
    Ok(OAuthRequestSpec { scopes, issuer: address(node, "issuer")? })
}

/// The value of a key, under any of its spellings.
fn find<'n>(node: &'n ConfigNode, name: &str) -> Option<&'n ConfigNode> {
    let spelled = |text: &str| crate::config::keys::canonical(AUTH, text) == Some(name);
    let pair = node.entries().iter().find(|(key, _)| spelled(&key.text));
    pair.map(|(_, value)| value).filter(|value| !value.is_null())
}

fn text(node: &ConfigNode, name: &str) -> Result<Option<String>, Diagnostic> {
    let Some(value) = find(node, name) else { return Ok(None) };
    let text = value.as_scalar_text()?;
    if text.trim().is_empty() {
        return Err(Diagnostic::error(format!("'{name}' is empty")).with_location(value.location()));
    }
    Ok(Some(text))
}

/// A URL that the user chose; it may lead anywhere.
fn address(node: &ConfigNode, name: &str) -> Result<Option<Url>, Diagnostic> {
    let Some(value) = find(node, name) else { return Ok(None) };
    match Url::parse(value.as_text()?) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => {
            Ok(Some(url))
        }
        _ => Err(Diagnostic::error(format!("'{name}' must be an http or https URL"))
            .with_location(value.location())),
    }
}

fn bearer(
    node: &ConfigNode,
    expander: &Expander<'_>,
) -> Result<(SecretString, Option<String>), Diagnostic> {
    if let Some(token) = node.get("token") {
        return Ok((SecretString::from(token.as_text()?.to_owned()), None));
    }
    let Some(named) = node.get("token_env_var") else {
        return Err(Diagnostic::error("bearer needs 'token_env_var'")
            .with_hint("name the variable that holds the token")
            .with_location(node.location()));
    };
    let variable = named.as_text()?;
    let is_name = variable.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name || looks_secret(variable) {
        // Not quoted: it may be the token itself.
        return Err(Diagnostic::error("'token_env_var' takes the name of a variable, not a token")
            .with_hint("put the token into a variable and name that")
            .with_location(named.location()));
    }
    match expander.variable(variable).filter(|value| !value.trim().is_empty()) {
        Some(token) => Ok((SecretString::from(token.trim().to_owned()), Some(variable.to_owned()))),
        None => Err(Diagnostic::error(format!(
            "in 'auth.token_env_var': the variable {variable} is not set"
        ))
        .with_hint(format!("set {variable} to the token"))
        .with_location(named.location())),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::config::LoadRequest;
    use crate::config::environment::FixedEnvironment;
    use crate::config::load::load;
    use crate::config::spec::Endpoint;

    fn read(keys: &str) -> (AuthSpec, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.yaml");
        std::fs::write(&file, format!("a:\n  url: https://a.example/mcp\n{keys}")).unwrap();
        let request = LoadRequest { servers: vec![file], ..LoadRequest::default() };
        let loaded = load(&request, &[], &FixedEnvironment::default());
        let diagnostics =
            loaded.diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect();
        let Some(server) = loaded.servers.into_iter().next() else {
            return (AuthSpec::None, diagnostics);
        };
        let Endpoint::Http { auth, .. } = server.endpoint else { panic!("another endpoint") };
        (*auth, diagnostics)
    }

    #[test]
    fn nothing_no_and_a_login_are_three_things() {
        assert!(matches!(read("").0, AuthSpec::Unset));
        for no in ["  auth: none\n", "  auth: { type: none }\n", "  oauth: false\n"] {
            assert!(matches!(read(no).0, AuthSpec::None), "{no}");
        }
        for login in ["  auth: { type: oauth }\n", "  oauth: {}\n"] {
            assert!(matches!(read(login).0, AuthSpec::OAuth { .. }), "{login}");
        }
    }

    #[test]
    fn the_spellings_of_others_are_understood() {
        let keys =
            "  oauth: { clientId: me, clientSecret: hunter2, scope: a b, callbackPort: 7 }\n";
        let (auth, _) = read(keys);
        let AuthSpec::OAuth { client_id, client_secret, redirect_port, request: asks, .. } = auth
        else {
            panic!("no login")
        };
        assert_eq!(client_id.as_deref(), Some("me"));
        assert_eq!(client_secret.unwrap().expose_secret(), "hunter2");
        assert_eq!((redirect_port, asks.scopes), (Some(7), vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn a_program_has_a_secret() {
        let keys = "  auth: { type: client_credentials, client_id: me, client_secret: hunter2, issuer: \"https://as.example\" }\n";
        let (auth, diagnostics) = read(keys);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let AuthSpec::ClientCredentials { client_secret, .. } = auth else { panic!("no program") };
        assert_eq!(client_secret.expose_secret(), "hunter2");
        for (wrong, says) in [
            ("client_id: me", "needs 'client_secret'"),
            ("client_secret: x", "needs 'client_id'"),
            ("client_id: me, client_secret: \" \"", "'client_secret' is empty"),
            (
                "client_id: me, client_secret: x, token_url: \"file:///x\"",
                "must be an http or https URL",
            ),
        ] {
            let (_, diagnostics) =
                read(&format!("  auth: {{ type: client_credentials, {wrong} }}\n"));
            assert!(
                diagnostics.iter().any(|diagnostic| diagnostic.contains(says)),
                "{wrong}: {diagnostics:?}"
            );
        }
    }
}
