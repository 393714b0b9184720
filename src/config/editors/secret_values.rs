//! Removes secrets from an entry: each value is replaced by a variable.

use serde_json::{Map, Value};

use crate::config::secrets::{has_password, looks_secret, names_secret};
use crate::util::text::variable_name;

/// Replaces the secrets of one entry, and records the variables that must hold them.
#[derive(Debug)]
pub(super) struct SecretValues {
    prefix: String,
    pub variables: Vec<String>,
}

impl SecretValues {
    pub(super) fn new(server: &str) -> Self {
        Self { prefix: shouted(server), variables: Vec::new() }
    }

    pub(super) fn replace(&mut self, entry: &mut Map<String, Value>) {
        for (key, value) in entry {
            match (key.as_str(), value) {
                ("env", Value::Object(env)) => {
                    for (name, value) in env {
                        self.variable(name, value);
                    }
                }
                ("headers", Value::Object(headers)) => {
                    for (name, value) in headers {
                        self.header(name, value);
                    }
                }
                ("args", Value::Array(args)) => self.arguments(args),
                ("url", Value::String(url)) => self.url(url),
                _ => {}
            }
        }
    }

    fn variable(&mut self, name: &str, value: &mut Value) {
        let Value::String(text) = value else { return };
        if is_secret(name, text) {
            // Both the program and the user who sets it know the variable by this name.
            *text = self.reference(name.to_owned());
        } else {
            self.input(text);
        }
    }

    fn header(&mut self, name: &str, value: &mut Value) {
        let Value::String(text) = value else { return };
        if !is_secret(name, text) {
            return self.input(text);
        }
        let scheme = ["Bearer ", "bearer ", "Basic ", "Token "];
        let scheme = scheme.into_iter().find(|scheme| text.starts_with(scheme)).unwrap_or_default();
        let reference = self.reference(format!("{}_{}", self.prefix, shouted(name)));
        *text = format!("{scheme}{reference}");
    }

    /// `--api-key VALUE`, `--api-key=VALUE`, and values that look like tokens anywhere.
    fn arguments(&mut self, args: &mut [Value]) {
        let mut option: Option<String> = None;
        for (index, value) in args.iter_mut().enumerate() {
            let Value::String(text) = value else { continue };
            let before = option.take();
            if let Some((name, secret)) = text.split_once('=')
                && name.starts_with('-')
            {
                if is_secret(name.trim_start_matches('-'), secret) {
                    let reference = self.reference(self.name_of(name));
                    *text = format!("{name}={reference}");
                }
            } else if text.starts_with('-') {
                option = Some(text.clone());
            } else if let Some(name) =
                before.filter(|name| is_secret(name.trim_start_matches('-'), text))
            {
                *text = self.reference(self.name_of(&name));
            } else if is_secret("", text) {
                *text = self.reference(format!("{}_SECRET_{index}", self.prefix));
            }
        }
    }

    /// The values of a query, and a password before the host.
    fn url(&mut self, text: &mut String) {
        let Ok(mut parsed) = url::Url::parse(text) else { return };
        if parsed.password().is_some() {
            // A secret could not be used there anyway: addresses are shown and logged.
            let reference = format!("{}_PASSWORD", self.prefix);
            if parsed.set_password(None).is_ok() && parsed.set_username("").is_ok() {
                self.variables.push(reference);
                *text = parsed.to_string();
            }
        }
        let Some((address, query)) = text.split_once('?') else { return };
        let pairs: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) if is_secret(name, value) => {
                    let reference = self.reference(self.name_of(name));
                    format!("{name}={reference}")
                }
                _ => pair.to_owned(),
            })
            .collect();
        *text = format!("{address}?{}", pairs.join("&"));
    }

    fn input(&mut self, text: &mut String) {
        while let Some((before, rest)) = text.split_once("${input:") {
            let Some((name, after)) = rest.split_once('}') else { return };
            let variable = shouted(name);
            *text = format!("{before}${{{variable}}}{after}");
            self.remember(variable);
        }
    }

    fn name_of(&self, option: &str) -> String {
        format!("{}_{}", self.prefix, shouted(option.trim_start_matches('-')))
    }

    fn reference(&mut self, variable: String) -> String {
        let reference = format!("${{{variable}}}");
        self.remember(variable);
        reference
    }

    fn remember(&mut self, variable: String) {
        if !self.variables.contains(&variable) {
            self.variables.push(variable);
        }
    }
}

fn is_secret(name: &str, value: &str) -> bool {
    let is_literal = !value.is_empty() && !value.contains("${");
    is_literal && (names_secret(name) || looks_secret(value) || has_password(value))
}

fn shouted(text: &str) -> String {
    let name = variable_name(text);
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_secret_stays_and_every_variable_is_named() {
        let mut entry = json!({
            "args": ["--api-key", "k-1234567890", "--token=abcdefgh12", "--port", "80"],
            "env": { "GITHUB_TOKEN": "<your token>", "PG": "postgres://u:hunter22@h/db",
                     "ASKED": "${input:api-key}", "LEVEL": "info", "KEPT_KEY": "${OTHER}" },
            "headers": { "Authorization": "Bearer sk-abcdefghijklmnop", "X-Team": "blue" },
            "url": "https://x.test/mcp?api_key=abcdef123&v=1",
        });
        let mut secrets = SecretValues::new("my-server");
        secrets.replace(entry.as_object_mut().unwrap());
        assert_eq!(
            entry,
            json!({
                "args": ["--api-key", "${MY_SERVER_API_KEY}", "--token=${MY_SERVER_TOKEN}",
                         "--port", "80"],
                "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}", "PG": "${PG}", "ASKED": "${API_KEY}",
                         "LEVEL": "info", "KEPT_KEY": "${OTHER}" },
                "headers": { "Authorization": "Bearer ${MY_SERVER_AUTHORIZATION}",
                             "X-Team": "blue" },
                "url": "https://x.test/mcp?api_key=${MY_SERVER_API_KEY}&v=1",
            })
        );
        for name in ["MY_SERVER_API_KEY", "MY_SERVER_TOKEN", "GITHUB_TOKEN", "PG", "API_KEY"] {
            assert!(secrets.variables.iter().any(|variable| variable == name), "{name}");
        }
    }
}
