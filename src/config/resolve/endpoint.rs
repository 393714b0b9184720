//! Resolving how a server is reached: a child process or a URL.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::SecretString;
use url::Url;

use super::{EntryDiagnostics, FileContext, auth};
use crate::config::consent::{Expander, interpreter_of};
use crate::config::entries::URL_KEYS;
use crate::config::keys;
use crate::config::node::ConfigNode;
use crate::config::spec::{AuthSpec, Endpoint, HttpTransport};
use crate::config::{plain_http, unix_socket};
use crate::model::{CredentialUse, Diagnostic, EntryOrigin};

pub struct EntryContext<'a> {
    pub file: &'a FileContext<'a>,
    /// Replaces references by their values; it exists only for files that the user agreed to.
    pub expander: &'a Expander<'a>,
    pub origin: &'a Arc<EntryOrigin>,
    pub credentials: &'a [CredentialUse],
}

/// The endpoint of an expanded entry; `None` if an error leaves none.
pub fn resolve(
    entry: &ConfigNode,
    context: &EntryContext<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Option<Endpoint> {
    let transport = transport(entry, entry_diagnostics).ok()?;
    let url = entry.get_any(&URL_KEYS).map(|(_, node)| node);
    let program = entry.get_any(&["command", "server_path"]).map(|(_, node)| node);
    match (url, program) {
        (Some(url), Some(_)) => {
            entry_diagnostics.error(url.location(), "'url' and 'command' cannot be used together");
            None
        }
        (None, None) => {
            let message = "this server has neither a command nor a URL";
            let is_known = |key: &str| keys::canonical(keys::SERVER, key).is_some();
            if let Some((key, meant)) = keys::misspelled(entry, &["command", "url"], is_known) {
                let diagnostic =
                    Diagnostic::error(format!("{message}; unknown key '{}'", key.text));
                let diagnostic = diagnostic.with_suggestion(&key.text, [meant]);
                entry_diagnostics
                    .diagnostics
                    .push(diagnostic.with_location(entry.location_of(key)));
                return None;
            }
            let diagnostic = Diagnostic::error(message).with_hint("add 'command' or 'url'");
            entry_diagnostics.diagnostics.push(diagnostic.with_location(entry.location()));
            None
        }
        (Some(url), None) => match transport {
            Some(TransportChoice::Stdio) => {
                entry_diagnostics
                    .error(url.location(), "a stdio server needs 'command', not 'url'");
                None
            }
            Some(TransportChoice::Http(transport)) => {
                http(entry, url, transport, context, entry_diagnostics)
            }
            None => http(entry, url, HttpTransport::Auto, context, entry_diagnostics),
        },
        (None, Some(program)) => match transport {
            Some(TransportChoice::Http(transport)) => {
                let word = word(transport);
                let message = format!("an {word} server needs 'url', not 'command'");
                entry_diagnostics.error(program.location(), message);
                None
            }
            Some(TransportChoice::Stdio) | None => {
                stdio(entry, program, context, entry_diagnostics)
            }
        },
    }
}

/// A finding says what is wrong.
struct ReportedError;

#[derive(Clone, Copy)]
enum TransportChoice {
    Stdio,
    Http(HttpTransport),
}

fn transport(
    entry: &ConfigNode,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Result<Option<TransportChoice>, ReportedError> {
    let Some((_, node)) = entry.get_any(&["transport", "type"]) else { return Ok(None) };
    match entry_diagnostics.ok_or_report(node.as_text()).ok_or(ReportedError)? {
        "stdio" => Ok(Some(TransportChoice::Stdio)),
        "http" | "streamable-http" | "streamable_http" | "streamableHttp" => {
            Ok(Some(TransportChoice::Http(HttpTransport::Streamable)))
        }
        "sse" => Ok(Some(TransportChoice::Http(HttpTransport::Sse))),
        "lines" => Ok(Some(TransportChoice::Http(HttpTransport::Lines))),
        "ws" | "websocket" => Ok(Some(TransportChoice::Http(HttpTransport::WebSocket))),
        other => {
            let message = format!(
                "unknown transport '{other}'; expected one of stdio, http, sse, lines, websocket"
            );
            entry_diagnostics.error(node.location(), message);
            Err(ReportedError)
        }
    }
}

fn word(transport: HttpTransport) -> &'static str {
    match transport {
        HttpTransport::Auto | HttpTransport::Streamable => "http",
        HttpTransport::Sse => "sse",
        HttpTransport::Lines => "lines",
        HttpTransport::WebSocket => "websocket",
    }
}

fn http(
    entry: &ConfigNode,
    node: &ConfigNode,
    transport: HttpTransport,
    context: &EntryContext<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Option<Endpoint> {
    let text = entry_diagnostics.ok_or_report(node.as_text())?;
    let (url, socket, transport) = address(text, node, transport, context.file, entry_diagnostics)?;
    if !url.username().is_empty() || url.password().is_some() {
        let diagnostic = Diagnostic::error("a URL must not contain a user name or password");
        entry_diagnostics.diagnostics.push(
            diagnostic
                .with_hint("use headers or auth: URLs are shown and logged")
                .with_location(node.location()),
        );
        return None;
    }
    for key in ["args", "env", "env_keys", "envFile", "cwd"] {
        if let Some(key) = entry.key(key) {
            let message = format!("'{}' has no effect together with 'url'", key.text);
            entry_diagnostics.warn(entry.location_of(key), message);
        }
    }
    let headers = auth::headers(entry, entry_diagnostics);
    let auth = auth::resolve(entry, context.expander, entry_diagnostics);
    let secret = !matches!(auth, AuthSpec::None | AuthSpec::Unset)
        || !context.credentials.is_empty()
        || headers.iter().any(|(name, _)| crate::config::secrets::names_secret(name));
    let insecure = entry_diagnostics
        .ok_or_report(plain_http::insecure(entry, Some(context.origin)))
        .unwrap_or_default();
    entry_diagnostics.diagnostics.extend(
        plain_http::unencrypted(&url, secret, insecure)
            .map(|diagnostic| diagnostic.with_location(node.location())),
    );
    Some(Endpoint::Http { url, socket, transport, headers, auth: Box::new(auth), insecure })
}

/// Where the server is: the URL to request, the socket to connect to, and what is spoken there.
fn address(
    text: &str,
    node: &ConfigNode,
    transport: HttpTransport,
    file: &FileContext<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Option<(Url, Option<PathBuf>, HttpTransport)> {
    if unix_socket::is_unix_address(text) && transport != HttpTransport::WebSocket {
        return match unix_socket::read(text, &file.base_dir, transport) {
            Ok(address) => Some((address.url, Some(address.socket), transport)),
            Err(error) => {
                let diagnostic = Diagnostic::error(error.to_string()).with_hint(error.hint());
                entry_diagnostics.diagnostics.push(diagnostic.with_location(node.location()));
                None
            }
        };
    }
    let mut url = match Url::parse(text) {
        Ok(url) => url,
        Err(why) => {
            entry_diagnostics.error(node.location(), format!("invalid URL: {why}"));
            return None;
        }
    };
    let handshake = match url.scheme() {
        "ws" => Some("http"),
        "wss" => Some("https"),
        _ => None,
    };
    let message = match (url.scheme(), transport) {
        ("http" | "https" | "ws" | "wss", HttpTransport::Lines) => {
            "transport 'lines' needs a Unix socket, unix:///path.sock".to_owned()
        }
        ("ws" | "wss", HttpTransport::Auto | HttpTransport::WebSocket) => {
            // Schemes of this family can always be exchanged.
            let _same_family = url.set_scheme(handshake.unwrap_or("http"));
            return Some((url, None, HttpTransport::WebSocket));
        }
        ("http" | "https", _) if url.host().is_some() => return Some((url, None, transport)),
        ("ws" | "wss", transport) => {
            format!("transport '{}' cannot be used with a ws or wss URL", word(transport))
        }
        (other, _) => format!("unsupported URL scheme '{other}'; use http, https, ws, wss or unix"),
    };
    entry_diagnostics.error(node.location(), message);
    None
}

fn stdio(
    entry: &ConfigNode,
    program: &ConfigNode,
    context: &EntryContext<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Option<Endpoint> {
    let file = context.file;
    let mut argv = entry_diagnostics.ok_or_report(program.as_texts())?.into_iter();
    let Some(mut command) = argv.next().filter(|c| !c.trim().is_empty()) else {
        entry_diagnostics.error(program.location(), "the command is empty");
        return None;
    };
    let mut args: Vec<String> = argv.collect();
    if entry.get("command").is_none() {
        let path = file.base_dir.join(&command).to_string_lossy().into_owned();
        match interpreter_of(Path::new(&path)) {
            Some(interpreter) => {
                args.insert(0, path);
                interpreter.clone_into(&mut command);
            }
            None => command = path,
        }
    }
    if let Some(node) = entry.get("args").filter(|n| !n.is_null()) {
        args.extend(entry_diagnostics.ok_or_report(node.as_texts()).unwrap_or_default());
    }
    if command.contains('/') {
        command = normalize_path(&file.base_dir.join(command)).to_string_lossy().into_owned();
    } else if command.contains(char::is_whitespace) {
        let mut diagnostic =
            Diagnostic::warning("the command must be a single program; it is not split at spaces");
        diagnostic.hint = Some("write a list, or use 'args'".to_owned());
        entry_diagnostics.diagnostics.push(diagnostic.with_location(program.location()));
    }
    if std::iter::once(&command).chain(&args).any(|text| text.contains('\0')) {
        entry_diagnostics.error(program.location(), "a command cannot contain a NUL character");
        return None;
    }
    let cwd = match entry.get("cwd").filter(|n| !n.is_null()) {
        Some(node) => {
            normalize_path(&file.base_dir.join(entry_diagnostics.ok_or_report(node.as_text())?))
        }
        None => file.default_cwd.clone(),
    };
    for key in ["headers", "auth", "oauth"] {
        if let Some(key) = entry.key(key) {
            let message = format!("'{}' has no effect together with 'command'", key.text);
            entry_diagnostics.warn(entry.location_of(key), message);
        }
    }
    let mut env = variables(entry, entry_diagnostics);
    if let Some(node) = entry.get("envFile").filter(|n| !n.is_null())
        && let Some(path) = entry_diagnostics.ok_or_report(node.as_text())
    {
        match context.expander.env_file(path) {
            Ok(variables) => {
                for (name, value) in variables {
                    env.entry(name).or_insert_with(|| SecretString::from(value));
                }
            }
            Err(why) => {
                let mut diagnostic = Diagnostic::error(format!("in 'envFile': {}", why.message));
                diagnostic.hint = why.hint;
                entry_diagnostics.diagnostics.push(diagnostic.with_location(node.location()));
            }
        }
    }
    let env_keys = match entry.get("env_keys").filter(|n| !n.is_null()) {
        Some(node) => entry_diagnostics.ok_or_report(node.as_texts()).unwrap_or_default(),
        None => Vec::new(),
    };
    Some(Endpoint::Stdio { command, args, env, env_keys, cwd })
}

fn variables(
    entry: &ConfigNode,
    entry_diagnostics: &mut EntryDiagnostics,
) -> BTreeMap<String, SecretString> {
    let mut variables = BTreeMap::new();
    let Some(node) = entry.get("env").filter(|n| !n.is_null()) else { return variables };
    for (key, value) in entry_diagnostics.ok_or_report(node.as_map()).unwrap_or_default() {
        let Some(text) = entry_diagnostics.ok_or_report(value.as_scalar_text()) else { continue };
        if key.text.is_empty() || key.text.contains(['=', '\0']) || text.contains('\0') {
            entry_diagnostics.error(
                node.location_of(key),
                format!("invalid variable name or value: '{}'", key.text),
            );
            continue;
        }
        variables.insert(key.text.clone(), SecretString::from(text));
    }
    variables
}

/// The path without `.` components. `..` stays: it may cross a link.
fn normalize_path(path: &Path) -> PathBuf {
    path.components().collect()
}
