//! The built-in tools: small functions in Rust that need no network, no file and no program.
//!
//! Owns: the table of functions, how an entry of `tools.yaml` picks one, and the provider that
//! runs them. Never does: reach out of the process; a function sees its arguments, the clock and
//! the call's context, and nothing else.

mod arguments;
mod calculator;
mod digest;
mod echo;
mod fail;
mod json;
mod provider;
mod table;
mod text;
mod time;
mod uuid;
mod wait;

use std::path::Path;
use std::pin::Pin;

use serde_json::Value;

use self::arguments::Arguments;
use crate::config::node::Node;
use crate::config::spec::{Claim, KindWords};
use crate::model::{Fault, ToolContext, ToolResult};
use crate::provider::Kind;
use crate::util::clock::Clock;

/// What one built-in function gives.
type Outcome = Result<ToolResult, Fault>;

/// One row of the table.
struct Function {
    /// The module as files name it, `builtin.…`.
    module: &'static str,
    /// The function as files name it.
    name: &'static str,
    /// Other pairs of module and function that mean this one.
    aliases: &'static [(&'static str, &'static str)],
    /// For people, when the entry has no title.
    title: &'static str,
    /// For people and models, when the entry has no description.
    description: &'static str,
    /// The schema of the arguments, when the entry has none.
    input: fn() -> Value,
    /// The schema of the structured result, for functions that give one.
    output: Option<fn() -> Value>,
    /// Whether the same arguments always give the same result. Every built-in is read-only.
    idempotent: bool,
    /// The function itself.
    run: Run,
}

/// How a function runs.
enum Run {
    /// At once.
    Now(fn(&dyn Clock, Arguments<'_>) -> Outcome),
    /// Over time, with progress and cancellation.
    Later(for<'a> fn(&'a ToolContext, Arguments<'a>) -> Later<'a>),
}

/// A function that is still running.
type Later<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// The row of the registry of kinds.
pub fn kind() -> Kind {
    Kind {
        words: KindWords {
            key: "builtin",
            aliases: &["core"],
            keys: &["module", "function"],
            expand: &[],
            claims,
            effects: |_, _| Vec::new(),
            code: None,
        },
        build: provider::build,
    }
}

/// Entries whose module is one of ours; `builtin.` with a wrong rest too, so that the mistake is
/// named here and not taken for a Python module. Of the names by which other files know our
/// functions a Python module that is there has the first right.
fn claims(entry: &Node, _base_dir: &Path) -> Claim {
    let text = |key| entry.get(key).and_then(|node| node.as_text().ok());
    match text("module") {
        Some(module) if module.starts_with("builtin.") => Claim::Certain,
        Some(module) if table::is_ours(module, text("function")) => Claim::Fallback,
        _ => Claim::No,
    }
}
