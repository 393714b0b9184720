//! `auth` of an entry: the headers that authenticate a request.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

use super::request::header_name;
use super::template::HttpPlaceholder;
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::references::{self, ReferencePiece, named_in_auth, pieces};
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, Either, Located};
use crate::model::Diagnostic;
use crate::providers::template::{TemplatePart, TextTemplate};
use crate::util::base64;

/// How requests authenticate.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct HttpAuthKeys {
    /// How; default: basic with a user name, header with a name, else bearer.
    #[serde(rename = "type")]
    kind: Option<AuthType>,
    /// bearer: the token, as a reference such as ${VAR}.
    token: Option<Located<String>>,
    /// bearer: the variable that holds the token.
    token_env_var: Option<Located<String>>,
    /// basic: the user name.
    username: Option<Located<String>>,
    /// basic: the variable that holds the user name.
    username_env_var: Option<Located<String>>,
    /// basic: the password, as a reference.
    password: Option<Located<String>>,
    /// basic: the variable that holds the password.
    password_env_var: Option<Located<String>>,
    /// header: its name.
    name: Option<Located<String>>,
    /// header: its value, as a reference.
    value: Option<Located<String>>,
    /// header: the variable that holds its value.
    value_env_var: Option<Located<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AuthType {
    Bearer,
    Basic,
    Header,
    None,
}

type WrittenText = Option<Located<String>>;

pub(super) type AuthHeader = (reqwest::header::HeaderName, TextTemplate<HttpPlaceholder>);

/// The header that the `auth` of an entry asks for.
pub(super) fn read(
    spec: &ToolSpec,
    auth: &Located<Either<String, HttpAuthKeys>>,
    environment: &dyn Environment,
    expanded: &ExpandedValues,
) -> Result<Option<AuthHeader>, Diagnostic> {
    let keys = match &auth.value {
        Either::Short(word) if word == "none" => return Ok(None),
        Either::Short(word) => {
            return Err(auth
                .error(format!("unknown auth type '{word}'"))
                .with_hint("write auth: { type: bearer, token_env_var: NAME }"));
        }
        Either::Nested(keys) => keys,
    };
    if typed::is_wrong(spec.entry.get("auth"), "type", keys.kind.as_ref()) {
        return Ok(None);
    }
    // A secret, and the name of the variable that holds it.
    let secret =
        |name: &str, direct: &WrittenText, by_variable: &WrittenText| match (direct, by_variable) {
            (Some(_), Some(named)) => {
                Err(named.error(format!("'{name}' and '{name}_env_var' exclude each other")))
            }
            (Some(value), None) => {
                let written = spec.unexpanded.get("auth").and_then(|auth| auth.get(name)?.text());
                Ok((value.value.clone(), reference(written.unwrap_or(name), name)))
            }
            (None, Some(named)) => {
                let lookup = |name: &str| environment.expand(name, expanded);
                let value = named_in_auth(named, &format!("{name}_env_var"), lookup)?;
                Ok((value, named.value.clone()))
            }
            (None, None) => Err(auth
                .error(format!("auth needs '{name}_env_var'"))
                .with_hint("name the variable that holds it")),
        };
    let authorization = reqwest::header::AUTHORIZATION;
    Ok(Some(match keys.kind() {
        AuthType::None => return Ok(None),
        AuthType::Bearer => {
            let (token, name) = secret("token", &keys.token, &keys.token_env_var)?;
            (authorization, secret_after("Bearer ", token.trim().to_owned(), name))
        }
        AuthType::Basic => {
            let (user, user_name) = secret("username", &keys.username, &keys.username_env_var)?;
            let (password, name) = secret("password", &keys.password, &keys.password_env_var)?;
            if user.contains(':') {
                return Err(auth.error("a user name for basic authentication cannot contain ':'"));
            }
            let both = base64::encode(format!("{user}:{password}").as_bytes());
            (authorization, secret_after("Basic ", both, format!("{user_name}:{name}")))
        }
        AuthType::Header => {
            let Some(named) = &keys.name else {
                return Err(auth
                    .error("auth of the type header needs 'name'")
                    .with_hint("name the header, as in name: X-API-Key"));
            };
            let header =
                header_name(named).map_err(|why| why.with_location(named.location.clone()))?;
            let (value, name) = secret("value", &keys.value, &keys.value_env_var)?;
            (header, secret_after("", value.trim().to_owned(), name))
        }
    }))
}

impl HttpAuthKeys {
    /// The type; without the key `type` it follows from the other keys.
    fn kind(&self) -> AuthType {
        match self.kind {
            Some(kind) => kind,
            None if self.username.is_some() || self.username_env_var.is_some() => AuthType::Basic,
            None if self.name.is_some() => AuthType::Header,
            None => AuthType::Bearer,
        }
    }
}

/// The first reference in a text as written, else the key.
fn reference(written: &str, key: &str) -> String {
    let first = pieces(written).into_iter().find_map(|piece| match piece {
        ReferencePiece::Reference(reference) => {
            Some(references::variable(reference).unwrap_or(reference))
        }
        _ => None,
    });
    first.unwrap_or(key).to_owned()
}

/// A text that is `scheme` and then the secret `value`, which is shown as `name`.
fn secret_after(scheme: &str, value: String, name: String) -> TextTemplate<HttpPlaceholder> {
    let secret = HttpPlaceholder::Secret(SecretString::from(value), name);
    let literal = (!scheme.is_empty()).then(|| TemplatePart::Literal(scheme.to_owned()));
    TextTemplate { parts: literal.into_iter().chain([TemplatePart::Placeholder(secret)]).collect() }
}
