//! The built-in tools: small functions in Rust that need no file and no program.
//!
//! Owns: the table of functions, how an entry of `tools.yaml` picks one, and the provider that
//! runs them. Never does: reach outside the process, except for `builtin.http`, which only
//! describes the request to send; any other function sees only its arguments, the clock and the
//! call's context.
//!
//! The table of built-in functions and their names in files.

use std::path::Path;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{Arguments, object_schema};
use super::http::FetchRequest;
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor};
use crate::config::typed::{self, Keys, Located};
use crate::model::{Diagnostic, Error, ToolContext, ToolResult};
use crate::provider::ProviderKind;
use crate::util::clock::Clock;
use crate::util::spelling::did_you_mean;

mod calculator;
mod digest;
mod echo;
mod fail;
mod http;
mod json;
mod json_diff;
mod provider;
mod regex;
mod text;
mod time;
mod uuid;
mod wait;

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
    Error::interrupted(format!("the {what} was stopped"))
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
    let find = |keys: FunctionKeys| find(&keys.module?, keys.function.as_ref()).ok();
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
    } else if is_builtin(&module, function.as_ref().map(|name| name.as_str())) {
        KindClaim::Fallback
    } else {
        KindClaim::No
    }
}

static FUNCTIONS: [&BuiltinFunction; 15] = [
    &calculator::CALCULATE,
    &time::NOW,
    &text::COUNT,
    &text::TRANSFORM,
    &digest::DIGEST,
    &json::QUERY,
    &json_diff::DIFF,
    &regex::MATCH,
    &regex::FIND_ALL,
    &regex::REPLACE,
    &http::FETCH,
    &uuid::GENERATE,
    &echo::ECHO,
    &wait::WAIT,
    &fail::FAIL,
];

fn is_builtin(module: &str, function: Option<&str>) -> bool {
    module == "builtin"
        || module.starts_with("builtin.")
        || function.is_some_and(|function| {
            FUNCTIONS.iter().any(|row| row.aliases.contains(&(module, function)))
        })
}

/// Finds the function an entry names. A module with a single function needs no `function`.
fn find(
    module: &Located<String>,
    function: Option<&Located<String>>,
) -> Result<&'static BuiltinFunction, Diagnostic> {
    let name = function.map(|function| function.as_str());
    if let Some(function) = name
        && let Some(row) =
            FUNCTIONS.iter().find(|row| row.aliases.contains(&(module.as_str(), function)))
    {
        return Ok(row);
    }
    let rows: Vec<&BuiltinFunction> =
        FUNCTIONS.iter().copied().filter(|row| row.module == module.value).collect();
    if rows.is_empty() {
        let mut modules: Vec<&str> = FUNCTIONS.iter().map(|row| row.module).collect();
        modules.dedup();
        return Err(unknown(module, format!("there is no module '{}'", module.value), &modules));
    }
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let Some(function) = function else {
        return match rows.as_slice() {
            [only] => Ok(only),
            _ => Err(module
                .error(format!("'{}' has several functions", module.value))
                .with_hint(format!("choose from {}", names.join(", ")))),
        };
    };
    rows.into_iter().find(|row| row.name == function.value).ok_or_else(|| {
        let message = format!("'{}' has no function '{}'", module.value, function.value);
        unknown(function, message, &names)
    })
}

fn unknown(name: &Located<String>, message: String, names: &[&str]) -> Diagnostic {
    let all = format!("choose from {}", names.join(", "));
    name.error(message).with_hint(match did_you_mean(name, names.iter().copied()) {
        Some(meant) => format!("{meant} {all}"),
        None => all,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SourceLocation;

    fn named(module: &str, function: Option<&str>) -> Result<&'static BuiltinFunction, Diagnostic> {
        let location = || SourceLocation {
            file: std::sync::Arc::default(),
            line: 1,
            column: 1,
            text: "".into(),
        };
        let located = |text: &str| Located { value: text.to_owned(), location: location() };
        find(&located(module), function.map(located).as_ref())
    }

    #[test]
    fn every_function_is_found_by_its_name_and_its_aliases() {
        for row in FUNCTIONS {
            assert_eq!(named(row.module, Some(row.name)).unwrap().title, row.title);
            for (module, function) in row.aliases {
                assert_eq!(named(module, Some(function)).unwrap().title, row.title);
                assert!(is_builtin(module, Some(function)));
            }
        }
    }

    #[test]
    fn a_module_with_one_function_needs_no_function() {
        assert_eq!(named("builtin.echo", None).unwrap().name, "echo");
        let (message, hint) = refusal("builtin.text", None);
        assert_eq!(message, "'builtin.text' has several functions");
        assert_eq!(hint, "choose from count, transform");
    }

    fn refusal(module: &str, function: Option<&str>) -> (String, String) {
        let error = named(module, function).err().unwrap();
        (error.message, error.hint.unwrap_or_default())
    }

    #[test]
    fn a_near_miss_is_suggested() {
        let (message, hint) = refusal("builtin.calculater", None);
        assert_eq!(message, "there is no module 'builtin.calculater'");
        assert_eq!(
            hint,
            "did you mean 'builtin.calculator'? choose from builtin.calculator, builtin.time, \
             builtin.text, builtin.hash, builtin.json, builtin.json_diff, builtin.regex, \
             builtin.http, builtin.uuid, builtin.echo, builtin.wait, builtin.fail"
        );
        let (message, hint) = refusal("builtin.calculator", Some("compute"));
        assert_eq!(message, "'builtin.calculator' has no function 'compute'");
        assert_eq!(hint, "choose from calculate");
    }
}
