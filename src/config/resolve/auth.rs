//! `headers` and `auth` of a server.

use secrecy::SecretString;
use url::Url;

use super::{FileContext, Findings};
use crate::config::keys::AUTH;
use crate::config::node::{Node, NodeValue};
use crate::config::secrets::looks_secret;
use crate::config::spec::{AuthSpec, ClientProof, OAuthAsks};
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
    let written = entry.get_any(&["auth", "oauth"]).filter(|(_, node)| !node.is_null());
    let Some((spelling, node)) = written else { return AuthSpec::Unset };
    if let NodeValue::Bool(false) = node.value {
        return AuthSpec::None;
    }
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
        // A token makes a bearer, and whatever else is written has to do with a login.
        None if spelling == "auth" && entries.is_empty() => "bearer",
        None if node.get_any(&["token", "token_env_var"]).is_some() => "bearer",
        None => "oauth",
    };
    let read = match word {
        "none" => Ok(AuthSpec::None),
        "bearer" => {
            bearer(node, file).map(|(token, variable)| AuthSpec::Bearer { token, variable })
        }
        "oauth" => login(node),
        "client_credentials" => program(node),
        other => {
            let place = node.get("type").unwrap_or(node).place();
            let known = "bearer, none, oauth, client_credentials";
            Err(Problem::error(format!("'{other}' is no auth type; it is one of {known}"))
                .at(place))
        }
    };
    findings.take(read).unwrap_or(AuthSpec::None)
}

fn login(node: &Node) -> Result<AuthSpec, Problem> {
    let client_id = text(node, "client_id")?;
    let client_secret = text(node, "client_secret")?.map(SecretString::from);
    if let (None, Some(_), Some(key)) = (&client_id, &client_secret, find(node, "client_secret")) {
        return Err(Problem::error("'client_secret' needs 'client_id'").at(key.place()));
    }
    let redirect_port = match find(node, "redirect_port") {
        None => None,
        Some(node) => match u16::try_from(node.as_count()?) {
            Ok(port) if port > 0 => Some(port),
            _ => return Err(Problem::error("a port is 1 to 65535").at(node.place())),
        },
    };
    let client_metadata_url = address(node, "client_metadata_url")?;
    Ok(AuthSpec::OAuth {
        client_id,
        client_secret,
        client_metadata_url,
        redirect_port,
        asks: Box::new(asks(node)?),
    })
}

fn program(node: &Node) -> Result<AuthSpec, Problem> {
    let Some(client_id) = text(node, "client_id")? else {
        return Err(Problem::error("client_credentials needs 'client_id'").at(node.place()));
    };
    let proof = match (text(node, "client_secret")?, text(node, "private_key")?) {
        (Some(secret), None) => ClientProof::Secret(SecretString::from(secret)),
        (None, Some(pem)) => {
            let algorithm = text(node, "algorithm")?;
            ClientProof::Key { pem: SecretString::from(pem), algorithm }
        }
        _ => {
            return Err(Problem::error(
                "client_credentials needs either 'client_secret' or 'private_key'",
            )
            .hint("as a reference: ${VAR} or ${file:PATH}")
            .at(node.place()));
        }
    };
    if let Some(algorithm) = find(node, "algorithm")
        && !["ES256", "RS256", "EdDSA"].contains(&algorithm.as_text()?)
    {
        let known = "it is one of ES256, RS256, EdDSA";
        return Err(Problem::error(format!("this is no algorithm; {known}")).at(algorithm.place()));
    }
    let token_url = address(node, "token_url")?;
    Ok(AuthSpec::ClientCredentials { client_id, proof, token_url, asks: Box::new(asks(node)?) })
}

fn asks(node: &Node) -> Result<OAuthAsks, Problem> {
    let scopes = match find(node, "scopes") {
        Some(node) => node.as_texts()?,
        None => Vec::new(),
    };
    let scopes =
        scopes.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect();
    let dpop = find(node, "dpop").map_or(Ok(false), Node::as_bool)?;
    Ok(OAuthAsks { scopes, issuer: address(node, "issuer")?, dpop })
}

/// The value of a key, in any of its spellings.
fn find<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let spelled = |text: &str| crate::config::keys::canonical(AUTH, text) == Some(name);
    let found = node.entries().iter().find(|(key, _)| spelled(&key.text));
    found.map(|(_, value)| value).filter(|value| !value.is_null())
}

fn text(node: &Node, name: &str) -> Result<Option<String>, Problem> {
    let Some(found) = find(node, name) else { return Ok(None) };
    let text = found.as_scalar_text()?;
    if text.trim().is_empty() {
        return Err(Problem::error(format!("'{name}' is empty")).at(found.place()));
    }
    Ok(Some(text))
}

/// An address that the user chose; it is asked wherever it leads.
fn address(node: &Node, name: &str) -> Result<Option<Url>, Problem> {
    let Some(found) = find(node, name) else { return Ok(None) };
    match Url::parse(found.as_text()?) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => {
            Ok(Some(url))
        }
        _ => Err(Problem::error(format!("'{name}' is no http or https address")).at(found.place())),
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
    match file.environment.expand(variable, &file.expanded).filter(|value| !value.trim().is_empty())
    {
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

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::config::LoadRequest;
    use crate::config::environment::FixedEnvironment;
    use crate::config::load::load;
    use crate::config::spec::{Endpoint, Trust};

    /// What an entry with these keys says, whether it is asked about, and what is wrong with it.
    fn read(keys: &str) -> (AuthSpec, bool, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("key.pem"), "-----BEGIN PRIVATE KEY-----\nAA==\n").unwrap();
        let file = dir.path().join("mcp.yaml");
        std::fs::write(&file, format!("a:\n  url: https://a.example/mcp\n{keys}")).unwrap();
        let request = LoadRequest { servers: vec![file], ..LoadRequest::default() };
        let loaded = load(&request, &[], &FixedEnvironment::default());
        let problems = loaded.problems.iter().map(|problem| problem.message.clone()).collect();
        let Some(server) = loaded.servers.into_iter().next() else {
            return (AuthSpec::None, false, problems);
        };
        let asks = matches!(server.trust, Trust::Ask(_));
        let Endpoint::Http { auth, .. } = server.endpoint else { panic!("another endpoint") };
        (*auth, asks, problems)
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
        let (auth, _, _) = read(keys);
        let AuthSpec::OAuth { client_id, client_secret, redirect_port, asks, .. } = auth else {
            panic!("no login")
        };
        assert_eq!(client_id.as_deref(), Some("me"));
        assert_eq!(client_secret.unwrap().expose_secret(), "hunter2");
        assert_eq!((redirect_port, asks.scopes), (Some(7), vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn a_program_has_a_secret_or_a_key() {
        let keys = "  auth: { type: client_credentials, client_id: me, private_key: \"${file:key.pem}\", algorithm: ES256, issuer: \"https://as.example\" }\n";
        let (auth, _, problems) = read(keys);
        assert!(problems.is_empty(), "{problems:?}");
        let AuthSpec::ClientCredentials { proof: ClientProof::Key { pem, algorithm }, .. } = auth
        else {
            panic!("no key")
        };
        assert!(pem.expose_secret().starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert_eq!(algorithm.as_deref(), Some("ES256"));
        for (wrong, says) in [
            ("client_id: me", "either 'client_secret' or 'private_key'"),
            ("client_secret: x", "needs 'client_id'"),
            ("client_id: me, client_secret: \" \"", "'client_secret' is empty"),
            ("client_id: me, client_secret: x, algorithm: none", "no algorithm"),
            ("client_id: me, client_secret: x, token_url: \"file:///x\"", "no http or https"),
        ] {
            let (_, _, problems) =
                read(&format!("  auth: {{ type: client_credentials, {wrong} }}\n"));
            assert!(problems.iter().any(|problem| problem.contains(says)), "{wrong}: {problems:?}");
        }
    }
}
