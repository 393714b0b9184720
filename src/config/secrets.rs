//! Detecting secrets written literally where a reference belongs.

use std::sync::Arc;

use super::node::{ConfigNode, NodeValue};
use super::references::has_reference;
use crate::model::{Diagnostic, Diagnostics};

const PREFIXES: [&str; 14] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "hf_",
];

/// Minimum length: shorter ones are placeholders, not secrets.
const SHORTEST: usize = 8;

pub fn looks_secret(text: &str) -> bool {
    let bare = text.trim();
    let after_scheme = ["Bearer ", "bearer ", "Basic ", "Token "]
        .iter()
        .find_map(|scheme| bare.strip_prefix(scheme))
        .is_some_and(|rest| rest.trim().len() >= SHORTEST && !has_reference(rest));
    after_scheme || tokens(text).next().is_some()
}

/// Whether it is an address with a password in it.
pub fn has_password(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| url.password().is_some())
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).filter(|piece| {
        PREFIXES.iter().any(|p| piece.starts_with(p) && piece.len() >= p.len() + SHORTEST)
    })
}

pub fn names_secret(key: &str) -> bool {
    let key = key.to_ascii_uppercase().replace('-', "_");
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD"]
        .iter()
        .any(|word| key == *word || key.ends_with(&format!("_{word}")))
        // It tells requests apart, and opens nothing.
        && !key.ends_with("IDEMPOTENCY_KEY")
        || matches!(key.as_str(), "AUTHORIZATION" | "COOKIE" | "PROXY_AUTHORIZATION")
}

/// The secret of each word of a command line, with the name it has there: of `TOKEN=x`, `--token=x`
/// and `--token x`, and of a word that looks like a token. It is always the end of its word.
pub fn secrets_in_words<'w>(
    words: impl IntoIterator<Item = &'w str>,
) -> impl Iterator<Item = Option<(&'w str, &'w str)>> {
    let mut named = None;
    words.into_iter().map(move |word| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let name = key.trim_start_matches('-');
        match named.take() {
            Some(name) => Some((name, word)),
            None if names_secret(name) && !value.is_empty() => Some((name, value)),
            None => {
                named = (names_secret(name) && word.starts_with('-')).then_some(name);
                looks_secret(word).then_some(("argument", word))
            }
        }
    })
}

#[derive(Debug, Default)]
pub struct LiteralSecrets(Vec<String>);

impl LiteralSecrets {
    pub fn inspect(&mut self, entry: &ConfigNode, diagnostics: &Diagnostics) {
        for (key, value) in entry.entries() {
            match &*key.text {
                "env" | "headers" | "auth" | "oauth" => {
                    for (name, value) in value.entries() {
                        let path = format!("{}.{}", key.text, name.text);
                        self.value(value, &path, names_secret(&name.text), diagnostics);
                    }
                }
                "args" | "command" | "url" | "endpoint_url" | "baseUrl" | "serverUrl"
                | "httpUrl" => self.value(value, &key.text, false, diagnostics),
                _ => {}
            }
        }
    }

    /// The same for the handles under `credentials`, whose values are secrets.
    pub fn credentials(&mut self, node: &ConfigNode, diagnostics: &Diagnostics) {
        for (handle, credential) in node.entries() {
            for (key, value) in credential.entries() {
                let path = format!("credentials.{}.{}", handle.text, key.text);
                let is_secret = &*key.text == "value" || names_secret(&key.text);
                self.value(value, &path, is_secret, diagnostics);
            }
        }
    }

    fn value(&mut self, node: &ConfigNode, path: &str, named: bool, diagnostics: &Diagnostics) {
        match &node.value {
            NodeValue::Text(text) => {
                let literal = named && !has_reference(text) && text.len() >= SHORTEST;
                if literal || looks_secret(text) {
                    self.0.push(text.clone());
                    let message = format!("'{path}' looks like a hard-coded secret");
                    let hint = "use a reference instead: ${VAR}, ${file:PATH}, or env_keys";
                    diagnostics.push(node.warning(message).with_hint(hint));
                }
            }
            NodeValue::List(items) => {
                items.iter().for_each(|item| self.value(item, path, named, diagnostics));
            }
            _ => {}
        }
    }

    pub fn mask<'a>(&self, diagnostics: impl IntoIterator<Item = &'a mut Diagnostic>) {
        // Thousands of diagnostics may be about one long line.
        let mut last: Option<(Arc<str>, Arc<str>)> = None;
        for diagnostic in diagnostics {
            self.replace_secrets(&mut diagnostic.message);
            if let Some(hint) = &mut diagnostic.hint {
                self.replace_secrets(hint);
            }
            let Some(location) = &mut diagnostic.location else { continue };
            let (_, masked) = match last.take() {
                Some(lines) if Arc::ptr_eq(&lines.0, &location.text) => last.insert(lines),
                _ => {
                    let (line, mut text) = (Arc::clone(&location.text), location.text.to_string());
                    self.replace_secrets(&mut text);
                    let is_same = *text == *line;
                    let masked = if is_same { Arc::clone(&line) } else { Arc::from(text) };
                    last.insert((line, masked))
                }
            };
            location.text = Arc::clone(masked);
        }
    }

    fn replace_secrets(&self, text: &mut String) {
        for literal in &self.0 {
            // A value over several lines has a piece on each.
            for piece in literal.lines().map(str::trim).filter(|p| p.len() >= SHORTEST) {
                if text.contains(piece) {
                    *text = text.replace(piece, "***");
                }
            }
        }
        let tokens: Vec<String> = tokens(text).map(str::to_owned).collect();
        for token in tokens {
            *text = text.replace(&token, "***");
        }
    }
}

/// A value for display: references stay, what looks like a secret is masked.
pub fn display_value(key: &str, text: &str) -> String {
    let hide = looks_secret(text) || (names_secret(key) && !has_reference(text));
    if hide { "***".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    #[test]
    fn tokens_are_recognised() {
        for text in [
            "sk-abcdefgh12345",
            "--token=ghp_0123456789abcd",
            "Bearer abcdefgh",
            "AKIAIOSFODNN7EXAMPLE",
        ] {
            assert!(looks_secret(text), "{text}");
        }
        for text in ["Bearer ${TOKEN}", "sk-", "task-12345678", "hello", "Bearer x"] {
            assert!(!looks_secret(text), "{text}");
        }
    }

    #[test]
    fn names_of_secrets_are_known_however_they_are_spelled() {
        for name in [
            "token",
            "API_TOKEN",
            "key",
            "X-Api-Key",
            "private_key",
            "PRIVATE-KEY",
            "client_secret",
            "password",
            "DB_PASSWD",
            "authorization",
            "Proxy-Authorization",
            "cookie",
            "Cookie",
        ] {
            assert!(names_secret(name), "{name}");
        }
        for name in
            ["monkey", "tokens", "X-Team", "HOME", "cookies_path", "keyboard", "Idempotency-Key"]
        {
            assert!(!names_secret(name), "{name}");
        }
    }

    #[test]
    fn the_warning_never_holds_the_value() {
        let text = "env: { API_KEY: hunter2hunter2, HOME: /x }\nheaders: { A: Bearer abcdefghij }\nargs: [--k=sk-abcdefgh123456]\n";
        let entry = parse(&SourceText::new("m.yaml", text), text).unwrap();
        let (mut literals, diagnostics) = (LiteralSecrets::default(), Diagnostics::default());
        literals.inspect(&entry, &diagnostics);
        let mut diagnostics = diagnostics.take();
        literals.mask(&mut diagnostics);
        let shown = format!("{diagnostics:?}");
        assert_eq!(diagnostics.len(), 3, "{shown}");
        for secret in ["hunter2", "abcdefghij", "sk-abcdefgh"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains("API_KEY: ***, HOME: /x"));
    }
}
