//! The contract between the host and the providers of tools.
//!
//! Owns: [`ToolProvider`], the optional abilities beside it, and [`ProviderKind`], the row by which a kind
//! of internal tool is registered. Never does: name a concrete kind, or wrap a call — validation,
//! approval, limits, deadlines, retries and records live in `host::dispatch`, once for all kinds.
//! Also what a program configures while a host runs, and what providers share beyond one build.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::config::consent::Seal;
use super::config::environment::Environment;
use super::config::expanded::ExpandedValues;
use super::config::spec::{KindDescriptor, ToolSpec};
pub use super::model::ToolListing;
use super::model::{
    Browser, Completion, CompletionQuery, Diagnostic, Diagnostics, Error, ErrorCause, EventSink,
    JsonObject, LoginReport, OfferingListing, Prompt, PromptMessages, Resource, ResourceContents,
    ResourceTemplate, ServerState, ServerStatus, SubscriptionEvent, SubscriptionFilter, ToolCall,
    ToolContext, ToolDefinition, ToolResult,
};
use super::util::text::shell_quoted;

/// A source of tools: one kind of internal tools, or one server.
#[async_trait]
pub trait ToolProvider: Send + Sync {
    /// The component its tools are named after, when they share one; servers always have one.
    fn component(&self) -> Option<&str> {
        None
    }

    /// What can be listed without starting or contacting anything: all tools of a local kind,
    /// the declared ones of a server.
    fn declared(&self) -> Vec<Arc<ToolDefinition>>;

    /// Whether [`ToolProvider::list`] has to start or contact something.
    fn is_remote(&self) -> bool {
        false
    }

    /// Whether [`ToolProvider::list`] returns exactly the names that [`ToolProvider::declared`]
    /// returns. Not used for servers.
    fn declares_all(&self) -> bool {
        true
    }

    /// The current tools; connects if needed. By default the declared ones, unless the provider has
    /// to contact a server or start a program.
    ///
    /// # Errors
    /// When nothing at all could be listed.
    async fn list(&self) -> Result<ToolListing, Error> {
        Ok(ToolListing { tools: self.declared(), ..ToolListing::default() })
    }

    /// The version of the tools that [`ToolProvider::list`] would return, as far as known without
    /// contacting anything. The host caches a list until the version changes. Tools that never
    /// change have a single version.
    fn list_version(&self) -> ToolListVersion {
        ToolListVersion::default()
    }

    /// Runs one attempt of a call. `call.name` is one of this provider's names.
    ///
    /// A failure reported by the tool is an `Ok` whose `success` is false; `Err` means that there
    /// was no usable response. Must stop soon after `context.cancel` fires, and tell the tool to
    /// stop.
    ///
    /// # Errors
    /// When the tool could not be reached, broke its protocol, or ran out of time.
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error>;

    /// What a call would send or start, for `--dry-run`; connects at most for the tool list.
    ///
    /// # Errors
    /// When the request cannot be built.
    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error>;

    /// Stops everything that was started. Idempotent; the provider limits its duration.
    async fn close(&self) {}

    /// Releases everything held for one client session that has ended. Returns at once; slow work
    /// continues in the background and finishes before [`ToolProvider::close`] returns.
    fn end_session(&self, _session: &str) {}

    #[doc(hidden)] // an ability of the kinds of this program
    fn as_server(&self) -> Option<&dyn ManagedServer> {
        None
    }

    /// The ability to offer prompts and resources besides tools.
    #[doc(hidden)] // an ability of the kinds of this program
    fn as_offerings(&self) -> Option<&dyn OfferingSupport> {
        None
    }

    /// The same for a client session, where each session has a connection of its own.
    ///
    /// # Errors
    /// When too many sessions have one.
    #[doc(hidden)] // an ability of the kinds of this program
    fn offerings_of_session(
        &self,
        _session: &str,
    ) -> Result<Option<Arc<dyn OfferingSupport>>, Error> {
        Ok(None)
    }

    /// The ability to log in, for servers that may require it.
    #[doc(hidden)] // an ability of the kinds of this program
    fn as_login(&self) -> Option<&dyn LoginSupport> {
        None
    }
}

/// Distinguishes states of a provider's tools. Versions are compared for equality, never ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolListVersion {
    /// The number of connections lost or closed: what one server process listed says nothing about
    /// the next.
    pub connection: u64,
    /// The number of changes of the tools since then.
    pub change: u64,
}

/// An ability of providers whose server may require a login.
#[async_trait]
pub trait LoginSupport: Send + Sync {
    /// Logs in again. `scopes` are requested in addition to those of the entry.
    ///
    /// # Errors
    /// When the server does not support login, cannot be trusted with one, or the login is refused.
    async fn login(&self, browser: &dyn Browser, scopes: &[String]) -> Result<LoginReport, Error>;

    /// Forgets the logins; returns how many there were.
    ///
    /// # Errors
    /// When there is no login, or stored logins cannot be changed.
    async fn logout(&self) -> Result<usize, Error>;
}

/// The exact request a call would make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Preview {
    /// One line that says what would happen.
    pub summary: String,
    /// The request itself: argv and stdin, a JSON-RPC message, an HTTP request.
    pub request: serde_json::Value,
}

/// An ability of providers that represent a server.
#[async_trait]
pub trait ManagedServer: Send + Sync {
    /// What is known without contacting it.
    fn status(&self) -> ServerStatus;

    /// Connects if needed, pings the server and returns the new status.
    async fn check(&self) -> ServerStatus;

    /// Its share of the calls to a tool that several servers offer; `None` if its entry sets none,
    /// in which case it is called only by name.
    fn routing_weight(&self) -> Option<f64> {
        None
    }

    /// Closes the connection, clears what prevented a new one, and opens one, because a person
    /// wants it now. The status reports a failure to connect.
    async fn restart(&self) -> ServerStatus;

    /// The part of the status that a listing needs, for servers whose whole status costs more.
    fn connection_summary(&self) -> ConnectionSummary {
        let status = self.status();
        ConnectionSummary {
            is_ready: matches!(status.state, ServerState::Ready),
            connect: status.connect,
            protocol: status.protocol,
            instructions: status.instructions,
        }
    }
}

/// What a server said about itself when the connection was opened.
#[derive(Debug, Clone, Default)]
pub struct ConnectionSummary {
    pub is_ready: bool,
    /// How long the newest connection took to open, handshake included.
    pub connect: Option<Duration>,
    pub protocol: Option<String>,
    /// Its instructions, which are meant for models.
    pub instructions: Option<String>,
}

/// An ability of providers that offer prompts and resources besides tools. Each method connects if
/// needed and limits how long it waits. A list that a server does not have is empty.
#[async_trait]
pub trait OfferingSupport: Send + Sync {
    /// The prompts.
    ///
    /// # Errors
    /// When nothing at all could be listed.
    async fn prompts(&self) -> Result<OfferingListing<Prompt>, Error>;

    /// The resources.
    ///
    /// # Errors
    /// When nothing at all could be listed.
    async fn resources(&self) -> Result<OfferingListing<Resource>, Error>;

    /// The templates of further resources.
    ///
    /// # Errors
    /// When nothing at all could be listed.
    async fn templates(&self) -> Result<OfferingListing<ResourceTemplate>, Error>;

    /// Names of variables that requests to this server may carry, in addition to `TOOLHOST_*`.
    fn context_env(&self) -> &[String] {
        &[]
    }

    /// Reads a resource, whether it is listed or not. Stops soon after `context.cancel` fires.
    ///
    /// # Errors
    /// When the entry excludes it, or reading it fails.
    async fn read(&self, context: &ToolContext, uri: &str) -> Result<ResourceContents, Error>;

    /// Fills in a prompt, by the server's own name of it. Stops soon after `context.cancel` fires.
    ///
    /// # Errors
    /// When the entry excludes it, or the request fails.
    async fn prompt(
        &self,
        context: &ToolContext,
        name: &str,
        arguments: &JsonObject,
    ) -> Result<PromptMessages, Error>;

    /// Requests possible values of an argument. Stops soon after `context.cancel` fires.
    ///
    /// # Errors
    /// When the server does not support completion, or the request fails.
    async fn complete(
        &self,
        context: &ToolContext,
        query: &CompletionQuery,
    ) -> Result<Completion, Error>;

    /// Forwards the server's notifications of changes, until `cancel` fires or the receiver is
    /// dropped. Interruptions are reported, and the subscription is renewed, within limits.
    ///
    /// # Errors
    /// When the server does not support such notifications, or cannot be reached (again).
    async fn watch(
        &self,
        wanted: &SubscriptionFilter,
        changes: &mpsc::Sender<SubscriptionEvent>,
        cancel: &CancellationToken,
    ) -> Result<(), Error>;

    /// Sets the minimum level of log lines requested from now on, one of
    /// [`crate::model::event::LOG_LEVELS`].
    ///
    /// # Errors
    /// When the server is connected and refuses.
    async fn set_log_level(&self, level: &'static str) -> Result<(), Error>;
}

/// Allows an entry to start something only if it is what was trusted: code and programs are
/// compared again just before the start.
///
/// # Errors
/// An error of kind denied that says what changed, with the command that shows and allows it.
pub fn verify_trust(seal: &Seal) -> Result<(), Error> {
    seal.verify().map_err(|changed| {
        let root = seal.root().map(|root| root.to_string_lossy().into_owned()).unwrap_or_default();
        Error::denied("it is no longer what was trusted")
            .with_cause(ErrorCause::TrustOutdated)
            .with_details(changed)
            .with_hint(format!(
                "see what changed and allow it: toolhost trust {}",
                shell_quoted(&[root])
            ))
    })
}

/// What a kind needs to build its provider.
#[derive(Clone)]
pub struct ProviderDeps {
    /// Variables of the process and well-known directories.
    pub environment: Arc<dyn Environment>,
    /// Records the values of variables named by an entry.
    pub expanded: ExpandedValues,
    /// Where toolhost keeps state (`None` when there is no home to keep it in).
    pub state_dir: Option<PathBuf>,
    pub project: Option<String>,
    /// Where events that belong to no call go.
    pub events: EventSink,
    /// `--insecure`: certificates are not checked in this run.
    pub insecure: bool,
    /// State that is kept when the entries are reloaded.
    #[doc(hidden)] // for the kinds of this program
    pub shared: SharedState,
}

impl ProviderDeps {
    /// A context without state, named directories or listeners.
    pub fn bare(environment: Arc<dyn Environment>) -> Self {
        Self {
            environment,
            expanded: ExpandedValues::default(),
            state_dir: None,
            project: None,
            events: EventSink::discard(),
            insecure: false,
            shared: SharedState::default(),
        }
    }
}

pub struct BuiltProviders {
    /// The providers of the entries that could be built: usually one for all of them.
    pub providers: Vec<Arc<dyn ToolProvider>>,
    /// What is wrong with the entries.
    pub diagnostics: Vec<Diagnostic>,
}

impl BuiltProviders {
    /// Builds a provider for each entry, for kinds whose entries share nothing.
    pub fn each<P: ToolProvider + 'static>(
        specs: &[&ToolSpec],
        build: impl FnMut(&ToolSpec, &Diagnostics) -> Option<P>,
    ) -> Self {
        let (providers, diagnostics) = read_each(specs, build);
        let shared = |provider| Arc::new(provider) as Arc<dyn ToolProvider>;
        Self { providers: providers.into_iter().map(shared).collect(), diagnostics }
    }
}

/// What `read` returns for each entry that it can use, and what is wrong with the entries.
pub fn read_each<T>(
    specs: &[&ToolSpec],
    mut read: impl FnMut(&ToolSpec, &Diagnostics) -> Option<T>,
) -> (Vec<T>, Vec<Diagnostic>) {
    let (mut usable, mut all) = (Vec::with_capacity(specs.len()), Vec::new());
    for spec in specs {
        let diagnostics = Diagnostics::default();
        usable.extend(read(spec, &diagnostics));
        let name = spec.definition.name.full();
        all.extend(diagnostics.take().into_iter().map(|one| one.with_entry(name.clone())));
    }
    (usable, all)
}

/// One row of the registry of kinds: how entries of this kind are recognised and built.
pub struct ProviderKind {
    /// How it is written in a file.
    pub words: KindDescriptor,
    pub build: fn(&[&ToolSpec], &ProviderDeps) -> BuiltProviders,
}

/// One component as a program configures it.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentConfig {
    /// What its tools are named after: `{name}-{tool}`.
    pub name: String,
    /// The keys of its type, as an entry of a file has them; empty takes every default.
    pub settings: JsonObject,
}

impl ComponentConfig {
    /// A component with these settings.
    pub fn new(name: impl Into<String>, settings: JsonObject) -> Self {
        Self { name: name.into(), settings }
    }
}

/// Makes providers of the components of one type. Every function of this shape is one:
/// `Fn(&ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error>`.
pub trait ComponentFactory: Send + Sync {
    /// Makes the provider of one component. All its tools are named `{name}-{tool}`. Starts and
    /// contacts nothing.
    ///
    /// # Errors
    /// What is wrong with the settings; an error of kind config.
    fn build(&self, component: &ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error>;
}

impl<F> ComponentFactory for F
where
    F: Fn(&ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error> + Send + Sync,
{
    fn build(&self, component: &ComponentConfig) -> Result<Arc<dyn ToolProvider>, Error> {
        self(component)
    }
}

/// One value of each type, made when a kind first asks for it. It outlives a build, so that entries
/// that are read again find what runs already: engines of stores, Python interpreters.
#[derive(Clone, Default)]
pub struct SharedState(Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl SharedState {
    /// The value of this type.
    pub fn get_or_init<T: Any + Send + Sync>(&self, init: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = values.get(&TypeId::of::<T>()).cloned();
        known.and_then(|value| value.downcast::<T>().ok()).unwrap_or_else(|| {
            let value = Arc::new(init());
            values.insert(TypeId::of::<T>(), Arc::clone(&value) as _);
            value
        })
    }
}
