//! The common keys of a tool → [`ToolDefinition`].

use std::sync::Arc;

use super::{FileContext, Findings, limit, origin, retries, schemas};
use crate::config::keys::{ANNOTATIONS, TOOL, canonical};
use crate::config::node::{Node, NodeValue};
use crate::model::{
    Annotations, Origin, Problem, Safety, Source, Speed, ToolDefinition, ToolName, ToolScope,
};

/// The kind of the tools a server declares.
pub const SERVER_KIND: &str = "mcp";

/// Reads the common keys of an entry. `kind_keys` are the keys its kind understands.
pub fn resolve(
    entry: &Node,
    name: ToolName,
    source: Source,
    kind: &'static str,
    kind_keys: &[&str],
    file: &FileContext<'_>,
    findings: &mut Findings,
) -> ToolDefinition {
    let mut tool = ToolDefinition::new(name, source, kind, Origin::File(entry.place()));
    for (key, value) in entry.entries() {
        let Some(word) = canonical(TOOL, &key.text) else {
            if !kind_keys.contains(&key.text.as_str()) {
                findings.unknown_key(entry, key, TOOL, kind_keys);
            }
            continue;
        };
        if value.is_null() {
            continue;
        }
        match word {
            "title" => tool.title = findings.take(value.as_scalar_text()),
            "description" => tool.description = findings.take(value.as_scalar_text()),
            "category" => tool.category = findings.take(value.as_scalar_text()),
            "version" => tool.version = findings.take(value.as_scalar_text()),
            "parameters_schema" => {
                if let Some(schema) = findings.take(schemas::inline(value, file)) {
                    if !schemas::takes_an_object(&schema) {
                        findings.warn(
                            value.place(),
                            "arguments are always an object, this schema says otherwise",
                        );
                    }
                    tool.input_schema = Arc::new(schema);
                }
            }
            "output_schema" => {
                tool.output_schema = findings.take(schemas::inline(value, file)).map(Arc::new);
            }
            "param_schema_ref" => {
                if let Some(schema) = findings.take(schemas::named(value, file)) {
                    tool.input_schema = Arc::new(schema);
                }
            }
            "response_schema_ref" => {
                tool.output_schema = findings.take(schemas::named(value, file)).map(Arc::new);
            }
            "speed" => {
                let words = "instant, fast, medium, slow";
                if let Some(speed) = findings.take(one_of(value, "speed", words, Speed::parse)) {
                    tool.speed = speed;
                }
            }
            "safety" => {
                let words = "native, sandboxed, external";
                if let Some(safety) = findings.take(one_of(value, "safety", words, Safety::parse)) {
                    tool.safety = safety;
                }
            }
            "source" => check_source(value, source, findings),
            "timeout" => tool.timeout = findings.take(limit(value)),
            "max_total" => tool.max_total = findings.take(limit(value)),
            "retries" => tool.retries = findings.take(retries(value)).unwrap_or_default(),
            "requires_approval" => {
                tool.requires_approval = findings.take(approval(value, kind_keys)) != Some(false);
            }
            "scope" => {
                if let Some(scope) = findings.take(scope(value, kind_keys)) {
                    tool.scope = scope;
                }
            }
            "context_env" => tool.context_env = origin::context_env(value, findings),
            "annotations" => tool.annotations = annotations(value, findings),
            // `name`, `kind`, `disabled` and `enabled` were read before.
            _ => {}
        }
    }
    tool.repeatable =
        tool.annotations.idempotent == Some(true) || tool.annotations.read_only == Some(true);
    defaults(&mut tool, entry, file);
    tool
}

/// Fills what the entry leaves out from the file's `defaults`: they come before the declared speed.
/// What is wrong with the defaults was said once, for the file.
fn defaults(tool: &mut ToolDefinition, entry: &Node, file: &FileContext<'_>) {
    let Some(defaults) = &file.defaults else { return };
    if let (None, Some(node)) = (tool.timeout, defaults.get("timeout")) {
        tool.timeout = limit(node).ok();
    }
    if let (None, Some(node)) = (entry.get("retries"), defaults.get("retries")) {
        tool.retries = retries(node).unwrap_or_default();
    }
}

/// A word out of a closed list.
pub fn one_of<T>(
    node: &Node,
    what: &str,
    words: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, Problem> {
    let text = node.as_text()?;
    parse(text).ok_or_else(|| {
        let mut problem = Problem::error(format!("'{text}' is no {what}; it is one of {words}"));
        if let Some(meant) = crate::config::keys::suggestion(text, words.split(", ")) {
            problem = problem.hint(format!("did you mean '{meant}'?"));
        }
        problem.at(node.place())
    })
}

fn check_source(value: &Node, source: Source, findings: &mut Findings) {
    let parse = |word: &str| match word {
        "internal" => Some(Source::Internal),
        "mcp" => Some(Source::Mcp),
        _ => None,
    };
    let Some(said) = findings.take(one_of(value, "source", "internal, mcp", parse)) else { return };
    if said != source {
        let message = match source {
            Source::Internal => "a tool of this file is internal; servers belong in mcp.yaml",
            Source::Mcp => "a tool that a server provides has the source mcp",
        };
        findings.error(value.place(), message);
    }
}

fn approval(value: &Node, kind_keys: &[&str]) -> Result<bool, Problem> {
    match &value.value {
        // The names in the list are tools of a toolkit, and only its kind knows them. A kind that
        // does not would ask too rarely, so there the list stands for all.
        NodeValue::List(names) => {
            Ok(!names.is_empty() && !kind_keys.contains(&"requires_approval"))
        }
        _ => value.as_bool(),
    }
}

fn scope(value: &Node, kind_keys: &[&str]) -> Result<ToolScope, Problem> {
    let parse = |word: &str| match word {
        "global" => Some(ToolScope::Global),
        "session" => Some(ToolScope::Session),
        // For a kind that works in a directory the scope names that directory.
        _ if kind_keys.contains(&"scope") => Some(ToolScope::Global),
        _ => None,
    };
    one_of(value, "scope", "global, session", parse)
}

fn annotations(node: &Node, findings: &mut Findings) -> Annotations {
    let mut annotations = Annotations::default();
    let Some(entries) = findings.take(node.as_map()) else { return annotations };
    for (key, value) in entries {
        match key.text.as_str() {
            "title" => annotations.title = findings.take(value.as_scalar_text()),
            "readOnlyHint" => annotations.read_only = findings.take(value.as_bool()),
            "destructiveHint" => annotations.destructive = findings.take(value.as_bool()),
            "idempotentHint" => annotations.idempotent = findings.take(value.as_bool()),
            "openWorldHint" => annotations.open_world = findings.take(value.as_bool()),
            _ => findings.unknown_key(node, key, ANNOTATIONS, &[]),
        }
    }
    annotations
}
