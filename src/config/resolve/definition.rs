//! Resolving the common keys of a tool to a [`ToolDefinition`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{FileContext, schemas};
use crate::config::node::ConfigNode;
use crate::config::typed::{self, Either, Limit, Located, Retries, Scalar, Texts};
use crate::model::{
    Annotations, Origin, Safety, Speed, ToolDefinition, ToolName, ToolSchema, ToolScope, ToolSource,
};

pub const SERVER_KIND: &str = "mcp";

/// The keys that every entry of a file of tools may have; its kind adds more.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub struct ToolKeys {
    /// The tool's name: up to 128 letters, digits, '_', '.' or '-'.
    #[serde(alias = "tool_name")]
    #[expect(dead_code, reason = "the name of an entry is read first")]
    name: Option<Scalar>,
    /// A human-readable title.
    title: Option<String>,
    /// What the tool does, for people and models.
    description: Option<String>,
    /// JSON Schema for the arguments.
    #[serde(alias = "parameters", alias = "inputSchema", alias = "input_schema")]
    #[schemars(with = "Option<JsonSchemaKeys>")]
    parameters_schema: Option<ConfigNode>,
    /// JSON Schema for the structured result.
    #[serde(alias = "outputSchema")]
    #[schemars(with = "Option<JsonSchemaKeys>")]
    output_schema: Option<ConfigNode>,
    /// Name of the arguments' schema under 'schemas'.
    param_schema_ref: Option<Located<String>>,
    /// Name of the result's schema under 'schemas'.
    response_schema_ref: Option<Located<String>>,
    /// The heading it is listed under.
    category: Option<String>,
    /// How fast the tool is; sets the default timeout: 1, 5, 30 or 300 seconds.
    speed: Option<Speed>,
    /// How it is isolated while it runs.
    safety: Option<Safety>,
    /// Where the tool comes from; in a file of tools: internal.
    source: Option<Located<ToolSource>>,
    /// The author's version of the definition.
    version: Option<Scalar>,
    /// Time limit for one attempt.
    timeout: Option<Limit>,
    /// Time limit for the whole call; can only shorten the built-in 300 s.
    max_total: Option<Limit>,
    /// How often a failed attempt is retried.
    retries: Option<Retries>,
    /// Require approval before each call; a list limits this to these tools of a toolkit.
    requires_approval: Option<Either<bool, Vec<String>>>,
    /// global (default) or session; for toolkits and components, the name of a directory.
    scope: Option<Located<String>>,
    /// Hints about the tool's effects, as in MCP.
    annotations: Option<AnnotationKeys>,
    /// Environment variables that a call may set with --context NAME=VALUE.
    context_env: Option<Located<Texts>>,
    /// The handles of the secrets it receives.
    #[schemars(with = "Option<Texts>")]
    #[expect(dead_code, reason = "they are replaced by their values first")]
    credentials: Option<ConfigNode>,
    /// The kind of tool, if the other keys do not determine it.
    #[serde(alias = "provider_type", alias = "type")]
    #[expect(dead_code, reason = "read first")]
    kind: Option<String>,
    /// Disable this entry.
    #[expect(dead_code, reason = "read first")]
    disabled: Option<bool>,
    /// The opposite of disabled.
    #[expect(dead_code, reason = "read first")]
    enabled: Option<bool>,
}

/// What a JSON Schema can be.
pub(in crate::config) type JsonSchemaKeys = Either<bool, BTreeMap<String, ConfigNode>>;

/// Hints of MCP about a tool's effects.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = typed::object::<Self>)]
struct AnnotationKeys {
    /// A human-readable title.
    title: Option<String>,
    /// It does not change anything.
    read_only_hint: Option<bool>,
    /// It may be destructive; calls require approval.
    destructive_hint: Option<bool>,
    /// Repeating a call has no further effect.
    idempotent_hint: Option<bool>,
    /// It interacts with external systems.
    open_world_hint: Option<bool>,
}

/// Reads the common keys of an entry. `kind_keys` are the keys its kind understands.
pub fn resolve(
    entry: &ConfigNode,
    name: ToolName,
    source: ToolSource,
    kind: &'static str,
    kind_keys: &[&str],
    file: &FileContext<'_>,
) -> ToolDefinition {
    let diagnostics = &file.diagnostics;
    let mut tool = ToolDefinition::new(name, source, kind, Origin::File(entry.location()));
    let keys = [typed::names::<ToolKeys>(), kind_keys].concat();
    diagnostics.extend(typed::unknown_keys(entry, &keys));
    let Some(keys) = typed::read_part::<ToolKeys>(entry, diagnostics) else {
        return tool;
    };
    tool.title = keys.title;
    tool.description = keys.description;
    tool.category = keys.category;
    tool.version = keys.version.map(|version| version.0);
    if let Some(node) = &keys.parameters_schema
        && let Some(schema) = schemas::inline(node, file)
    {
        if !schemas::accepts_object(&schema) {
            let message = "arguments are always an object, but this schema does not accept one";
            diagnostics.push(node.warning(message));
        }
        tool.input_schema = schema.into();
    }
    if let Some(name) = &keys.param_schema_ref
        && let Some(schema) = schemas::named(name, file)
    {
        tool.input_schema = schema.into();
    }
    let named = keys.response_schema_ref.as_ref();
    tool.output_schema = match (named, &keys.output_schema) {
        (Some(name), _) => schemas::named(name, file),
        (None, Some(node)) => schemas::inline(node, file),
        (None, None) => None,
    }
    .map(ToolSchema::from);
    tool.has_declared_speed = keys.speed.is_some();
    tool.speed = keys.speed.unwrap_or(tool.speed);
    tool.safety = keys.safety.unwrap_or(tool.safety);
    if let Some(declared) = keys.source.filter(|declared| declared.value != source) {
        diagnostics.push(declared.error(match source {
            ToolSource::Internal => "a tool of this file is internal; servers belong in mcp.yaml",
            ToolSource::Mcp => "a tool that a server provides has the source mcp",
        }));
    }
    let defaults = file.defaults();
    // The defaults of the file take precedence over the declared speed.
    tool.timeout = keys.timeout.or(defaults.timeout).map(|limit| limit.0);
    tool.max_total = keys.max_total.map(|limit| limit.0);
    tool.retries = keys.retries.or(defaults.retries).unwrap_or_default().0;
    tool.has_own_retries =
        source == ToolSource::Internal && keys.retries.is_some_and(|retries| retries.0 > 0);
    tool.requires_approval = match keys.requires_approval {
        None => tool.requires_approval,
        Some(Either::Short(asks)) => asks,
        // The list names tools of a toolkit, which only its kind knows. A kind that does not would
        // ask too rarely, so there the list means all tools.
        Some(Either::Nested(names)) => {
            !names.is_empty() && !kind_keys.contains(&"requires_approval")
        }
    };
    match keys.scope.as_ref().map(|scope| (scope, scope.as_str())) {
        Some((_, "session")) => tool.scope = ToolScope::Session,
        // For a kind that works in a directory the scope names that directory.
        Some((scope, word)) if word != "global" && !kind_keys.contains(&"scope") => {
            let message = format!("unknown scope '{word}'; expected one of global, session");
            diagnostics.push(scope.error(message).with_suggestion(word, ["global", "session"]));
        }
        _ => {}
    }
    if let Some(names) = keys.context_env {
        tool.context_env = super::context_env(names, diagnostics);
    }
    if let Some(hints) = keys.annotations {
        tool.annotations = Annotations {
            title: hints.title,
            read_only: hints.read_only_hint,
            destructive: hints.destructive_hint,
            idempotent: hints.idempotent_hint,
            open_world: hints.open_world_hint,
        };
    }
    tool.is_repeatable =
        tool.annotations.idempotent == Some(true) || tool.annotations.read_only == Some(true);
    tool
}
