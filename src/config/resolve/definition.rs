//! Resolving the common keys of a tool to a [`ToolDefinition`].

use std::sync::Arc;

use super::{EntryDiagnostics, FileContext, limit, origin, retries, schema_types, schemas};
use crate::config::keys::{ANNOTATIONS, TOOL, canonical};
use crate::config::node::{ConfigNode, NodeValue};
use crate::model::{
    Annotations, Diagnostic, Origin, Safety, Speed, ToolDefinition, ToolName, ToolScope, ToolSource,
};

pub const SERVER_KIND: &str = "mcp";

/// Reads the common keys of an entry. `kind_keys` are the keys its kind understands.
pub fn resolve(
    entry: &ConfigNode,
    name: ToolName,
    source: ToolSource,
    kind: &'static str,
    kind_keys: &[&str],
    file: &FileContext<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> ToolDefinition {
    let mut tool = ToolDefinition::new(name, source, kind, Origin::File(entry.location()));
    for (key, value) in entry.entries() {
        let Some(word) = canonical(TOOL, &key.text) else {
            if !kind_keys.contains(&key.text.as_str()) {
                entry_diagnostics.unknown_key(entry, key, TOOL, kind_keys);
            }
            continue;
        };
        if value.is_null() {
            continue;
        }
        match word {
            "title" => tool.title = entry_diagnostics.ok_or_report(value.as_scalar_text()),
            "description" => {
                tool.description = entry_diagnostics.ok_or_report(value.as_scalar_text());
            }
            "category" => tool.category = entry_diagnostics.ok_or_report(value.as_scalar_text()),
            "version" => tool.version = entry_diagnostics.ok_or_report(value.as_scalar_text()),
            "parameters_schema" => {
                schema_types::report(value, entry_diagnostics);
                if let Some(schema) = entry_diagnostics.ok_or_report(schemas::inline(value, file)) {
                    if !schemas::accepts_object(&schema) {
                        entry_diagnostics.warn(
                            value.location(),
                            "arguments are always an object, but this schema does not accept one",
                        );
                    }
                    tool.input_schema = Arc::new(schema);
                }
            }
            "output_schema" => {
                schema_types::report(value, entry_diagnostics);
                tool.output_schema =
                    entry_diagnostics.ok_or_report(schemas::inline(value, file)).map(Arc::new);
            }
            "param_schema_ref" => {
                report_named(value, file, entry_diagnostics);
                if let Some(schema) = entry_diagnostics.ok_or_report(schemas::named(value, file)) {
                    tool.input_schema = Arc::new(schema);
                }
            }
            "response_schema_ref" => {
                report_named(value, file, entry_diagnostics);
                tool.output_schema =
                    entry_diagnostics.ok_or_report(schemas::named(value, file)).map(Arc::new);
            }
            "speed" => {
                let choices = "instant, fast, medium, slow";
                if let Some(speed) =
                    entry_diagnostics.ok_or_report(one_of(value, "speed", choices, Speed::parse))
                {
                    tool.speed = speed;
                    tool.has_declared_speed = true;
                }
            }
            "safety" => {
                let choices = "native, sandboxed, external";
                if let Some(safety) =
                    entry_diagnostics.ok_or_report(one_of(value, "safety", choices, Safety::parse))
                {
                    tool.safety = safety;
                }
            }
            "source" => check_source(value, source, entry_diagnostics),
            "timeout" => tool.timeout = entry_diagnostics.ok_or_report(limit(value)),
            "max_total" => tool.max_total = entry_diagnostics.ok_or_report(limit(value)),
            "retries" => {
                tool.retries = entry_diagnostics.ok_or_report(retries(value)).unwrap_or_default();
            }
            "requires_approval" => {
                tool.requires_approval =
                    entry_diagnostics.ok_or_report(approval(value, kind_keys)) != Some(false);
            }
            "scope" => {
                if let Some(scope) = entry_diagnostics.ok_or_report(scope(value, kind_keys)) {
                    tool.scope = scope;
                }
            }
            "context_env" => tool.context_env = origin::context_env(value, entry_diagnostics),
            "annotations" => tool.annotations = annotations(value, entry_diagnostics),
            // `name`, `kind`, `disabled` and `enabled` were read before.
            _ => {}
        }
    }
    tool.is_repeatable =
        tool.annotations.idempotent == Some(true) || tool.annotations.read_only == Some(true);
    tool.has_own_retries = source == ToolSource::Internal && tool.retries > 0;
    defaults(&mut tool, entry, file);
    tool
}

/// Fills in missing keys from the file's `defaults`, which take precedence over the declared speed.
/// Errors in the defaults were already reported for the file.
fn defaults(tool: &mut ToolDefinition, entry: &ConfigNode, file: &FileContext<'_>) {
    let Some(defaults) = &file.defaults else { return };
    if let (None, Some(node)) = (tool.timeout, defaults.get("timeout")) {
        tool.timeout = limit(node).ok();
    }
    if let (None, Some(node)) = (entry.get("retries"), defaults.get("retries")) {
        tool.retries = retries(node).unwrap_or_default();
    }
}

/// Reports unknown types in the schema that `name` refers to.
fn report_named(name: &ConfigNode, file: &FileContext<'_>, diagnostics: &mut EntryDiagnostics) {
    let schemas = file.schemas.as_ref();
    if let Some(schema) = name.as_text().ok().and_then(|name| schemas?.get(name)) {
        schema_types::report(schema, diagnostics);
    }
}

/// A word from a closed list.
pub fn one_of<T>(
    node: &ConfigNode,
    what: &str,
    choices: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, Diagnostic> {
    let text = node.as_text()?;
    parse(text).ok_or_else(|| {
        Diagnostic::error(format!("unknown {what} '{text}'; expected one of {choices}"))
            .with_suggestion(text, choices.split(", "))
            .with_location(node.location())
    })
}

fn check_source(value: &ConfigNode, source: ToolSource, entry_diagnostics: &mut EntryDiagnostics) {
    let parse = |word: &str| match word {
        "internal" => Some(ToolSource::Internal),
        "mcp" => Some(ToolSource::Mcp),
        _ => None,
    };
    let Some(declared) =
        entry_diagnostics.ok_or_report(one_of(value, "source", "internal, mcp", parse))
    else {
        return;
    };
    if declared != source {
        let message = match source {
            ToolSource::Internal => "a tool of this file is internal; servers belong in mcp.yaml",
            ToolSource::Mcp => "a tool that a server provides has the source mcp",
        };
        entry_diagnostics.error(value.location(), message);
    }
}

fn approval(value: &ConfigNode, kind_keys: &[&str]) -> Result<bool, Diagnostic> {
    match &value.value {
        // The list names tools of a toolkit, which only its kind knows. A kind that
        // does not would ask too rarely, so there the list means all tools.
        NodeValue::List(names) => {
            Ok(!names.is_empty() && !kind_keys.contains(&"requires_approval"))
        }
        _ => value.as_bool(),
    }
}

fn scope(value: &ConfigNode, kind_keys: &[&str]) -> Result<ToolScope, Diagnostic> {
    let parse = |word: &str| match word {
        "global" => Some(ToolScope::Global),
        "session" => Some(ToolScope::Session),
        // For a kind that works in a directory the scope names that directory.
        _ if kind_keys.contains(&"scope") => Some(ToolScope::Global),
        _ => None,
    };
    one_of(value, "scope", "global, session", parse)
}

fn annotations(node: &ConfigNode, entry_diagnostics: &mut EntryDiagnostics) -> Annotations {
    let mut annotations = Annotations::default();
    let Some(entries) = entry_diagnostics.ok_or_report(node.as_map()) else { return annotations };
    for (key, value) in entries {
        match key.text.as_str() {
            "title" => annotations.title = entry_diagnostics.ok_or_report(value.as_scalar_text()),
            "readOnlyHint" => {
                annotations.read_only = entry_diagnostics.ok_or_report(value.as_bool());
            }
            "destructiveHint" => {
                annotations.destructive = entry_diagnostics.ok_or_report(value.as_bool());
            }
            "idempotentHint" => {
                annotations.idempotent = entry_diagnostics.ok_or_report(value.as_bool());
            }
            "openWorldHint" => {
                annotations.open_world = entry_diagnostics.ok_or_report(value.as_bool());
            }
            _ => entry_diagnostics.unknown_key(node, key, ANNOTATIONS, &[]),
        }
    }
    annotations
}
