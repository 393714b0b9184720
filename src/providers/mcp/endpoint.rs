//! From an entry to an open connection.
//!
//! Owns: the environment a child process sees, and the wording when it cannot be started.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use secrecy::ExposeSecret as _;

use super::McpSetup;
use crate::config::environment::Environment;
use crate::config::spec::{AuthSpec, Endpoint, ServerSpec};
use crate::mcp::connection::{ConnectOptions, Connection, Opener};
use crate::mcp::era;
use crate::mcp::tracer::Tracer;
use crate::mcp::transport::http::{HttpLimits, HttpTarget, HttpWire};
use crate::mcp::transport::stdio::StdioWire;
use crate::mcp::wire::Wire;
use crate::model::{Fault, FaultKind, Phase};
use crate::provider::permit;
use crate::providers::confinement;
use crate::util::process::{Grace, Process, Program, ResolveError, StartError, resolve};

/// Bound on starting and agreeing when the entry says nothing else.
const START: Duration = Duration::from_secs(30);

/// Variables every child sees when they are set; everything else must be named by the entry.
const PASSED_ON: [&str; 10] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Opens the connection of an entry.
///
/// # Errors
/// Why it cannot be started or reached, or does not agree.
pub async fn connect(
    spec: &ServerSpec,
    setup: &McpSetup,
    tracer: &Tracer,
) -> Result<Connection, Fault> {
    let named = |fault: Fault| fault.server(&spec.name).phase(Phase::Start);
    let (open, key) = opener(spec, setup, tracer).map_err(named)?;
    let open = told(open, tracer, describe(&spec.endpoint));
    let options = ConnectOptions {
        server: spec.name.clone(),
        protocol: spec.protocol,
        remembered: setup.eras.recall(&key),
        start_timeout: spec.start_timeout.unwrap_or(START),
        probe_silence: matches!(spec.endpoint, Endpoint::Stdio { .. }),
        roots: spec.roots.clone(),
        events: setup.events.clone(),
        inbox: Arc::clone(&setup.inbox),
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

/// The same opener, telling `tracer` of every wire it opens to `place`.
fn told(open: Opener, tracer: &Tracer, place: String) -> Opener {
    let tracer = tracer.clone();
    Arc::new(move || {
        tracer.opened(&place);
        open().inspect_err(|fault| tracer.closed(fault.message()))
    })
}

/// What opens a wire to the endpoint, and the key its era is remembered by.
fn opener(spec: &ServerSpec, setup: &McpSetup, tracer: &Tracer) -> Result<(Opener, String), Fault> {
    let tracer = tracer.clone();
    match &spec.endpoint {
        Endpoint::Stdio { args, cwd, .. } => {
            let program = program(spec, setup.environment.as_ref())?;
            let changed = modified(&program.path);
            let mut parts = vec![program.path.to_str().unwrap_or_default(), changed.as_str()];
            parts.extend(args.iter().map(String::as_str));
            parts.push(cwd.to_str().unwrap_or_default());
            let key = era::key(&parts);
            let sandbox = confinement::of_server(spec, setup.environment.as_ref());
            let open: Opener = Arc::new(move || {
                let confinement = sandbox
                    .as_ref()
                    .map(|sandbox| sandbox.confinement(&program.path, &program.cwd))
                    .transpose()?;
                let wire = StdioWire::start(
                    &program,
                    confinement.as_ref(),
                    Grace::default(),
                    tracer.clone(),
                )
                .map_err(|error| not_started(&error, &program))?;
                Ok(Arc::new(wire) as Arc<dyn Wire>)
            });
            Ok((open, key))
        }
        Endpoint::Http { url, headers, auth } => {
            let target = HttpTarget {
                url: url.clone(),
                headers: headers.clone(),
                bearer: match auth {
                    AuthSpec::None => None,
                    AuthSpec::Bearer { token, .. } => Some(token.clone()),
                },
                insecure: setup.insecure,
                limits: HttpLimits::default(),
                tracer: tracer.clone(),
            };
            let key = era::key(&[url.as_str()]);
            let open: Opener =
                Arc::new(move || Ok(Arc::new(HttpWire::connect(target.clone())?) as Arc<dyn Wire>));
            Ok((open, key))
        }
    }
}

/// The program of a server that is started, with all it will see.
///
/// # Errors
/// Why it cannot be started; a usage fault for a server that is not started but reached.
fn program(spec: &ServerSpec, surroundings: &dyn Environment) -> Result<Program, Fault> {
    let Endpoint::Stdio { command, args, env, env_keys, cwd } = &spec.endpoint else {
        return Err(Fault::usage(format!("the server '{}' is not started by toolhost", spec.name)));
    };
    let mut variables = environment(surroundings, env_keys);
    variables.extend(env.iter().map(|(name, value)| (name.clone(), value.expose_secret().into())));
    let path = variables.get("PATH").map(String::as_str);
    let program = resolve(command, path, cwd).map_err(|error| not_startable(&error))?;
    if !cwd.is_dir() {
        let text = format!("its working directory '{}' does not exist", cwd.display());
        return Err(Fault::unreachable(text));
    }
    let (args, cwd) = (args.clone(), cwd.clone());
    Ok(Program { path: program, args, env: variables, cwd, stdin: true })
}

/// Starts the program of a server as for a connection, for whoever speaks to it instead of us.
///
/// # Errors
/// When it was not trusted, cannot be started, or is not a server that is started.
pub fn start(spec: &ServerSpec, environment: &dyn Environment) -> Result<Process, Fault> {
    permit(&spec.trust)?;
    let program = program(spec, environment)?;
    let sandbox = confinement::of_server(spec, environment);
    let started = match sandbox {
        None => Process::start(&program).map_err(StartError::from),
        Some(sandbox) => {
            let confinement = sandbox.confinement(&program.path, &program.cwd)?;
            Process::start_confined(&program, &confinement, false)
        }
    };
    started.map_err(|error| not_started(&error, &program))
}

fn not_started(error: &StartError, program: &Program) -> Fault {
    confinement::not_started(error, |error| {
        format!("cannot start '{}': {error}", program.path.display())
    })
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
