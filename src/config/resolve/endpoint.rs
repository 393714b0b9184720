//! Resolving how a server is reached: a child process, or a URL with the files that its key `tls` names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::servers::ServerKeys;
use super::{FileContext, auth};
use crate::config::consent::Expander;
use crate::config::entries::{self, URL_KEYS};
use crate::config::node::ConfigNode;
use crate::config::spec::{AuthSpec, Endpoint, Transport};
use crate::config::typed::{self, Located, Texts};
use crate::config::{plain_http, unix_socket};
use crate::model::{CredentialUse, Diagnostic, Diagnostics, EntryOrigin};
use crate::util::regular_file;
use crate::util::tls::TlsPem;

pub struct EntryContext<'a> {
    pub file: &'a FileContext<'a>,
    /// Replaces references by their values; it exists only for files that the user agreed to.
    pub expander: &'a Expander<'a>,
    pub origin: &'a Arc<EntryOrigin>,
    pub credentials: &'a [CredentialUse],
}

/// The endpoint of an expanded entry; `None` if what says where it is was reported as wrong.
pub fn resolve(
    entry: &ConfigNode,
    keys: &ServerKeys,
    context: &EntryContext<'_>,
) -> Result<Option<Endpoint>, Diagnostic> {
    let transport = keys.transport.unwrap_or_default();
    let word: &str = transport.into();
    match (&keys.url, keys.program()) {
        (Some(url), Some(_)) => Err(url.error("'url' and 'command' cannot be used together")),
        (None, None) => missing(entry).map_or(Ok(None), Err),
        (Some(url), None) if transport == Transport::Stdio => {
            Err(url.error("a stdio server needs 'command', not 'url'"))
        }
        (Some(url), None) => http(entry, keys, url, transport, context).map(Some),
        (None, Some(program)) if !matches!(transport, Transport::Auto | Transport::Stdio) => {
            Err(program.error(format!("an {word} server needs 'url', not 'command'")))
        }
        (None, Some(program)) => stdio(entry, keys, program, context).map(Some),
    }
}

fn missing(entry: &ConfigNode) -> Option<Diagnostic> {
    let mut sources = ["command", "server_path"].iter().chain(&URL_KEYS);
    if sources.any(|key| entry.get(key).is_some_and(|node| !node.is_null())) {
        return None;
    }
    let message = "this server has neither a command nor a URL";
    let is_known = |key: &str| typed::names::<ServerKeys>().contains(&key);
    Some(match entries::misspelled(entry, &["command", "url"], is_known) {
        Some((key, meant)) => Diagnostic::error(format!("{message}; unknown key '{}'", key.text))
            .with_suggestion(&key.text, [meant])
            .with_location(entry.location_of(key)),
        None => entry.error(message).with_hint("add 'command' or 'url'"),
    })
}

fn http(
    entry: &ConfigNode,
    keys: &ServerKeys,
    written: &Located<String>,
    transport: Transport,
    context: &EntryContext<'_>,
) -> Result<Endpoint, Diagnostic> {
    let diagnostics = &context.file.diagnostics;
    let (url, socket, transport) = address(written, transport, context.file)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(written
            .error("a URL must not contain a user name or password")
            .with_hint("use headers or auth: URLs are shown and logged"));
    }
    warn_unused(entry, &["args", "env", "env_keys", "envFile", "cwd"], "url", diagnostics);
    let headers = auth::headers(keys, diagnostics);
    let auth = auth::resolve(entry, keys, context);
    let secret = !matches!(auth, AuthSpec::None | AuthSpec::Unset)
        || !context.credentials.is_empty()
        || headers.iter().any(|(name, _)| crate::config::secrets::names_secret(name));
    let tls = keys.tls.as_ref().map(|tls| {
        let read = read(tls, url.scheme() == "https", &context.file.base_dir);
        diagnostics.ok(read).unwrap_or_default()
    });
    let insecure = plain_http::insecure(keys.insecure.as_ref(), Some(context.origin));
    let insecure = diagnostics.ok(insecure).unwrap_or_default();
    let unencrypted = plain_http::unencrypted(&url, secret, insecure);
    let located = |problem: Diagnostic| problem.with_location(written.location.clone());
    diagnostics.extend(unencrypted.map(located));
    let (auth, tls) = (Box::new(auth), Box::new(tls.unwrap_or_default()));
    Ok(Endpoint::Http { url, socket, transport, headers, auth, insecure, tls })
}

fn warn_unused(entry: &ConfigNode, keys: &[&str], with: &str, diagnostics: &Diagnostics) {
    diagnostics.extend(keys.iter().filter_map(|key| entry.key(key)).map(|key| {
        let message = format!("'{}' has no effect together with '{with}'", key.text);
        Diagnostic::warning(message).with_location(entry.location_of(key))
    }));
}

/// Where the server is: the URL to request, the socket to connect to, and what is spoken there.
fn address(
    written: &Located<String>,
    transport: Transport,
    file: &FileContext<'_>,
) -> Result<(Url, Option<PathBuf>, Transport), Diagnostic> {
    if unix_socket::is_unix_address(written) && transport != Transport::WebSocket {
        return unix_socket::read(written, &file.base_dir, transport)
            .map(|address| (address.url, Some(address.socket), transport))
            .map_err(|error| error.with_location(written.location.clone()));
    }
    let mut url =
        Url::parse(written).map_err(|why| written.error(format!("invalid URL: {why}")))?;
    let handshake = match url.scheme() {
        "ws" => Some("http"),
        "wss" => Some("https"),
        _ => None,
    };
    let message = match (url.scheme(), transport) {
        ("http" | "https" | "ws" | "wss", Transport::Lines) => {
            "transport 'lines' needs a Unix socket, unix:///path.sock".to_owned()
        }
        ("ws" | "wss", Transport::Auto | Transport::WebSocket) => {
            // Schemes of this family can always be exchanged.
            let _same_family = url.set_scheme(handshake.unwrap_or("http"));
            return Ok((url, None, Transport::WebSocket));
        }
        ("http" | "https", _) if url.host().is_some() => return Ok((url, None, transport)),
        ("ws" | "wss", transport) => {
            let word: &str = transport.into();
            format!("transport '{word}' cannot be used with a ws or wss URL")
        }
        (other, _) => format!("unsupported URL scheme '{other}'; use http, https, ws, wss or unix"),
    };
    Err(written.error(message))
}

fn stdio(
    entry: &ConfigNode,
    keys: &ServerKeys,
    program: &Located<Texts>,
    context: &EntryContext<'_>,
) -> Result<Endpoint, Diagnostic> {
    let (file, diagnostics) = (context.file, &context.file.diagnostics);
    if program.0.first().is_none_or(|command| command.trim().is_empty()) {
        return Err(program.error("the command is empty"));
    }
    let mut args = keys.argv(|path| Some(file.base_dir.join(path)));
    let mut command = args.remove(0);
    if command.contains('/') {
        command = normalize_path(&file.base_dir.join(command)).to_string_lossy().into_owned();
    } else if command.contains(char::is_whitespace) {
        let message = "the command must be a single program; it is not split at spaces";
        diagnostics.push(program.warning(message).with_hint("write a list, or use 'args'"));
    }
    if std::iter::once(&command).chain(&args).any(|text| text.contains('\0')) {
        return Err(program.error("a command cannot contain a NUL character"));
    }
    let cwd = match &keys.cwd {
        Some(cwd) => normalize_path(&file.base_dir.join(cwd)),
        None => file.default_cwd.clone(),
    };
    warn_unused(entry, &["headers", "auth", "oauth", "tls"], "command", diagnostics);
    let mut env = variables(keys, diagnostics);
    if let Some(path) = &keys.env_file {
        let variables = context.expander.env_file(path).map_err(|why| {
            let message = format!("in 'envFile': {}", why.message);
            Diagnostic { hint: why.hint, ..path.error(message) }
        });
        for (name, value) in diagnostics.ok(variables).unwrap_or_default() {
            env.entry(name).or_insert_with(|| SecretString::from(value));
        }
    }
    let env_keys = keys.env_keys.as_ref().map(|names| names.0.clone()).unwrap_or_default();
    Ok(Endpoint::Stdio { command, args, env, env_keys, cwd })
}

fn variables(keys: &ServerKeys, diagnostics: &Diagnostics) -> BTreeMap<String, SecretString> {
    let mut variables = BTreeMap::new();
    for (name, value) in keys.env.iter().flatten() {
        if name.is_empty() || name.contains(['=', '\0']) || value.0.contains('\0') {
            diagnostics.push(value.error(format!("invalid variable name or value: '{name}'")));
            continue;
        }
        variables.insert(name.clone(), SecretString::from(value.0.as_str()));
    }
    variables
}

/// The path without `.` components. `..` stays: it may cross a link.
fn normalize_path(path: &Path) -> PathBuf {
    path.components().collect()
}

const MAX_BYTES: u64 = 1 << 20;

/// Certificates for the connection to a server.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub struct TlsKeys {
    /// A PEM file with the certificate to present, followed by those that lead to its authority.
    cert: Option<Located<String>>,
    /// A PEM file with the private key of cert, not encrypted.
    key: Option<Located<String>>,
    /// A PEM file with the authorities to accept for this server in place of the system's.
    ca: Option<Located<String>>,
}

impl TlsKeys {
    /// The files that are read.
    pub fn files(&self) -> impl Iterator<Item = String> {
        [&self.cert, &self.key, &self.ca].into_iter().flatten().map(|path| path.value.clone())
    }
}

/// The content of the files, if a connection can be made with it.
pub fn read(
    keys: &Located<TlsKeys>,
    is_encrypted: bool,
    base_dir: &Path,
) -> Result<TlsPem, Diagnostic> {
    if !is_encrypted {
        return Err(keys.error("'tls' needs an https or wss URL"));
    }
    let text = |name: &str, path: &Located<String>| {
        regular_file::text(&base_dir.join(&path.value), MAX_BYTES)
            .map_err(|why| path.error(format!("in 'tls.{name}': cannot read the file: {why}")))
    };
    let certificates = |name: &str, path: &Located<String>, pem: &str| {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        match all {
            Ok(all) if !all.is_empty() => Ok(all),
            Ok(_) => Err(path.error(format!("in 'tls.{name}': no PEM certificate in the file"))),
            Err(why) => Err(path.error(format!("in 'tls.{name}': {why}"))),
        }
    };
    let identity = match (&keys.cert, &keys.key) {
        (Some(cert), Some(key)) => {
            let (chain, private) = (text("cert", cert)?, text("key", key)?);
            let certificates = certificates("cert", cert, &chain)?;
            let parsed = PrivateKeyDer::from_pem_slice(private.as_bytes()).map_err(|_| {
                key.error("in 'tls.key': no unencrypted PEM private key in the file")
            })?;
            CertifiedKey::from_der(certificates, parsed, &ring::default_provider())
                .map_err(|why| key.error(format!("in 'tls.key': it does not fit 'cert': {why}")))?;
            Some(SecretString::from(format!("{chain}\n{private}")))
        }
        (Some(cert), None) => return Err(cert.error("'tls.cert' needs 'key'")),
        (None, Some(key)) => return Err(key.error("'tls.key' needs 'cert'")),
        (None, None) => None,
    };
    let authorities = keys.ca.as_ref().map(|ca| {
        let pem = text("ca", ca)?;
        certificates("ca", ca, &pem).map(|_| pem)
    });
    Ok(TlsPem { identity, authorities: authorities.transpose()? })
}
