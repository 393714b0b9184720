//! The client that the official conformance suite tests: toolhost's own host, built from a file as
//! for any user, and driven through what every scenario asks for.
//!
//! ```console
//! $ MCP_CONFORMANCE_PROTOCOL_VERSION=2025-11-25 conformance_client http://localhost:3000/mcp
//! ```
//!
//! It does the same whatever the scenario is: lists what the server offers, makes the calls of
//! `MCP_CONFORMANCE_CONTEXT`, or one call of each tool, says yes to questions, and ends with the
//! exit code of the gravest fault. A server's well-formed no is no fault of the client.

#![expect(clippy::print_stderr, reason = "the suite keeps what is said here beside its results")]

mod answers;
mod login;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolhost::assembly::{self, FrontEnd, Options, assemble};
use toolhost::config::discover::LoadRequest;
use toolhost::config::environment::{Environment, FixedEnvironment, ProcessEnvironment};
use toolhost::config::spec::ProtocolChoice;
use toolhost::host::request::{Arguments, CallRequest, Reach};
use toolhost::host::{ToolHost, example};
use toolhost::mcp::connection::{ConnectOptions, Connection, Opener, RequestOptions};
use toolhost::mcp::transport::http::{HttpTarget, HttpWire};
use toolhost::mcp::wire::Wire;
use toolhost::mcp::{calling, listing};
use toolhost::model::{EventSink, Fault, FaultKind, JsonObject, Phase, ToolDefinition, ToolName};
use url::Url;

/// The name of the server under which everything is called.
const PEER: &str = "peer";
/// The first revision without `initialize`.
const MODERN: &str = "2026-07-28";
/// How long one step may take; the suite gives half a minute to all.
const LIMIT: Duration = Duration::from_secs(10);

/// What a scenario gives to its client.
#[derive(Debug, Default, Deserialize)]
struct Context {
    /// The calls to make, where the suite wants particular ones.
    #[serde(rename = "toolCalls")]
    tool_calls: Option<Vec<Wanted>>,
    /// What it may log in with.
    #[serde(flatten)]
    given: login::Given,
}

/// A call that a scenario wants.
#[derive(Debug, Deserialize)]
struct Wanted {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(faults) => {
            let gravest = faults.iter().map(Fault::kind).min_by_key(|kind| kind.precedence());
            gravest.map_or(ExitCode::SUCCESS, |kind| ExitCode::from(kind.exit_code()))
        }
        Err(reason) => {
            eprintln!("conformance_client: {reason}");
            ExitCode::from(FaultKind::Usage.exit_code())
        }
    }
}

async fn run() -> Result<Vec<Fault>, Box<dyn std::error::Error>> {
    let process = ProcessEnvironment;
    let url = std::env::args().next_back().ok_or("usage: conformance_client URL")?;
    let context: Context = match process.var("MCP_CONFORMANCE_CONTEXT") {
        Some(text) => serde_json::from_str(&text)?,
        None => Context::default(),
    };
    let revision = process.var("MCP_CONFORMANCE_PROTOCOL_VERSION");
    let home = TempDir::new()?;
    let host = host(&home, &entry(&url, revision.as_deref()))?;
    let (mut faults, given) = exercise(&host, context).await;
    assembly::close(&host).await;
    if faults.iter().any(|fault| fault.kind() == FaultKind::Auth) {
        faults = logged_in(url.parse()?, revision.as_deref(), given).await;
    }
    for fault in &faults {
        eprintln!("{}: {fault}", fault.kind().as_str());
        for line in fault.detail_lines() {
            eprintln!("    {line}");
        }
    }
    Ok(faults)
}

/// The server as an entry of `mcp.yaml`.
fn entry(url: &str, revision: Option<&str>) -> Value {
    let protocol = match revision {
        Some(revision) if revision < MODERN => "legacy",
        Some(_) => MODERN,
        None => "auto",
    };
    json!({ "url": url, "protocol": protocol, "timeout": "10s" })
}

/// A host of this one server, with a home of its own that nothing outlives.
fn host(home: &TempDir, entry: &Value) -> Result<Arc<ToolHost>, Box<dyn std::error::Error>> {
    let file = home.path().join("mcp.json");
    std::fs::write(&file, json!({ "mcp_servers": { PEER: entry } }).to_string())?;
    let options = Options {
        files: LoadRequest { servers: vec![file], ..LoadRequest::default() },
        ..Options::default()
    };
    let environment: Arc<dyn Environment> = Arc::new(FixedEnvironment {
        cwd: home.path().to_owned(),
        root: Some(home.path().to_owned()),
        ..FixedEnvironment::default()
    });
    let front_end = FrontEnd { inbox: Arc::new(answers::Obliging), ..FrontEnd::nobody() };
    let assembly = assemble(&options, &environment, front_end)?;
    match assembly.configuration.problems.iter().find(|problem| problem.is_error()) {
        Some(problem) => Err(problem.message.clone().into()),
        None => Ok(assembly.host),
    }
}

/// Everything a scenario may want to see. Gives what went wrong on the way.
async fn exercise(host: &ToolHost, context: Context) -> (Vec<Fault>, login::Given) {
    let catalogue = host.catalogue(&Reach::Everything).await;
    let mut faults: Vec<Fault> =
        catalogue.servers.into_iter().filter_map(|server| server.fault).collect();
    if !faults.is_empty() {
        return (faults, context.given);
    }
    // What the suite asks for is sent as it is, even where it does not fit the schema.
    let validate = context.tool_calls.is_none();
    let calls = context.tool_calls.unwrap_or_else(|| calls_of(&catalogue.tools));
    for call in calls {
        let name = ToolName::of(PEER, &call.name).full();
        let mut request = CallRequest::new(name, Arguments::Object(call.arguments));
        request.assume_yes = true;
        request.validate = validate;
        let fault = match host.call(request).await {
            Ok(outcome) => outcome.fault().cloned(),
            Err(fault) => Some(fault),
        };
        faults.extend(fault.filter(|fault| fault.kind() != FaultKind::Tool));
    }
    (faults, context.given)
}

/// The same over a connection with credentials.
async fn logged_in(url: Url, revision: Option<&str>, given: login::Given) -> Vec<Fault> {
    let mut target = HttpTarget::new(url.clone());
    target.credentials = Arc::new(login::credentials(url, given));
    let open: Opener =
        Arc::new(move || Ok(Arc::new(HttpWire::connect(target.clone())?) as Arc<dyn Wire>));
    let modern = revision.is_some_and(|revision| revision >= MODERN);
    let options = ConnectOptions {
        server: PEER.to_owned(),
        protocol: if modern { ProtocolChoice::Modern } else { ProtocolChoice::Legacy },
        remembered: None,
        start_timeout: LIMIT,
        probe_silence: false,
        roots: Vec::new(),
        events: EventSink::nowhere(),
        inbox: Arc::new(answers::Obliging),
    };
    let connection = match Connection::open(&open, options).await {
        Ok(connection) => connection,
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    match listing::tools(&connection, PEER, LIMIT).await {
        Ok(listing) => {
            for call in calls_of(&listing.tools) {
                let options = RequestOptions::within(LIMIT, LIMIT, Phase::Call);
                let result =
                    calling::call(&connection, &call.name, &call.arguments, false, &options).await;
                faults.extend(result.err().filter(|fault| fault.kind() != FaultKind::Tool));
            }
        }
        Err(fault) => faults.push(fault),
    }
    connection.close().await;
    faults
}

/// One call of each tool, with arguments that its schema asks for. An argument named `schema`
/// gets one: that of the first tool, as it was listed.
fn calls_of(tools: &[ToolDefinition]) -> Vec<Wanted> {
    let call = |tool: &ToolDefinition| {
        let mut arguments = example::arguments(&tool.input_schema);
        if let (Some(schema), Some(first)) = (arguments.get_mut("schema"), tools.first()) {
            *schema = Value::clone(&first.input_schema);
        }
        Wanted { name: tool.name.tool().to_owned(), arguments }
    };
    tools.iter().map(call).collect()
}
