//! What a user of toolhost does with a server, through the one gateway.

use std::sync::Arc;

use crate::assembly::{self, AssemblyOptions, FrontEnd, assemble};
use crate::config::discover::LoadRequest;
use crate::config::environment::{Environment, FixedEnvironment};
use crate::config::spec::ProtocolChoice;
use crate::host::ToolHost;
use crate::host::request::{CallArguments, CallRequest, ItemRequest, ListScope, LookupScope};
use crate::model::{Error, JsonObject, Prompt, ToolName};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

use super::{MODERN, PEER, Wanted, answers, calls_of, fault_of};

/// Does everything a scenario may want to see, and gives what went wrong on the way.
///
/// # Errors
/// When there is no host to do it with.
pub async fn exercise(
    url: &Url,
    protocol: ProtocolChoice,
    calls: Option<Vec<Wanted>>,
) -> Result<Vec<Error>, Box<dyn std::error::Error>> {
    let home = TempDir::new()?;
    let host = host(&home, url, protocol)?;
    let mut faults = tools(&host, calls).await;
    if faults.is_empty() {
        faults.extend(offers(&host).await);
    }
    assembly::close(&host).await;
    Ok(faults)
}

/// A host of this one server, with a home of its own that nothing outlives.
fn host(
    home: &TempDir,
    url: &Url,
    protocol: ProtocolChoice,
) -> Result<Arc<ToolHost>, Box<dyn std::error::Error>> {
    let protocol = match protocol {
        ProtocolChoice::Auto => "auto",
        ProtocolChoice::Legacy => "legacy",
        ProtocolChoice::Modern => MODERN,
    };
    let entry = json!({ "url": url.as_str(), "protocol": protocol, "timeout": "10s" });
    let file = home.path().join("mcp.json");
    std::fs::write(&file, json!({ "mcp_servers": { PEER: entry } }).to_string())?;
    let options = AssemblyOptions {
        files: LoadRequest { servers: vec![file], ..LoadRequest::default() },
        ..AssemblyOptions::default()
    };
    let environment: Arc<dyn Environment> = Arc::new(FixedEnvironment {
        cwd: home.path().to_owned(),
        root: Some(home.path().to_owned()),
        ..FixedEnvironment::default()
    });
    let front_end = FrontEnd { inbox: Arc::new(answers::Obliging), ..FrontEnd::headless() };
    let assembly = assemble(&options, &environment, front_end)?;
    match assembly.configuration.diagnostics.iter().find(|problem| problem.is_error()) {
        Some(problem) => Err(problem.message.clone().into()),
        None => Ok(assembly.host),
    }
}

/// Lists the tools and calls them.
async fn tools(host: &ToolHost, calls: Option<Vec<Wanted>>) -> Vec<Error> {
    let catalogue = host.catalogue(&ListScope::Everything).await;
    let mut faults: Vec<Error> =
        catalogue.servers.into_iter().filter_map(|server| server.error).collect();
    if !faults.is_empty() {
        return faults;
    }
    // What the suite asks for is sent as it is, even where it does not fit the schema.
    let validate = calls.is_none();
    for call in calls.unwrap_or_else(|| calls_of(&catalogue.tools)) {
        let name = ToolName::of(PEER, &call.name).full();
        let mut request = CallRequest::new(name, CallArguments::Object(call.arguments));
        request.assume_yes = true;
        request.validate = validate;
        let outcome = host.call(request).await;
        faults.extend(fault_of(outcome.and_then(|outcome| match outcome.error() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        })));
    }
    faults
}

/// Lists the prompts and resources, gets each and reads each.
async fn offers(host: &ToolHost) -> Vec<Error> {
    let (scope, request) = (LookupScope::default(), ItemRequest::default());
    let mut faults = Vec::new();
    let prompts = host.prompts(&scope).await.unwrap_or_default();
    faults.extend(prompts.servers.into_iter().filter_map(|server| server.error));
    for prompt in prompts.items {
        let filled = host.prompt(&prompt.name.full(), &filling(&prompt), &request).await;
        faults.extend(fault_of(filled));
    }
    let resources = host.resources(&scope).await.unwrap_or_default();
    faults.extend(resources.servers.into_iter().filter_map(|server| server.error));
    for resource in resources.items {
        faults.extend(fault_of(host.read(&resource.uri, &request).await));
    }
    faults
}

/// Something for each argument that a prompt needs.
fn filling(prompt: &Prompt) -> JsonObject {
    let needed = prompt.arguments.iter().filter(|argument| argument.required);
    needed.map(|argument| (argument.name.clone(), Value::from("text"))).collect()
}
