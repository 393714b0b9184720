//! How to reach a server: a child process or an address.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::SecretString;
use url::Url;

use super::{FileContext, Findings, auth};
use crate::config::consent::interpreter_of;
use crate::config::expand::Expander;
use crate::config::node::Node;
use crate::config::spec::{AuthSpec, Endpoint, HttpTransport};
use crate::config::{socket, transport};
use crate::model::{EntryOrigin, Problem};

/// The spellings of `url`.
pub const URL_KEYS: [&str; 4] = ["url", "baseUrl", "serverUrl", "httpUrl"];

/// What resolving one server's entry needs beside the entry.
pub struct EntryContext<'a> {
    /// The file it stands in.
    pub file: &'a FileContext<'a>,
    /// The way from references to values: somebody agreed to the file.
    pub expander: &'a Expander<'a>,
    /// Whose entry it is.
    pub origin: &'a Arc<EntryOrigin>,
}

/// The endpoint of an expanded entry; nothing after a finding that leaves none.
pub fn resolve(
    entry: &Node,
    context: &EntryContext<'_>,
    findings: &mut Findings,
) -> Option<Endpoint> {
    let transport = transport(entry, findings).ok()?;
    let url = entry.get_any(&URL_KEYS).map(|(_, node)| node);
    let program = entry.get_any(&["command", "server_path"]).map(|(_, node)| node);
    match (url, program) {
        (Some(url), Some(_)) => {
            findings.error(url.place(), "'url' and 'command' exclude each other");
            None
        }
        (None, None) => {
            let message = "nothing says how to reach this server";
            let problem = Problem::error(message).hint("add 'command' or 'url'");
            findings.problems.push(problem.at(entry.place()));
            None
        }
        (Some(url), None) => match transport {
            Some(Named::Stdio) => {
                findings.error(url.place(), "a stdio server needs 'command', not 'url'");
                None
            }
            Some(Named::Http(transport)) => http(entry, url, transport, context, findings),
            None => http(entry, url, HttpTransport::Auto, context, findings),
        },
        (None, Some(program)) => match transport {
            Some(Named::Http(transport)) => {
                let word = if transport == HttpTransport::Sse { "sse" } else { "http" };
                let message = format!("an {word} server needs 'url', not 'command'");
                findings.error(program.place(), message);
                None
            }
            Some(Named::Stdio) | None => stdio(entry, program, context.file, findings),
        },
    }
}

/// A finding says what is wrong.
struct Told;

/// The transport an entry names.
#[derive(Clone, Copy)]
enum Named {
    Stdio,
    Http(HttpTransport),
}

/// The transport the entry names, if it names one.
fn transport(entry: &Node, findings: &mut Findings) -> Result<Option<Named>, Told> {
    let Some((_, node)) = entry.get_any(&["transport", "type"]) else { return Ok(None) };
    match findings.take(node.as_text()).ok_or(Told)? {
        "stdio" => Ok(Some(Named::Stdio)),
        "http" | "streamable-http" | "streamable_http" | "streamableHttp" => {
            Ok(Some(Named::Http(HttpTransport::Streamable)))
        }
        "sse" => Ok(Some(Named::Http(HttpTransport::Sse))),
        other => {
            let message = format!("'{other}' is no transport; it is one of stdio, http, sse");
            findings.error(node.place(), message);
            Err(Told)
        }
    }
}

fn http(
    entry: &Node,
    node: &Node,
    transport: HttpTransport,
    context: &EntryContext<'_>,
    findings: &mut Findings,
) -> Option<Endpoint> {
    let text = findings.take(node.as_text())?;
    let (url, socket) = address(text, node, transport, context.file, findings)?;
    if !url.username().is_empty() || url.password().is_some() {
        let problem = Problem::error("a URL must not carry a user name or a password");
        findings
            .problems
            .push(problem.hint("use headers or auth: URLs are shown and logged").at(node.place()));
        return None;
    }
    for key in ["args", "env", "env_keys", "cwd"] {
        if let Some(key) = entry.key(key) {
            let message = format!("'{}' has no meaning beside 'url'", key.text);
            findings.warn(entry.place_of(key), message);
        }
    }
    let headers = auth::headers(entry, findings);
    let auth = auth::resolve(entry, context.expander, findings);
    let secret = !matches!(auth, AuthSpec::None | AuthSpec::Unset)
        || headers.iter().any(|(name, _)| crate::config::secrets::names_secret(name));
    let insecure =
        findings.take(transport::insecure(entry, Some(context.origin))).unwrap_or_default();
    findings.problems.extend(
        transport::unencrypted(&url, secret, insecure).map(|problem| problem.at(node.place())),
    );
    Some(Endpoint::Http { url, socket, transport, headers, auth: Box::new(auth), insecure })
}

/// Where the server is: the address to ask for, and the socket to ask over.
fn address(
    text: &str,
    node: &Node,
    transport: HttpTransport,
    file: &FileContext<'_>,
    findings: &mut Findings,
) -> Option<(Url, Option<PathBuf>)> {
    if socket::is_one(text) {
        return match socket::read(text, &file.base_dir, transport) {
            Ok(address) => Some((address.url, Some(address.socket))),
            Err((why, hint)) => {
                findings.problems.push(Problem::error(why).hint(hint).at(node.place()));
                None
            }
        };
    }
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(why) => {
            findings.error(node.place(), format!("this is no URL: {why}"));
            return None;
        }
    };
    match url.scheme() {
        "http" | "https" if url.host().is_some() => Some((url, None)),
        other => {
            findings.error(
                node.place(),
                format!("the scheme '{other}' is not spoken; use http, https or unix"),
            );
            None
        }
    }
}

fn stdio(
    entry: &Node,
    program: &Node,
    file: &FileContext<'_>,
    findings: &mut Findings,
) -> Option<Endpoint> {
    let mut argv = findings.take(program.as_texts())?.into_iter();
    let Some(mut command) = argv.next().filter(|c| !c.trim().is_empty()) else {
        findings.error(program.place(), "the command is empty");
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
        args.extend(findings.take(node.as_texts()).unwrap_or_default());
    }
    if command.contains('/') {
        command = tidy(&file.base_dir.join(command)).to_string_lossy().into_owned();
    } else if command.contains(char::is_whitespace) {
        let mut problem = Problem::warning("the command is one program, it is not split at blanks");
        problem.hint = Some("write a list, or use 'args'".to_owned());
        findings.problems.push(problem.at(program.place()));
    }
    if std::iter::once(&command).chain(&args).any(|text| text.contains('\0')) {
        findings.error(program.place(), "a command cannot hold a NUL character");
        return None;
    }
    let cwd = match entry.get("cwd").filter(|n| !n.is_null()) {
        Some(node) => tidy(&file.base_dir.join(findings.take(node.as_text())?)),
        None => file.default_cwd.clone(),
    };
    for key in ["headers", "auth", "oauth"] {
        if let Some(key) = entry.key(key) {
            let message = format!("'{}' has no meaning beside 'command'", key.text);
            findings.warn(entry.place_of(key), message);
        }
    }
    let env = variables(entry, findings);
    let env_keys = match entry.get("env_keys").filter(|n| !n.is_null()) {
        Some(node) => findings.take(node.as_texts()).unwrap_or_default(),
        None => Vec::new(),
    };
    Some(Endpoint::Stdio { command, args, env, env_keys, cwd })
}

fn variables(entry: &Node, findings: &mut Findings) -> BTreeMap<String, SecretString> {
    let mut variables = BTreeMap::new();
    let Some(node) = entry.get("env").filter(|n| !n.is_null()) else { return variables };
    for (key, value) in findings.take(node.as_map()).unwrap_or_default() {
        let Some(text) = findings.take(value.as_scalar_text()) else { continue };
        if key.text.is_empty() || key.text.contains(['=', '\0']) || text.contains('\0') {
            findings.error(node.place_of(key), format!("'{}' cannot be a variable", key.text));
            continue;
        }
        variables.insert(key.text.clone(), SecretString::from(text));
    }
    variables
}

/// The path without `.` components. `..` stays: it may cross a link.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}
