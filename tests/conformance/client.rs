//! The client that the official conformance suite tests: toolhost's own host, built from a file as
//! for any user, and driven through what every scenario asks for.
//!
//! It is a test of the library that only runs when asked for by `tests/conformance/run`, since it
//! reaches below the public API: the suite wants to see logins that a host makes beforehand.
//!
//! It does the same whatever the scenario is: lists what the server offers, makes the calls of
//! `MCP_CONFORMANCE_CONTEXT`, or one call of each tool, gets each prompt and reads each resource,
//! says yes to questions, and ends with the exit code of the gravest fault. A server that wants
//! credentials is met once more, over a connection of its own. A well-formed no is no
//! fault of the client. Only where nothing else tells scenarios apart are they known by name.

#![expect(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "the suite sees how the process of a scenario ends"
)]

mod answers;
mod direct;
mod gateway;
mod login;

use std::process::exit;
use std::sync::Arc;

use crate::config::environment::{Environment as _, ProcessEnvironment};
use crate::config::spec::ProtocolChoice;
use crate::host::example;
use crate::model::{Error, ErrorKind, JsonObject, ToolDefinition};
use serde::Deserialize;
use url::Url;

/// The name of the server under which everything is called.
const PEER: &str = "peer";
/// The first revision without `initialize`.
const MODERN: &str = "2026-07-28";

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

/// A call to make.
#[derive(Debug, Deserialize)]
struct Wanted {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
}

/// Where the suite's server is.
const URL: &str = "TOOLHOST_CONFORMANCE_URL";

#[tokio::test]
#[ignore = "the conformance suite runs it"]
async fn exercise() {
    let faults = match run().await {
        Ok(faults) => faults,
        Err(reason) => vec![Error::usage(reason.to_string())],
    };
    for fault in &faults {
        eprintln!("{}: {fault}", fault.kind().as_str());
        for line in fault.details() {
            eprintln!("    {line}");
        }
    }
    let gravest = faults.iter().map(Error::kind).min_by_key(|kind| kind.precedence());
    exit(gravest.map_or(0, |kind| kind.exit_code().into()));
}

async fn run() -> Result<Vec<Error>, Box<dyn std::error::Error>> {
    let process = ProcessEnvironment;
    let url: Url = process.var(URL).ok_or("no URL is given")?.parse()?;
    let context: Context = match process.var("MCP_CONFORMANCE_CONTEXT") {
        Some(text) => serde_json::from_str(&text)?,
        None => Context::default(),
    };
    let protocol = match process.var("MCP_CONFORMANCE_PROTOCOL_VERSION") {
        Some(revision) if revision.as_str() < MODERN => ProtocolChoice::Legacy,
        Some(_) => ProtocolChoice::Modern,
        None => ProtocolChoice::Auto,
    };
    let faults = gateway::exercise(&url, protocol, context.tool_calls).await?;
    if !faults.iter().any(|fault| fault.kind() == ErrorKind::Auth) {
        return Ok(faults);
    }
    let scenario = process.var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    Ok(direct::exercise(url, protocol, &scenario, context.given).await)
}

/// One call of each tool, with arguments that its schema asks for. An argument named `schema`
/// gets one: that of the first tool, as it was listed.
fn calls_of(tools: &[Arc<ToolDefinition>]) -> Vec<Wanted> {
    let call = |tool: &Arc<ToolDefinition>| {
        let mut arguments = example::arguments(&tool.input_schema);
        if let (Some(schema), Some(first)) = (arguments.get_mut("schema"), tools.first()) {
            *schema = serde_json::Value::clone(&first.input_schema);
        }
        Wanted { name: tool.name.tool().to_owned(), arguments }
    };
    tools.iter().map(call).collect()
}

/// What went wrong, unless it is a no that the server may say.
fn fault_of<T>(result: Result<T, Error>) -> Option<Error> {
    result.err().filter(|fault| fault.kind() != ErrorKind::Tool)
}
