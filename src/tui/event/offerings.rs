//! Commands and events of the resources view.

use std::sync::Arc;

use serde_json::Value;

use crate::model::{
    Completion, CompletionQuery, Error, JsonObject, Prompt, PromptMessages, Resource,
    ResourceContents, ResourceTemplate, SubscriptionEvent,
};

#[derive(Debug, Clone, PartialEq)]
pub enum OfferingsEffect {
    ListAll,
    List(String),
    ReadResource {
        ticket: OfferingRequestId,
        server: String,
        uri: String,
    },
    GetPrompt {
        ticket: OfferingRequestId,
        server: String,
        name: String,
        /// The values of the arguments; the specification allows only texts.
        arguments: JsonObject,
    },
    CancelRequest,
    /// Ask what an argument may be.
    Complete {
        server: String,
        query: CompletionQuery,
    },
    Watch(WatchedResource),
    Unwatch(WatchedResource),
    /// Write the parts of a resource to files.
    Save(Arc<Vec<Value>>),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfferingRequestId(pub u64);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchedResource {
    pub server: String,
    pub uri: String,
}

#[derive(Debug, Default)]
pub struct ServerOfferings {
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
    /// The distinct errors of lists that could not be read.
    pub errors: Vec<Error>,
    /// Warnings about entries that were left out.
    pub problems: Vec<String>,
}

/// What the effects report to the resources view.
#[derive(Debug)]
pub enum OfferingsEvent {
    /// These servers there are; they are being asked.
    Servers(Vec<String>),
    Listed(String, Box<ServerOfferings>),
    ResourceRead(OfferingRequestId, Box<Result<ResourceContents, Error>>),
    PromptReceived(OfferingRequestId, Box<Result<PromptMessages, Error>>),
    Completed(CompletionQuery, Result<Completion, Error>),
    ResourceChanged(WatchedResource, SubscriptionEvent),
    /// The subscription failed, so the resource is not watched.
    Unwatched(WatchedResource, Option<Error>),
}
