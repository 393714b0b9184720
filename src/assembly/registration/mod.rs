//! Components and MCP servers that a program registers while its host runs.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{FrontEnd, kinds, masked_builder, mcp_setup, secrets};
use crate::audit::Masker;
use crate::config;
use crate::config::discover::LoadRequest;
use crate::config::environment::Environment;
use crate::config::spec::{Configuration, CredentialSection, FileRole, KindDescriptor};
use crate::host::builder::ToolHostBuilder;
use crate::model::{Diagnostic, Error, EventSink, HostEvent};
use crate::provider::{
    ComponentConfig, ComponentFactory, ProviderDeps, ProviderKind, ToolProvider,
};
use crate::providers::mcp::{self, McpSetup};
use crate::providers::storage;

/// Builds a host for a program that reads no files: every kind of internal tools is registered as a
/// type of components, and MCP servers can be registered. Reads, starts and contacts nothing.
///
/// `environment` is where references such as `${TOKEN}` in settings are looked up, and where logins
/// and state are stored; [`FixedEnvironment`](crate::config::environment::FixedEnvironment) gives a
/// host nothing of this process.
pub fn host_builder(environment: &Arc<dyn Environment>, front_end: FrontEnd) -> ToolHostBuilder {
    let masker = Masker::default();
    let (builder, front_end) = masked_builder(front_end, environment.as_ref(), &masker);
    let deps = ProviderDeps {
        state_dir: environment.state_dir(),
        events: front_end.events.clone(),
        ..ProviderDeps::bare(Arc::clone(environment))
    };
    let setup = mcp_setup(&super::AssemblyOptions::default(), environment, &front_end, &masker);
    with_factories(builder, &deps, setup, &masker, Vec::new())
}

/// Allows components of every kind and MCP servers to be registered on the
/// host. They may name the handles of `credentials`.
pub(super) fn with_factories(
    builder: ToolHostBuilder,
    deps: &ProviderDeps,
    setup: McpSetup,
    masker: &Masker,
    credentials: Vec<CredentialSection>,
) -> ToolHostBuilder {
    let environment = Arc::clone(&deps.environment);
    let compiler =
        Compiler { environment, masker: masker.clone(), credentials: credentials.into() };
    let server = ServerFactory { setup, compiler: compiler.clone() };
    let builder = builder.client_factory(Arc::new(server));
    kinds().into_iter().fold(builder, |builder, kind| {
        let (deps, compiler) = (deps.clone(), compiler.clone());
        builder.kind(kind.words.key, Arc::new(KindFactory { kind, deps, compiler }))
    })
}

struct KindFactory {
    kind: ProviderKind,
    deps: ProviderDeps,
    compiler: Compiler,
}

impl ComponentFactory for KindFactory {
    fn build(&self, component: &ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error> {
        let mut entry = component.settings.clone();
        entry.insert("name".to_owned(), Value::from(component.name.as_str()));
        entry.insert("kind".to_owned(), Value::from(self.kind.words.key));
        let text = json!({ "components": [entry] }).to_string();
        let kinds = [self.kind.words];
        let events = &self.deps.events;
        let entry = self.compiler.load(component, FileRole::Tools, text, &kinds, events)?;
        let Some(spec) = entry.tools.first() else {
            return Err(Error::config(format!("the component '{}' is disabled", component.name)));
        };
        if storage::server_alias(spec).is_some() {
            return Err(Error::config(format!(
                "'{}' takes its tools from an MCP server",
                component.name
            ))
            .with_hint("register that server under this name: register_client"));
        }
        let deps = ProviderDeps { expanded: entry.expanded.clone(), ..self.deps.clone() };
        let built = (self.kind.build)(&[spec], &deps);
        report(component, &built.diagnostics, events, &self.compiler.masker)?;
        let provider = built.providers.into_iter().next();
        provider.ok_or_else(|| Error::internal(format!("'{}' has no tools", component.name)))
    }
}

struct ServerFactory {
    setup: McpSetup,
    compiler: Compiler,
}

impl ComponentFactory for ServerFactory {
    fn build(&self, server: &ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error> {
        let text = json!({ "mcp_servers": { &server.name: &server.settings } }).to_string();
        let events = &self.setup.events;
        let mut entry = self.compiler.load(server, FileRole::Servers, text, &[], events)?;
        let Some(spec) = entry.servers.pop() else {
            return Err(Error::config(format!("the MCP server '{}' is disabled", server.name)));
        };
        let setup = McpSetup { expanded: entry.expanded.clone(), ..self.setup.clone() };
        Ok(mcp::provider(spec, setup))
    }
}

/// Reads what a program registers in the same way as a user's files.
#[derive(Clone)]
struct Compiler {
    environment: Arc<dyn Environment>,
    masker: Masker,
    /// The handles of the files that the host was built from.
    credentials: Arc<[CredentialSection]>,
}

impl Compiler {
    /// The settings of one component, or one server, as the only entry of `text`.
    fn load(
        &self,
        component: &ComponentConfig,
        role: FileRole,
        text: String,
        kinds: &[KindDescriptor],
        events: &EventSink,
    ) -> Result<Configuration, Error> {
        let inline = vec![(PathBuf::from(format!("settings of {}", component.name)), text)];
        let request = match role {
            FileRole::Tools => LoadRequest { inline_tools: inline, ..LoadRequest::default() },
            FileRole::Servers => LoadRequest { inline_servers: inline, ..LoadRequest::default() },
        };
        let environment = &*self.environment;
        let configuration =
            config::load::load_beside(&request, &self.credentials, kinds, environment);
        secrets::teach(&self.masker, &configuration, environment);
        report(component, &configuration.diagnostics, events, &self.masker)?;
        Ok(configuration)
    }
}

/// Returns what is wrong with the settings as one error. Warnings are emitted as events.
fn report(
    component: &ComponentConfig,
    diagnostics: &[Diagnostic],
    events: &EventSink,
    masker: &Masker,
) -> Result<(), Error> {
    let name = &component.name;
    for doubt in diagnostics.iter().filter(|diagnostic| !diagnostic.is_error()) {
        events
            .emit(HostEvent::Warning { text: format!("settings of '{name}': {}", doubt.message) });
    }
    let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    let Some(first) = errors.next() else { return Ok(()) };
    let error = Error::config(format!("the settings of '{name}' are invalid: {}", first.message))
        .with_details(errors.map(|error| error.message.clone()));
    let error = match &first.hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    };
    Err(masker.error(error))
}

#[cfg(test)]
mod tests;
