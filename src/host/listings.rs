//! Cached listings of providers, refreshed when a provider's version changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::attempt;
use super::validate::{SchemaChecker, full};
use crate::catalogue::build::Contribution;
use crate::catalogue::pins::Pins;
use crate::catalogue::{drift, naming};
use crate::model::{
    Diagnostic, Error, ErrorPhase, Origin, ToolDefinition, ToolStatus, WithheldItem,
};
use crate::provider::{ManagedServer, ToolListVersion, ToolProvider};
use crate::util::lock::{Current, lock};
use crate::util::units::show_duration;

#[derive(Debug)]
pub(super) struct ListedTool {
    pub(super) definition: Arc<ToolDefinition>,
    input: OnceCell<SchemaChecker>,
    output: OnceCell<SchemaChecker>,
}

impl ListedTool {
    pub(super) fn new(definition: Arc<ToolDefinition>) -> Self {
        Self { definition, input: OnceCell::new(), output: OnceCell::new() }
    }

    pub(super) async fn input_checker(&self) -> &SchemaChecker {
        self.input
            .get_or_init(|| SchemaChecker::with_formats(self.definition.input_schema.whole()))
            .await
    }

    pub(super) async fn output_checker(&self) -> Option<&SchemaChecker> {
        let schema = self.definition.output_schema.as_ref()?;
        Some(self.output.get_or_init(|| SchemaChecker::compile(schema.whole())).await)
    }
}

#[derive(Debug, Default)]
pub(super) struct ToolListSnapshot {
    pub(super) tools: Vec<Arc<ListedTool>>,
    by_name: HashMap<String, usize>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) partial: bool,
    withheld: Vec<WithheldItem>,
    pub(super) connect: Option<Duration>,
    pub(super) protocol: Option<String>,
    version: ToolListVersion,
}

impl ToolListSnapshot {
    fn new(tools: Vec<Arc<ToolDefinition>>) -> Self {
        let mut by_name = HashMap::with_capacity(tools.len());
        for (at, tool) in tools.iter().enumerate() {
            by_name.entry(tool.name.full()).or_insert(at);
        }
        for (at, tool) in tools.iter().enumerate() {
            for alias in &tool.aliases {
                by_name.entry(alias.full()).or_insert(at);
            }
        }
        let tools = tools.into_iter().map(|tool| Arc::new(ListedTool::new(tool))).collect();
        Self { tools, by_name, ..Self::default() }
    }

    pub(super) fn find(&self, full: &str) -> Option<&Arc<ListedTool>> {
        self.by_name.get(full).and_then(|at| self.tools.get(*at))
    }

    pub(super) fn refusal(&self, component: Option<&str>, name: &str) -> Option<Error> {
        let own = component.and_then(|component| naming::after_component(name, component));
        let withheld =
            self.withheld.iter().find(|item| item.name == name || Some(&*item.name) == own)?;
        Some(withheld.reason.clone())
    }

    pub(super) fn contribution(&self) -> Contribution {
        Contribution {
            server: None,
            tools: self.tools.iter().map(|tool| Arc::clone(&tool.definition)).collect(),
            diagnostics: self.diagnostics.clone(),
            error: None,
            is_partial: self.partial,
        }
    }
}

pub(super) struct RegisteredProvider {
    pub(super) inner: Arc<dyn ToolProvider>,
    /// The name that it is registered and removed by: the component of its tools, unless it was
    /// registered under another one. A kind whose entries share a provider has none.
    pub(super) source: Option<String>,
    pub(super) component_type: Option<String>,
    pub(super) server: Option<String>,
    /// The share of calls that the server gets of a tool that several offer.
    pub(super) weight: Option<f64>,
    /// Who uses it; closed once it is removed.
    pub(super) users: TaskTracker,
    /// Fires when its users have to stop: it was removed, and is about to be closed.
    pub(super) stop: CancellationToken,
    /// Whether the host was built with it, or got it with what replaced that; otherwise the program
    /// registered it.
    pub(super) is_of_files: bool,
    pins: Arc<Current<Pins>>,
    declared: Current<Option<Arc<ToolListSnapshot>>>,
    /// Held while that is made: nothing that was marked by pins of before is kept.
    declaring: Mutex<()>,
    cached: Current<Option<Arc<ToolListSnapshot>>>,
    /// Held while listing, so that callers at the same time ask only once.
    listing_lock: tokio::sync::Mutex<()>,
    /// With which of the host's requests it was first made to start something.
    pub(super) first_start: OnceLock<u64>,
}

impl RegisteredProvider {
    pub(super) fn new(provider: Arc<dyn ToolProvider>, pins: Arc<Current<Pins>>) -> Self {
        let component = provider.component().map(str::to_owned);
        let server = provider.as_server().and_then(|_| component.clone());
        Self {
            weight: provider.as_server().and_then(ManagedServer::routing_weight),
            inner: provider,
            source: component,
            component_type: None,
            server,
            users: TaskTracker::new(),
            stop: CancellationToken::new(),
            is_of_files: false,
            pins,
            declared: Current::default(),
            declaring: Mutex::default(),
            cached: Current::default(),
            listing_lock: tokio::sync::Mutex::default(),
            first_start: OnceLock::new(),
        }
    }

    /// One of what the host was built with, whose tools are compared with `pins`.
    pub(super) fn of_files(
        provider: Arc<dyn ToolProvider>,
        pins: &Arc<Current<Pins>>,
    ) -> Arc<Self> {
        Arc::new(Self { is_of_files: true, ..Self::new(provider, Arc::clone(pins)) })
    }

    /// Counts as a user until the token is dropped; `None` once the provider is removed.
    pub(super) fn begin_use(&self) -> Option<TaskTrackerToken> {
        // Counted first: whoever removes the provider after that waits for this one.
        let user = self.users.token();
        (!self.is_removed()).then_some(user)
    }

    pub(super) fn is_removed(&self) -> bool {
        self.users.is_closed()
    }

    /// Ends work early when the provider is removed and those who use it have had their time.
    pub(super) async fn while_registered<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            outcome = work => outcome,
            () = self.stop.cancelled() => Err(self.removed_error()),
        }
    }

    pub(super) fn is_remote(&self) -> bool {
        self.server.is_some() || self.inner.is_remote()
    }

    /// What is known without contacting anything.
    pub(super) fn declared(&self) -> Arc<ToolListSnapshot> {
        // A server's declarations come from a file; local tools may change.
        let version = self.inner.list_version();
        let kept = || {
            let snapshot = self.declared.get().as_ref().clone()?;
            (self.is_remote() || snapshot.version == version).then_some(snapshot)
        };
        if let Some(snapshot) = kept() {
            return snapshot;
        }
        let _one_at_a_time = lock(&self.declaring);
        if let Some(snapshot) = kept() {
            return snapshot;
        }
        let mut tools = self.inner.declared();
        self.mark_origin(&mut tools);
        for tool in &mut tools {
            if self.is_remote() && tool.status == ToolStatus::Live {
                Arc::make_mut(tool).status = ToolStatus::Declared;
            } else {
                mark_unchecked(tool);
            }
        }
        if !self.is_remote() {
            self.pins.get().mark_tools(&mut tools, None);
        }
        let fresh = Arc::new(ToolListSnapshot { version, ..ToolListSnapshot::new(tools) });
        self.declared.replace(Some(Arc::clone(&fresh)));
        fresh
    }

    /// The kept list while its version holds, or a fresh one. The flag says that it is fresh.
    pub(super) async fn get_or_list(
        &self,
        limit: Duration,
    ) -> Result<(Arc<ToolListSnapshot>, bool), Error> {
        if let Some(snapshot) = self.cached_snapshot() {
            return Ok((snapshot, false));
        }
        if !self.is_remote() {
            return Ok((self.declared(), false));
        }
        self.with_timeout(limit, async {
            let _one_at_a_time = self.listing_lock.lock().await;
            match self.cached_snapshot() {
                Some(snapshot) => Ok((snapshot, false)),
                None => self.list().await.map(|fresh| (fresh, true)),
            }
        })
        .await
    }

    pub(super) async fn refresh(&self, limit: Duration) -> Result<Arc<ToolListSnapshot>, Error> {
        self.with_timeout(limit, async {
            let _one_at_a_time = self.listing_lock.lock().await;
            self.list().await
        })
        .await
    }

    pub(super) fn forget_lists(&self) {
        self.cached.replace(None);
        let _not_meanwhile = lock(&self.declaring);
        self.declared.replace(None);
    }

    /// What this provider adds to a catalogue: a server its kept list, when the version of it still
    /// holds; otherwise what is listed now.
    pub(super) async fn contribute(&self) -> Contribution {
        let listed = if self.server.is_some() {
            self.get_or_list(attempt::LISTING_TIMEOUT).await.map(|(snapshot, _)| snapshot)
        } else {
            // A kind that reads files has no version that reflects their changes.
            self.refresh(attempt::LISTING_TIMEOUT).await
        };
        let mut part = match listed {
            Ok(snapshot) => snapshot.contribution(),
            Err(error) => {
                let mut part = self.declared().contribution();
                for tool in &mut part.tools {
                    Arc::make_mut(tool).mark_unavailable(error.clone());
                }
                if self.server.is_none() {
                    // Only servers have their own row in a catalogue.
                    part.diagnostics.push(Diagnostic::error(error.message()));
                }
                part.error = Some(error);
                part
            }
        };
        part.server.clone_from(&self.server);
        part
    }

    /// The tool of this full name, as far as known without contacting a server.
    pub(super) fn known_tool(&self, full: &str) -> Option<Arc<ListedTool>> {
        let declared = self.declared().find(full).map(Arc::clone);
        declared.or_else(|| self.cached_snapshot()?.find(full).map(Arc::clone))
    }

    /// The components its tools are named after, as far as known without contacting a server.
    pub(super) fn components(&self) -> BTreeSet<String> {
        let declared = self.declared();
        let listed = self.cached_snapshot();
        let tools = declared.tools.iter().chain(listed.iter().flat_map(|listed| &listed.tools));
        let named = tools.filter_map(|tool| tool.definition.name.component());
        named.chain(self.inner.component()).map(str::to_owned).collect()
    }

    /// A component that the program configured is in no file, although it is compiled like one.
    fn mark_origin(&self, tools: &mut [Arc<ToolDefinition>]) {
        if self.component_type.is_some() {
            for tool in tools {
                Arc::make_mut(tool).origin = Origin::Program;
            }
        }
    }

    /// What it is registered as.
    pub(super) fn sort(&self) -> &'static str {
        match (&self.server, &self.component_type) {
            (Some(_), _) => "MCP server",
            (None, Some(_)) => "component",
            (None, None) => "provider",
        }
    }

    /// How it is spoken of when it has a name that another one wants.
    pub(super) fn describe(&self) -> String {
        let name = self.server.as_ref().or(self.source.as_ref()).map_or("", String::as_str);
        let component_type = self.component_type.iter().map(|kind| format!("{kind} "));
        format!("the {}{} '{name}'", component_type.collect::<String>(), self.sort())
    }

    /// The list as it was asked for last, unless it changed since.
    pub(super) fn cached_snapshot(&self) -> Option<Arc<ToolListSnapshot>> {
        let now = self.inner.list_version();
        Option::clone(&self.cached.get()).filter(|snapshot| snapshot.version == now)
    }

    async fn with_timeout<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let Some(_user) = self.begin_use() else { return Err(self.removed_error()) };
        let error = match tokio::time::timeout(limit, self.while_registered(work)).await {
            Ok(Ok(outcome)) => return Ok(outcome),
            Ok(Err(error)) => error,
            Err(_elapsed) => Error::timeout(format!(
                "did not start and list its tools within {}",
                show_duration(limit)
            ))
            .with_phase(ErrorPhase::List),
        };
        Err(match &self.server {
            Some(name) if error.server().is_none() => error.with_server(name),
            _ => error,
        })
    }

    fn removed_error(&self) -> Error {
        Error::unreachable(format!("{} was removed", self.describe()))
    }

    async fn list(&self) -> Result<Arc<ToolListSnapshot>, Error> {
        // A change that comes while listing makes this list old already.
        let version = self.inner.list_version();
        let server = self.inner.as_server();
        let was_ready = server.is_some_and(|server| server.connection_summary().is_ready);
        let listing = self.inner.list().await?;
        let mut tools = listing.tools;
        let mut problems = listing.diagnostics;
        self.mark_origin(&mut tools);
        tools.iter_mut().for_each(mark_unchecked);
        if let Some(name) = &self.server {
            let declared = self.inner.declared();
            problems.extend(drift::apply(name, &declared, &mut tools, listing.is_partial));
        }
        let summary = server.map(ManagedServer::connection_summary).unwrap_or_default();
        self.pins.get().mark_tools(&mut tools, summary.instructions.as_deref());
        let snapshot = Arc::new(ToolListSnapshot {
            diagnostics: problems,
            partial: listing.is_partial,
            withheld: listing.withheld,
            connect: summary.connect.filter(|_| !was_ready),
            protocol: summary.protocol,
            version,
            ..ToolListSnapshot::new(tools)
        });
        if let Some(server) = &self.server {
            let (tools, problems) = (snapshot.tools.len(), snapshot.diagnostics.len());
            tracing::debug!(server, tools, problems, partial = snapshot.partial, "tools listed");
        }
        self.cached.replace(Some(Arc::clone(&snapshot)));
        Ok(snapshot)
    }
}

/// The servers among the providers that could not be listed, and why.
pub(super) fn failed_servers(
    bad: &[(Arc<RegisteredProvider>, Error)],
) -> impl Iterator<Item = (&str, &Error)> {
    bad.iter().filter_map(|(provider, error)| Some((provider.server.as_deref()?, error)))
}

/// Schemas beyond the limits are known at a glance; others show when they are compiled.
fn mark_unchecked(tool: &mut Arc<ToolDefinition>) {
    if tool.status == ToolStatus::Live
        && let Err(reason) = full::is_expensive(&tool.input_schema.top())
    {
        let tool = Arc::make_mut(tool);
        tool.status = ToolStatus::Unchecked;
        tool.warnings.push(format!("arguments are not checked: {reason}"));
    }
}
