//! Commands and events of the resources view.

use std::sync::Arc;

use serde_json::Value;

use crate::model::{
    Completion, CompletionQuery, Error, JsonObject, Prompt, PromptMessages, Resource,
    ResourceContents, ResourceTemplate, SubscriptionEvent,
};

/// What the resources view asks the effects to do.
#[derive(Debug, Clone, PartialEq)]
pub enum OfferingsEffect {
    /// Say which servers there are, and ask each for everything it offers beside tools.
    ListAll,
    /// List the resources, templates and prompts of this server again.
    List(String),
    /// Read a resource. Cancels the previous read or fill-in request.
    ReadResource {
        /// The ID to repeat in the response event.
        ticket: OfferingRequestId,
        /// The name of the server in the configuration.
        server: String,
        /// The URI of the resource.
        uri: String,
    },
    /// Fill in a prompt. Cancels the previous read or fill-in request.
    GetPrompt {
        /// The ID to repeat in the response event.
        ticket: OfferingRequestId,
        /// The name of the server in the configuration.
        server: String,
        /// The full name of the prompt, with the server in front.
        name: String,
        /// The values of the arguments; the specification allows only texts.
        arguments: JsonObject,
    },
    /// Cancel the current read or fill-in request.
    CancelRequest,
    /// Ask what an argument may be.
    Complete {
        /// The name of the server in the configuration.
        server: String,
        /// Of what, and what was typed.
        query: CompletionQuery,
    },
    /// Subscribe to changes of a resource.
    Watch(WatchedResource),
    /// Unsubscribe from the changes of a resource.
    Unwatch(WatchedResource),
    /// Write the parts of a resource to files.
    Save(Arc<Vec<Value>>),
}

/// A request that is waiting for its response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfferingRequestId(pub u64);

/// A resource of a server that is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchedResource {
    /// The name of the server in the configuration.
    pub server: String,
    /// The URI of the resource.
    pub uri: String,
}

/// What a server offers beside tools.
#[derive(Debug, Default)]
pub struct ServerOfferings {
    /// The resources the server lists.
    pub resources: Vec<Resource>,
    /// The URI templates the server lists.
    pub templates: Vec<ResourceTemplate>,
    /// The prompts the server lists.
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
    /// The lists of one server.
    Listed(String, Box<ServerOfferings>),
    /// The contents of a resource that was read.
    ResourceRead(OfferingRequestId, Box<Result<ResourceContents, Error>>),
    /// The messages of a prompt, or its error.
    PromptReceived(OfferingRequestId, Box<Result<PromptMessages, Error>>),
    /// The argument may be this.
    Completed(CompletionQuery, Result<Completion, Error>),
    /// A watched resource changed, or its subscription did.
    ResourceChanged(WatchedResource, SubscriptionEvent),
    /// The subscription failed, so the resource is not watched.
    Unwatched(WatchedResource, Option<Error>),
}
