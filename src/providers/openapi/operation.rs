//! Converting one operation to an entry of kind `http`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::document::{OpenApiDocument, OpenApiOperation, ReferenceGraph, SchemaBundler, list};
use crate::config::node::{ConfigKey, ConfigNode, NodeValue};
use crate::config::spec::ToolSpec;
use crate::config::typed::{Located, names};
use crate::model::{Diagnostic, ToolDefinition, ToolName, ToolSchema, check_name};
use crate::providers::http::RequestKeys;

const MAX_NAME_LENGTH: usize = 100;

/// Parameters of these names are headers that a request sets by itself.
const IGNORED_HEADERS: [&str; 3] = ["accept", "content-type", "authorization"];

pub(super) enum ToolNaming {
    /// `{component}-{operation}`: the tools share a component.
    Component(String),
    /// `{prefix}{operation}`: plain names without a component.
    Prefix(String),
}

impl ToolNaming {
    /// From `prefix`, or else the name of the entry.
    pub(super) fn of(
        spec: &ToolSpec,
        prefix: Option<&Located<String>>,
    ) -> Result<Self, Diagnostic> {
        let Some(prefix) = prefix else {
            return Ok(Self::Component(spec.definition.name.full()));
        };
        if !prefix.is_empty() {
            check_name(prefix).map_err(|error| prefix.error(error.to_string()))?;
        }
        Ok(match prefix.strip_suffix('-').filter(|component| !component.is_empty()) {
            Some(component) => Self::Component(component.to_owned()),
            None => Self::Prefix(prefix.value.clone()),
        })
    }

    fn name(&self, id: &str) -> ToolName {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let mut name = String::new();
        for c in id.chars().take(MAX_NAME_LENGTH) {
            // One character for a run of those not allowed in a name.
            if fits(c) {
                name.push(c);
            } else if !name.ends_with('_') {
                name.push('_');
            }
        }
        let name = name.trim_matches('_');
        let name = if name.is_empty() { "operation" } else { name };
        match self {
            Self::Component(component) => ToolName::of(component.as_str(), name),
            Self::Prefix(prefix) => ToolName::plain(format!("{prefix}{name}")),
        }
    }
}

#[derive(Default)]
struct OperationArguments {
    properties: Map<String, Value>,
    required: Vec<Value>,
    /// Where each goes in the request: the key `params` of the entry.
    params: Map<String, Value>,
    warnings: Vec<String>,
}

impl OperationArguments {
    fn add(&mut self, name: &str, schema: Value, required: bool, place: Option<Value>) {
        self.properties.insert(name.to_owned(), schema);
        if required {
            self.required.push(Value::String(name.to_owned()));
        }
        if let Some(place) = place {
            self.params.insert(name.to_owned(), place);
        }
    }
}

/// The entry for one operation of the document that `spec` names.
pub(super) fn entry(
    spec: &ToolSpec,
    document: &Arc<OpenApiDocument>,
    graph: &mut ReferenceGraph,
    operation: &OpenApiOperation<'_>,
    naming: &ToolNaming,
    base: &str,
) -> Result<ToolSpec, String> {
    // A fragment only tells operations of one path apart.
    let path = operation.path.split('#').next().unwrap_or_default();
    if path.split_once('?').is_some_and(|(_, query)| query.contains(['{', '}'])) {
        return Err("its path has a placeholder in a query".to_owned());
    }
    let mut schemas = SchemaBundler::of(document);
    let mut arguments = OperationArguments::default();
    parameters(document, operation, &mut schemas, &mut arguments)?;
    let mut keys = vec![
        // A document's text is never expanded with the user's environment.
        ("endpoint_url", json!(path.replace("${", "$${"))),
        ("base_url", json!(base)),
        ("method", json!(operation.method)),
        // It is in the definition already; the key says that there is one.
        ("parameters_schema", json!({})),
    ];
    keys.extend(body(document, operation, &mut schemas, &mut arguments)?);
    keys.push(("params", Value::Object(arguments.params)));
    let input = schemas.attach_defs(
        json!({
            "type": "object",
            "properties": arguments.properties,
            "required": arguments.required,
            "additionalProperties": false,
        }),
        graph,
    )?;
    let text = |key: &str| operation.value.get(key).and_then(Value::as_str).map(str::to_owned);
    let definition = ToolDefinition {
        name: naming.name(&operation.id()),
        title: None,
        description: text("description").or_else(|| text("summary")),
        input_schema: input,
        output_schema: output(document, graph, operation)?,
        warnings: arguments.warnings,
        // Retries of the component are no word about one operation.
        has_own_retries: false,
        ..spec.definition.clone()
    };
    Ok(ToolSpec {
        definition,
        entry: node(spec, &spec.entry, &keys).into(),
        unexpanded: node(spec, &spec.unexpanded, &keys).into(),
        ..spec.clone()
    })
}

fn parameters(
    document: &OpenApiDocument,
    operation: &OpenApiOperation<'_>,
    schemas: &mut SchemaBundler,
    arguments: &mut OperationArguments,
) -> Result<(), String> {
    // An operation's own parameters come last, and so replace those of its path.
    let all = operation.shared.iter().chain(list(operation.value, "parameters"));
    let mut all = all.map(|one| document.resolved(one)).collect::<Result<Vec<_>, _>>()?;
    // Those of the path keep their names, because it has them too.
    all.sort_by_key(|parameter| parameter.get("in").is_none_or(|place| place != "path"));
    for parameter in all {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, place) = (text("name"), text("in"));
        let required = parameter.get("required") == Some(&Value::Bool(true));
        if place == "header" && IGNORED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            continue;
        }
        if place == "cookie" {
            if required {
                return Err(format!("it needs the cookie '{name}', and cookies are not sent"));
            }
            continue;
        }
        let schema = parameter
            .get("schema")
            .or_else(|| parameter.get("content")?.as_object()?.values().next()?.get("schema"));
        let mut schema = schemas.rewrite(schema.unwrap_or(&json!({})))?;
        if let (Value::Object(map), Some(about)) = (&mut schema, parameter.get("description")) {
            map.entry("description").or_insert_with(|| about.clone());
        }
        let joined = parameter.get("explode") == Some(&Value::Bool(false));
        if joined && schema.get("type").is_some_and(|kind| kind == "array") {
            arguments.warnings.push(format!(
                "'{name}' should be joined with commas, but a list is sent as several parameters"
            ));
        }
        let place =
            if place == "path" { json!("path") } else { json!({ "in": place, "name": name }) };
        // A path argument is always required, regardless of the document.
        let required = required || place == "path";
        let is_other = arguments.params.get(name).is_some_and(|other| *other != place);
        let argument = if is_other { format!("{name}_{}", text("in")) } else { name.to_owned() };
        arguments.required.retain(|other| *other != argument);
        arguments.add(&argument, schema, required, Some(place));
    }
    Ok(())
}

/// How a body of this media type is sent, as `body_type` calls it.
fn body_type(media_type: &str) -> Option<&'static str> {
    let kind = media_type.split(';').next().unwrap_or_default().trim();
    Some(match kind {
        "application/json" | "*/*" => "json",
        "application/x-www-form-urlencoded" => "form",
        "multipart/form-data" => "multipart",
        "application/x-ndjson" | "application/jsonl" => "ndjson",
        "application/octet-stream" => "bytes",
        _ if kind.ends_with("+json") => "json",
        _ if kind.starts_with("text/") => "text",
        _ => return None,
    })
}

fn body(
    document: &OpenApiDocument,
    operation: &OpenApiOperation<'_>,
    schemas: &mut SchemaBundler,
    arguments: &mut OperationArguments,
) -> Result<Vec<(&'static str, Value)>, String> {
    let Some(body) = operation.value.get("requestBody") else { return Ok(Vec::new()) };
    let body = document.resolved(body)?;
    let required = body.get("required") == Some(&Value::Bool(true));
    let content = body.get("content").and_then(Value::as_object);
    let content: Vec<(&String, &Value)> = content.into_iter().flatten().collect();
    let of_type = |how: &'static str| {
        let found = content.iter().find(|(kind, _)| body_type(kind) == Some(how));
        found.map(|(_, media)| (how, *media))
    };
    let types = ["json", "form", "multipart", "ndjson", "text", "bytes"];
    let chosen = types.into_iter().find_map(of_type);
    let Some((how, media)) = chosen else {
        let kinds: Vec<&str> = content.iter().map(|(kind, _)| kind.as_str()).collect();
        let kinds = kinds.join(" or ");
        return Err(format!("its body is {kinds}; JSON, forms, text and bytes are sent"));
    };
    let any = match how {
        "ndjson" => json!({ "type": "array" }),
        "bytes" => json!({ "format": "binary" }),
        _ => json!({}),
    };
    // Of a sequence, the schema may be that of one item.
    let of_item = || Some(json!({ "type": "array", "items": media.get("itemSchema")? }));
    let of_items = of_item();
    let schema = media.get("schema").or(of_items.as_ref()).unwrap_or(&any);
    let resolved_schema = document.resolved(schema)?;
    let members = resolved_schema.get("properties").and_then(Value::as_object);
    let composed =
        ["allOf", "anyOf", "oneOf", "not"].iter().any(|key| resolved_schema.get(key).is_some());
    let (word, how) = (how, ("body_type", json!(how)));
    schemas.has_files = ["multipart", "bytes"].contains(&word);
    match members {
        Some(members)
            if !composed
                && ["json", "form", "multipart"].contains(&word)
                && members.keys().all(|name| !arguments.properties.contains_key(name)) =>
        {
            let needed = resolved_schema.get("required").and_then(Value::as_array);
            for (name, schema) in members {
                let required = required && needed.is_some_and(|all| all.iter().any(|n| n == name));
                let place = json!({ "in": "body", "name": name });
                arguments.add(name, schemas.rewrite(schema)?, required, Some(place));
            }
            Ok(vec![how])
        }
        _ => {
            if arguments.properties.contains_key("body") {
                return Err("a parameter and its body are both called 'body'".to_owned());
            }
            arguments.add("body", schemas.rewrite(schema)?, required, None);
            Ok(vec![how, ("body", json!("{body}"))])
        }
    }
}

fn output(
    document: &Arc<OpenApiDocument>,
    graph: &mut ReferenceGraph,
    operation: &OpenApiOperation<'_>,
) -> Result<Option<ToolSchema>, String> {
    let responses = operation.value.get("responses");
    for status in ["200", "201", "2XX"] {
        let Some(response) = responses.and_then(|all| all.get(status)) else { continue };
        let content = document.resolved(response)?.get("content").and_then(Value::as_object);
        let json = content.into_iter().flatten().find(|(kind, _)| kind.contains("json"));
        let Some(schema) = json.and_then(|(_, media)| media.get("schema")) else { continue };
        let mut schemas = SchemaBundler::of(document);
        let root = schemas.rewrite(schema)?;
        return schemas.attach_defs(root, graph).map(Some);
    }
    Ok(None)
}

/// A mapping of `keys` and of what the entry shares with all its operations, standing where the
/// entry stands.
fn node(spec: &ToolSpec, entry: &ConfigNode, keys: &[(&str, Value)]) -> ConfigNode {
    let at = spec.entry.get("openapi").unwrap_or(&spec.entry);
    let key = |text: &str| ConfigKey { text: text.into(), position: at.position };
    let mut entries: Vec<(ConfigKey, ConfigNode)> =
        keys.iter().map(|(name, value)| (key(name), node_from_json(value, at))).collect();
    let names = names::<RequestKeys>();
    // The address is whole already.
    let is_shared = |key: &str| key != "base_url" && names.contains(&key);
    let shared = entry.entries().iter().filter(|(key, _)| is_shared(&key.text));
    entries.extend(shared.cloned());
    ConfigNode {
        value: NodeValue::map(entries),
        position: entry.position,
        source: Arc::clone(&entry.source),
    }
}

/// A JSON value as a node that stands where `with_location` does.
fn node_from_json(value: &Value, at: &ConfigNode) -> ConfigNode {
    let value = match value {
        Value::Null => NodeValue::Null,
        Value::Bool(value) => NodeValue::Bool(*value),
        Value::Number(value) => NodeValue::Number(value.clone()),
        Value::String(value) => NodeValue::Text(value.clone()),
        Value::Array(items) => {
            NodeValue::list(items.iter().map(|item| node_from_json(item, at)).collect())
        }
        Value::Object(map) => NodeValue::map(
            map.iter()
                .map(|(name, value)| {
                    let key = ConfigKey { text: name.as_str().into(), position: at.position };
                    (key, node_from_json(value, at))
                })
                .collect(),
        ),
    };
    ConfigNode { value, position: at.position, source: Arc::clone(&at.source) }
}
