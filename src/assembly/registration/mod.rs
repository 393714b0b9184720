//! Components and MCP servers that a program registers while its host runs.
//!
//! Owns: from the settings of one component to its provider, through the same compiler that reads
//! files, so that keys, defaults and messages are those of a file. What a program writes is its own
//! code and needs no consent. Never does: read a file of entries, or keep a provider.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{FrontEnd, kinds, mcp_setup, secrets};
use crate::audit::Masker;
use crate::config;
use crate::config::discover::LoadRequest;
use crate::config::environment::Environment;
use crate::config::spec::{Configuration, FileRole, KindDescriptor};
use crate::host::ToolHost;
use crate::host::builder::ToolHostBuilder;
use crate::host::questions::QuestionQueue;
use crate::model::{Diagnostic, Error, EventSink, HostEvent};
use crate::provider::{
    ComponentConfig, ComponentFactory, ProviderDeps, ProviderKind, ToolProvider,
};
use crate::providers::mcp::{McpProvider, McpSetup};
use crate::providers::storage::server_alias;

/// Starts a host for a program that reads no files: every kind of internal tools is registered as a
/// type of components, and MCP servers can be registered. Reads, starts and contacts nothing.
///
/// `environment` is where references such as `${TOKEN}` in settings are looked up, and where logins
/// and state are kept; [`FixedEnvironment`](crate::config::environment::FixedEnvironment) gives a
/// host nothing of this process.
pub fn host_builder(environment: &Arc<dyn Environment>, front_end: FrontEnd) -> ToolHostBuilder {
    let masker = Masker::default();
    let questions = Arc::new(QuestionQueue::new(front_end.inbox, masker.clone()));
    let front_end = FrontEnd {
        inbox: Arc::clone(&questions) as _,
        events: masker.events(front_end.events),
        traffic: masker.traffic(front_end.traffic),
        ..front_end
    };
    let deps = ProviderDeps {
        state_dir: environment.state_dir(),
        events: front_end.events.clone(),
        ..ProviderDeps::bare(Arc::clone(environment))
    };
    let setup = mcp_setup(&super::AssemblyOptions::default(), environment, &front_end, &masker);
    let builder = ToolHost::builder()
        .approver(front_end.approver)
        .questions(questions)
        .masker(masker.clone())
        .cwd(environment.cwd())
        .events(front_end.events);
    with_factories(builder, &deps, setup, &masker)
}

/// Lets components of every kind, and MCP servers, be registered on the host.
pub(super) fn with_factories(
    builder: ToolHostBuilder,
    deps: &ProviderDeps,
    setup: McpSetup,
    masker: &Masker,
) -> ToolHostBuilder {
    let (deps, masker) = (deps.clone(), masker.clone());
    let server = ServerFactory { setup, masker: masker.clone() };
    kinds().into_iter().fold(builder.client_factory(Arc::new(server)), |builder, kind| {
        let (deps, masker) = (deps.clone(), masker.clone());
        builder.kind(kind.words.key, Arc::new(KindFactory { kind, deps, masker }))
    })
}

/// Makes the provider of a component of one kind.
struct KindFactory {
    kind: ProviderKind,
    deps: ProviderDeps,
    masker: Masker,
}

impl ComponentFactory for KindFactory {
    fn build(&self, component: &ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error> {
        let mut entry = component.settings.clone();
        entry.insert("name".to_owned(), Value::from(component.name.as_str()));
        entry.insert("kind".to_owned(), Value::from(self.kind.words.key));
        let text = json!({ "components": [entry] }).to_string();
        let words = [self.kind.words];
        let compiler = Compiler { environment: &self.deps.environment, masker: &self.masker };
        let entry = compiler.load(component, FileRole::Tools, text, &words, &self.deps.events)?;
        let Some(spec) = entry.tools.first() else {
            return Err(Error::config(format!(
                "the component '{}' is switched off",
                component.name
            )));
        };
        if server_alias(spec).is_some() {
            return Err(Error::config(format!(
                "'{}' stands for the tools of an MCP server",
                component.name
            ))
            .with_hint("register that server under this name: register_client"));
        }
        let deps = ProviderDeps {
            expanded: entry.expanded.clone(),
            scopes: entry.scopes.clone(),
            ..self.deps.clone()
        };
        let built = (self.kind.build)(&[spec], &deps);
        report(component, &built.diagnostics, &self.deps.events, &self.masker)?;
        let provider = built.providers.into_iter().next();
        provider.ok_or_else(|| Error::internal(format!("'{}' has no tools", component.name)))
    }
}

/// Makes the provider of an MCP server.
struct ServerFactory {
    setup: McpSetup,
    masker: Masker,
}

impl ComponentFactory for ServerFactory {
    fn build(&self, server: &ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error> {
        let text = json!({ "mcp_servers": { &server.name: &server.settings } }).to_string();
        let compiler = Compiler { environment: &self.setup.environment, masker: &self.masker };
        let mut entry = compiler.load(server, FileRole::Servers, text, &[], &self.setup.events)?;
        let Some(spec) = entry.servers.pop() else {
            return Err(Error::config(format!("the MCP server '{}' is switched off", server.name)));
        };
        let setup = McpSetup { expanded: entry.expanded.clone(), ..self.setup.clone() };
        Ok(Arc::new(McpProvider::new(spec, setup)))
    }
}

/// Reads the settings of one component as the files of a user are read.
struct Compiler<'a> {
    environment: &'a Arc<dyn Environment>,
    masker: &'a Masker,
}

impl Compiler<'_> {
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
        let configuration = config::load::load(&request, kinds, &**self.environment);
        secrets::teach(self.masker, &configuration, &**self.environment);
        report(component, &configuration.diagnostics, events, self.masker)?;
        Ok(configuration)
    }
}

/// Gives what was wrong with the settings as one error. What is only doubtful is told to viewers.
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
