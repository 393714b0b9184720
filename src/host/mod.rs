//! The single gateway: everything that lists, describes or calls a tool goes through [`ToolHost`].
//!
//! Owns: routing a name to its provider, the life of one call (`dispatch`), policy, approval,
//! validation, retries, deadlines and limits; the tools and sessions that a program registers. Never
//! does: know a kind of tool, touch a terminal,
//! read configuration files.

pub mod approval;
pub mod arguments;
pub mod builder;
pub mod coerce;
pub mod command;
pub mod content;
pub mod example;
pub mod form;
pub mod limits;
pub mod listings;
pub mod nested;
pub mod offers;
pub mod pinning;
pub mod policy;
pub mod questions;
pub mod recorder;
pub mod records;
pub mod registry;
pub mod repeat;
pub mod replay;
pub mod request;
pub mod retry;
pub mod servers;
pub mod sessions;
pub mod validate;
pub mod wording;

mod attempt;
mod balance;
mod circuit;
mod dispatch;
mod failover;
mod ledger;
mod output;
mod registration;
mod router;
mod variables;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use futures_util::future::join_all;

use crate::audit::Masker;
use crate::catalogue::build::{self, Contribution};
use crate::catalogue::pins::Pins;
use crate::catalogue::{Catalogue, ServerListing, filter, naming};
use crate::config::spec::{DisabledEntry, PolicyRule, ProfileSpec};
use crate::model::{
    Browser, EventSink, Fault, FaultKind, JsonObject, LoginReport, ServerState, ServerStatus,
    ToolDefinition, ToolResult,
};
use crate::provider::Login;
use crate::util::clock::Clock;
use crate::util::ids::Ids;
use approval::Approver;
use balance::Balance;
use builder::ToolHostBuilder;
use circuit::Circuits;
use limits::Permits;
use listings::Member;
use policy::Decision;
use questions::Questions;
use recorder::Recorder;
use registry::Registry;
use request::Reach;
use router::Search;
use sessions::Sessions;

/// The single gateway to all tools.
pub struct ToolHost {
    members: Vec<Arc<Member>>,
    pins: Arc<Pins>,
    policy: Vec<PolicyRule>,
    approver: Arc<dyn Approver>,
    recorder: Arc<dyn Recorder>,
    masker: Masker,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    events: EventSink,
    profile: Option<ProfileSpec>,
    require_record: bool,
    cwd: PathBuf,
    environment: BTreeMap<String, String>,
    metadata: JsonObject,
    session: String,
    routing_weights: HashMap<String, f64>,
    balance: Balance,
    circuits: Circuits,
    disabled: Vec<DisabledEntry>,
    permits: Permits,
    questions: Arc<Questions>,
    registry: Arc<Registry>,
    /// The registry's place among the members.
    registered: Arc<Member>,
    sessions: Arc<Sessions>,
    version: AtomicU64,
    /// This host, for the calls that tools make.
    me: Weak<Self>,
}

impl ToolHost {
    /// Starts putting a host together.
    pub fn builder() -> ToolHostBuilder {
        ToolHostBuilder::default()
    }

    /// The session that calls belong to unless they name another.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// One list of everything; contacts what `reach` says, all at once. One bad server costs only
    /// itself: its declared tools stay, marked unavailable. The host's profile is applied.
    pub async fn catalogue(&self, reach: &Reach) -> Catalogue {
        let asked = |member: &Member| match (reach, &member.server) {
            (Reach::Declared, _) => !member.is_remote(),
            (Reach::Everything, _) | (Reach::Servers(_), None) => true,
            (Reach::Servers(names), Some(server)) => names.contains(server),
        };
        let parts = join_all(self.members.iter().map(|member| async {
            if asked(member) {
                Some(member.contribute().await)
            } else if *reach == Reach::Declared {
                Some(member.contribute_declared())
            } else {
                None
            }
        }))
        .await;
        let mut local = Vec::new();
        let mut servers: Vec<Contribution> = Vec::new();
        for (member, part) in self.members.iter().zip(parts) {
            match part {
                Some(part) if member.server.is_some() => servers.push(part),
                Some(part) => local.push(part),
                None => {}
            }
        }
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        let mut catalogue = build::build(version, local, servers);
        for server in &mut catalogue.servers {
            server.fault = server.fault.take().map(|fault| self.masker.fault(fault));
        }
        for failure in &mut catalogue.failures {
            failure.fault = self.masker.fault(failure.fault.clone());
        }
        for tool in &mut catalogue.tools {
            if tool.unavailable.is_some() {
                let tool = Arc::make_mut(tool);
                tool.unavailable = tool.unavailable.take().map(|fault| self.masker.fault(fault));
            }
        }
        catalogue.problems.iter_mut().for_each(|problem| self.masker.problem(problem));
        if let Some(profile) = &self.profile {
            catalogue.tools.retain(|tool| filter::shows(profile, tool));
        }
        if let Reach::Servers(names) = reach {
            catalogue.servers.extend(names.iter().filter(|n| !self.has_server(n)).map(|name| {
                let fault = Fault::usage(format!("unknown server '{name}'"));
                ServerListing { name: name.clone(), fault: Some(fault), partial: false }
            }));
        }
        catalogue
    }

    /// The same definitions without known values, to be shown or kept. They are no longer what a pin
    /// or a fingerprint is made of.
    pub fn shown(&self, tools: &[Arc<ToolDefinition>]) -> Vec<Arc<ToolDefinition>> {
        let mut tools = tools.to_vec();
        for tool in &mut tools {
            self.masker.definition(tool);
        }
        tools
    }

    /// Finds the one tool a person means, contacting no more servers than needed. One that a file
    /// declares is described from there when its server does not answer, as unavailable.
    ///
    /// # Errors
    /// Unknown and ambiguous names (with suggestions), and what finding out ran into.
    pub async fn find(&self, name: &str, servers: &[String]) -> Result<ToolDefinition, Fault> {
        let search = Search { servers, ..Search::of(name, limits::LISTING) };
        let route = match self.route(&search).await {
            Ok(route) => route,
            Err(fault) => {
                let fault = self.masker.fault(fault);
                return self.declared_by_unreachable(name, &fault).ok_or(fault);
            }
        };
        let mut tool = ToolDefinition::clone(&route.tool.definition);
        tool.unavailable = tool.unavailable.take().map(|fault| self.masker.fault(fault));
        tool.warnings.extend(self.forewarnings(&route.tool.definition));
        Ok(tool)
    }

    /// What a file declares of a tool whose server did not answer: enough to read about, with the
    /// reason why it cannot be called.
    fn declared_by_unreachable(&self, name: &str, fault: &Fault) -> Option<ToolDefinition> {
        let unanswered = matches!(
            fault.kind(),
            FaultKind::Unreachable | FaultKind::Timeout | FaultKind::Auth | FaultKind::Protocol
        );
        let server = fault.server_name().filter(|_| unanswered)?;
        let member = self.members.iter().find(|m| m.server.as_deref() == Some(server))?;
        let mut tool = ToolDefinition::clone(&member.declared().exact(name)?.definition);
        tool.withdraw(fault.clone());
        Some(tool)
    }

    /// What is known beforehand about the tools that a tool calls: which are asked about or
    /// refused, and which nobody declares. Contacts nobody.
    fn forewarnings(&self, tool: &ToolDefinition) -> Vec<String> {
        let remote = || self.members.iter().filter(|member| member.is_remote());
        let known = |name: &str| {
            let lists = self.members.iter().flat_map(|m| [Some(m.declared()), m.remembered()]);
            lists.flatten().find_map(|list| list.exact(name).map(Arc::clone))
        };
        let may_be_remote = |name: &str| {
            let all: Vec<&str> = remote().filter_map(|m| m.provider.component()).collect();
            let owned = !naming::components(name, all.iter().copied()).is_empty();
            owned || (!all.is_empty() && !name.contains(['-', '.', '/', ':']))
        };
        let warning = |name: &String| match known(name) {
            Some(called) => match policy::decide(&self.policy, &called.definition) {
                Decision::Allow(_) => None,
                Decision::Ask(why) => Some(format!("calls '{name}', which asks first: {why}")),
                Decision::Deny(why) => Some(format!("calls '{name}', which is refused by {why}")),
            },
            None if may_be_remote(name) => None,
            None => Some(format!("calls '{name}', which is no known tool")),
        };
        tool.calls.iter().filter_map(warning).collect()
    }

    /// Whether a call of this tool may run, would be asked about, or is refused.
    pub fn decision(&self, tool: &ToolDefinition) -> policy::Decision {
        policy::decide(&self.policy, tool)
    }

    /// Arguments as they are recorded: what is secret, by its value, its name or the schema, is
    /// replaced.
    pub fn masked(&self, arguments: &JsonObject, schema: &serde_json::Value) -> JsonObject {
        self.masker.arguments(arguments, schema)
    }

    /// The servers, as far as known without asking.
    pub fn servers(&self) -> Vec<ServerStatus> {
        let servers = self.members.iter().filter_map(|member| member.provider.as_server());
        servers.map(|server| self.completed(server.status())).collect()
    }

    /// A server's status with what the host knows of it.
    fn completed(&self, mut status: ServerStatus) -> ServerStatus {
        status.weight = self.routing_weights.get(&status.name).copied();
        status.circuit = self.circuits.state(&status.name);
        self.masker.status(status)
    }

    /// Logs in to a server, whatever login there was. `scopes` is asked for beside what its entry
    /// says.
    ///
    /// # Errors
    /// An unknown server, one that nobody can log in to, and whoever said no.
    pub async fn login(
        &self,
        server: &str,
        browser: &dyn Browser,
        scopes: &[String],
    ) -> Result<LoginReport, Fault> {
        let login = self.login_at(server)?.login(browser, scopes).await;
        login.map_err(|fault| self.masker.fault(fault))
    }

    /// Forgets the logins at a server; says how many there were.
    ///
    /// # Errors
    /// An unknown server, and what is kept but cannot be changed.
    pub async fn logout(&self, server: &str) -> Result<usize, Fault> {
        self.login_at(server)?.logout().await
    }

    fn login_at(&self, server: &str) -> Result<&dyn Login, Fault> {
        let member = self.members.iter().find(|m| m.server.as_deref() == Some(server));
        let login = member.and_then(|member| member.provider.as_login());
        login.ok_or_else(|| {
            Fault::usage(format!("'{server}' is no server that somebody can log in to"))
        })
    }

    /// Asks the named servers (all when empty) for a sign of life, all at once.
    pub async fn check_servers(&self, names: &[String]) -> Vec<ServerStatus> {
        let wanted = self.members.iter().filter(|member| {
            names.is_empty() || member.server.as_ref().is_some_and(|name| names.contains(name))
        });
        let checks = wanted.filter_map(|member| member.provider.as_server()).map(|server| async {
            match tokio::time::timeout(limits::LISTING, server.check()).await {
                Ok(status) => status,
                Err(_elapsed) => {
                    let mut status = server.status();
                    let fault = Fault::timeout("gives no sign of life").server(&status.name);
                    status.state = ServerState::Failed(fault);
                    status
                }
            }
        });
        let all = join_all(checks).await;
        for status in &all {
            // A sign of life is as good as an answered call.
            match &status.state {
                ServerState::Ready => self.circuits.note(&status.name, Ok(&ToolResult::default())),
                ServerState::Failed(fault) => self.circuits.note(&status.name, Err(fault)),
                _ => {}
            }
        }
        all.into_iter().map(|status| self.completed(status)).collect()
    }

    /// Ends everything that was started, all providers at once. Idempotent.
    pub async fn close(&self) {
        // Each provider bounds its farewell; the bound here is for one that does not.
        let all = join_all(self.members.iter().map(|member| member.provider.close()));
        let _elapsed = tokio::time::timeout(limits::GRACE * 2, all).await;
        self.sessions.clear();
    }

    fn has_server(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.server.as_deref() == Some(name))
    }
}
