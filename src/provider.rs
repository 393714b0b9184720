//! The contract between the host and whatever runs tools.
//!
//! Owns: [`ToolProvider`], the optional abilities beside it, and [`Kind`], the row by which a kind
//! of internal tool is registered. Never does: name a concrete kind, or wrap a call — validation,
//! approval, limits, deadlines, retries and records live in `host::dispatch`, once for all kinds.

pub mod repeat;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::consent::{Seal, quoted};
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::spec::{KindWords, ToolSpec};
use crate::model::{
    Browser, Change, Completion, CompletionQuery, EventSink, Fault, JsonObject, LoginReport,
    Offered, Problem, Prompt, PromptMessages, Resource, ResourceContents, ResourceTemplate,
    ServerState, ServerStatus, ToolCall, ToolContext, ToolDefinition, ToolResult, Wanted,
};

pub use crate::model::Listing;
use repeat::Repeat;

/// A source of tools.
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

    /// The tools as they are now; connects when that is needed. What is declared, unless the
    /// provider has to ask somebody.
    ///
    /// # Errors
    /// When nothing at all could be listed.
    async fn list(&self) -> Result<Listing, Fault> {
        Ok(Listing { tools: self.declared(), ..Listing::default() })
    }

    /// Runs one attempt of a call. `call.name` is one of this provider's names.
    ///
    /// An answer that says "no" is an `Ok` whose `success` is false; `Err` means that no usable
    /// answer came. Must stop soon after `context.cancel` fires, telling the tool so.
    ///
    /// # Errors
    /// When the tool could not be reached, broke its protocol, or ran out of time.
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Fault>;

    /// What a call would send or start, for `--dry-run`; connects at most for the tool list.
    ///
    /// # Errors
    /// When the request cannot be built.
    async fn preview(&self, call: &ToolCall) -> Result<Preview, Fault>;

    /// Ends whatever was started. Idempotent; bounded in time by the provider.
    async fn close(&self) {}

    /// The ability to report on a server, for providers that are one.
    fn as_server(&self) -> Option<&dyn Server> {
        None
    }

    /// The ability to offer prompts and resources beside tools.
    fn as_offers(&self) -> Option<&dyn Offers> {
        None
    }

    /// The ability to log in, for servers that may want it.
    fn as_login(&self) -> Option<&dyn Login> {
        None
    }

    /// The ability to carry many calls faster than one after the other.
    fn as_repeat(&self) -> Option<&dyn Repeat> {
        None
    }
}

/// An ability of providers whose server may want a person to log in.
#[async_trait]
pub trait Login: Send + Sync {
    /// Logs in anew. `scopes` is asked for beside what the entry says.
    ///
    /// # Errors
    /// When there is nothing to log in to, nobody to trust with it, or somebody says no.
    async fn login(&self, browser: &dyn Browser, scopes: &[String]) -> Result<LoginReport, Fault>;

    /// Forgets the logins; says how many there were.
    ///
    /// # Errors
    /// When there is nothing to log out of, or what is kept cannot be changed.
    async fn logout(&self) -> Result<usize, Fault>;
}

/// The exact request a call would make.
#[derive(Debug, Clone)]
pub struct Preview {
    /// One line: what would happen.
    pub summary: String,
    /// The request itself: argv and stdin, a JSON-RPC message, an HTTP request.
    pub request: serde_json::Value,
}

/// An ability of providers that stand for a server.
#[async_trait]
pub trait Server: Send + Sync {
    /// What is known without asking.
    fn status(&self) -> ServerStatus;

    /// Connects when needed, asks for a sign of life and returns the fresh status.
    async fn check(&self) -> ServerStatus;

    /// Ends the connection, forgets what kept a new one from being made, and makes one: a person
    /// wants it now. That it could not be made is told by the status.
    async fn restart(&self) -> ServerStatus;

    /// The part of the status that a listing needs, for servers whose whole status costs more.
    fn introduction(&self) -> Introduction {
        let status = self.status();
        Introduction {
            is_ready: matches!(status.state, ServerState::Ready),
            connect: status.connect,
            protocol: status.protocol,
            instructions: status.instructions,
        }
    }
}

/// What a server said of itself when it was connected to.
#[derive(Debug, Clone, Default)]
pub struct Introduction {
    /// Whether it is connected.
    pub is_ready: bool,
    /// How long connecting took.
    pub connect: Option<Duration>,
    /// The protocol revision that was agreed on.
    pub protocol: Option<String>,
    /// What it says about its use.
    pub instructions: Option<String>,
}

/// An ability of providers that offer prompts and resources beside tools. Each method connects
/// when that is needed, and bounds how long it waits. A list that a server does not have is empty.
#[async_trait]
pub trait Offers: Send + Sync {
    /// The prompts.
    ///
    /// # Errors
    /// When nothing at all could be listed.
    async fn prompts(&self) -> Result<Offered<Prompt>, Fault>;

    /// The resources.
    ///
    /// # Errors
    /// When nothing at all could be listed.
    async fn resources(&self) -> Result<Offered<Resource>, Fault>;

    /// The templates of further resources.
    ///
    /// # Errors
    /// When nothing at all could be listed.
    async fn templates(&self) -> Result<Offered<ResourceTemplate>, Fault>;

    /// Reads a resource, whether it is listed or not. Stops soon after `cancel` fires.
    ///
    /// # Errors
    /// When the entry excludes it, or what reading ran into.
    async fn read(&self, uri: &str, cancel: &CancellationToken) -> Result<ResourceContents, Fault>;

    /// Fills in a prompt, by the server's own name of it. Stops soon after `cancel` fires.
    ///
    /// # Errors
    /// When the entry excludes it, or what asking ran into.
    async fn prompt(
        &self,
        name: &str,
        arguments: &JsonObject,
        cancel: &CancellationToken,
    ) -> Result<PromptMessages, Fault>;

    /// Asks what an argument may be. Stops soon after `cancel` fires.
    ///
    /// # Errors
    /// When the server completes nothing, or what asking ran into.
    async fn complete(
        &self,
        query: &CompletionQuery,
        cancel: &CancellationToken,
    ) -> Result<Completion, Fault>;

    /// Hands on what the server tells about changes, until `cancel` fires or nobody takes it any
    /// more. An interruption is told and overcome, within bounds.
    ///
    /// # Errors
    /// When the server does not tell such changes, or cannot be had (back).
    async fn watch(
        &self,
        wanted: &Wanted,
        changes: &mpsc::Sender<Change>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault>;

    /// Chooses the least level of the log lines that are asked for from now on, one of
    /// [`crate::model::event::LOG_LEVELS`].
    ///
    /// # Errors
    /// When the server is there and refuses.
    async fn set_log_level(&self, level: &'static str) -> Result<(), Fault>;
}

/// Lets an entry start something only if that is what was trusted: code and programs are compared
/// once more, just before.
///
/// # Errors
/// A fault of kind denied that says what changed and names the command which shows and allows it.
pub fn permit(seal: &Seal) -> Result<(), Fault> {
    seal.verify().map_err(|changed| {
        let root = seal.root().map(|root| root.to_string_lossy().into_owned()).unwrap_or_default();
        Fault::denied("it is not what was trusted any more")
            .trust_outdated()
            .details(changed)
            .hint(format!("see what changed and allow it: toolhost trust {}", quoted(&[root])))
    })
}

/// What a kind needs from the outside to build its provider.
#[derive(Clone)]
pub struct KindContext {
    /// Variables and well-known directories.
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
}

impl KindContext {
    /// A context without state, named directories or anybody who listens.
    pub fn bare(environment: Arc<dyn Environment>) -> Self {
        Self {
            environment,
            expanded: ExpandedValues::default(),
            state_dir: None,
            scopes: BTreeMap::new(),
            events: EventSink::nowhere(),
            insecure: false,
        }
    }
}

/// What building a provider gave.
pub struct Built {
    /// The providers of the entries that could be built: mostly one for all of them.
    pub providers: Vec<Arc<dyn ToolProvider>>,
    /// What was wrong with the others.
    pub problems: Vec<Problem>,
}

impl Built {
    /// Builds a provider for each entry, for kinds whose entries share nothing.
    pub fn each<P: ToolProvider + 'static>(
        specs: &[&ToolSpec],
        mut build: impl FnMut(&ToolSpec) -> Result<P, Vec<Problem>>,
    ) -> Self {
        let mut built = Self { providers: Vec::new(), problems: Vec::new() };
        for spec in specs {
            match build(spec) {
                Ok(provider) => built.providers.push(Arc::new(provider)),
                Err(problems) => {
                    let name = spec.definition.name.full();
                    built.problems.extend(problems.into_iter().map(|p| p.entry(name.clone())));
                }
            }
        }
        built
    }
}

/// One row of the registry of kinds: how entries of this kind are recognised and built.
pub struct Kind {
    /// How a file speaks of it.
    pub words: KindWords,
    /// Builds the providers for all entries of this kind.
    pub build: fn(&[&ToolSpec], &KindContext) -> Built,
}
