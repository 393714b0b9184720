//! Every place of the files that can hold text, found by walking the JSON Schemas of the files:
//! a key that is added to the schema is a place the day it is added.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::support::Sandbox;

/// Stands for the text under test, as a value or as a key.
pub const TEXT: &str = "@TEXT@";

/// Which file a place is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    Tools,
    Servers,
}

impl File {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools.yaml",
            Self::Servers => "mcp.yaml",
        }
    }

    /// Where a project keeps it: the forms of editors are in the files of editors.
    pub fn of_container(self, container: Option<&str>) -> &'static str {
        match (self, container) {
            (Self::Servers, Some("mcpServers")) => ".mcp.json",
            (Self::Servers, Some("servers")) => ".vscode/mcp.json",
            _ => self.name(),
        }
    }
}

/// One place that can hold text.
#[derive(Debug, Clone)]
pub struct Place {
    pub file: File,
    /// The top-level key of the list or map of entries; `None` for keys beside the entries.
    pub container: Option<String>,
    /// The kinds of entries that read the key, one of which surrounds it.
    pub kinds: Vec<String>,
    /// Whether the schema leaves open what the key holds, and this is one of the rarer guesses.
    pub is_guess: bool,
    /// The key that is spelled differently from the canonical one: the base must not hold that.
    pub replaces: Option<String>,
    /// The keys to lay over the base, with [`TEXT`] where the text goes.
    pub template: Value,
    /// For people.
    pub path: String,
}

/// The schema of a file, as the program prints it.
pub fn schema(file: File) -> &'static Value {
    static SCHEMAS: [OnceLock<Value>; 2] = [const { OnceLock::new() }; 2];
    let (schema, name) = match file {
        File::Tools => (&SCHEMAS[0], "tools"),
        File::Servers => (&SCHEMAS[1], "mcp"),
    };
    schema.get_or_init(|| {
        let printed = Sandbox::new().toolhost(["config", "schema", name]).go();
        serde_json::from_str(&printed.exits(0).out()).unwrap()
    })
}

/// The kinds that some key of a tool says it is for.
fn kinds_of(tools: &Value) -> BTreeSet<String> {
    let keys = tools["$defs"]["tool"]["properties"].as_object().unwrap().values();
    keys.flat_map(kinds_named).map(str::to_owned).collect()
}

/// The kinds that a key is for; none if it is for all.
fn kinds_named(key: &Value) -> impl Iterator<Item = &str> {
    key["x-kinds"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// All places of both files, in the order of the schemas.
pub fn all() -> Vec<Place> {
    let (tools, servers) = (schema(File::Tools), schema(File::Servers));
    let kinds = kinds_of(tools);
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let mut definitions = servers["$defs"].as_object().unwrap().clone();
    definitions.extend(tools["$defs"].as_object().unwrap().clone());
    let mut found = Vec::new();
    for (file, schema) in [(File::Tools, tools), (File::Servers, servers)] {
        let walk = Walk { definitions: &definitions };
        for (key, property) in schema["properties"].as_object().unwrap() {
            match entry_definition(property) {
                Some((name, _)) => walk.entries(file, key, name, &kinds, &mut found),
                None => walk.top(file, key, property, &mut found),
            }
        }
        if let Some(name) = reference(&schema["additionalProperties"]) {
            walk.entries(file, "", name, &kinds, &mut found);
        }
    }
    found
}

/// The definition of the entries that a top-level key holds, and whether by name.
pub fn entry_definition(property: &Value) -> Option<(&str, bool)> {
    let name = |schema: &'static str| {
        reference(&property[schema]).filter(|name| ["tool", "server"].contains(name))
    };
    name("items").map(|n| (n, false)).or_else(|| name("additionalProperties").map(|n| (n, true)))
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

struct Walk<'a> {
    /// Definitions of both files: a tool's `auth` is a server's `auth`.
    definitions: &'a Map<String, Value>,
}

impl Walk<'_> {
    /// The keys beside the entries.
    fn top(&self, file: File, key: &str, property: &Value, found: &mut Vec<Place>) {
        for (inside, template) in self.shapes(key, property, &mut Vec::new()) {
            found.push(Place {
                file,
                container: None,
                kinds: vec![String::new()],
                is_guess: false,
                replaces: None,
                template: json!({ key: template }),
                path: format!("{}: {key}{inside}", file.name()),
            });
        }
    }

    /// The keys of the entries in one container, for each kind of entry that reads them.
    fn entries(
        &self,
        file: File,
        container: &str,
        definition: &str,
        kinds: &[&str],
        found: &mut Vec<Place>,
    ) {
        let definition = &self.definitions[definition];
        for (key, property) in definition["properties"].as_object().unwrap() {
            let about = property["description"].as_str().unwrap_or_default();
            let own: Vec<&str> = kinds_named(property).collect();
            let readers: Vec<&str> = match file {
                File::Servers => super::entries::SERVER_KINDS.to_vec(),
                File::Tools if own.is_empty() => kinds.to_vec(),
                File::Tools => own,
            };
            let alias = about.strip_prefix("Another spelling of '");
            let replaces = alias.and_then(|rest| rest.split('\'').next()).map(str::to_owned);
            let says = |word: &&str| property.get(word).is_some();
            let is_open = !["type", "anyOf", "$ref", "enum"].iter().any(says)
                && !self.definitions.contains_key(key);
            for (inside, template) in self.shapes(key, property, &mut Vec::new()) {
                found.push(Place {
                    file,
                    container: Some(container.to_owned()),
                    kinds: readers.iter().map(|kind| (*kind).to_owned()).collect(),
                    is_guess: is_open && inside.contains(['(', '.']),
                    replaces: replaces.clone(),
                    template: json!({ key: template }),
                    path: format!("{}: {container}.{key}{inside}", file.name()),
                });
            }
        }
        // A key that nobody knows is read as little as one that is known.
        let kinds = match file {
            File::Servers => super::entries::SERVER_KINDS,
            File::Tools => kinds,
        };
        found.push(Place {
            file,
            container: Some(container.to_owned()),
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            is_guess: false,
            replaces: None,
            template: json!({ "x-note": TEXT }),
            path: format!("{}: {container}.x-note", file.name()),
        });
    }

    /// Every way to put a text at or below a schema: where it is, and the value.
    fn shapes(&self, key: &str, schema: &Value, open: &mut Vec<String>) -> Vec<(String, Value)> {
        let mut found: Vec<(String, Value)> = Vec::new();
        if let Some(name) = reference(schema) {
            if open.iter().any(|open| open == name) {
                return found;
            }
            open.push(name.to_owned());
            found = self.shapes(key, &self.definitions[name], open);
            open.pop();
            return found;
        }
        for part in schema["anyOf"].as_array().into_iter().flatten() {
            found.extend(self.shapes(key, part, open));
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let is_untyped = types.is_empty() && found.is_empty();
        // Numbers, switches and words of a list are written as text too, and may be expanded
        // before they are judged.
        if is_untyped || types.iter().any(|kind| !["array", "object", "null"].contains(kind)) {
            found.push((String::new(), json!(TEXT)));
        }
        if is_untyped && schema["enum"].is_null() {
            found.extend(self.untyped(key, open));
        }
        if types.contains(&"array") {
            let items = match &schema["items"] {
                Value::Null => vec![(String::new(), json!(TEXT))],
                items => self.shapes(key, items, open),
            };
            found.extend(items.into_iter().map(|(at, item)| (format!("[]{at}"), json!([item]))));
        }
        if types.contains(&"object") {
            found.extend(self.object(schema, open));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found.dedup_by(|a, b| a.0 == b.0);
        found
    }

    fn object(&self, schema: &Value, open: &mut Vec<String>) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        let properties = schema["properties"].as_object();
        for (key, property) in properties.into_iter().flatten() {
            for (at, value) in self.shapes(key, property, open) {
                found.push((format!(".{key}{at}"), json!({ key: value })));
            }
        }
        if schema["additionalProperties"].is_object() {
            for (at, value) in self.shapes("", &schema["additionalProperties"], open) {
                found.push((format!(".X_KEY{at}"), json!({ "X_KEY": value })));
            }
            found.push((".(key)".to_owned(), json!({ TEXT: "x" })));
        } else if properties.is_none() {
            found.push((".x".to_owned(), json!({ "x": TEXT })));
            found.push((".$ref".to_owned(), json!({ "$ref": TEXT })));
            found.push((".uri".to_owned(), json!({ "uri": TEXT })));
            let inner = json!({ "type": "object", "properties": { "a": { "description": TEXT } } });
            found.push((".properties.a.description".to_owned(), inner));
        }
        found
    }

    /// What a key may hold whose schema does not say: text, a list, a mapping, a list of mappings,
    /// and what the definition of its name holds.
    fn untyped(&self, key: &str, open: &mut Vec<String>) -> Vec<(String, Value)> {
        if self.definitions.contains_key(key) && !open.iter().any(|open| open == key) {
            open.push(key.to_owned());
            let found = self.shapes(key, &self.definitions[key], open);
            open.pop();
            return found.into_iter().filter(|(at, _)| !at.is_empty()).collect();
        }
        let named =
            json!({ "id": "a", "name": "a", "tool": "calculator", "args": { "text": TEXT } });
        let mut found = vec![
            ("[]".to_owned(), json!([TEXT])),
            (".X_KEY".to_owned(), json!({ "X_KEY": TEXT })),
            (".(key)".to_owned(), json!({ TEXT: "x" })),
            (".X_KEY.a".to_owned(), json!({ "X_KEY": { "a": TEXT } })),
            ("[].args.text".to_owned(), json!([named])),
        ];
        for word in ["tool", "name", "description", "original_tool_name"] {
            let mut item = json!({ "id": "a", "name": "a", "tool": "calculator" });
            item[word] = json!(TEXT);
            found.push((format!("[].{word}"), json!([item])));
        }
        found
    }
}
