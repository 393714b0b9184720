//! The contract between the host and the providers of tools.
//!
//! Owns: [`ToolProvider`], the optional abilities beside it, and [`ProviderKind`], the row by which a kind
//! of internal tool is registered. Never does: name a concrete kind, or wrap a call — validation,
//! approval, limits, deadlines, retries and records live in `host::dispatch`, once for all kinds.

mod component;
pub mod load;
mod shared_state;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::consent::{Seal, shell_quoted};
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::spec::{KindDescriptor, ToolSpec};
use crate::model::{
    Browser, Completion, CompletionQuery, Diagnostic, Error, ErrorCause, EventSink, JsonObject,
    LoginReport, OfferingListing, Prompt, PromptMessages, Resource, ResourceContents,
    ResourceTemplate, ServerState, ServerStatus, SubscriptionEvent, SubscriptionFilter, ToolCall,
    ToolContext, ToolDefinition, ToolResult,
};

pub use crate::model::ToolListing;
pub use component::{ComponentConfig, ComponentFactory, FileEntry, FileFactory, FileProviders};
use load::LoadSupport;
pub use shared_state::SharedState;

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

    /// Whether [`ToolProvider::list`] gives the names that [`ToolProvider::declared`] gives, and no
    /// others. Not asked of servers.
    fn declares_all(&self) -> bool {
        true
    }

    /// The tools as they are now; connects when that is needed. What is declared, unless the
    /// provider has to contact a server or to start a program.
    ///
    /// # Errors
    /// When nothing at all could be listed.
    async fn list(&self) -> Result<ToolListing, Error> {
        Ok(ToolListing { tools: self.declared(), ..ToolListing::default() })
    }

    /// Which state of the tools [`ToolProvider::list`] would show, as far as known without asking.
    /// The host keeps a list until the version is another one. Of tools that never change while the
    /// provider lives there is one version.
    fn list_version(&self) -> ToolListVersion {
        ToolListVersion::default()
    }

    /// Runs one attempt of a call. `call.name` is one of this provider's names.
    ///
    /// An answer that says "no" is an `Ok` whose `success` is false; `Err` means that no usable
    /// answer came. Must stop soon after `context.cancel` fires, telling the tool so.
    ///
    /// # Errors
    /// When the tool could not be reached, broke its protocol, or ran out of time.
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error>;

    /// What a call would send or start, for `--dry-run`; connects at most for the tool list.
    ///
    /// # Errors
    /// When the request cannot be built.
    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error>;

    /// Ends whatever was started. Idempotent; bounded in time by the provider.
    async fn close(&self) {}

    /// Gives up what it keeps for one session of a client, because that ended. Returns at once: what
    /// takes time is done meanwhile, at the latest until [`ToolProvider::close`] returns.
    fn end_session(&self, _session: &str) {}

    /// The ability to report on a server, for providers that are one.
    #[doc(hidden)] // an ability of the kinds of this program
    fn as_server(&self) -> Option<&dyn ManagedServer> {
        None
    }

    /// The ability to offer prompts and resources beside tools.
    #[doc(hidden)] // an ability of the kinds of this program
    fn as_offerings(&self) -> Option<&dyn OfferingSupport> {
        None
    }

    /// The ability to log in, for servers that may want it.
    #[doc(hidden)] // an ability of the kinds of this program
    fn as_login(&self) -> Option<&dyn LoginSupport> {
        None
    }

    /// The ability to carry many calls faster than one after the other.
    #[doc(hidden)] // an ability of the kinds of this program
    fn as_load(&self) -> Option<&dyn LoadSupport> {
        None
    }
}

/// Tells two states of a provider's tools apart. Versions are compared, never ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolListVersion {
    /// How many connections were lost or closed: what one server process listed says nothing about
    /// the next.
    pub connection: u64,
    /// How often the tools changed since then.
    pub change: u64,
}

/// An ability of providers whose server may want a person to log in.
#[async_trait]
pub trait LoginSupport: Send + Sync {
    /// Logs in anew. `scopes` is asked for beside what the entry says.
    ///
    /// # Errors
    /// When the server takes no login, cannot be trusted with one, or the login is refused.
    async fn login(&self, browser: &dyn Browser, scopes: &[String]) -> Result<LoginReport, Error>;

    /// Forgets the logins; says how many there were.
    ///
    /// # Errors
    /// When there is nothing to log out of, or what is kept cannot be changed.
    async fn logout(&self) -> Result<usize, Error>;
}

/// The exact request a call would make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Preview {
    /// One line: what would happen.
    pub summary: String,
    /// The request itself: argv and stdin, a JSON-RPC message, an HTTP request.
    pub request: serde_json::Value,
}

/// An ability of providers that stand for a server.
#[async_trait]
pub trait ManagedServer: Send + Sync {
    /// What is known without asking.
    fn status(&self) -> ServerStatus;

    /// Connects when needed, asks for a sign of life and returns the fresh status.
    async fn check(&self) -> ServerStatus;

    /// The share of calls that it gets of a tool that several servers offer; `None` when its entry
    /// names none, and then it is called by name only.
    fn routing_weight(&self) -> Option<f64> {
        None
    }

    /// Ends the connection, forgets what kept a new one from being made, and makes one: a person
    /// wants it now. That it could not be made is told by the status.
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

/// What a server said of itself when it was connected to.
#[derive(Debug, Clone, Default)]
pub struct ConnectionSummary {
    /// Whether a connection is open and works.
    pub is_ready: bool,
    /// How long the newest connection took to open, handshake included.
    pub connect: Option<Duration>,
    /// The protocol revision that was agreed on.
    pub protocol: Option<String>,
    /// What it says about its use.
    pub instructions: Option<String>,
}

/// An ability of providers that offer prompts and resources beside tools. Each method connects
/// when that is needed, and bounds how long it waits. A list that a server does not have is empty.
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

    /// Names of variables that requests of this server may carry, beside `TOOLHOST_*`.
    fn context_env(&self) -> &[String] {
        &[]
    }

    /// Reads a resource, whether it is listed or not. Stops soon after `context.cancel` fires.
    ///
    /// # Errors
    /// When the entry excludes it, or what reading ran into.
    async fn read(&self, context: &ToolContext, uri: &str) -> Result<ResourceContents, Error>;

    /// Fills in a prompt, by the server's own name of it. Stops soon after `context.cancel` fires.
    ///
    /// # Errors
    /// When the entry excludes it, or what asking ran into.
    async fn prompt(
        &self,
        context: &ToolContext,
        name: &str,
        arguments: &JsonObject,
    ) -> Result<PromptMessages, Error>;

    /// Asks what an argument may be. Stops soon after `context.cancel` fires.
    ///
    /// # Errors
    /// When the server completes nothing, or what asking ran into.
    async fn complete(
        &self,
        context: &ToolContext,
        query: &CompletionQuery,
    ) -> Result<Completion, Error>;

    /// Forwards the server's notifications of changes, until `cancel` fires or the receiver is
    /// dropped. An interruption is reported and overcome, within bounds.
    ///
    /// # Errors
    /// When the server does not support such notifications, or cannot be reached (again).
    async fn watch(
        &self,
        wanted: &SubscriptionFilter,
        changes: &mpsc::Sender<SubscriptionEvent>,
        cancel: &CancellationToken,
    ) -> Result<(), Error>;

    /// Chooses the least level of the log lines that are asked for from now on, one of
    /// [`crate::model::event::LOG_LEVELS`].
    ///
    /// # Errors
    /// When the server is there and refuses.
    async fn set_log_level(&self, level: &'static str) -> Result<(), Error>;
}

/// Lets an entry start something only if that is what was trusted: code and programs are compared
/// once more, just before.
///
/// # Errors
/// An error of kind denied that says what changed and names the command which shows and allows it.
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

/// What a kind needs from the outside to build its provider.
#[derive(Clone)]
pub struct ProviderDeps {
    /// Variables of the process and well-known directories.
    pub environment: Arc<dyn Environment>,
    /// Where the values of variables are recorded that an entry names.
    pub expanded: ExpandedValues,
    /// Where toolhost keeps state (`None` when there is no home to keep it in).
    pub state_dir: Option<PathBuf>,
    /// Named directories, the predefined ones among them.
    pub scopes: BTreeMap<String, PathBuf>,
    /// Where events that belong to no call go.
    pub events: EventSink,
    /// `--insecure`: certificates are not checked in this run.
    pub insecure: bool,
    /// What stays when the entries are read again.
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
            scopes: BTreeMap::new(),
            events: EventSink::discard(),
            insecure: false,
            shared: SharedState::default(),
        }
    }
}

/// What building a provider gave.
pub struct BuiltProviders {
    /// The providers of the entries that could be built: mostly one for all of them.
    pub providers: Vec<Arc<dyn ToolProvider>>,
    /// What was wrong with the others.
    pub diagnostics: Vec<Diagnostic>,
}

impl BuiltProviders {
    /// Builds a provider for each entry, for kinds whose entries share nothing.
    pub fn each<P: ToolProvider + 'static>(
        specs: &[&ToolSpec],
        mut build: impl FnMut(&ToolSpec) -> Result<P, Vec<Diagnostic>>,
    ) -> Self {
        let mut built = Self { providers: Vec::new(), diagnostics: Vec::new() };
        for spec in specs {
            match build(spec) {
                Ok(provider) => built.providers.push(Arc::new(provider)),
                Err(diagnostics) => {
                    let name = spec.definition.name.full();
                    built
                        .diagnostics
                        .extend(diagnostics.into_iter().map(|p| p.with_entry(name.clone())));
                }
            }
        }
        built
    }
}

/// One row of the registry of kinds: how entries of this kind are recognised and built.
pub struct ProviderKind {
    /// How a file speaks of it.
    pub words: KindDescriptor,
    /// Builds the providers for all entries of this kind.
    pub build: fn(&[&ToolSpec], &ProviderDeps) -> BuiltProviders,
}
