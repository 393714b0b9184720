//! toolhost: one catalogue of internal tools and MCP servers.
//!
//! The program `toolhost` is a thin front end over this library. `README.md` tells what it does,
//! `ARCHITECTURE.md` how it is built; this page is the map and the glossary.
//!
//! # The map
//!
//! A command line becomes a request, files become specs, specs become providers, and providers go
//! into one host. From the top down; a room imports only rooms below it:
//!
//! | room | owns |
//! |---|---|
//! | [`run`] | one run of the program: signals, and where a failure becomes text and an exit code |
//! | [`cli`] | the grammar, the commands, output, questions, completion |
//! | [`tui`] | the console: its state, keys, picture, and the terminal while it runs |
//! | [`assembly`] | files in, a host out: the only room that names every kind of tool |
//! | [`serve`] | the demo server that the embedded `mcp.yaml` starts; recording and replaying servers |
//! | [`mod@bench`] | the load engine: plans, runs, what can be said about them |
//! | [`host`] | [`ToolHost`](host::ToolHost): names to providers, and the life of a call |
//! | [`providers`] | one kind of tool each: `builtin`, `command`, `python`, `http`, `openapi`, `files`, `pipeline`, `storage`, `mailbox`, `mcp` |
//! | [`provider`] | the contract between the host and a kind |
//! | [`mcp`] | the MCP client: transports, eras, sessions |
//! | [`config`] | files to specs, with a place for every value; consent |
//! | [`catalogue`] | one list: names, filters, fingerprints, drift |
//! | [`net`] | what everything that speaks HTTP has in common |
//! | [`audit`], [`history`], [`stats`] | what happened, appended; statistics, folded by readers |
//! | [`model`] | the vocabulary |
//! | [`util`] | small tools: text made safe, processes, units, the clock |
//!
//! # Glossary
//!
//! The terms of MCP, JSON-RPC and HTTP keep the meaning of their specifications. These are ours:
//!
//! | word | means |
//! |---|---|
//! | attempt | one try of a call; a call has one or more |
//! | bundle | a project's configuration files with the code they name; trusted as a whole |
//! | catalogue | the list of all tools at one moment |
//! | component | what several tools are named after: a server, or a configured instance |
//! | declared, advertised | what a file says a tool is, and what its server says |
//! | diagnostic | something wrong in a file or a listing, with its place |
//! | drift | a difference between the declared or pinned definition of a tool and the live one |
//! | entry | one tool or server in a file, as it is written |
//! | era | which lifecycle a server speaks: legacy (`initialize`) or modern (stateless) |
//! | grant | the proof of consent to a file; the only way to expand its references |
//! | kind | a way to run tools, such as `builtin`, `command` or `mcp` |
//! | layer | how a file was found: flag, variable, project, user, embedded |
//! | listing | what one provider offers at one moment |
//! | masker | takes known secrets out of whatever is recorded or shown |
//! | nested call | a call that a tool makes as part of its own |
//! | offering | what a server has beside tools: a prompt, a resource or a resource template |
//! | profile | a named view of the catalogue: what one agent sees |
//! | provider | runs the tools of one kind or one server |
//! | room | a top-level module |
//! | seal | what an entry may start, as it was trusted; compared again before each start |
//! | session | of a caller: the calls that belong together; in [`mcp`]: one connection's state |
//! | spec | a resolved entry, free of the file's form |
//! | spool | the file that calls append their statistics to |
//! | trace | what crossed the wires of servers, byte for byte |
//! | trust | a person's yes to a project's bundle, bound to its content and kept |
//! | wire | the bytes to one server and back |
//!
//! # Embedding
//!
//! A host is built from providers. Those of files come from [`assembly::assemble`]; your own are
//! values that implement [`ToolProvider`](provider::ToolProvider). Validation, approval, limits,
//! retries and records are the host's and hold for both.
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use serde_json::json;
//! use toolhost::host::ToolHost;
//! use toolhost::host::request::{ArgumentWord, CallArguments, CallRequest};
//! use toolhost::model::*;
//! use toolhost::provider::{Preview, ToolProvider};
//!
//! struct Doubler;
//!
//! #[async_trait]
//! impl ToolProvider for Doubler {
//!     fn declared(&self) -> Vec<Arc<ToolDefinition>> {
//!         let name = ToolName::plain("double");
//!         let origin = Origin::Program;
//!         let mut tool = ToolDefinition::new(name, ToolSource::Internal, "doubler", origin);
//!         tool.input_schema = Arc::new(json!({
//!             "type": "object",
//!             "properties": { "n": { "type": "integer" } },
//!             "required": ["n"],
//!         }));
//!         vec![Arc::new(tool)]
//!     }
//!
//!     async fn call(&self, _: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
//!         let n = call.arguments["n"].as_i64().unwrap_or_default();
//!         Ok(ToolResult::json(json!({ "twice": n * 2 })))
//!     }
//!
//!     async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
//!         Ok(Preview { summary: "doubles a number".into(), request: json!(call.arguments) })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let host = ToolHost::builder().provider(Arc::new(Doubler)).build();
//!
//! // A word is text until the schema says what it should be.
//! let word = |value: &str| {
//!     let word = ArgumentWord::Text { key: "n".into(), value: value.into() };
//!     CallRequest::new("double", CallArguments::Words(vec![word]))
//! };
//! assert_eq!(host.call(word("21")).await?.result?.output, json!({ "twice": 42 }));
//!
//! // What does not fit never reaches the provider.
//! let error = host.call(word("many")).await.unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Usage);
//!
//! host.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! A tool need not be known beforehand. Any async function of this shape can be registered while
//! the host runs, and taken away again:
//!
//! ```
//! use serde_json::json;
//! use toolhost::host::ToolHost;
//! use toolhost::host::request::{CallArguments, CallRequest};
//! use toolhost::model::{
//!     Error, JsonObject, Origin, ToolContext, ToolDefinition, ToolName, ToolResult, ToolSource,
//! };
//!
//! async fn shout(arguments: JsonObject, _: ToolContext) -> Result<ToolResult, Error> {
//!     let text = arguments.get("text").and_then(|text| text.as_str()).unwrap_or_default();
//!     Ok(ToolResult::text(text.to_uppercase()))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let host = ToolHost::builder().build();
//! let name = ToolName::plain("shout");
//! host.register(ToolDefinition::new(name, ToolSource::Internal, "program", Origin::Program), shout)?;
//!
//! let text = JsonObject::from_iter([("text".to_owned(), json!("hello"))]);
//! let outcome = host.call(CallRequest::new("shout", CallArguments::Object(text))).await?;
//! assert_eq!(outcome.result?.output, json!("HELLO"));
//! assert!(host.unregister("shout"));
//! # Ok(())
//! # }
//! ```
//!
//! Whole providers, components of the built-in kinds and MCP servers come and go in the same way:
//! [`assembly::host_builder`] starts a host for a program that reads no files. Each request may name
//! the profile of the agent that asks; it sees and calls only what the profile shows.
//!
//! ```
//! use std::sync::Arc;
//!
//! use serde_json::json;
//! use toolhost::assembly::{FrontEnd, host_builder};
//! use toolhost::config::environment::{Environment, FixedEnvironment};
//! use toolhost::config::spec::ProfileSpec;
//! use toolhost::host::request::ListRequest;
//! use toolhost::model::Error;
//! use toolhost::provider::ComponentConfig;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! // References in settings, such as `${TOKEN}`, are looked up here: this one knows nothing.
//! let environment: Arc<dyn Environment> = Arc::new(FixedEnvironment::default());
//! let reader = ProfileSpec { include: vec!["*-read".to_owned()], ..ProfileSpec::default() };
//! let host = host_builder(&environment, FrontEnd::headless())
//!     .profiles([("reader".to_owned(), reader)])
//!     .build();
//!
//! let settings = json!({ "storage_type": "memory" }).as_object().cloned().unwrap_or_default();
//! host.register_component("storage", &ComponentConfig::new("notes", settings))?;
//! let listed = host.list(&ListRequest::in_profile("reader")).await?;
//! assert_eq!(listed.tools[0].name.full(), "notes-read");
//! host.unregister_component("notes").await?;
//! # host.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/embed.rs` is a host with a provider and single tools; `examples/register.rs` has a type
//! of components of its own, an MCP server, two agents, and removals while calls run.

pub mod assembly;
pub mod audit;
pub mod bench;
pub mod catalogue;
pub mod cli;
pub mod config;
pub mod formats;
pub mod history;
pub mod host;
pub mod mcp;
pub mod model;
pub mod net;
pub mod provider;
pub mod providers;
pub mod run;
pub mod serve;
pub mod stats;
pub mod tui;
pub mod util;
