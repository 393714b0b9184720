//! What servers offer besides tools: prompts, resources and resource templates, their contents and
//! change notifications.
//!
//! Text that came from a server is kept as it was sent; it is made safe when shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use strum::IntoStaticStr;

use super::diagnostic::Diagnostic;
use super::error::Error;
use super::name::ToolName;
use super::permissions::WithheldItem;
use super::result::Routing;

/// Items of one list, with the problems of those that were left out.
#[derive(Debug, Clone)]
pub struct OfferingListing<T> {
    /// The items, in their server's order.
    pub items: Vec<T>,
    /// Skipped items. One bad item does not affect the others.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether something is missing from `items` (a page, an item, a limit reached).
    pub is_partial: bool,
    /// How long the list is valid, according to the server.
    pub freshness: Freshness,
    /// Items that the server offers and the entry withholds.
    pub withheld: Vec<WithheldItem>,
}

impl<T> Default for OfferingListing<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            diagnostics: Vec::new(),
            is_partial: false,
            freshness: Freshness::default(),
            withheld: Vec::new(),
        }
    }
}

/// How long a response is valid and for whom, according to the server (`ttlMs`, `cacheScope`, from
/// revision 2026-07-28). It is only shown; nothing is cached beyond a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freshness {
    /// Time to live in milliseconds; 0 means already expired.
    pub ttl_ms: Option<u64>,
    /// `public` when the response is the same for all users, else `private`.
    pub scope: Option<String>,
}

/// A prompt: a template of messages that a person chooses.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Prompt {
    /// Its full name: the server, and the server's own name for it.
    pub name: ToolName,
    /// A name for people, in place of the technical one.
    pub title: Option<String>,
    /// The server's explanation of it.
    pub description: Option<String>,
    /// Its arguments, in the server's order.
    pub arguments: Vec<PromptArgument>,
    /// Suspicions about its texts, such as invisible characters.
    pub warnings: Vec<String>,
    /// The definition exactly as it was sent.
    pub raw: Arc<RawValue>,
}

/// One argument of a prompt. All arguments are strings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptArgument {
    /// The name under which a value is passed.
    pub name: String,
    /// A name for people, in place of the technical one.
    pub title: Option<String>,
    /// The server's explanation of it.
    pub description: Option<String>,
    /// Whether the prompt requires a value.
    pub required: bool,
}

/// A resource that a server lists.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// The URI it is read by.
    pub uri: String,
    /// The server's name of it.
    pub name: String,
    /// The server that lists it.
    pub server: String,
    /// A name for people, in place of the technical one.
    pub title: Option<String>,
    /// The server's explanation of it.
    pub description: Option<String>,
    /// Its media type, as claimed.
    pub mime_type: Option<String>,
    /// Its size in bytes, as claimed.
    pub size: Option<u64>,
    /// Suspicions about its texts, such as invisible characters.
    pub warnings: Vec<String>,
    /// The definition exactly as it was sent.
    #[serde(serialize_with = "parsed")]
    #[schemars(with = "Value")]
    pub raw: Arc<RawValue>,
}

/// Parsed, so that it is laid out like what is around it.
fn parsed<S: Serializer>(raw: &Arc<RawValue>, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::from_str::<Value>(raw.get()).unwrap_or_default().serialize(serializer)
}

/// A template of addresses (RFC 6570) under which a server has resources.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResourceTemplate {
    /// The URI template, such as `file:///{path}`.
    pub template: String,
    /// The server's name of it.
    pub name: String,
    /// The server that lists it.
    pub server: String,
    /// A name for people, in place of the technical one.
    pub title: Option<String>,
    /// What resources with such addresses contain.
    pub description: Option<String>,
    /// The media type of all of them, as claimed.
    pub mime_type: Option<String>,
    /// Suspicions about its texts, such as invisible characters.
    pub warnings: Vec<String>,
    /// The definition exactly as it was sent.
    #[serde(serialize_with = "parsed")]
    #[schemars(with = "Value")]
    pub raw: Arc<RawValue>,
}

/// The contents of a resource: at least one part, unless the resource is empty.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResourceContents {
    /// The server that lists it.
    pub server: String,
    /// The address that was asked for.
    pub uri: String,
    /// The parts in MCP's shape: `uri`, `mimeType`, and `text` or `blob` (base64).
    pub contents: Vec<Value>,
    /// How long it is valid, according to the server.
    pub freshness: Freshness,
    /// The `_meta` of the response.
    pub meta: Option<Value>,
    /// The router's choice, when several servers offer the address or some were skipped.
    pub routing: Option<Routing>,
}

/// The messages of a prompt with its arguments filled in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PromptMessages {
    /// The full name of the prompt that was filled in.
    pub name: ToolName,
    /// What it is for, according to the response.
    pub description: Option<String>,
    /// The messages in MCP's shape: `role`, and `content`, a content block.
    pub messages: Vec<Value>,
    /// The `_meta` of the response.
    pub meta: Option<Value>,
    /// The router's choice, when several servers offer the prompt or some were skipped.
    pub routing: Option<Routing>,
}

/// The prompt or template whose argument is completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompletionReference {
    /// A prompt's, by the server's own name of it.
    Prompt(String),
    /// A resource template, by its URI template.
    Template(String),
}

/// A request for possible values of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionQuery {
    /// The prompt or template the argument belongs to.
    pub reference: CompletionReference,
    /// The name of the argument.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
    /// The other arguments that are filled in already.
    pub context: BTreeMap<String, String>,
}

/// Possible values of an argument: `complete`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Completion {
    /// Proposed values, the best first.
    pub values: Vec<String>,
    /// The total number of values, if the server reports it.
    pub total: Option<u64>,
    /// Whether there are more, if the server reports it.
    pub has_more: Option<bool>,
}

/// A list of a server whose changes it reports. Templates belong to the resources.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum ListKind {
    /// The list of `tools/list`.
    Tools,
    /// The list of `prompts/list`.
    Prompts,
    /// The resources and their templates.
    Resources,
}

impl ListKind {
    /// Every list, in the order of output.
    pub const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];
}

/// The changes that a subscription asks a server to report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionFilter {
    pub lists: Vec<ListKind>,
    /// Addresses of resources whose changes are wanted.
    pub uris: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum SubscriptionEvent {
    /// The server agreed; changes are reported from now on. Sent again after an interruption,
    /// during which changes may have been missed.
    Subscribed {
        /// Requested lists and addresses whose changes the server does not report.
        refused: Vec<String>,
    },
    /// A list must be requested again.
    ListChanged(ListKind),
    /// A resource must be read again.
    ResourceUpdated {
        /// Its address; it may be a part of the requested one.
        uri: String,
        /// The number of changes since the last report.
        times: u64,
    },
    /// The server stopped reporting changes for now; the subscription is being renewed.
    Interrupted(Error),
    /// The subscription ended; no more changes are reported.
    Failed(Error),
}
