//! `headers` and `auth` of a server.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::endpoint::EntryContext;
use super::servers::ServerKeys;
use crate::config::consent::Expander;
use crate::config::credentials::is_header_name;
use crate::config::node::ConfigNode;
use crate::config::references;
use crate::config::spec::{AuthSpec, OAuthGrant, OAuthSpec};
use crate::config::typed::{self, Either, Located, Scalar, Texts};
use crate::model::{Diagnostic, Diagnostics, SourceLocation};

/// How to authenticate.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "auth", transform = typed::object::<Self>)]
pub struct AuthKeys {
    /// How to authenticate: bearer with a token, oauth with a login, client_credentials as a program.
    #[serde(rename = "type")]
    kind: Option<AuthType>,
    /// The variable that holds the bearer token.
    token_env_var: Option<Located<String>>,
    /// The bearer token itself, as a reference such as ${VAR} or ${file:PATH}.
    token: Option<String>,
    /// oauth: a pre-registered client.
    #[serde(alias = "clientId")]
    client_id: Option<Located<String>>,
    /// oauth: the client's secret, as a reference.
    #[serde(alias = "clientSecret")]
    client_secret: Option<Located<String>>,
    /// oauth: the https URL of the client's metadata document.
    #[serde(alias = "clientMetadataUrl")]
    client_metadata_url: Option<Located<String>>,
    /// oauth: the scopes to request; default: those the server names.
    #[serde(alias = "scope", default)]
    scopes: Texts,
    /// oauth: the only authorization server to trust; it may be private.
    issuer: Option<Located<String>>,
    /// oauth: the port on 127.0.0.1 for the login redirect; default: any.
    #[serde(alias = "callbackPort", alias = "redirectPort")]
    #[schemars(range(min = 1, max = 65535))]
    redirect_port: Option<Located<u64>>,
    /// client_credentials: the token endpoint.
    #[serde(alias = "tokenUrl")]
    token_url: Option<Located<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AuthType {
    Bearer,
    None,
    #[serde(rename = "oauth")]
    OAuth,
    ClientCredentials,
}

/// The headers of every request; their values are secrets.
pub fn headers(keys: &ServerKeys, diagnostics: &Diagnostics) -> Vec<(String, SecretString)> {
    let mut headers = Vec::new();
    for (name, value) in keys.headers.iter().flatten() {
        if !is_header_name(name) {
            diagnostics.push(value.error(format!("invalid header name '{name}'")));
        } else if value.0.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
            let message = format!("the value of the header '{name}' contains a control character");
            diagnostics.push(value.error(message));
        } else {
            headers.push((name.clone(), SecretString::from(value.0.as_str())));
        }
    }
    headers
}

/// What `auth` of a server's entry says; an error that leaves nothing usable makes the entry fail.
pub fn resolve(entry: &ConfigNode, keys: &ServerKeys, context: &EntryContext<'_>) -> AuthSpec {
    let diagnostics = &context.file.diagnostics;
    let Some(written) = keys.auth.as_ref().or(keys.oauth.as_ref()) else { return AuthSpec::Unset };
    let keys_of_auth = match &written.value {
        Either::Short(Scalar(word)) => {
            if !["none", "false"].contains(&word.as_str()) {
                diagnostics.push(
                    written
                        .error(format!("unknown authentication '{word}'"))
                        .with_hint("write auth: { type: bearer, token_env_var: NAME }"),
                );
            }
            return AuthSpec::None;
        }
        Either::Nested(keys) => keys,
    };
    let key = if keys.auth.is_some() { "auth" } else { "oauth" };
    if typed::is_wrong(entry.get(key), "type", keys_of_auth.kind.as_ref()) {
        return AuthSpec::None;
    }
    let location = &written.location;
    let read = match keys_of_auth.kind(keys.auth.is_some()) {
        AuthType::None => Ok(AuthSpec::None),
        AuthType::Bearer => keys_of_auth.bearer(location, context.expander),
        AuthType::OAuth => keys_of_auth.login(),
        AuthType::ClientCredentials => keys_of_auth.program(location),
    };
    diagnostics.ok(read).unwrap_or(AuthSpec::None)
}

impl AuthKeys {
    /// The addresses that a login contacts besides the server.
    pub fn addresses(self) -> Vec<String> {
        let addresses = [self.issuer, self.token_url, self.client_metadata_url];
        addresses.into_iter().flatten().map(|address| address.value).collect()
    }

    /// The type, if need be from the other keys: a token means bearer; any other key belongs to a
    /// login. `is_own` says that the key is `auth`, not an editor's `oauth`.
    fn kind(&self, is_own: bool) -> AuthType {
        let is_login = [
            &self.client_id,
            &self.client_secret,
            &self.client_metadata_url,
            &self.issuer,
            &self.token_url,
        ];
        let is_login = is_login.iter().any(|key| key.is_some())
            || self.redirect_port.is_some()
            || !self.scopes.0.is_empty();
        let has_token = self.token.is_some() || self.token_env_var.is_some();
        match self.kind {
            Some(kind) => kind,
            None if has_token || (is_own && !is_login) => AuthType::Bearer,
            None => AuthType::OAuth,
        }
    }

    fn login(&self) -> Result<AuthSpec, Diagnostic> {
        let client_id = text(self.client_id.as_ref(), "client_id")?;
        let client_secret = text(self.client_secret.as_ref(), "client_secret")?;
        if let (None, Some(secret)) = (&client_id, &self.client_secret) {
            return Err(secret.error("'client_secret' needs 'client_id'"));
        }
        let port = self.redirect_port.as_ref().map(|port| {
            let number = u16::try_from(port.value).ok().filter(|number| *number > 0);
            number.ok_or_else(|| port.error("a port must be between 1 and 65535"))
        });
        let grant = OAuthGrant::Login {
            client_id,
            client_secret: client_secret.map(SecretString::from),
            client_metadata: address(self.client_metadata_url.as_ref(), "client_metadata_url")?,
        };
        self.with_grant(grant, port.transpose()?)
    }

    fn program(&self, location: &SourceLocation) -> Result<AuthSpec, Diagnostic> {
        let missing = |key: &str| {
            Diagnostic::error(format!("client_credentials needs '{key}'"))
                .with_location(location.clone())
        };
        let client_id = text(self.client_id.as_ref(), "client_id")?;
        let client_secret = text(self.client_secret.as_ref(), "client_secret")?;
        let grant = OAuthGrant::Program {
            client_id: client_id.ok_or_else(|| missing("client_id"))?,
            client_secret: client_secret.map(SecretString::from).ok_or_else(|| {
                missing("client_secret").with_hint("as a reference: ${VAR} or ${file:PATH}")
            })?,
            token_url: address(self.token_url.as_ref(), "token_url")?,
        };
        self.with_grant(grant, None)
    }

    fn with_grant(
        &self,
        grant: OAuthGrant,
        redirect_port: Option<u16>,
    ) -> Result<AuthSpec, Diagnostic> {
        let scopes = self.scopes.0.iter().flat_map(|text| text.split_whitespace());
        Ok(AuthSpec::OAuth(OAuthSpec {
            grant,
            scopes: scopes.map(str::to_owned).collect(),
            issuer: address(self.issuer.as_ref(), "issuer")?,
            redirect_port,
        }))
    }

    fn bearer(
        &self,
        location: &SourceLocation,
        expander: &Expander<'_>,
    ) -> Result<AuthSpec, Diagnostic> {
        if let Some(token) = &self.token {
            let token = SecretString::from(token.as_str());
            return Ok(AuthSpec::Bearer { token, variable: None });
        }
        let Some(variable) = &self.token_env_var else {
            return Err(Diagnostic::error("bearer needs 'token_env_var'")
                .with_hint("name the variable that holds the token")
                .with_location(location.clone()));
        };
        let name = &variable.value;
        let token =
            references::named_in_auth(variable, "token_env_var", |name| expander.variable(name))?;
        Ok(AuthSpec::Bearer {
            token: SecretString::from(token.trim().to_owned()),
            variable: Some(name.clone()),
        })
    }
}

fn text(value: Option<&Located<String>>, name: &str) -> Result<Option<String>, Diagnostic> {
    match value {
        Some(text) if text.trim().is_empty() => Err(text.error(format!("'{name}' is empty"))),
        value => Ok(value.map(|text| text.value.clone())),
    }
}

/// A URL that the user chose; it may lead anywhere.
fn address(value: Option<&Located<String>>, name: &str) -> Result<Option<Url>, Diagnostic> {
    let Some(text) = value else { return Ok(None) };
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => {
            Ok(Some(url))
        }
        _ => Err(text.error(format!("'{name}' must be an http or https URL"))),
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
            assert!(matches!(read(login).0, AuthSpec::OAuth(_)), "{login}");
        }
        let (_, diagnostics) = read("  auth: { type: digest }\n");
        assert_eq!(diagnostics.len(), 1, "nothing follows from a wrong type: {diagnostics:?}");
    }

    #[test]
    fn the_spellings_of_others_are_understood() {
        let keys =
            "  oauth: { clientId: me, clientSecret: hunter2, scope: a b, callbackPort: 7 }\n";
        let (auth, _) = read(keys);
        let AuthSpec::OAuth(OAuthSpec { grant, scopes, redirect_port, .. }) = auth else {
            panic!("no login")
        };
        let OAuthGrant::Login { client_id, client_secret, .. } = grant else { panic!("no login") };
        assert_eq!(client_id.as_deref(), Some("me"));
        assert_eq!(client_secret.unwrap().expose_secret(), "hunter2");
        assert_eq!((redirect_port, scopes), (Some(7), vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn a_program_has_a_secret() {
        let keys = "  auth: { type: client_credentials, client_id: me, client_secret: hunter2, issuer: \"https://as.example\" }\n";
        let (auth, diagnostics) = read(keys);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let AuthSpec::OAuth(OAuthSpec { grant, .. }) = auth else { panic!("no program") };
        let OAuthGrant::Program { client_secret, .. } = grant else { panic!("no program") };
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
