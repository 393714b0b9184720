//! `--export-locust`: writing a locustfile instead of running the benchmark.

use secrecy::ExposeSecret as _;

use crate::bench::bench_runner::PreparedTarget;
use crate::bench::export::locust::{LocustHeader, LocustTarget, LocustValue, locust};
use crate::bench::plan::BenchPlan;
use crate::cli::commands::prelude::*;
use crate::config::spec::{AuthSpec, Endpoint, ServerSpec, Transport};
use crate::util::text::variable_name;

const TOKEN: &str = "LOCUST_TOKEN";

pub(super) fn write(
    path: &Path,
    plan: &BenchPlan,
    prepared: &PreparedTarget,
    assembly: &Assembly,
    context: &CommandContext,
) -> CommandResult {
    let text = locust(plan, &target(prepared, &assembly.configuration.servers)?)?;
    super::files::write_one(path, &text, context)?;
    Ok(())
}

fn target(prepared: &PreparedTarget, servers: &[ServerSpec]) -> Result<LocustTarget, Error> {
    let name = &prepared.target.definition().name;
    let refused = |why: &str| {
        Err(Error::usage(format!("--export-locust: '{name}' {why}")).with_hint(
            "Locust speaks only HTTP; without the option, toolhost generates the load itself",
        ))
    };
    let server = servers.iter().find(|server| Some(server.name.as_str()) == name.component());
    let Some(server) = server else { return refused("is not a tool of an MCP server") };
    let Endpoint::Http { url, socket: None, transport, headers, auth, .. } = &server.endpoint
    else {
        return refused("is a tool of a server without an HTTP address");
    };
    if *transport == Transport::WebSocket {
        return refused("is a tool of a server without an HTTP address");
    }
    let keeps = |text: &str| prepared.target.masked(text) == text;
    if !keeps(url.as_str()) {
        return refused("has a secret in its URL, which would be written to the file");
    }
    let mut written: Vec<LocustHeader> = headers
        .iter()
        .map(|(name, value)| (name, value.expose_secret()))
        .map(|(name, value)| LocustHeader {
            name: name.clone(),
            value: if keeps(value) {
                LocustValue::Text(value.to_owned())
            } else {
                LocustValue::Variable { before: String::new(), variable: variable(name) }
            },
        })
        .collect();
    match &**auth {
        AuthSpec::Unset | AuthSpec::None => {}
        AuthSpec::Bearer { variable, .. } => written.push(bearer(variable.as_deref())),
        AuthSpec::OAuth(_) => written.push(bearer(None)),
    }
    Ok(LocustTarget {
        name: name.full(),
        tool: name.tool().to_owned(),
        url: url.to_string(),
        protocol: prepared.target.protocol().map(str::to_owned),
        headers: written,
        arguments: prepared.arguments.objects().cloned().collect(),
    })
}

/// The variable for the secret value of a header: `LOCUST_X_TEAM` for `X-Team`.
fn variable(header: &str) -> String {
    format!("LOCUST_{}", variable_name(header))
}

fn bearer(variable: Option<&str>) -> LocustHeader {
    let variable = variable.unwrap_or(TOKEN).to_owned();
    let value = LocustValue::Variable { before: "Bearer ".to_owned(), variable };
    LocustHeader { name: "Authorization".to_owned(), value }
}
