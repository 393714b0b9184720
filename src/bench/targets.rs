//! Resolving the tool names of a run to callable targets.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::bench_runner::PreparedTarget;
use super::environment::ServerIdentity;
use super::plan::ArgumentRows;
use super::report::{BenchReport, TargetReport};
use crate::host::ToolHost;
use crate::host::request::{CallArguments, CallRequest};
use crate::model::{Error, JsonObject};

/// A tool as it was asked for.
#[derive(Debug, Clone)]
pub struct TargetSpec {
    /// The name as typed.
    pub name: String,
    /// Its arguments.
    pub arguments: ArgumentInput,
}

/// Arguments that no tool has looked at yet.
#[derive(Debug, Clone)]
pub enum ArgumentInput {
    /// The same for all calls.
    Single(CallArguments),
    /// One object for each call, starting over after the last.
    Lines(Vec<JsonObject>),
}

/// How tools are called.
#[derive(Debug, Clone, Default)]
pub struct TargetOptions {
    /// Only these servers are considered (empty: everything).
    pub servers: Vec<String>,
    /// Overrides every configured timeout.
    pub timeout: Option<Duration>,
    /// Send arguments that do not fit the schema, too.
    pub skips_validation: bool,
    /// Call even tools that would ask a person first, or that say they change something.
    pub allow_writes: bool,
    /// Approve the calls that a tool makes without asking, too.
    pub assume_yes_nested: bool,
    /// One answer in this many is read in full and checked against the output schema.
    pub inspect_every: Option<u64>,
    /// Ends the run at once.
    pub cancel: CancellationToken,
}

/// Finds each tool and makes sure that it may be called so often and that its arguments fit;
/// `warn` gets what a person should know before.
pub async fn prepare(
    specs: Vec<TargetSpec>,
    options: &TargetOptions,
    host: &ToolHost,
    mut warn: impl FnMut(&str),
) -> Result<Vec<PreparedTarget>, Error> {
    let mut all = Vec::with_capacity(specs.len());
    for TargetSpec { name, arguments: given } in specs {
        let call = CallRequest {
            servers: options.servers.clone(),
            timeout: options.timeout,
            validate: !options.skips_validation,
            assume_yes: options.allow_writes,
            assume_yes_nested: options.assume_yes_nested,
            cancel: options.cancel.clone(),
            ..CallRequest::new(name, CallArguments::Object(JsonObject::new()))
        };
        let target = host.load_target(&call, options.inspect_every).await?;
        target.warnings().iter().for_each(|warning| warn(warning));
        let tool = target.definition();
        if !options.allow_writes && tool.annotations.read_only.is_none() {
            let name = tool.name.full();
            warn(&format!("'{name}' does not say whether it is read-only"));
        }
        let arguments = match given {
            ArgumentInput::Single(arguments) => target.prepare(arguments).await?.into(),
            ArgumentInput::Lines(rows) => ArgumentRows::check(rows, &target).await?,
        };
        all.push(PreparedTarget { target, arguments });
    }
    Ok(all)
}

pub(super) fn processor_times(host: &ToolHost) -> BTreeMap<String, Duration> {
    let servers = host.servers().into_iter();
    servers.filter_map(|status| Some((status.name, status.cpu_time?))).collect()
}

/// The server of each tool, for [`identities`].
pub(super) fn servers(prepared: &[PreparedTarget]) -> Vec<Option<String>> {
    let server = |prepared: &PreparedTarget| {
        prepared.target.definition().name.component().map(str::to_owned)
    };
    prepared.iter().map(server).collect()
}

/// Who the servers of the tools said they are, and what the run cost them that began when they had
/// used this processor time.
pub(super) fn identities(
    report: &BenchReport,
    servers: &[Option<String>],
    before: &BTreeMap<String, Duration>,
    host: &ToolHost,
) -> Vec<ServerIdentity> {
    let statuses = host.servers();
    let targets = report.targets.iter().zip(servers);
    let of = |(target, server): (&TargetReport, &Option<String>)| {
        let status = statuses.iter().find(|status| Some(&status.name) == server.as_ref())?;
        let claim = |key: &str| {
            let info = status.server_info.as_ref()?;
            info.get(key)?.as_str().map(str::to_owned)
        };
        Some(ServerIdentity {
            tool: target.tool.clone(),
            name: claim("name"),
            version: claim("version"),
            protocol: status.protocol.clone(),
            // Of a process that was started during the run there is no time before it.
            cpu: status.cpu_time.and_then(|after| after.checked_sub(*before.get(&status.name)?)),
        })
    };
    targets.filter_map(of).collect()
}
