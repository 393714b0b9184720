//! Connecting to the server of an entry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use secrecy::ExposeSecret as _;

use tokio::time::Instant;

use super::McpSetup;
use super::auth::ServerAuth;
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::spec::{Endpoint, ProtocolChoice, ServerSpec, Transport};
use crate::config::unix_socket;
use crate::mcp::connection::{ConnectOptions, Connection, WireOpener};
use crate::mcp::era_cache;
use crate::mcp::tracer::Tracer;
use crate::mcp::transport::http::{HttpLimits, HttpTarget, HttpWire, SseWire, web_socket};
use crate::mcp::transport::socket::SocketWire;
use crate::mcp::transport::stdio::StdioWire;
use crate::mcp::wire::Wire;
use crate::model::{Error, ErrorKind, ErrorPhase};
use crate::provider::verify_trust;
use crate::providers::confinement;
use crate::providers::program_env::{build_env, not_found};
use crate::util::confine::Coverage;
use crate::util::process::{Process, Program, ShutdownTimeouts, StartError, resolve};
use crate::util::text::shell_quoted;
use crate::util::tls::TlsPem;

const START: Duration = Duration::from_secs(30);

/// Connects to the server; by which transport, as [`ServerStatus`](crate::model::ServerStatus) shows
/// it.
pub(super) async fn connect(
    spec: &ServerSpec,
    setup: &McpSetup,
    tracer: &Tracer,
    access: &ServerAuth,
) -> Result<(Connection, &'static str), Error> {
    let named = |error: Error| error.with_server(&spec.name).with_phase(ErrorPhase::Start);
    let begun = Instant::now();
    let limit = spec.start_timeout.unwrap_or(START);
    let newer = transport_plan(spec, setup, tracer, access, false).map_err(named)?;
    let error = match open(&newer, spec, setup, tracer, limit).await {
        Ok(connection) => return Ok((connection, newer.transport)),
        Err(error) => error,
    };
    if !(allows_sse_fallback(spec) && may_speak_sse(&error)) {
        return Err(error);
    }
    let older = transport_plan(spec, setup, tracer, access, true).map_err(named)?;
    match open(&older, spec, setup, tracer, limit.saturating_sub(begun.elapsed())).await {
        Ok(connection) => {
            let text = "it speaks only the older HTTP+SSE transport: set type: sse in its entry";
            connection.add_warning(text);
            Ok((connection, older.transport))
        }
        Err(second) => {
            Err(error.with_detail(format!("HTTP+SSE was tried as well: {}", second.message())))
        }
    }
}

struct TransportPlan {
    open: WireOpener,
    key: String,
    transport: &'static str,
    protocol: ProtocolChoice,
}

async fn open(
    way: &TransportPlan,
    spec: &ServerSpec,
    setup: &McpSetup,
    tracer: &Tracer,
    start_timeout: Duration,
) -> Result<Connection, Error> {
    let open = with_tracing(Arc::clone(&way.open), tracer, describe(&spec.endpoint));
    let options = ConnectOptions {
        server: spec.name.clone(),
        protocol: way.protocol,
        cached_era: setup.eras.get(&way.key),
        start_timeout,
        falls_back_on_silence: !matches!(way.transport, "http" | "unix" | "sse"),
        roots: spec.roots.clone(),
        events: setup.events.clone(),
        inbox: Arc::clone(&setup.inbox),
    };
    let connection = Connection::open(&open, options).await.map_err(|error| {
        match (&spec.endpoint, error.kind(), error.hint()) {
            (Endpoint::Stdio { .. }, ErrorKind::Unreachable, None) => {
                error.with_hint(format!("run it by hand: {}", describe(&spec.endpoint)))
            }
            _ => error,
        }
    })?;
    // What a file requires says nothing about the next entry with the same command.
    if way.protocol == ProtocolChoice::Auto {
        setup.eras.insert(&way.key, connection.agreement.era);
    }
    Ok(connection)
}

/// The same opener, telling `tracer` of every wire it opens to `place`.
fn with_tracing(open: WireOpener, tracer: &Tracer, place: String) -> WireOpener {
    let tracer = tracer.clone();
    Arc::new(move || {
        tracer.opened(&place);
        open().inspect_err(|error| tracer.closed(error.message()))
    })
}

/// Whether a server that refused the POST of `initialize` may be one that only knows HTTP+SSE: the
/// statuses of the specification's rule for backwards compatibility.
fn may_speak_sse(error: &Error) -> bool {
    matches!(error.http_status(), Some(400 | 404 | 405))
}

/// How to reach the endpoint; over HTTP+SSE when `older` asks for that.
fn transport_plan(
    spec: &ServerSpec,
    setup: &McpSetup,
    tracer: &Tracer,
    access: &ServerAuth,
    older: bool,
) -> Result<TransportPlan, Error> {
    let tracer = tracer.clone();
    let protocol = spec.protocol;
    match &spec.endpoint {
        Endpoint::Stdio { args, cwd, .. } => {
            let program = program(spec, setup.environment.as_ref(), &setup.expanded)?;
            let changed = modified(&program.path);
            let mut parts = vec![program.path.to_str().unwrap_or_default(), changed.as_str()];
            parts.extend(args.iter().map(String::as_str));
            parts.push(cwd.to_str().unwrap_or_default());
            let key = era_cache::key(&parts);
            let sandbox = confinement::of_server(spec, setup.environment.as_ref());
            let open: WireOpener = Arc::new(move || {
                let confinement = sandbox
                    .as_ref()
                    .map(|sandbox| sandbox.confinement(&program.path, &program.cwd))
                    .transpose()?;
                let wire = StdioWire::start(
                    &program,
                    confinement.as_ref(),
                    ShutdownTimeouts::default(),
                    tracer.clone(),
                    tracer.clone(),
                )
                .map_err(|error| not_started(&error, &program))?;
                Ok(Arc::new(wire) as Arc<dyn Wire>)
            });
            Ok(TransportPlan { open, key, transport: "stdio", protocol })
        }
        Endpoint::Http { url, socket, transport, headers, insecure, tls, .. } => {
            let target = HttpTarget {
                url: url.clone(),
                socket: socket.clone(),
                headers: headers.clone(),
                credentials: Arc::clone(&access.credentials),
                insecure: setup.insecure,
                allows_unencrypted: *insecure,
                tls: TlsPem::clone(tls),
                limits: HttpLimits::default(),
                tracer: tracer.clone(),
            };
            if *transport == Transport::Sse || older {
                // Its only lifecycle: there is nothing to detect.
                let (key, protocol) =
                    (era_cache::key(&["sse", url.as_str()]), ProtocolChoice::Legacy);
                let open: WireOpener = Arc::new(move || {
                    Ok(Arc::new(SseWire::connect(target.clone())?) as Arc<dyn Wire>)
                });
                return Ok(TransportPlan { open, key, transport: "sse", protocol });
            }
            let open: WireOpener = match (transport, socket) {
                (Transport::Lines, Some(socket)) => {
                    let socket = socket.clone();
                    Arc::new(move || {
                        Ok(Arc::new(SocketWire::lines(socket.clone(), tracer.clone())) as _)
                    })
                }
                (Transport::WebSocket, _) => {
                    Arc::new(move || Ok(Arc::new(web_socket::connect(target.clone())?) as _))
                }
                _ => Arc::new(move || Ok(Arc::new(HttpWire::connect(target.clone())?) as _)),
            };
            let key = era_cache::key(&[&describe(&spec.endpoint)]);
            Ok(TransportPlan { open, key, transport: self::transport(&spec.endpoint), protocol })
        }
    }
}

fn allows_sse_fallback(spec: &ServerSpec) -> bool {
    let modern = spec.protocol == ProtocolChoice::Modern;
    !modern && matches!(spec.endpoint, Endpoint::Http { transport: Transport::Auto, .. })
}

/// By what a server is reached, as far as its entry says.
pub fn transport(endpoint: &Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Stdio { .. } => "stdio",
        Endpoint::Http { transport: Transport::Sse, .. } => "sse",
        Endpoint::Http { transport: Transport::Lines, .. } => "lines",
        Endpoint::Http { transport: Transport::WebSocket, .. } => "websocket",
        Endpoint::Http { socket: Some(_), .. } => "unix",
        Endpoint::Http { .. } => "http",
    }
}

fn program(
    spec: &ServerSpec,
    environment: &dyn Environment,
    expanded: &ExpandedValues,
) -> Result<Program, Error> {
    let Endpoint::Stdio { command, args, env, env_keys, cwd } = &spec.endpoint else {
        return Err(Error::usage(format!("the server '{}' is not started by toolhost", spec.name)));
    };
    let mut variables = build_env(&BTreeMap::new(), env_keys, environment, expanded);
    variables.extend(env.iter().map(|(name, value)| (name.clone(), value.expose_secret().into())));
    let path = variables.get("PATH").map(String::as_str);
    let program = resolve(command, path, cwd).map_err(|cause| {
        not_found(&cause, "a relative path starts at the cwd of the entry").context("cannot start")
    })?;
    if !cwd.is_dir() {
        let text = format!("its working directory '{}' does not exist", cwd.display());
        return Err(Error::unreachable(text));
    }
    let (args, cwd) = (args.clone(), cwd.clone());
    Ok(Program { path: program, args, env: variables, cwd, stdin: true })
}

/// Starts the program of a server as for a connection, for a proxy that speaks to it itself.
pub fn start(
    spec: &ServerSpec,
    environment: &dyn Environment,
    expanded: &ExpandedValues,
) -> Result<Process, Error> {
    verify_trust(&spec.seal)?;
    let program = program(spec, environment, expanded)?;
    let sandbox = confinement::of_server(spec, environment);
    let confinement = sandbox.map(|sandbox| sandbox.confinement(&program.path, &program.cwd));
    Process::start_within(&program, confinement.transpose()?.as_ref(), false)
        .map_err(|error| not_started(&error, &program))
}

/// The wire to a server that is reached over the network, for a proxy that speaks over it itself.
pub fn open_wire(spec: &ServerSpec, setup: &McpSetup) -> Result<Arc<dyn Wire>, Error> {
    verify_trust(&spec.seal)?;
    let tracer = Tracer::new(&spec.name, setup.traffic.clone());
    let access = ServerAuth::of(spec, setup, &tracer);
    let plan = transport_plan(spec, setup, &tracer, &access, false)?;
    with_tracing(plan.open, &tracer, describe(&spec.endpoint))()
}

fn not_started(error: &StartError, program: &Program) -> Error {
    confinement::not_started(error, |error| {
        format!("cannot start '{}': {error}", program.path.display())
    })
}

/// What the program of a server is confined to: in lines for people, and what its sandbox keeps
/// and leaves open.
pub fn confinement(spec: &ServerSpec, setup: &McpSetup) -> (Vec<String>, Option<Coverage>) {
    let Endpoint::Stdio { cwd, .. } = &spec.endpoint else { return (Vec::new(), None) };
    match confinement::of_server(spec, setup.environment.as_ref()) {
        Some(sandbox) => (sandbox.describe(Some(cwd)), sandbox.coverage()),
        None => (Vec::new(), None),
    }
}

/// The modification time of the binary, so that a new build is asked again.
fn modified(program: &Path) -> String {
    let time = std::fs::metadata(program).and_then(|m| m.modified()).ok();
    let age = time.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    age.map(|a| a.as_nanos().to_string()).unwrap_or_default()
}

/// The endpoint in one line, without secrets.
pub fn describe(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Stdio { command, args, .. } => {
            let argv: Vec<String> = std::iter::once(command).chain(args).cloned().collect();
            shell_quoted(&argv)
        }
        Endpoint::Http { socket: Some(socket), transport: Transport::Lines, .. } => {
            format!("unix://{}", socket.display())
        }
        Endpoint::Http { url, socket: Some(socket), .. } => unix_socket::show(socket, url),
        Endpoint::Http { url, transport, .. } => {
            let mut url = url.clone();
            if *transport == Transport::WebSocket {
                // Schemes of this family can always be exchanged.
                let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
                let _same_family = url.set_scheme(scheme);
            }
            if url.password().is_some() {
                // Only URLs that cannot have a host refuse this.
                let _cannot = url.set_password(Some("***"));
            }
            url.to_string()
        }
    }
}

/// What a pin is bound to: the transport and the command line, or the address without whatever may
/// differ from run to run.
pub fn identity(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Stdio { .. } => format!("stdio {}", describe(endpoint)),
        Endpoint::Http { url, .. } => {
            format!("http {}{}", url.origin().ascii_serialization(), url.path())
        }
    }
}
