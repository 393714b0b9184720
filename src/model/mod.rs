//! The shared vocabulary of plain values: names, definitions, calls, results, errors, events.
//!
//! Owns: the vocabulary. Never does: input or output, waiting, locking, parsing of files.

pub mod breakpoint;
pub mod call;
pub mod call_filter;
pub mod call_id;
pub mod call_record;
pub mod captured_traffic;
mod client_abilities;
pub mod definition;
pub mod diagnostic;
pub mod entry;
pub mod error;
mod error_cause;
pub mod event;
pub mod login;
pub mod name;
mod named_file;
pub mod offering;
pub mod permissions;
pub mod question;
pub mod result;
pub mod server;
pub mod tool_listing;
mod tool_schema;
pub mod trace_context;
pub mod traffic;

pub use breakpoint::{BreakpointRecord, HoldOutcome, HoldPoint};
pub use call::{NestedCall, ToolCall, ToolCaller, ToolContext};
pub use call_filter::{CallFacts, CallFilter};
pub use call_id::CallId;
pub use call_record::{CallPlace, CallRecord, CallerRecord, QuestionRecord, RecordedOutcome};
pub use captured_traffic::CapturedTraffic;
pub use client_abilities::{ClientAbilities, QuestionAbilities};
pub use definition::{
    Annotations, Origin, PinState, Safety, Speed, ToolDefinition, ToolScope, ToolSource, ToolStatus,
};
pub use diagnostic::{Diagnostic, Diagnostics, Severity, SourceLocation};
pub use entry::{EntryOrigin, Layer};
pub use error::{Error, ErrorKind, ErrorPhase, RetryAdvice, Signal};
pub use error_cause::ErrorCause;
pub use event::{EventSink, HostEvent, ListOwner, LogLevel};
pub use login::{AuthorizationRequest, Browser, LoginReport};
pub use name::{InvalidNameError, ToolName, check_name, safe_name};
pub use named_file::unreadable_file;
pub use offering::{
    Completion, CompletionQuery, CompletionReference, Freshness, ListKind, OfferingListing, Prompt,
    PromptArgument, PromptMessages, Resource, ResourceContents, ResourceTemplate,
    SubscriptionEvent, SubscriptionFilter,
};
pub use permissions::{CredentialKind, CredentialUse, ServerPermissions, WithheldItem};
pub use question::{
    NoQuestionHandler, Question, QuestionBody, QuestionHandler, QuestionOutcome, QuestionReply,
};
pub use result::{CallMetadata, Routing, SkippedServer, ToolResult};
pub use server::{Era, PastError, Root, ServerState, ServerStatus};
pub use tool_listing::ToolListing;
pub use tool_schema::ToolSchema;
pub use trace_context::TraceContext;
pub use traffic::{TraceGate, Traffic, TrafficSink};

/// A JSON object with its keys in the order they were written.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
