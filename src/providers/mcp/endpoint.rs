//! From an entry to an open connection.
//!
//! Owns: the environment a child process sees, and the wording when it cannot be started.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use secrecy::ExposeSecret as _;

use super::McpSetup;
use super::access::Access;
use crate::config::environment::Environment;
use crate::config::spec::{Endpoint, ServerSpec};
use crate::mcp::connection::{ConnectOptions, Connection, Opener};
use crate::mcp::era;
use crate::mcp::transport::http::{HttpLimits, HttpTarget, HttpWire};
use crate::mcp::transport::stdio::StdioWire;
use crate::mcp::wire::Wire;
use crate::model::{Fault, FaultKind, Phase};
use crate::providers::confinement;
use crate::util::process::{Grace, Program, ResolveError, resolve};

/// Bound on starting and agreeing when the entry says nothing else.
const START: Duration = Duration::from_secs(30);

/// Variables every child sees when they are set; everything else must be named by the entry.
const PASSED_ON: [&str; 10] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Opens the connection of an entry.
///
/// # Errors
/// Why it cannot be started or reached, or does not agree.
pub(super) async fn connect(
    spec: &ServerSpec,
    setup: &McpSetup,
    access: &Access,
) -> Result<Connection, Fault> {
    let named = |fault: Fault| fault.server(&spec.name).phase(Phase::Start);
    let (open, key) = opener(spec, setup, access).map_err(named)?;
    let options = ConnectOptions {
        server: spec.name.clone(),
        protocol: spec.protocol,
        remembered: setup.eras.recall(&key),
        start_timeout: spec.start_timeout.unwrap_or(START),
        probe_silence: matches!(spec.endpoint, Endpoint::Stdio { .. }),
        roots: spec.roots.clone(),
        events: setup.events.clone(),
        inbox: Arc::clone(&setup.inbox),
        traffic: setup.traffic.clone(),
    };
    let connection = Connection::open(&open, options).await.map_err(|fault| {
        match (&spec.endpoint, fault.kind(), fault.hint_text()) {
            (Endpoint::Stdio { .. }, FaultKind::Unreachable, None) => {
                fault.hint(format!("run it by hand: {}", describe(&spec.endpoint)))
            }
            _ => fault,
        }
    })?;
    setup.eras.remember(&key, connection.agreement.era);
    Ok(connection)
}

/// What opens a wire to the endpoint, and the key its era is remembered by.
fn opener(spec: &ServerSpec, setup: &McpSetup, access: &Access) -> Result<(Opener, String), Fault> {
    match &spec.endpoint {
        Endpoint::Stdio { command, args, env, env_keys, cwd } => {
            let mut variables = environment(setup.environment.as_ref(), env_keys);
            variables.extend(
                env.iter().map(|(name, value)| (name.clone(), value.expose_secret().into())),
            );
            let path = variables.get("PATH").map(String::as_str);
            let program = resolve(command, path, cwd).map_err(|error| not_startable(&error))?;
            if !cwd.is_dir() {
                let text = format!("its working directory '{}' does not exist", cwd.display());
                return Err(Fault::unreachable(text));
            }
            let changed = modified(&program);
            let mut parts = vec![program.to_str().unwrap_or_default(), changed.as_str()];
            parts.extend(args.iter().map(String::as_str));
            parts.push(cwd.to_str().unwrap_or_default());
            let key = era::key(&parts);
            let program = Program {
                path: program,
                args: args.clone(),
                env: variables,
                cwd: cwd.clone(),
                stdin: true,
            };
            let sandbox = confinement::of_server(spec, setup.environment.as_ref());
            let open: Opener = Arc::new(move || {
                let confinement = sandbox
                    .as_ref()
                    .map(|sandbox| sandbox.confinement(&program.path, &program.cwd))
                    .transpose()?;
                let wire = StdioWire::start(&program, confinement.as_ref(), Grace::default())
                    .map_err(|error| {
                        confinement::not_started(&error, |error| {
                            format!("cannot start '{}': {error}", program.path.display())
                        })
                    })?;
                Ok(Arc::new(wire) as Arc<dyn Wire>)
            });
            Ok((open, key))
        }
        Endpoint::Http { url, headers, .. } => {
            let target = HttpTarget {
                url: url.clone(),
                headers: headers.clone(),
                credentials: Arc::clone(&access.credentials),
                insecure: setup.insecure,
                limits: HttpLimits::default(),
            };
            let key = era::key(&[url.as_str()]);
            let open: Opener =
                Arc::new(move || Ok(Arc::new(HttpWire::connect(target.clone())?) as Arc<dyn Wire>));
            Ok((open, key))
        }
    }
}

/// What the program of a server is confined to, in lines for people.
pub fn confinement(spec: &ServerSpec, setup: &McpSetup) -> Vec<String> {
    let Endpoint::Stdio { cwd, .. } = &spec.endpoint else { return Vec::new() };
    let sandbox = confinement::of_server(spec, setup.environment.as_ref());
    sandbox.map(|sandbox| sandbox.describe(Some(cwd))).unwrap_or_default()
}

/// The clean environment of a child.
fn environment(environment: &dyn Environment, env_keys: &[String]) -> BTreeMap<String, String> {
    PASSED_ON
        .into_iter()
        .chain(env_keys.iter().map(String::as_str))
        .filter_map(|name| Some((name.to_owned(), environment.var(name)?)))
        .collect()
}

fn not_startable(error: &ResolveError) -> Fault {
    let fault = Fault::unreachable(format!("cannot start: {error}"));
    match error {
        ResolveError::NotInPath { searched, .. } => fault
            .detail(format!(
                "searched: {}",
                searched.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
            ))
            .hint("install it, or write its full path"),
        ResolveError::NotExecutable(file) => fault.hint(format!("chmod +x {}", file.display())),
        ResolveError::Missing(_) | ResolveError::Directory(_) => {
            fault.hint("a relative path begins at the cwd of the entry")
        }
    }
}

/// The modification time of the binary, so that a new build is asked anew.
fn modified(program: &Path) -> String {
    let time = std::fs::metadata(program).and_then(|m| m.modified()).ok();
    let age = time.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    age.map(|a| a.as_nanos().to_string()).unwrap_or_default()
}

/// The endpoint in one line, without secrets.
pub fn describe(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Stdio { command, args, .. } => {
            let words = std::iter::once(command).chain(args);
            words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
        }
        Endpoint::Http { url, .. } => {
            let mut url = url.clone();
            if url.password().is_some() {
                // Only URLs that cannot have a host refuse this.
                let _cannot = url.set_password(Some("***"));
            }
            url.to_string()
        }
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
