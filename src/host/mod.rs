//! The gateway to all tools: listing, describing and calling go through [`ToolHost`].
//!
//! Owns: the public face of the host and the life of one call (`dispatch`). What it works with is in
//! three parts: which tools there are and who owns them (`directory`, with the search of a name in
//! `router`), what every call passes through (in `builder`), and whose calls they are and who watches
//! (`sessions`). Never does: know a kind of tool, touch a terminal, read configuration files.

pub mod arguments;
pub mod attempt;
pub mod breakpoints;
pub mod builder;
mod call_record;
pub mod command;
pub mod content;
pub mod describe;
pub mod directory;
mod dispatch;
pub mod example;
mod failover;
pub mod form;
pub mod function_tool;
pub mod link;
pub mod listings;
pub mod load;
pub mod nested;
mod not_found;
pub mod offerings;
mod permits;
mod pinning;
pub mod policy;
mod profiles;
pub mod questions;
pub mod recorder;
mod registration;
mod registry;
pub mod request;
pub mod rerun;
pub mod retry;
mod router;
pub mod servers;
pub mod sessions;
pub mod validate;
mod variables;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};

use crate::catalogue::Catalogue;
use crate::model::{Browser, Error, LoginReport, ServerStatus, ToolDefinition};
use crate::provider::LoginSupport;
use crate::util::lock::Current;
use builder::{CallPipeline, ToolHostBuilder};
use directory::ToolDirectory;
use futures_util::future::join_all;
use link::{HostLink, HostQuery};
use offerings::OpenSubscriptions;
use policy::Decision;
use profiles::{ProfileView, Profiles};
use registry::ProviderLease;
use request::{ListRequest, ListScope, LookupScope};
use router::Search;
use sessions::SessionManager;

pub use profiles::{ClientScope, ScopeProfile, hidden_by_profile, unknown_profile};
pub use registration::{HostContents, RegistrationError, Removal};

/// The single gateway to all tools: the public face of its three parts.
pub struct ToolHost {
    directory: Arc<ToolDirectory>,
    /// The profiles that limit what requests may see.
    profiles: Profiles,
    /// What every call passes through.
    pipeline: Arc<CallPipeline>,
    /// Whose calls they are, and who is watching.
    sessions: Arc<SessionManager>,
    /// The client that makes all these calls, if it is one of several.
    client: Option<String>,
    /// The host in another process that handles requests instead of this one, if any.
    link: Current<Option<Arc<dyn HostLink>>>,
    /// The resources whose changes it was asked to follow.
    subscriptions: OpenSubscriptions,
    weak_self: Weak<Self>,
}

impl ToolHost {
    /// Starts building a host with defaults.
    pub fn builder() -> ToolHostBuilder {
        ToolHostBuilder::default()
    }

    /// The same host, restricted to one client: tools, prompts and resources outside its scope do
    /// not exist for it, and the records of its calls name it.
    pub fn for_client(&self, scope: ClientScope) -> Arc<Self> {
        Arc::new_cyclic(|weak_self| Self {
            directory: Arc::clone(&self.directory),
            profiles: self.profiles.within(scope.views),
            pipeline: Arc::clone(&self.pipeline),
            sessions: Arc::clone(&self.sessions),
            client: Some(scope.client),
            link: Current::default(),
            subscriptions: OpenSubscriptions::default(),
            weak_self: Weak::clone(weak_self),
        })
    }

    /// The session that calls belong to unless they name another.
    pub fn session(&self) -> &str {
        &self.sessions.base.session_id
    }

    /// Lists everything, contacting the servers in `scope` concurrently. A failing server does not
    /// affect the others: its declared tools stay, marked unavailable. The profile of requests that
    /// name none is applied.
    pub async fn catalogue(&self, scope: &ListScope) -> Catalogue {
        // Looking again costs nothing but time, and there is no other way to tell.
        if let Ok(Some(catalogue)) = self.ask_link(HostQuery::Catalogue(scope.clone())).await {
            return catalogue;
        }
        self.catalogue_in(scope, &self.profiles.default_view()).await
    }

    /// The list as one agent sees it: what the profile of the request shows. Servers that the
    /// profile hides entirely are not contacted. A failing server does not affect the others.
    ///
    /// # Errors
    /// A usage error for an unknown profile.
    pub async fn list(&self, request: &ListRequest) -> Result<Catalogue, Error> {
        let view = self.view(request.profile.as_deref())?;
        Ok(self.catalogue_in(&request.scope, &view).await)
    }

    /// Checks that requests may name this profile.
    ///
    /// # Errors
    /// A usage error for an unknown profile.
    #[doc(hidden)] // for the program's own commands
    pub fn require_profile(&self, name: &str) -> Result<(), Error> {
        self.view(Some(name)).map(drop)
    }

    /// What a request with this profile, or with none, sees.
    fn view(&self, profile: Option<&str>) -> Result<ProfileView, Error> {
        self.profiles.view(profile)
    }

    async fn catalogue_in(&self, scope: &ListScope, view: &ProfileView) -> Catalogue {
        let mut catalogue = self.directory.catalogue(scope, view).await;
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

    /// The same definitions without known secret values, to be shown or stored. Pins and
    /// fingerprints cannot be made from them.
    #[doc(hidden)] // for the program's own commands
    pub fn masked_definitions(&self, tools: &[Arc<ToolDefinition>]) -> Vec<Arc<ToolDefinition>> {
        let mut tools = tools.to_vec();
        for tool in &mut tools {
            self.pipeline.masker.definition(tool);
        }
        tools
    }

    /// Finds the one tool a person means, contacting no more servers than needed. A tool declared
    /// in a file is described from there, as unavailable, if its server does not respond or its
    /// entry is out of service.
    ///
    /// # Errors
    /// Unknown and ambiguous names (with suggestions), tools that the profile hides, and failures
    /// during the search.
    pub async fn find(&self, name: &str, scope: &LookupScope) -> Result<ToolDefinition, Error> {
        let query = HostQuery::Find { name: name.to_owned(), scope: scope.clone() };
        if let Ok(Some(answer)) = self.ask_link(query).await {
            return answer;
        }
        let view = self.view(scope.profile.as_deref())?;
        let servers = scope.servers.as_slice();
        let search = Search { servers, ..Search::of(name, &view, attempt::LISTING_TIMEOUT) };
        let route = match self.directory.route(&search).await {
            Ok(route) => route,
            Err(error) => {
                let error = self.pipeline.masker.error(error);
                let declared = self.directory.declared_fallback(name, &error);
                return declared.filter(|tool| view.shows(tool)).ok_or(error);
            }
        };
        let mut tool = ToolDefinition::clone(&route.tool.definition);
        tool.unavailable_reason =
            tool.unavailable_reason.take().map(|error| self.pipeline.masker.error(error));
        tool.warnings.extend(self.nested_call_warnings(&route.tool.definition));
        Ok(tool)
    }

    /// What is known in advance about the tools that a tool calls: which need approval or are
    /// refused, and which no entry declares. Contacts no server.
    fn nested_call_warnings(&self, tool: &ToolDefinition) -> Vec<String> {
        let warning = |name: &String| match self.directory.known_tool(name) {
            Some(called) => match self.pipeline.decision(&called.definition) {
                Decision::Allow(_) => None,
                Decision::Ask(why) => Some(format!("calls '{name}', which needs approval: {why}")),
                Decision::Deny(why) => Some(format!("calls '{name}', which is refused by {why}")),
            },
            None if self.directory.may_be_remote(name) => None,
            None => Some(format!("calls '{name}', which is not a known tool")),
        };
        tool.calls.iter().filter_map(warning).collect()
    }

    /// Whether a call to this tool may run, needs approval, or is refused.
    #[doc(hidden)] // for the program's own commands
    pub fn decision(&self, tool: &ToolDefinition) -> policy::Decision {
        self.pipeline.decision(tool)
    }

    /// The servers of which something may be shown, as known to the host that makes the calls,
    /// without contacting them.
    pub async fn server_statuses(&self) -> Vec<ServerStatus> {
        let linked = self.ask_link(HostQuery::Servers).await;
        linked.ok().flatten().unwrap_or_else(|| self.servers())
    }

    /// Like [`ToolHost::server_statuses`], but only for this process.
    pub fn servers(&self) -> Vec<ServerStatus> {
        let view = self.profiles.default_view();
        let providers = self.directory.providers();
        let shown = providers.iter().filter(|provider| view.may_show(provider));
        let servers = shown.filter_map(|provider| provider.inner.as_server());
        servers.map(|server| self.with_host_state(server.status())).collect()
    }

    /// A server's status, including what the host knows about it.
    fn with_host_state(&self, mut status: ServerStatus) -> ServerStatus {
        let providers = self.directory.providers();
        status.weight = providers.server(&status.name).and_then(|server| server.weight);
        self.pipeline.masker.status(status)
    }

    /// Logs in to a server, replacing any existing login. `scopes` are requested in addition to
    /// those of its entry.
    ///
    /// # Errors
    /// An unknown server, one that does not support login, and a login that the person or the
    /// server refused.
    pub async fn login(
        &self,
        server: &str,
        browser: &dyn Browser,
        scopes: &[String],
    ) -> Result<LoginReport, Error> {
        let provider = self.server_with_login(server)?;
        let login = login_support(&provider, server)?.login(browser, scopes);
        provider.while_registered(login).await.map_err(|error| self.pipeline.masker.error(error))
    }

    /// Forgets the logins at a server; returns how many there were.
    ///
    /// # Errors
    /// An unknown server, and stored logins that cannot be changed.
    pub async fn logout(&self, server: &str) -> Result<usize, Error> {
        let provider = self.server_with_login(server)?;
        login_support(&provider, server)?.logout().await
    }

    fn server_with_login(&self, server: &str) -> Result<ProviderLease, Error> {
        self.directory.server(server).ok_or_else(|| no_login(server))
    }

    /// Pings the named servers (if empty, all of which something may be shown), concurrently.
    pub async fn check_servers(&self, names: &[String]) -> Vec<ServerStatus> {
        if let Ok(Some(checked)) = self.ask_link(HostQuery::CheckServers(names.to_vec())).await {
            return checked;
        }
        let view = self.profiles.default_view();
        let providers = self.directory.providers();
        let chosen = providers.iter().filter(|provider| match &provider.server {
            Some(name) if !names.is_empty() => names.contains(name),
            Some(_) => view.may_show(provider),
            None => false,
        });
        let leases: Vec<ProviderLease> = chosen.filter_map(ProviderLease::of).collect();
        self.directory.mark_start(leases.iter().map(|lease| &**lease));
        let late = "did not respond to the ping";
        let checks = leases.iter().map(|lease| self.status_after(lease, |s| s.check(), late));
        join_all(checks).await.into_iter().flatten().collect()
    }
}

fn login_support<'a>(
    provider: &'a ProviderLease,
    server: &str,
) -> Result<&'a dyn LoginSupport, Error> {
    provider.inner.as_login().ok_or_else(|| no_login(server))
}

fn no_login(server: &str) -> Error {
    Error::usage(format!("'{server}' is not a server that supports login"))
}
