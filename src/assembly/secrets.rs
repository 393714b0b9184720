//! The secret values of all entries, collected for the masker.

use std::collections::BTreeSet;

use secrecy::ExposeSecret as _;

use crate::audit::Masker;
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::node::ConfigNode;
use crate::config::secrets::{names_secret, secrets_in_words};
use crate::config::spec::{Configuration, Endpoint, ServerSpec, ToolSpec};
use crate::util::percent;

/// A masker that knows every value that replaced a reference, is notified of later ones, and
/// knows the literal secrets in the files by the names they have there.
pub(super) fn masker(configuration: &Configuration, environment: &dyn Environment) -> Masker {
    let masker = Masker::default();
    teach(&masker, configuration, environment);
    masker
}

pub(super) fn teach(masker: &Masker, configuration: &Configuration, environment: &dyn Environment) {
    let learning = masker.clone();
    configuration.expanded.listen(move |written, value| learning.add_reference(written, value));
    let mut secrets = Secrets::default();
    configuration.servers.iter().for_each(|server| secrets.of_server(server));
    let sources = (environment, &configuration.expanded);
    configuration.tools.iter().for_each(|tool| secrets.of_tool(tool, sources));
    secrets.0.iter().for_each(|(name, value)| masker.add_secret(name, value));
}

/// Masks values in the configuration's own messages. The trust question contains none:
/// it is made from the files as written.
pub(super) fn mask_problems(configuration: &mut Configuration, masker: &Masker) {
    configuration.diagnostics.iter_mut().for_each(|diagnostic| masker.diagnostic(diagnostic));
    configuration.disabled.iter_mut().for_each(|entry| masker.diagnostic(&mut entry.diagnostic));
}

/// Pairs of name and value. Not printable, and dropped once the masker is built.
#[derive(Default)]
struct Secrets(BTreeSet<(String, String)>);

impl Secrets {
    fn add(&mut self, name: &str, value: &str) {
        self.0.insert((name.to_owned(), value.to_owned()));
    }

    /// The value of a header; of `Bearer xyz`, `xyz` on its own too.
    fn header(&mut self, name: &str, value: &str) {
        if names_secret(name) || name.eq_ignore_ascii_case("cookie") {
            self.add(name, value);
            if let Some((_scheme, rest)) = value.split_once(' ') {
                self.add(name, rest.trim());
            }
        }
    }

    fn variable(&mut self, name: &str, value: &str) {
        if names_secret(name) {
            self.add(name, value);
        }
        self.address(name, value);
    }

    /// The password in an address, such as `redis://me:password@host`, and its parameters with
    /// names of secrets.
    fn address(&mut self, name: &str, value: &str) {
        let (_, query) = value.split_once('?').unwrap_or_default();
        let query = query.split('#').next().unwrap_or_default();
        for (key, secret) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            if names_secret(key) {
                self.add(key, secret);
                self.add(key, &percent::decode(secret));
            }
        }
        let Some((_scheme, rest)) = value.split_once("://") else { return };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // A password may contain an unencoded '@'.
        let Some((credentials, _host)) = authority.rsplit_once('@') else { return };
        if let Some((_user, password)) = credentials.split_once(':') {
            self.add(name, password);
            let decoded = percent::decode(password);
            self.add(name, &decoded);
        }
    }

    fn of_server(&mut self, server: &ServerSpec) {
        match &server.endpoint {
            Endpoint::Stdio { command, args, env, .. } => {
                for (name, value) in env {
                    self.variable(name, value.expose_secret());
                }
                let arguments = std::iter::once(command).chain(args).map(String::as_str);
                for (name, value) in secrets_in_words(arguments).flatten() {
                    self.add(name, value);
                }
            }
            Endpoint::Http { url, headers, auth, .. } => {
                self.address("url", url.as_str());
                for (name, value) in headers {
                    self.header(name, value.expose_secret());
                }
                if let Some((name, secret)) = auth.secret() {
                    self.add(name, secret.expose_secret());
                }
            }
        }
    }

    /// Keys that hold secrets in entries of every kind: `headers`, `auth`, `env`.
    fn of_tool(
        &mut self,
        tool: &ToolSpec,
        (environment, expanded): (&dyn Environment, &ExpandedValues),
    ) {
        for (key, value) in texts(tool.entry.get("headers")) {
            self.header(key, value);
        }
        for (key, value) in tool.entry.get("env").map(ConfigNode::entries).unwrap_or_default() {
            if let Ok(value) = value.as_scalar_text() {
                self.variable(&key.text, &value);
            }
        }
        let passed = tool.entry.get("env_keys").and_then(|node| node.as_texts().ok());
        for name in passed.unwrap_or_default() {
            if let Some(value) = environment.expand(&name, expanded) {
                self.variable(&name, &value);
            }
        }
        for (key, value) in texts(Some(&tool.entry)) {
            self.address(key, value);
        }
        let Some(auth) = tool.entry.get("auth") else { return };
        let (mut user, mut password) = (None, None);
        for (key, text) in texts(Some(auth)) {
            let (word, name, value) = match key.strip_suffix("_env_var") {
                Some(word) => (word, text, environment.expand(text, expanded)),
                None => (key, key, Some(text.to_owned())),
            };
            match (word, value) {
                ("token" | "value", Some(value)) => self.add(name, value.trim()),
                ("password", Some(value)) => {
                    self.add(name, value.trim());
                    password = Some((name, value));
                }
                ("username", value) => user = value,
                _ => {}
            }
        }
        if let (Some(user), Some((name, password))) = (user, password) {
            // Basic authentication sends the base64 of both.
            self.add(name, &format!("{}:{}", user.trim(), password.trim()));
        }
    }
}

fn texts(node: Option<&ConfigNode>) -> impl Iterator<Item = (&str, &str)> {
    let entries = node.map(ConfigNode::entries).unwrap_or_default();
    entries.iter().filter_map(|(key, value)| Some((&*key.text, value.text()?)))
}
