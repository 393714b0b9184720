//! toolhost: one catalogue of internal tools and MCP servers, as a library.
//!
//! A [`ToolHost`] is the single gateway to tools of all kinds: functions of your program, stores,
//! commands, HTTP APIs, MCP servers. It lists them under one set of names, checks arguments and
//! results against their schemas, asks for approval, limits, retries, and records. The program
//! `toolhost` is a front end over the same host.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//! use toolhost::{CallRequest, Error, ErrorKind, FunctionTool, Structured, ToolContext, ToolHost};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Trip {
//!     /// How far it is, in kilometres.
//!     distance: f64,
//!     /// How fast one goes, in kilometres an hour.
//!     speed: f64,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Hours {
//!     hours: f64,
//! }
//!
//! async fn duration(trip: Trip, _: ToolContext) -> Result<Structured<Hours>, Error> {
//!     if trip.speed <= 0.0 {
//!         return Err(Error::tool("the speed must be greater than zero"));
//!     }
//!     Ok(Structured(Hours { hours: trip.distance / trip.speed }))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let host = ToolHost::builder().build();
//! host.register_function(FunctionTool::new("duration", "How long a trip takes", duration))?;
//!
//! let trip = json!({ "distance": 150, "speed": 100 });
//! let outcome = host.call(CallRequest::json("duration", trip)?).await?;
//! assert_eq!(outcome.result?.output["hours"], 1.5);
//!
//! // Arguments that do not match the schema never reach the function.
//! let error = host.call(CallRequest::json("duration", json!({ "speed": "fast" }))?).await;
//! assert_eq!(error.unwrap_err().kind(), ErrorKind::Usage);
//!
//! host.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # The parts
//!
//! | to | use |
//! |---|---|
//! | build a host | [`ToolHost::builder`], [`ToolHostBuilder`]; with every built-in kind: [`host_builder`]; from `tools.yaml` and `mcp.yaml`: [`assemble`] |
//! | add a tool that is a function | [`FunctionTool`] with [`ToolHost::register_function`]; with a schema of your own: [`ToolHost::register`] |
//! | add a source of tools | [`ToolProvider`] with [`ToolHost::register_provider`] |
//! | add a component or an MCP server | [`ComponentConfig`] with [`ToolHost::register_component`], [`ToolHost::register_client`]; a type of components: [`ToolHost::register_kind`] |
//! | list, describe, call | [`ToolHost::list`], [`ToolHost::find`], [`ToolHost::call`] with a [`CallRequest`] |
//! | know who made a call | [`ToolContext`]: session, user, metadata, progress, cancellation, nested calls; [`SessionInfo`] |
//! | decide what may run | [`Approver`], [`PolicyRule`], [`ProfileSpec`] |
//! | see what happens | [`EventSink`], [`HostEvent`] |
//! | follow changes of a resource | [`ToolHost::subscribe`], [`ToolHost::unsubscribe`], [`HostEvent::ResourceUpdated`] |
//! | see the traffic with servers | [`TrafficSink`] in a [`FrontEnd`], [`Traffic`], [`TraceGate`] |
//! | benchmark tools | [`bench::prepare`], [`bench::Benchmark`] |
//! | count and record | [`UsageCounter`], [`Recorder`] |
//! | give tools to a model | [`ModelFormat::export`], [`ModelFormat::requested_calls`], [`ToolHost::answer_model`], [`ModelFormat::answer_messages`] |
//! | serve the tools over MCP | [`CatalogueServer`], [`ClientRegistry`], [`serve_stream`] |
//!
//! The repository has an example program for each: `embed` (functions and sessions), `provider`,
//! `register` (components, servers, agents with profiles), `serve_in_process`, `agent_loop`.
//!
//! Errors are one type, [`Error`], with a [kind](ErrorKind) for programs and a message for people.
//! A tool that reports a failure is not an error of the call: see [`ToolResult::error`].
//!
//! # Glossary
//!
//! The terms of MCP, JSON-RPC and HTTP keep the meaning of their specifications. The project's own terms:
//!
//! | term | meaning |
//! |---|---|
//! | attempt | one try of a call; a call has one or more |
//! | bundle | a project's configuration files with the code they name; trusted as a whole |
//! | catalogue | the list of all tools at one moment |
//! | component | what several tools are named after: a server or a configured instance |
//! | declared, advertised | a tool as described by a file, and as described by its server |
//! | diagnostic | a problem in a file or a listing, with its position |
//! | drift | a difference between the declared or pinned definition of a tool and the live one |
//! | entry | one tool or server in a file, as written |
//! | era | which lifecycle a server speaks: legacy (`initialize`) or modern (stateless) |
//! | grant | the proof of consent to a file; the only way to expand its references |
//! | kind | a way to run tools, such as `builtin`, `command` or `mcp` |
//! | layer | how a file was found: flag, variable, project, user, embedded |
//! | listing | what one provider offers at one moment |
//! | masker | removes known secrets from everything that is recorded or shown |
//! | nested call | a call that a tool makes as part of its own call |
//! | offering | what a server offers besides tools: a prompt, a resource or a resource template |
//! | profile | a named view of the catalogue: what one agent sees |
//! | provider | runs the tools of one kind or one server |
//! | room | a top-level module |
//! | seal | what an entry may start, as it was trusted; compared again before each start |
//! | session | of a caller: calls that belong together; in [`mcp`]: one connection's state |
//! | spec | a resolved entry, free of the file's form |
//! | spool | the file that calls append their statistics to |
//! | trace | the traffic with servers, byte for byte |
//! | trust | a person's stored consent to a project's bundle, bound to its content |
//! | wire | the bytes to and from one server |

pub use assembly::{Assembly, AssemblyOptions, FrontEnd, assemble, host_builder};
pub use catalogue::{Catalogue, LocalFailure, ServerListing};
pub use config::discover::LoadRequest;
pub use config::environment::{Environment, FixedEnvironment, ProcessEnvironment, VariableName};
pub use config::spec::{FileRole, PolicyAction, PolicyRule, ProfileSpec};
pub use formats::{
    CallAnswer, ExportedCatalogue, ExportedTool, ModelFormat, RequestedCall, ResponseError,
    UnparsedArguments,
};
pub use host::builder::ToolHostBuilder;
pub use host::directory::OfferableTool;
pub use host::function_tool::{FunctionTool, Structured, ToolHandler, ToolOutput};
pub use host::offerings::Offerings;
pub use host::policy::{Approval, ApprovalRequest, Approver, Decision};
pub use host::recorder::{RecordError, Recorder, UsageCounter};
pub use host::request::{
    ArgumentWord, CallArguments, CallOutcome, CallRequest, DryRun, ItemRequest, ListRequest,
    ListScope, LookupScope,
};
pub use host::sessions::SessionInfo;
pub use host::{ClientScope, RegistrationError, Removal, ScopeProfile, ToolHost};
pub use model::traffic::{Direction, MessageInfo, TraceGateGuard, TrafficKind};
pub use model::{
    Annotations, AuthorizationRequest, BreakpointRecord, Browser, CallId, CallMetadata, CallPlace,
    CallRecord, CallerRecord, Completion, CompletionQuery, CompletionReference, Diagnostic, Era,
    Error, ErrorCause, ErrorKind, ErrorPhase, EventSink, Freshness, HoldOutcome, HoldPoint,
    HostEvent, InvalidNameError, JsonObject, ListKind, ListOwner, LogLevel, LoginReport,
    NestedCall, Origin, PastError, PinState, Prompt, PromptArgument, PromptMessages, Question,
    QuestionBody, QuestionHandler, QuestionOutcome, QuestionRecord, QuestionReply, RecordedOutcome,
    Resource, ResourceContents, ResourceTemplate, RetryAdvice, Routing, Safety, ServerState,
    ServerStatus, Severity, Signal, SkippedServer, SourceLocation, Speed, ToolCall, ToolCaller,
    ToolContext, ToolDefinition, ToolName, ToolResult, ToolSchema, ToolScope, ToolSource,
    ToolStatus, TraceContext, TraceGate, Traffic, TrafficSink, WithheldItem,
};
pub use provider::{
    ComponentConfig, ComponentFactory, Preview, ToolListVersion, ToolListing, ToolProvider,
};
pub use run::run;
pub use serve::catalogue_server::{CatalogueServer, ClientRegistry, ServeSettings, ServedIdentity};
pub use serve::listen::stream::serve_stream;
pub use stats::count::{CallCounts, ToolKey};
pub use util::histogram::Durations;

mod assembly;
mod audit;
pub mod bench;
mod catalogue;
mod cli;
mod config;
mod formats;
mod history;
mod host;
mod mcp;
mod model;
mod net;
mod present;
mod provider;
mod providers;
mod run;
mod serve;
mod stats;
mod tui;
mod util;

/// What fuzzing tries, and tests on a corpus: not a part of the library.
#[cfg(any(test, fuzzing))]
#[path = "../fuzz/targets.rs"]
pub mod fuzzing;

#[cfg(test)]
#[path = "../tests/conformance/client.rs"]
mod conformance_client;
