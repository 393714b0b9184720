//! The plain values everything else speaks: names, definitions, calls, results, faults, events.
//!
//! Owns: the vocabulary. Never does: input or output, waiting, locking, parsing of files.

pub mod call;
pub mod definition;
pub mod entry;
pub mod event;
pub mod fault;
pub mod listing;
pub mod login;
pub mod name;
pub mod offer;
pub mod problem;
pub mod question;
pub mod result;
pub mod server;
pub mod traffic;

pub use call::{CallId, Caller, NestedCall, ToolCall, ToolContext};
pub use definition::{
    Annotations, Origin, Pinned, Safety, Source, Speed, ToolDefinition, ToolScope, ToolStatus,
};
pub use entry::{EntryOrigin, Layer};
pub use event::{Event, EventSink, ListOwner, LogLevel};
pub use fault::{Again, Fault, FaultKind, Phase, Signal};
pub use listing::Listing;
pub use login::{Browser, LoginReport, Visit};
pub use name::{ToolName, check_name};
pub use offer::{
    Change, Completion, CompletionQuery, Freshness, OfferList, Offered, Prompt, PromptArgument,
    PromptMessages, Reference, Resource, ResourceContents, ResourceTemplate, Wanted,
};
pub use problem::{Place, Problem, Severity};
pub use question::{Ask, Inbox, NoInbox, Question, Reply, Verdict};
pub use result::{CallMetadata, Routing, Skipped, ToolResult, map_json};
pub use server::{Circuit, Era, PastFault, ServerState, ServerStatus};
pub use traffic::{Shutter, Traffic, TrafficSink};

/// A JSON object with its keys in the order they were written.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
