//! `auth` of an entry: the headers that authenticate a request.
//!
//! | type | takes | sends |
//! |---|---|---|
//! | `bearer` | `token_env_var` or `token` | `Authorization: Bearer …` |
//! | `basic` | `username` and `password`, or their `_env_var` | `Authorization: Basic …` |
//! | `header` | `name`, and `value` or `value_env_var` | that header |
//! | `none` | | none |

use secrecy::SecretString;

use super::header_names::header_name;
use super::template::HttpPlaceholder;
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::references::{ReferencePiece, pieces, variable};
use crate::config::secrets::looks_secret;
use crate::model::Diagnostic;
use crate::providers::template::{TemplatePart, TextTemplate};
use crate::util::base64;
use crate::util::spelling::did_you_mean;

/// All keys that `auth` may have, for any type.
const KEYS: [&str; 10] = [
    "type",
    "token",
    "token_env_var",
    "username",
    "username_env_var",
    "password",
    "password_env_var",
    "name",
    "value",
    "value_env_var",
];

const TYPES: [&str; 4] = ["bearer", "basic", "header", "none"];

pub(super) type AuthHeader = (reqwest::header::HeaderName, TextTemplate<HttpPlaceholder>);

/// The header that the `auth` of an entry asks for. `written` is the same node before variables
/// were filled in; warnings are added to `diagnostics`.
pub(super) fn read(
    node: &ConfigNode,
    written: Option<&ConfigNode>,
    (environment, expanded): (&dyn Environment, &ExpandedValues),
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Option<AuthHeader>, Diagnostic> {
    if let NodeValue::Text(word) = &node.value {
        return if word == "none" { Ok(None) } else { Err(unknown(word, node)) };
    }
    let mut auth = AuthReader { node, written, environment, expanded };
    for (key, _) in node.as_map()? {
        if !KEYS.contains(&key.text.as_str()) {
            let diagnostic = Diagnostic::warning(format!("unknown key '{}'", key.text));
            let diagnostic = diagnostic.with_suggestion(&key.text, KEYS);
            diagnostics.push(diagnostic.with_location(node.location_of(key)));
        }
    }
    let authorization = reqwest::header::AUTHORIZATION;
    Ok(Some(match auth.kind()? {
        "none" => return Ok(None),
        "bearer" => {
            let (token, name) = auth.value("token")?;
            (authorization, secret_after("Bearer ", token.trim().to_owned(), name))
        }
        "basic" => {
            let (user, user_name) = auth.value("username")?;
            let (password, name) = auth.value("password")?;
            if user.contains(':') {
                return Err(Diagnostic::error(
                    "a user name for basic authentication cannot contain ':'",
                )
                .with_location(node.location()));
            }
            let both = base64::encode(format!("{user}:{password}").as_bytes());
            (authorization, secret_after("Basic ", both, format!("{user_name}:{name}")))
        }
        "header" => {
            let Some(named) = node.get("name") else {
                return Err(Diagnostic::error("auth of the type header needs 'name'")
                    .with_hint("name the header, as in name: X-API-Key")
                    .with_location(node.location()));
            };
            let header = header_name(named.as_text()?, &named.location())?;
            let (value, name) = auth.value("value")?;
            (header, secret_after("", value.trim().to_owned(), name))
        }
        other => return Err(unknown(other, node.get("type").unwrap_or(node))),
    }))
}

/// A text that is `scheme` and then the secret `value`, which is shown as `name`.
fn secret_after(scheme: &str, value: String, name: String) -> TextTemplate<HttpPlaceholder> {
    let secret = HttpPlaceholder::Secret(SecretString::from(value), name);
    let literal = (!scheme.is_empty()).then(|| TemplatePart::Literal(scheme.to_owned()));
    TextTemplate { parts: literal.into_iter().chain([TemplatePart::Placeholder(secret)]).collect() }
}

fn unknown(word: &str, at: &ConfigNode) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!(
        "'{word}' is not an auth type; it is one of {}",
        TYPES.join(", ")
    ));
    let hint = did_you_mean(word, TYPES);
    let hint =
        hint.unwrap_or_else(|| "write auth: { type: bearer, token_env_var: NAME }".to_owned());
    diagnostic.with_hint(hint).with_location(at.location())
}

struct AuthReader<'a> {
    node: &'a ConfigNode,
    written: Option<&'a ConfigNode>,
    environment: &'a dyn Environment,
    expanded: &'a ExpandedValues,
}

impl AuthReader<'_> {
    /// The type; without the key `type` it follows from the other keys.
    fn kind(&mut self) -> Result<&str, Diagnostic> {
        match self.node.get("type") {
            Some(node) => node.as_text(),
            None if self.node.get_any(&["username", "username_env_var"]).is_some() => Ok("basic"),
            None if self.node.get("name").is_some() => Ok("header"),
            None => Ok("bearer"),
        }
    }

    /// The value of `key`, or of the variable that `{key}_env_var` names, and a name for it.
    fn value(&self, key: &str) -> Result<(String, String), Diagnostic> {
        let by_variable = format!("{key}_env_var");
        match (self.node.get(key), self.node.get(&by_variable)) {
            (Some(_), Some(named)) => {
                Err(Diagnostic::error(format!("'{key}' and '{by_variable}' exclude each other"))
                    .with_location(named.location()))
            }
            (Some(node), None) => Ok((node.as_scalar_text()?, self.reference(key))),
            (None, Some(named)) => self.variable(named, &by_variable),
            (None, None) => Err(Diagnostic::error(format!("auth needs '{by_variable}'"))
                .with_hint("name the variable that holds it")
                .with_location(self.node.location())),
        }
    }

    fn variable(&self, named: &ConfigNode, key: &str) -> Result<(String, String), Diagnostic> {
        let name = named.as_text()?;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name || looks_secret(name) {
            // Not quoted: it may be the secret.
            return Err(Diagnostic::error(format!(
                "'{key}' takes the name of a variable, not a value"
            ))
            .with_hint("put the value into a variable and name that")
            .with_location(named.location()));
        }
        match self.environment.expand(name, self.expanded).filter(|value| !value.trim().is_empty())
        {
            Some(value) => Ok((value, name.to_owned())),
            None => {
                Err(Diagnostic::error(format!("in 'auth.{key}': the variable {name} is not set"))
                    .with_hint(format!("set {name}"))
                    .with_location(named.location()))
            }
        }
    }

    /// What the value of `key` was written as, else the key itself.
    fn reference(&self, key: &str) -> String {
        let written = self.written.and_then(|node| node.get(key)?.as_text().ok());
        let first = written.and_then(|text| {
            pieces(text).into_iter().find_map(|piece| match piece {
                ReferencePiece::Reference(reference) => {
                    Some(variable(reference).unwrap_or(reference))
                }
                _ => None,
            })
        });
        first.unwrap_or(key).to_owned()
    }
}
