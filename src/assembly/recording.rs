//! Starting or reaching a server behind the proxy of `toolhost record`.

use crate::audit::Masker;
use crate::audit::mask::is_secret_argument;
use crate::config::environment::Environment;
use crate::config::spec::Endpoint;
use crate::mcp::tracer::Tracer;
use crate::model::{Error, ErrorPhase, TrafficSink};
use crate::providers::mcp;
use crate::serve::record::{RecordedProcess, RecordedServer};
use crate::util::orphans;
use crate::util::process::{Process, Program, resolve};

use super::{Assembly, secrets};

/// Starts or reaches the server of an entry like a connection would, to record it in `traffic`.
pub fn start_server(
    assembly: &Assembly,
    name: &str,
    environment: &dyn Environment,
    traffic: TrafficSink,
) -> Result<RecordedServer, Error> {
    let configuration = &assembly.configuration;
    let Some(spec) = configuration.servers.iter().find(|spec| spec.name == name) else {
        return Err(Error::usage(format!("there is no server '{name}'")));
    };
    let named = |error: Error| error.with_server(name).with_phase(ErrorPhase::Start);
    if !matches!(spec.endpoint, Endpoint::Stdio { .. }) {
        let wire = mcp::open_wire(spec, &assembly.sources.setup).map_err(named)?;
        return Ok(RecordedServer::Network(wire));
    }
    let traffic = secrets::masker(configuration, environment).traffic(traffic);
    let tracer = Tracer::new(name, traffic);
    tracer.opened(&mcp::describe(&spec.endpoint));
    let process = mcp::start(spec, environment, &configuration.expanded).map_err(named)?;
    Ok(RecordedServer::Program(Box::new(RecordedProcess { process, tracer })))
}

/// Starts a command line as if toolhost were not there: in this directory and with all variables of
/// this process, of which those whose name indicates a secret are masked.
pub fn start_command(
    command_line: &[String],
    environment: &dyn Environment,
    traffic: TrafficSink,
) -> Result<RecordedServer, Error> {
    let Some((command, args)) = command_line.split_first() else {
        return Err(Error::usage("no command was given"));
    };
    let cannot = |why: &dyn std::fmt::Display| Error::unreachable(format!("cannot start: {why}"));
    let (env, cwd) = (environment.vars(), environment.cwd());
    let path = env.get("PATH").map(String::as_str);
    let path = resolve(command, path, &cwd).map_err(|error| cannot(&error))?;
    let secrets = env.iter().filter(|(name, _)| is_secret_argument(name));
    let masker = Masker::new(secrets.map(|(name, value)| (name.as_str(), value.as_str())));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let tracer = Tracer::new(&name, masker.traffic(traffic));
    tracer.opened(&command_line.join(" "));
    // Processes it leaves behind become our children, so that we can kill them.
    orphans::become_subreaper();
    let program = Program { path, args: args.to_vec(), env, cwd, stdin: true };
    let process = Process::start(&program)
        .map_err(|error| cannot(&format!("'{}': {error}", program.path.display())))?;
    Ok(RecordedServer::Program(Box::new(RecordedProcess { process, tracer })))
}
