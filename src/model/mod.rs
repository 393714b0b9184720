//! The shared vocabulary of plain values: names, definitions, calls, results, errors, events.
//!
//! Owns: the vocabulary. Never does: input or output, waiting, locking, parsing of files.

pub mod call;
pub mod call_record;
pub mod captured_traffic;
pub mod definition;
pub mod diagnostic;
pub mod entry;
pub mod error;
pub mod event;
pub mod login;
pub mod name;
mod named_file;
pub mod offering;
pub mod permissions;
pub mod question;
pub mod result;
pub mod server;
mod tool_schema;
pub mod trace_context;
mod trace_row;
pub mod traffic;

pub use call::{CallFacts, CallFilter, CallId, NestedCall, ToolCall, ToolCaller, ToolContext};
pub use call_record::{
    BreakpointRecord, CallPlace, CallRecord, CallerRecord, HoldOutcome, HoldPoint, QuestionRecord,
    RecordedOutcome,
};
pub use captured_traffic::CapturedTraffic;
pub use definition::{
    Annotations, Origin, PinState, Safety, Speed, ToolDefinition, ToolListing, ToolScope,
    ToolSource, ToolStatus,
};
pub use diagnostic::{Diagnostic, Diagnostics, Severity, SourceLocation};
pub use entry::{EntryOrigin, Layer};
pub use error::{Error, ErrorCause, ErrorKind, ErrorPhase, RetryAdvice, Signal};
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
    ClientAbilities, NoQuestionHandler, Question, QuestionAbilities, QuestionBody, QuestionHandler,
    QuestionOutcome, QuestionReply,
};
pub use result::{CallMetadata, Routing, SkippedServer, ToolResult};
pub use server::{Era, PastError, Root, ServerState, ServerStatus};
pub use tool_schema::ToolSchema;
pub use trace_context::TraceContext;
pub use trace_row::TraceRow;
pub use traffic::{TraceGate, Traffic, TrafficSink};

/// Gives enums that derive [`strum::IntoStaticStr`] their word.
macro_rules! impl_as_str {
    ($($name:ty),+ $(,)?) => {$(
        impl $name {
            /// The word used in files, records and output.
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }
    )+};
}
pub(crate) use impl_as_str;

impl_as_str!(
    CredentialKind,
    Era,
    ErrorKind,
    ErrorPhase,
    HoldOutcome,
    Layer,
    ListKind,
    QuestionOutcome,
    Safety,
    Speed,
    ToolScope,
    ToolSource,
    ToolStatus,
);

/// A JSON object with its keys in the order they were written.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
