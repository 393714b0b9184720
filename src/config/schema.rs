//! JSON Schemas of the files, for editors (`toolhost config schema`), and the check of the schemas
//! inside the files (`toolhost config check`).

use serde_json::{Map, Value, json};

use super::keys::{
    ANNOTATIONS, AUTH, CREDENTIAL, DEFAULTS, KeySpec, PERMISSIONS, PROFILE, RECORD, ROOT, RULE,
    SANDBOX, SERVER, SERVERS_FILE, TOOL, TOOLS_FILE,
};
use super::node::{ConfigNode, NodeValue};
use super::spec::{Configuration, KindDescriptor};
use crate::model::{CredentialKind, Diagnostic, ToolDefinition};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of a file of tools; the keys of `kinds` are allowed beside the common ones.
pub fn tools_file(kinds: &[KindDescriptor]) -> Value {
    let mut tool = object(TOOL, &[]);
    if let Some(Value::Object(properties)) = tool.get_mut("properties") {
        for kind in kinds {
            for key in kind.keys {
                let entry = properties.entry(*key).or_insert_with(|| json!({}));
                add_kind(entry, kind.key);
            }
        }
    }
    let mut schema = object(TOOLS_FILE, &[]);
    finish(
        &mut schema,
        "toolhost: internal tools (tools.yaml)",
        &[
            ("tool", tool),
            ("annotations", object(ANNOTATIONS, &[])),
            ("defaults", object(DEFAULTS, &[])),
            ("credential", credential()),
            ("profile", object(PROFILE, &[])),
            ("record", object(RECORD, &[])),
            ("rule", object(RULE, &["match", "action"])),
        ],
    );
    schema
}

pub fn servers_file() -> Value {
    let mut schema = object(SERVERS_FILE, &[]);
    finish(
        &mut schema,
        "toolhost: MCP servers (mcp.yaml)",
        &[
            ("server", object(SERVER, &[])),
            ("auth", object(AUTH, &[])),
            ("root", object(ROOT, &[])),
            ("sandbox", object(SANDBOX, &[])),
            ("credential", credential()),
            ("credential_type", json!({ "enum": CredentialKind::ALL.map(CredentialKind::as_str) })),
            ("permissions", object(PERMISSIONS, &[])),
            ("declared_tool", object(TOOL, &[])),
            ("annotations", object(ANNOTATIONS, &[])),
            ("defaults", object(DEFAULTS, &[])),
        ],
    );
    // A bare map of servers has no key of ours.
    if let Value::Object(schema) = &mut schema {
        schema.insert("additionalProperties".to_owned(), json!({ "$ref": "#/$defs/server" }));
    }
    schema
}

/// A handle under `credentials`: its own keys, and those of logins.
fn credential() -> Value {
    let mut schema = object(CREDENTIAL, &["type"]);
    let logins = object(AUTH, &[]);
    if let (Some(Value::Object(own)), Some(Value::Object(logins))) =
        (schema.get_mut("properties"), logins.get("properties"))
    {
        for (key, shape) in logins {
            own.entry(key).or_insert_with(|| shape.clone());
        }
    }
    schema
}

fn object(table: &[KeySpec], required: &[&str]) -> Value {
    let mut properties = Map::new();
    for key in table {
        let shape: Value = serde_json::from_str(key.schema).unwrap_or_else(|_| json!({}));
        for spelling in std::iter::once(key.name).chain(key.aliases.iter().copied()) {
            let mut property = shape.clone();
            if let Value::Object(property) = &mut property {
                let about = if spelling == key.name {
                    key.description.to_owned()
                } else {
                    format!("Another spelling of '{}'. {}", key.name, key.description)
                };
                property.insert("description".to_owned(), Value::String(about));
            }
            properties.insert(spelling.to_owned(), property);
        }
    }
    let mut object = json!({
        "type": "object",
        "properties": properties,
        "patternProperties": { "^x-": true },
        "additionalProperties": false,
    });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn finish(schema: &mut Value, title: &str, definitions: &[(&str, Value)]) {
    let Value::Object(schema) = schema else { return };
    schema.insert("$schema".to_owned(), json!(DIALECT));
    schema.insert("title".to_owned(), json!(title));
    let definitions: Map<String, Value> =
        definitions.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    schema.insert("$defs".to_owned(), Value::Object(definitions));
}

fn add_kind(property: &mut Value, kind: &str) {
    let Value::Object(property) = property else { return };
    let about = match property.get("description").and_then(Value::as_str) {
        Some(about) if about.starts_with("For tools of the kind ") => format!("{about}, {kind}"),
        Some(about) => format!("{about} The kind {kind} reads it too."),
        None => format!("For tools of the kind {kind}"),
    };
    property.insert("description".to_owned(), Value::String(about));
}

/// Checks every schema in the configuration against its meta-schema. Too slow for every start;
/// `config check` does it.
pub fn check_schemas(configuration: &Configuration) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for tool in &configuration.tools {
        check_tool(&tool.definition, Some(&tool.entry), &mut diagnostics);
    }
    for tool in configuration.servers.iter().flat_map(|server| &server.provides_tools) {
        check_tool(tool, None, &mut diagnostics);
    }
    diagnostics
}

fn check_tool(
    tool: &ToolDefinition,
    entry: Option<&ConfigNode>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let input = (
        Some(&tool.input_schema),
        "arguments",
        &["parameters_schema", "parameters", "inputSchema", "input_schema", "param_schema_ref"][..],
    );
    let output = (
        tool.output_schema.as_ref(),
        "result",
        &["output_schema", "outputSchema", "response_schema_ref"][..],
    );
    for (schema, what, keys) in [input, output] {
        let Some(schema) = schema else { continue };
        let Err(why) = jsonschema::meta::validate(schema) else { continue };
        let pointer = why.instance_path().to_string();
        let location = match entry.and_then(|e| e.get_any(keys)) {
            Some((_, node)) => Some(at_pointer(node, &pointer).location()),
            None => match &tool.origin {
                crate::model::Origin::File(location) => Some(location.clone()),
                crate::model::Origin::Server(_) | crate::model::Origin::Program => None,
            },
        };
        let spot = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
        let message = format!("the schema of the {what} is not valid{spot}: {why}");
        let mut diagnostic = Diagnostic::error(message).with_entry(tool.name.to_string());
        diagnostic.location = location;
        diagnostics.push(diagnostic);
    }
}

fn at_pointer<'n>(root: &'n ConfigNode, pointer: &str) -> &'n ConfigNode {
    let mut node = root;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let next = match &node.value {
            NodeValue::List(items) => step.parse::<usize>().ok().and_then(|i| items.get(i)),
            _ => node.get(&step),
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::environment::FixedEnvironment;
    use crate::config::fixtures::KINDS;
    use crate::config::keys::spellings;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;
    use crate::config::{LoadRequest, load};

    fn json(name: &str, text: &str) -> Value {
        parse(&SourceText::new(name, text), text).unwrap().root.to_json()
    }

    fn errors(schema: &Value, instance: &Value) -> Vec<String> {
        let validator = jsonschema::validator_for(schema).unwrap();
        validator.iter_errors(instance).map(|e| format!("{}: {e}", e.instance_path())).collect()
    }

    #[test]
    fn both_schemas_are_schemas() {
        for schema in [tools_file(&KINDS), servers_file()] {
            jsonschema::meta::validate(&schema).unwrap();
        }
    }

    #[test]
    fn every_key_is_in_the_schema_with_a_description() {
        let (tools, servers) = (tools_file(&KINDS), servers_file());
        let has = |schema: &Value, pointer: &str, key: &str| {
            let property = schema.pointer(pointer).and_then(|p| p.get(key));
            property.and_then(|p| p.get("description")).is_some()
        };
        for (schema, pointer, table) in [
            (&tools, "/properties", TOOLS_FILE),
            (&tools, "/$defs/tool/properties", TOOL),
            (&tools, "/$defs/annotations/properties", ANNOTATIONS),
            (&tools, "/$defs/defaults/properties", DEFAULTS),
            (&tools, "/$defs/profile/properties", PROFILE),
            (&tools, "/$defs/record/properties", RECORD),
            (&tools, "/$defs/rule/properties", RULE),
            (&servers, "/properties", SERVERS_FILE),
            (&servers, "/$defs/server/properties", SERVER),
            (&servers, "/$defs/auth/properties", AUTH),
            (&servers, "/$defs/root/properties", ROOT),
        ] {
            for key in spellings(table) {
                assert!(has(schema, pointer, key), "{pointer}/{key}");
            }
        }
        for key in KINDS.iter().flat_map(|kind| kind.keys) {
            assert!(has(&tools, "/$defs/tool/properties", key), "{key}");
        }
    }

    #[test]
    fn what_is_wrong_does_not_fit() {
        let wrong = json("t.yaml", "tools: [{ name: a, speed: warp, descripton: x }]\n");
        assert_eq!(errors(&tools_file(&KINDS), &wrong).len(), 2);
        let wrong = json("m.yaml", "mcp_servers: { a: { comand: x } }\n");
        assert_eq!(errors(&servers_file(), &wrong).len(), 1);
    }

    #[test]
    fn a_broken_schema_is_pointed_at() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.yaml");
        let text = "tools:\n  - name: a\n    command: [x]\n    parameters_schema:\n      properties:\n        b: { minLength: two }\n";
        std::fs::write(&path, text).unwrap();
        let request = LoadRequest { tools: vec![path], ..LoadRequest::default() };
        let configuration = load(&request, &KINDS, &FixedEnvironment::default());
        assert!(configuration.diagnostics.is_empty(), "start-up does not look");
        let diagnostics = check_schemas(&configuration);
        let location = diagnostics[0].location.as_ref().unwrap();
        assert_eq!((location.line, location.column), (6, 25), "{}", diagnostics[0].message);
        assert!(
            diagnostics[0].message.contains("at /properties/b/minLength"),
            "{}",
            diagnostics[0].message
        );
    }
}
