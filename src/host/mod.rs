//! The single gateway: everything that lists, describes or calls a tool goes through [`ToolHost`].
//!
//! Owns: the public face of the host and the life of one call (`dispatch`). What it works with is in
//! three parts: which tools there are and who owns them (`directory`, with the search of a name in
//! `router`), what every call passes through (`pipeline`), and whose calls they are and who watches
//! (`session_manager`). Never does: know a kind of tool, touch a terminal, read configuration files.

pub mod approval;
pub mod arguments;
pub mod builder;
pub mod coerce;
pub mod command;
pub mod content;
pub mod describe;
pub mod example;
pub mod form;
pub mod handler;
pub mod limits;
pub mod listings;
pub mod load;
pub mod nested;
pub mod offerings;
pub mod pinning;
pub mod policy;
pub mod questions;
pub mod recorder;
pub mod recorder_set;
pub mod request;
pub mod rerun;
pub mod retry;
pub mod servers;
pub mod sessions;
pub mod validate;

mod attempt;
mod balancer;
mod call_record;
mod circuit;
mod closing;
mod directory;
mod dispatch;
mod failover;
mod out_of_service;
mod output_check;
mod pipeline;
mod registration;
mod registry;
mod router;
mod session_manager;
mod variables;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};

use futures_util::future::join_all;

use crate::catalogue::Catalogue;
use crate::model::{
    Browser, Error, JsonObject, LoginReport, ServerState, ServerStatus, ToolDefinition,
};
use crate::provider::LoginSupport;
use builder::ToolHostBuilder;
use directory::ToolDirectory;
use pipeline::CallPipeline;
use policy::Decision;
use request::ListScope;
use router::Search;
use session_manager::SessionManager;

/// The single gateway to all tools: the public face of its three parts.
pub struct ToolHost {
    /// Which tools there are and who owns them.
    directory: ToolDirectory,
    /// What every call passes through.
    pipeline: CallPipeline,
    /// Whose calls they are, and who watches.
    sessions: SessionManager,
    /// This host, for the calls that tools make.
    weak_self: Weak<Self>,
}

impl ToolHost {
    /// Starts putting a host together.
    pub fn builder() -> ToolHostBuilder {
        ToolHostBuilder::default()
    }

    /// The session that calls belong to unless they name another.
    pub fn session(&self) -> &str {
        &self.sessions.base.session_id
    }

    /// One list of everything; contacts what `scope` says, all at once. One bad server costs only
    /// itself: its declared tools stay, marked unavailable. The host's profile is applied.
    pub async fn catalogue(&self, scope: &ListScope) -> Catalogue {
        let mut catalogue = self.directory.catalogue(scope).await;
        for server in &mut catalogue.servers {
            server.error = server.error.take().map(|error| self.pipeline.masker.error(error));
        }
        for failure in &mut catalogue.failures {
            failure.error = self.pipeline.masker.error(failure.error.clone());
        }
        for tool in &mut catalogue.tools {
            if tool.unavailable_reason.is_some() {
                let tool = Arc::make_mut(tool);
                tool.unavailable_reason =
                    tool.unavailable_reason.take().map(|error| self.pipeline.masker.error(error));
            }
        }
        catalogue
            .diagnostics
            .iter_mut()
            .for_each(|problem| self.pipeline.masker.diagnostic(problem));
        catalogue
    }

    /// The same definitions without known values, to be shown or kept. They are no longer what a pin
    /// or a fingerprint is made of.
    pub fn masked_definitions(&self, tools: &[Arc<ToolDefinition>]) -> Vec<Arc<ToolDefinition>> {
        let mut tools = tools.to_vec();
        for tool in &mut tools {
            self.pipeline.masker.definition(tool);
        }
        tools
    }

    /// Finds the one tool a person means, contacting no more servers than needed. One that a file
    /// declares is described from there when its server does not answer or its entry is out of
    /// service, as unavailable.
    ///
    /// # Errors
    /// Unknown and ambiguous names (with suggestions), and what finding out ran into.
    pub async fn find(&self, name: &str, servers: &[String]) -> Result<ToolDefinition, Error> {
        let search = Search { servers, ..Search::of(name, limits::LISTING_TIMEOUT) };
        let route = match self.directory.route(&search).await {
            Ok(route) => route,
            Err(error) => {
                let error = self.pipeline.masker.error(error);
                return self.directory.declared_fallback(name, &error).ok_or(error);
            }
        };
        let mut tool = ToolDefinition::clone(&route.tool.definition);
        tool.unavailable_reason =
            tool.unavailable_reason.take().map(|error| self.pipeline.masker.error(error));
        tool.warnings.extend(self.nested_call_warnings(&route.tool.definition));
        Ok(tool)
    }

    /// What is known beforehand about the tools that a tool calls: which are asked about or
    /// refused, and which nobody declares. Contacts nobody.
    fn nested_call_warnings(&self, tool: &ToolDefinition) -> Vec<String> {
        let warning = |name: &String| match self.directory.known_tool(name) {
            Some(called) => match self.pipeline.decision(&called.definition) {
                Decision::Allow(_) => None,
                Decision::Ask(why) => Some(format!("calls '{name}', which asks first: {why}")),
                Decision::Deny(why) => Some(format!("calls '{name}', which is refused by {why}")),
            },
            None if self.directory.may_be_remote(name) => None,
            None => Some(format!("calls '{name}', which is no known tool")),
        };
        tool.calls.iter().filter_map(warning).collect()
    }

    /// Whether a call of this tool may run, would be asked about, or is refused.
    pub fn decision(&self, tool: &ToolDefinition) -> policy::Decision {
        self.pipeline.decision(tool)
    }

    /// Arguments as they are recorded: what is secret, by its value, its name or the schema, is
    /// replaced.
    pub fn mask_arguments(&self, arguments: &JsonObject, schema: &serde_json::Value) -> JsonObject {
        self.pipeline.masked_arguments(arguments, schema)
    }

    /// The servers, as far as known without asking.
    pub fn servers(&self) -> Vec<ServerStatus> {
        let servers =
            self.directory.providers.iter().filter_map(|provider| provider.inner.as_server());
        servers.map(|server| self.with_host_state(server.status())).collect()
    }

    /// A server's status with what the host knows of it.
    fn with_host_state(&self, mut status: ServerStatus) -> ServerStatus {
        status.weight = self.directory.weights.get(&status.name).copied();
        status.circuit = self.directory.circuits.state(&status.name);
        self.pipeline.masker.status(status)
    }

    /// Logs in to a server, whatever login there was. `scopes` is asked for beside what its entry
    /// says.
    ///
    /// # Errors
    /// An unknown server, one that takes no login, and a login that the person or the server refused.
    pub async fn login(
        &self,
        server: &str,
        browser: &dyn Browser,
        scopes: &[String],
    ) -> Result<LoginReport, Error> {
        let login = self.login_at(server)?.login(browser, scopes).await;
        login.map_err(|error| self.pipeline.masker.error(error))
    }

    /// Forgets the logins at a server; says how many there were.
    ///
    /// # Errors
    /// An unknown server, and what is kept but cannot be changed.
    pub async fn logout(&self, server: &str) -> Result<usize, Error> {
        self.login_at(server)?.logout().await
    }

    fn login_at(&self, server: &str) -> Result<&dyn LoginSupport, Error> {
        let provider = self.directory.server(server);
        let login = provider.and_then(|provider| provider.inner.as_login());
        login.ok_or_else(|| {
            Error::usage(format!("'{server}' is no server that somebody can log in to"))
        })
    }

    /// Asks the named servers (all when empty) for a sign of life, all at once.
    pub async fn check_servers(&self, names: &[String]) -> Vec<ServerStatus> {
        let wanted = self.directory.providers.iter().filter(|provider| {
            names.is_empty() || provider.server.as_ref().is_some_and(|name| names.contains(name))
        });
        let wanted: Vec<_> = wanted.map(std::convert::AsRef::as_ref).collect();
        self.directory.mark_start(wanted.iter().copied());
        let checks = wanted.into_iter().filter_map(|provider| provider.inner.as_server()).map(
            |server| async {
                match tokio::time::timeout(limits::LISTING_TIMEOUT, server.check()).await {
                    Ok(status) => status,
                    Err(_elapsed) => {
                        let mut status = server.status();
                        let error =
                            Error::timeout("did not answer the ping").with_server(&status.name);
                        status.state = ServerState::Failed(error);
                        status
                    }
                }
            },
        );
        let all = join_all(checks).await;
        for status in &all {
            // A sign of life is as good as an answered call.
            match &status.state {
                ServerState::Ready => {
                    self.directory.circuits.record_outcome(&status.name, Ok(()));
                }
                ServerState::Failed(error) => {
                    self.directory.circuits.record_outcome(&status.name, Err(error));
                }
                _ => {}
            }
        }
        all.into_iter().map(|status| self.with_host_state(status)).collect()
    }
}
