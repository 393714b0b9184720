//! What the resources and prompts want done, and what comes of it.

use std::sync::Arc;

use serde_json::Value;

use crate::model::{
    Change, Completion, CompletionQuery, Fault, JsonObject, Prompt, PromptMessages, Resource,
    ResourceContents, ResourceTemplate,
};

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// Say which servers there are, and ask each for everything it offers beside tools.
    ListAll,
    /// Ask this server again.
    List(String),
    /// Read a resource. What was being read or filled in before is given up.
    Read {
        /// To be named in the answer.
        ticket: Ticket,
        /// The server.
        server: String,
        /// The address.
        uri: String,
    },
    /// Fill in a prompt. What was being read or filled in before is given up.
    Get {
        /// To be named in the answer.
        ticket: Ticket,
        /// The server.
        server: String,
        /// The prompt's full name.
        name: String,
        /// Texts.
        arguments: JsonObject,
    },
    /// Give up what is being read or filled in.
    GiveUp,
    /// Ask what an argument may be.
    Complete {
        /// The server.
        server: String,
        /// Of what, and what was typed.
        query: CompletionQuery,
    },
    /// Be told when a resource changes.
    Follow(Followed),
    /// Not any more.
    Unfollow(Followed),
    /// Write the parts of a resource to files.
    Save(Arc<Vec<Value>>),
}

/// A request whose answer is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// A resource of a server that is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Followed {
    /// The server.
    pub server: String,
    /// The address.
    pub uri: String,
}

/// What a server offers beside tools.
#[derive(Debug, Default)]
pub struct Lists {
    /// Its resources.
    pub resources: Vec<Resource>,
    /// Its templates of addresses.
    pub templates: Vec<ResourceTemplate>,
    /// Its prompts.
    pub prompts: Vec<Prompt>,
    /// Why lists did not come, each once.
    pub faults: Vec<Fault>,
    /// What was left out of them, in words.
    pub problems: Vec<String>,
}

/// What came of it.
#[derive(Debug)]
pub enum News {
    /// These servers there are; they are being asked.
    Servers(Vec<String>),
    /// This is what a server offers.
    Listed(String, Box<Lists>),
    /// This stands in the resource.
    Read(Ticket, Box<Result<ResourceContents, Fault>>),
    /// This became of the prompt.
    Got(Ticket, Box<Result<PromptMessages, Fault>>),
    /// The argument may be this.
    Completed(CompletionQuery, Result<Completion, Fault>),
    /// This happened to a resource that is watched.
    Told(Followed, Change),
    /// It is not watched any more, and why not.
    Unfollowed(Followed, Option<Fault>),
}
