//! The built-in tools: small functions in Rust that need no file and no program.
//!
//! Owns: the table of functions, how an entry of `tools.yaml` picks one, and the provider that
//! runs them. Never does: reach outside the process, except for `builtin.http`, which only
//! describes the request to send; any other function sees only its arguments, the clock and the
//! call's context.

mod calculator;
mod digest;
mod echo;
mod fail;
mod http;
mod json;
mod json_diff;
mod provider;
mod regex;
mod table;
mod text;
mod time;
mod uuid;
mod wait;

use std::path::Path;
use std::pin::Pin;

use serde_json::Value;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::{self, Keys, Located};
use crate::model::error::Signal;
use crate::model::{Error, ErrorKind, ToolContext, ToolResult};
use crate::provider::ProviderKind;
use crate::providers::arguments::Arguments;
use crate::providers::http::FetchRequest;
use crate::providers::properties::object_schema;
use crate::util::clock::Clock;

type FunctionResult = Result<ToolResult, Error>;

struct BuiltinFunction {
    /// The module as files name it, `builtin.…`.
    module: &'static str,
    name: &'static str,
    aliases: &'static [(&'static str, &'static str)],
    title: &'static str,
    description: &'static str,
    /// The schema of the arguments, when the entry has none.
    input: fn() -> Value,
    output: Option<fn() -> Value>,
    /// Whether the same arguments always give the same result. Every built-in that does not use the
    /// network is read-only.
    idempotent: bool,
    run: FunctionBody,
}

/// The code of a function: blocking for an instant, or asynchronous.
enum FunctionBody {
    /// Computes its result without waiting.
    Sync(fn(&dyn Clock, Arguments<'_>) -> FunctionResult),
    /// Over time, with progress and cancellation.
    Async(for<'a> fn(&'a ToolContext, Arguments<'a>) -> FunctionFuture<'a>),
    /// Says which request to send.
    Network(fn(Arguments<'_>) -> Result<FetchRequest, Error>),
}

impl BuiltinFunction {
    fn uses_network(&self) -> bool {
        matches!(self.run, FunctionBody::Network(_))
    }
}

/// The schema of the arguments of a function.
fn input(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties = properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone()));
    let mut schema = object_schema(Value::Object(properties.collect()), required);
    if let (true, Some(schema)) = (required.is_empty(), schema.as_object_mut()) {
        schema.remove("required");
    }
    schema
}

type FunctionFuture<'a> = Pin<Box<dyn Future<Output = FunctionResult> + Send + 'a>>;

/// Runs work that the runtime has no time for. When the call is cancelled, the work has to end by
/// itself; nobody waits for it. `what` is its name in errors.
async fn in_thread<T: Send + 'static>(
    context: &ToolContext,
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let running = tokio::task::spawn_blocking(work);
    tokio::select! {
        () = context.cancel.cancelled() => Err(stopped(what)),
        result = running => result
            .map_err(|error| Error::internal(format!("the {what} could not be run: {error}"))),
    }
}

fn stopped(what: &str) -> Error {
    Error::new(ErrorKind::Interrupted(Signal::Interrupt), format!("the {what} was stopped"))
}

/// The keys of an entry.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
struct FunctionKeys {
    /// The module: builtin.NAME is part of toolhost; any other one is a Python module.
    module: Option<Located<String>>,
    /// The function of the module.
    function: Option<Located<String>>,
}

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "builtin",
            aliases: &["core"],
            keys: const { &[Keys::of::<FunctionKeys>()] },
            expand: &[],
            claims,
            effects,
            code: None,
        },
        build: provider::build,
    }
}

/// The effects of an entry: none, unless its function uses the network.
fn effects(entry: &ConfigNode, _site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let find = |keys: FunctionKeys| table::find(&keys.module?, keys.function.as_ref()).ok();
    match typed::peek(entry).and_then(find) {
        Some(function) if function.uses_network() => {
            vec![EntryEffect::Contacts("the address given in the call".to_owned())]
        }
        _ => Vec::new(),
    }
}

/// Entries whose module is one of ours; `builtin.` with a wrong rest too, so that the mistake is
/// reported here and not taken for a Python module. For the names by which other files know our
/// functions, an existing Python module takes precedence.
fn claims(entry: &ConfigNode, _base_dir: &Path) -> KindClaim {
    let Some(FunctionKeys { module: Some(module), function }) = typed::peek(entry) else {
        return KindClaim::No;
    };
    if module.starts_with("builtin.") {
        KindClaim::Certain
    } else if table::is_builtin(&module, function.as_ref().map(|name| name.as_str())) {
        KindClaim::Fallback
    } else {
        KindClaim::No
    }
}
