//! The JSON of `resources`, `prompts` and `complete`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::RoutingJson;
use super::error::{DiagnosticJson, ErrorJson};
use super::list::listing_status;
use crate::host::offerings::Offerings;
use crate::model::{
    Completion, Freshness, Prompt, PromptArgument, PromptMessages, Resource, ResourceContents,
    ResourceTemplate,
};

/// The resources of the servers: `resources list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResourcesJson<'a> {
    /// The resources that match.
    pub resources: Vec<ResourceJson<'a>>,
    /// How each server responded.
    #[serde(flatten)]
    pub sources: OfferingSourcesJson<'a>,
}

/// The templates of the servers: `resources list --templates`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TemplatesJson<'a> {
    /// The templates that match.
    pub templates: Vec<TemplateJson<'a>>,
    /// How each server responded.
    #[serde(flatten)]
    pub sources: OfferingSourcesJson<'a>,
}

/// The prompts of the servers: `prompts list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PromptsJson<'a> {
    /// The prompts that match.
    pub prompts: Vec<PromptJson<'a>>,
    /// How each server responded.
    #[serde(flatten)]
    pub sources: OfferingSourcesJson<'a>,
}

/// The servers that were queried for a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OfferingSourcesJson<'a> {
    /// The servers that were queried.
    servers: Vec<OfferingSourceJson<'a>>,
    /// Problems with individual items.
    problems: Vec<DiagnosticJson<'a>>,
}

/// A server that was queried for a list.
#[derive(Debug, Serialize, JsonSchema)]
struct OfferingSourceJson<'a> {
    /// Its name.
    name: &'a str,
    /// `ok`, `partial` or `failed`.
    status: &'static str,
    /// Why it could not be listed.
    error: Option<ErrorJson<'a>>,
    /// How long its list may be cached according to the server, in milliseconds.
    ttl_ms: Option<u64>,
    /// Who may share the cached list.
    cache_scope: Option<&'a str>,
}

impl<'a, T> From<&'a Offerings<T>> for OfferingSourcesJson<'a> {
    fn from(all: &'a Offerings<T>) -> Self {
        let server = |server: &'a crate::catalogue::ServerListing| {
            let fresh = all.freshness.iter().find(|(name, _)| *name == server.name);
            let fresh: Option<&Freshness> = fresh.map(|(_, fresh)| fresh);
            OfferingSourceJson {
                name: &server.name,
                status: listing_status(server),
                error: server.error.as_ref().map(Into::into),
                ttl_ms: fresh.and_then(|fresh| fresh.ttl_ms),
                cache_scope: fresh.and_then(|fresh| fresh.scope.as_deref()),
            }
        };
        Self {
            servers: all.servers.iter().map(server).collect(),
            problems: all.diagnostics.iter().map(Into::into).collect(),
        }
    }
}

/// A resource.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResourceJson<'a> {
    uri: &'a str,
    name: &'a str,
    /// The server that offers it.
    server: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    mime_type: Option<&'a str>,
    /// Its size in bytes.
    size: Option<u64>,
    /// Warnings about this item.
    warnings: &'a [String],
    /// The resource as the server sent it.
    raw: Value,
}

impl<'a> From<&'a Resource> for ResourceJson<'a> {
    fn from(item: &'a Resource) -> Self {
        Self {
            uri: &item.uri,
            name: &item.name,
            server: &item.server,
            title: item.title.as_deref(),
            description: item.description.as_deref(),
            mime_type: item.mime_type.as_deref(),
            size: item.size,
            warnings: &item.warnings,
            raw: parse(&item.raw),
        }
    }
}

/// A resource template of a server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TemplateJson<'a> {
    /// The URI template (RFC 6570).
    template: &'a str,
    name: &'a str,
    /// The server that offers it.
    server: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    mime_type: Option<&'a str>,
    /// Warnings about this item.
    warnings: &'a [String],
    /// The template as the server sent it.
    raw: Value,
}

impl<'a> From<&'a ResourceTemplate> for TemplateJson<'a> {
    fn from(item: &'a ResourceTemplate) -> Self {
        Self {
            template: &item.template,
            name: &item.name,
            server: &item.server,
            title: item.title.as_deref(),
            description: item.description.as_deref(),
            mime_type: item.mime_type.as_deref(),
            warnings: &item.warnings,
            raw: parse(&item.raw),
        }
    }
}

/// A prompt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PromptJson<'a> {
    /// The full name.
    name: String,
    /// The name at the server.
    prompt: &'a str,
    /// The server that offers it.
    server: Option<&'a str>,
    title: Option<&'a str>,
    description: Option<&'a str>,
    arguments: Vec<PromptArgumentJson<'a>>,
    /// Warnings about this item.
    warnings: &'a [String],
    /// The prompt as the server sent it.
    raw: Value,
}

/// An argument of a prompt.
#[derive(Debug, Serialize, JsonSchema)]
struct PromptArgumentJson<'a> {
    name: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    required: bool,
}

impl<'a> From<&'a Prompt> for PromptJson<'a> {
    fn from(item: &'a Prompt) -> Self {
        let argument = |argument: &'a PromptArgument| PromptArgumentJson {
            name: &argument.name,
            title: argument.title.as_deref(),
            description: argument.description.as_deref(),
            required: argument.required,
        };
        Self {
            name: item.name.full(),
            prompt: item.name.tool(),
            server: item.name.component(),
            title: item.title.as_deref(),
            description: item.description.as_deref(),
            arguments: item.arguments.iter().map(argument).collect(),
            warnings: &item.warnings,
            raw: parse(&item.raw),
        }
    }
}

fn parse(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).unwrap_or_default()
}

/// The contents of a resource: `resources read`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResourceContentsJson<'a> {
    server: &'a str,
    uri: &'a str,
    /// The content parts, as in MCP.
    contents: &'a [Value],
    /// How long they may be cached according to the server, in milliseconds.
    ttl_ms: Option<u64>,
    /// Who may share the cached contents.
    cache_scope: Option<&'a str>,
    /// The `_meta` of the response.
    meta: Option<&'a Value>,
    /// The router's choice; only when there were several candidate servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<RoutingJson<'a>>,
}

impl<'a> From<&'a ResourceContents> for ResourceContentsJson<'a> {
    fn from(read: &'a ResourceContents) -> Self {
        Self {
            server: &read.server,
            uri: &read.uri,
            contents: &read.contents,
            ttl_ms: read.freshness.ttl_ms,
            cache_scope: read.freshness.scope.as_deref(),
            meta: read.meta.as_ref(),
            routing: read.routing.as_ref().map(Into::into),
        }
    }
}

/// A line of `resources watch`: a resource changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResourceUpdateJson<'a> {
    /// When the notification arrived (RFC 3339).
    pub at: String,
    /// The server that offers it.
    pub server: &'a str,
    /// Always `updated`.
    pub event: &'static str,
    /// The resource.
    pub uri: &'a str,
    /// How often it changed since the last line.
    pub times: u64,
    /// Its current contents; only with `--read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<&'a [Value]>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorJson<'a>>,
}

/// The messages of a prompt: `prompts get`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PromptMessagesJson<'a> {
    /// The full name of the prompt.
    name: String,
    server: Option<&'a str>,
    description: Option<&'a str>,
    /// The messages, as in MCP.
    messages: &'a [Value],
    /// The `_meta` of the response.
    meta: Option<&'a Value>,
    /// The router's choice; only when there were several candidate servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<RoutingJson<'a>>,
}

impl<'a> From<&'a PromptMessages> for PromptMessagesJson<'a> {
    fn from(filled: &'a PromptMessages) -> Self {
        Self {
            name: filled.name.full(),
            server: filled.name.component(),
            description: filled.description.as_deref(),
            messages: &filled.messages,
            meta: filled.meta.as_ref(),
            routing: filled.routing.as_ref().map(Into::into),
        }
    }
}

/// Possible values of an argument: `complete`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CompletionJson<'a> {
    values: &'a [String],
    /// The total number, if the server reports it.
    total: Option<u64>,
    /// Whether there are more values than listed.
    has_more: Option<bool>,
}

impl<'a> From<&'a Completion> for CompletionJson<'a> {
    fn from(completion: &'a Completion) -> Self {
        Self { values: &completion.values, total: completion.total, has_more: completion.has_more }
    }
}
