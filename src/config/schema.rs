//! JSON Schemas of the files, for editors (`toolhost config schema`), and the check of the schemas
//! inside the files (`toolhost config check`).

use schemars::JsonSchema as _;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::node::{ConfigNode, NodeValue, TextPosition};
use super::parse::parse;
use super::resolve::definition::ToolKeys;
use super::resolve::servers::ServersFile;
use super::resolve::settings::ToolsFile;
use super::spec::{Configuration, INPUT_SCHEMA_KEYS, KindDescriptor, OUTPUT_SCHEMA_KEYS};
use crate::model::{Diagnostic, ToolDefinition};

/// The schema of a file of tools; the keys of `kinds` are allowed beside the common ones.
pub fn tools_file(kinds: &[KindDescriptor]) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.root_schema_for::<ToolsFile>().to_value();
    let mut tool = ToolKeys::json_schema(&mut generator).to_value();
    if let Some(Value::Object(properties)) = tool.get_mut("properties") {
        for kind in kinds {
            for keys in kind.keys {
                for (key, property) in keys.properties(&mut generator) {
                    add_property(properties, key, property, kind.key);
                }
            }
        }
    }
    schema["title"] = "toolhost: internal tools (tools.yaml)".into();
    if let Value::Object(definitions) = &mut schema["$defs"] {
        definitions.extend(generator.take_definitions(true));
        definitions.insert("tool".to_owned(), tool);
    }
    list_words(&mut schema);
    schema
}

pub fn servers_file() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<ServersFile>().to_value();
    schema["title"] = "toolhost: MCP servers (mcp.yaml)".into();
    // A bare map of servers has no key of ours.
    schema["additionalProperties"] = json!({ "$ref": "#/$defs/server" });
    list_words(&mut schema);
    schema
}

/// Adds a key of a kind. What several kinds take under one name is allowed for each of them.
fn add_property(properties: &mut Map<String, Value>, key: String, mut new: Value, kind: &str) {
    let Some(same) = properties.get_mut(&key) else {
        new["x-kinds"] = json!([kind]);
        properties.insert(key, new);
        return;
    };
    if let Some(Value::Array(kinds)) = same.get_mut("x-kinds") {
        kinds.push(json!(kind));
    }
    let shape = |property: &Value| {
        let mut shape = property.clone();
        shape.as_object_mut().map(|shape| (shape.remove("description"), shape.remove("x-kinds")));
        shape
    };
    if shape(same) != shape(&new) {
        let mut both = json!({ "anyOf": [shape(same), shape(&new)] });
        for name in ["description", "x-kinds"] {
            if let Some(value) = same.get(name) {
                both[name] = value.clone();
            }
        }
        *same = both;
    }
}

/// Writes the words of each enum as one list.
fn list_words(schema: &mut Value) {
    let words = |choices: &Vec<Value>| -> Option<Value> {
        choices.iter().map(|choice| choice.get("const").cloned()).collect()
    };
    if let Some(words) = schema.get("oneOf").and_then(Value::as_array).and_then(words)
        && let Some(schema) = schema.as_object_mut()
    {
        schema.remove("oneOf");
        schema.insert("enum".to_owned(), words);
    }
    match schema {
        Value::Object(parts) => parts.values_mut().for_each(list_words),
        Value::Array(parts) => parts.iter_mut().for_each(list_words),
        _ => {}
    }
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
    let input = (Some(&tool.input_schema), "arguments", INPUT_SCHEMA_KEYS);
    let output = (tool.output_schema.as_ref(), "result", OUTPUT_SCHEMA_KEYS);
    for (schema, what, keys) in [input, output] {
        let Some(schema) = schema else { continue };
        let Err(why) = jsonschema::meta::validate(schema) else { continue };
        let pointer = why.instance_path().to_string();
        let location = match entry.and_then(|e| e.get_any(keys)) {
            Some((_, node)) => {
                let written = read_again(node);
                let schema = written.as_ref().and_then(|root| at_place(root, node.position));
                Some(at_pointer(schema.unwrap_or(node), &pointer).location())
            }
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

/// The whole file that a value is from.
fn read_again(node: &ConfigNode) -> Option<ConfigNode> {
    parse(&node.source, node.source.as_str()).ok()
}

/// The outermost value that begins at a place.
fn at_place(node: &ConfigNode, place: TextPosition) -> Option<&ConfigNode> {
    if node.position == place {
        return Some(node);
    }
    match &node.value {
        NodeValue::List(items) => items.iter().find_map(|item| at_place(item, place)),
        _ => node.entries().iter().find_map(|(_, value)| at_place(value, place)),
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
    use crate::config::node::SourceText;
    use crate::config::typed::names;
    use crate::config::{LoadRequest, load};

    fn json(name: &str, text: &str) -> Value {
        parse(&SourceText::new(name, text), text).unwrap().to_json()
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
        fn check(schema: &Value, place: &str) {
            for (key, property) in schema["properties"].as_object().into_iter().flatten() {
                let about = property.get("description").and_then(Value::as_str);
                assert!(
                    about.is_some_and(|about| about.ends_with('.')),
                    "{place}/{key}: {about:?}"
                );
            }
            for (name, part) in schema.as_object().into_iter().flatten() {
                check(part, &format!("{place}/{name}"));
            }
        }
        let tools = tools_file(&KINDS);
        check(&tools, "");
        check(&servers_file(), "");
        let entry = tools["$defs"]["tool"]["properties"].as_object().unwrap();
        let kinds = KINDS.iter().flat_map(KindDescriptor::spellings);
        for key in names::<ToolKeys>().iter().copied().chain(kinds) {
            assert!(entry.contains_key(key), "{key}");
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
