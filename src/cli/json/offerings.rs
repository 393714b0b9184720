//! The JSON of `resources`, `prompts` and `complete`.

use crate::util::shape::shape;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::{DiagnosticJson, ErrorJson};
use super::tool::listing_status;
use crate::catalogue::ServerListing;
use crate::host::offerings::Offerings;
use crate::model::{
    Freshness, Prompt, PromptArgument, PromptMessages, Resource, ResourceContents,
    ResourceTemplate, Routing,
};

shape! {
    /// The resources of the servers: `resources list`.
    pub ResourcesJson<'a> of (items, all): (&[&'a Resource], &'a Offerings<Resource>) {
        /// The resources that match.
        resources: Vec<&'a Resource> = items.to_vec(),
        /// How each server responded.
        #[serde(flatten)]
        sources: OfferingSourcesJson<'a> = all.into(),
    }
}

shape! {
    /// The templates of the servers: `resources list --templates`.
    pub TemplatesJson<'a> of (items, all): (&[&'a ResourceTemplate], &'a Offerings<ResourceTemplate>) {
        /// The templates that match.
        templates: Vec<&'a ResourceTemplate> = items.to_vec(),
        /// How each server responded.
        #[serde(flatten)]
        sources: OfferingSourcesJson<'a> = all.into(),
    }
}

shape! {
    /// The prompts of the servers: `prompts list`.
    pub PromptsJson<'a> of (items, all): (&[&'a Prompt], &'a Offerings<Prompt>) {
        /// The prompts that match.
        prompts: Vec<PromptJson<'a>> = items.iter().map(|item| (*item).into()).collect(),
        /// How each server responded.
        #[serde(flatten)]
        sources: OfferingSourcesJson<'a> = all.into(),
    }
}

/// The servers that were queried for a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OfferingSourcesJson<'a> {
    /// The servers that were queried.
    servers: Vec<OfferingSourceJson<'a>>,
    /// Problems with individual items.
    problems: Vec<DiagnosticJson<'a>>,
}

shape! {
    /// A server that was queried for a list.
    pub OfferingSourceJson<'a> of (server, fresh): (&'a ServerListing, Option<&'a Freshness>) {
        /// Its name.
        name: &'a str = &server.name,
        /// `ok`, `partial` or `failed`.
        status: &'static str = listing_status(server),
        /// Why it could not be listed.
        error: Option<ErrorJson<'a>> = server.error.as_ref().map(Into::into),
        /// How long its list may be cached according to the server, in milliseconds.
        ttl_ms: Option<u64> = fresh.and_then(|fresh| fresh.ttl_ms),
        /// Who may share the cached list.
        cache_scope: Option<&'a str> = fresh.and_then(|fresh| fresh.scope.as_deref()),
    }
}

impl<'a, T> From<&'a Offerings<T>> for OfferingSourcesJson<'a> {
    fn from(all: &'a Offerings<T>) -> Self {
        let server = |server: &'a ServerListing| {
            let fresh = all.freshness.iter().find(|(name, _)| *name == server.name);
            (server, fresh.map(|(_, fresh)| fresh)).into()
        };
        Self {
            servers: all.servers.iter().map(server).collect(),
            problems: all.diagnostics.iter().map(Into::into).collect(),
        }
    }
}

shape! {
    /// A prompt.
    pub PromptJson<'a> of item: &'a Prompt {
        /// The full name.
        name: String = item.name.full(),
        /// The name at the server.
        prompt: &'a str = item.name.tool(),
        /// The server that offers it.
        server: Option<&'a str> = item.name.component(),
        title: Option<&'a str> = item.title.as_deref(),
        description: Option<&'a str> = item.description.as_deref(),
        arguments: &'a [PromptArgument] = &item.arguments,
        /// Warnings about this item.
        warnings: &'a [String] = &item.warnings,
        /// The prompt as the server sent it.
        raw: Value = parse(&item.raw),
    }
}

fn parse(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).unwrap_or_default()
}

shape! {
    /// The contents of a resource: `resources read`.
    pub ResourceContentsJson<'a> of read: &'a ResourceContents {
        server: &'a str = &read.server,
        uri: &'a str = &read.uri,
        /// The content parts, as in MCP.
        contents: &'a [Value] = &read.contents,
        /// How long they may be cached according to the server, in milliseconds.
        ttl_ms: Option<u64> = read.freshness.ttl_ms,
        /// Who may share the cached contents.
        cache_scope: Option<&'a str> = read.freshness.scope.as_deref(),
        /// The `_meta` of the response.
        meta: Option<&'a Value> = read.meta.as_ref(),
        /// The router's choice; only when there were several candidate servers.
        #[serde(skip_serializing_if = "Option::is_none")]
        routing: Option<&'a Routing> = read.routing.as_ref(),
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

shape! {
    /// The messages of a prompt: `prompts get`.
    pub PromptMessagesJson<'a> of filled: &'a PromptMessages {
        /// The full name of the prompt.
        name: String = filled.name.full(),
        server: Option<&'a str> = filled.name.component(),
        description: Option<&'a str> = filled.description.as_deref(),
        /// The messages, as in MCP.
        messages: &'a [Value] = &filled.messages,
        /// The `_meta` of the response.
        meta: Option<&'a Value> = filled.meta.as_ref(),
        /// The router's choice; only when there were several candidate servers.
        #[serde(skip_serializing_if = "Option::is_none")]
        routing: Option<&'a Routing> = filled.routing.as_ref(),
    }
}
