//! Schemas of entries: inline, named under `schemas:`, or in files beside the configuration.
//!
//! A `$ref` to a file is replaced by the content of the file, so that a schema is self-contained:
//! at the root it replaces the root, elsewhere the file moves into `$defs`.
//!
//! Detects types that JSON Schema does not know in the schemas of entries.

use std::path::{Component, Path};

use serde_json::{Map, Value};

use super::FileContext;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::typed::Located;
use crate::config::{parse, read};
use crate::model::{Diagnostic, Diagnostics};
use crate::util::schema;
use crate::util::text::is_one_of;

const MAX_FILES: usize = 32;

pub fn inline(node: &ConfigNode, file: &FileContext<'_>) -> Option<Value> {
    report(node, &file.diagnostics);
    let mut schema = match &node.value {
        NodeValue::Map(_) | NodeValue::Bool(_) => node.to_json(),
        _ => {
            file.diagnostics.push(node.expected("a JSON Schema"));
            return None;
        }
    };
    schema::localize(&mut schema);
    if !refers_to_files(&mut schema) {
        return Some(schema);
    }
    let within = file.is_project.then(|| file.shared.consent.root());
    let schema = complete(schema, &file.base_dir, within);
    file.diagnostics.ok(schema.map_err(|why| why.with_location(node.location())))
}

pub fn named(name: &Located<String>, file: &FileContext<'_>) -> Option<Value> {
    let schemas = file.schemas.as_ref().map(ConfigNode::entries).unwrap_or_default();
    if let Some((_, schema)) = schemas.iter().find(|(key, _)| *key.text == *name.value) {
        return inline(schema, file);
    }
    file.diagnostics.push(
        name.error(format!("no schema '{}' under 'schemas'", name.value))
            .with_suggestion(name, schemas.iter().map(|(key, _)| &*key.text)),
    );
    None
}

/// Whether a schema can accept an object at all, judging by its `type`.
pub fn accepts_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(word)) => word == "object",
        Some(Value::Array(types)) => types.iter().any(|w| w == "object"),
        _ => *schema != Value::Bool(false),
    }
}

/// The file part of a `$ref`; `None` for references within the schema and for URLs, which are
/// never fetched.
pub fn file_part(reference: &str) -> Option<(&str, &str)> {
    let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    (!path.is_empty() && !path.contains(':')).then_some((path, fragment))
}

fn refers_to_files(schema: &mut Value) -> bool {
    let mut refers = false;
    schema::for_each(schema, &mut String::new(), &mut |_, keywords| {
        let reference = keywords.get("$ref").and_then(Value::as_str);
        refers |= reference.and_then(file_part).is_some();
    });
    refers
}

/// `within` is the directory that a project's files must stay in, links resolved.
fn complete(schema: Value, base: &Path, within: Option<&Path>) -> Result<Value, Diagnostic> {
    let mut files = SchemaFiles { base, within, loaded: Vec::new() };
    let root = match schema.get("$ref").and_then(Value::as_str).and_then(file_part) {
        Some((path, fragment)) => {
            let index = files.load(path)?;
            let document = files.loaded[index].document.clone();
            let part = document.pointer(fragment).ok_or_else(|| nothing_at(path, fragment))?;
            // A whole file keeps its references: it becomes the root they are relative to.
            let owner = (!fragment.is_empty()).then_some(index);
            files.rewrite(part.clone(), owner)?
        }
        None => files.rewrite(schema, None)?,
    };
    let mut defs = Map::new();
    // Rewriting one file may bring in another one.
    while let Some(index) = files.loaded.iter().position(|f| f.is_used && !f.is_embedded) {
        files.loaded[index].is_embedded = true;
        let document = files.loaded[index].document.clone();
        defs.insert(def_name(index), files.rewrite(document, Some(index))?);
    }
    match root {
        Value::Object(mut root) if !defs.is_empty() => {
            let own = root.entry("$defs").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(own) = own {
                own.extend(defs);
            }
            Ok(Value::Object(root))
        }
        other => Ok(other),
    }
}

fn def_name(index: usize) -> String {
    format!("file{index}")
}

fn nothing_at(path: &str, fragment: &str) -> Diagnostic {
    Diagnostic::error(format!("{path} contains nothing at '#{fragment}'"))
}

struct SchemaFiles<'a> {
    base: &'a Path,
    within: Option<&'a Path>,
    loaded: Vec<SchemaFile>,
}

struct SchemaFile {
    path: String,
    document: Value,
    is_used: bool,
    is_embedded: bool,
}

impl SchemaFiles<'_> {
    /// Makes every reference point into the finished schema. `owner` is the file `value` is from.
    fn rewrite(&mut self, mut value: Value, owner: Option<usize>) -> Result<Value, Diagnostic> {
        let mut rewritten = Ok(());
        schema::for_each(&mut value, &mut String::new(), &mut |_, keywords| {
            if let Some(Value::String(reference)) = keywords.get_mut("$ref")
                && rewritten.is_ok()
            {
                rewritten = self.reference(reference, owner).map(|to| *reference = to);
            }
        });
        rewritten.map(|()| value)
    }

    fn reference(&mut self, text: &str, owner: Option<usize>) -> Result<String, Diagnostic> {
        let (index, fragment) = match (file_part(text), owner, text.strip_prefix('#')) {
            (Some((path, fragment)), ..) => {
                let index = self.load(path)?;
                if self.loaded[index].document.pointer(fragment).is_none() {
                    return Err(nothing_at(path, fragment));
                }
                (index, fragment)
            }
            (None, Some(index), Some(fragment)) => (index, fragment),
            _ => return Ok(text.to_owned()),
        };
        self.loaded[index].is_used = true;
        Ok(format!("#/$defs/{}{fragment}", def_name(index)))
    }

    fn load(&mut self, path: &str) -> Result<usize, Diagnostic> {
        if let Some(index) = self.loaded.iter().position(|file| file.path == path) {
            return Ok(index);
        }
        let failed = |why: &str| Diagnostic::error(format!("'$ref' to {path}: {why}"));
        let inside = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside {
            return Err(failed("only files in or below the directory of this file can be used"));
        }
        if self.loaded.len() == MAX_FILES {
            return Err(Diagnostic::error(format!("more than {MAX_FILES} schema files")));
        }
        let whole = self.base.join(path);
        let leaves = |root| whole.canonicalize().is_ok_and(|real| !real.starts_with(root));
        if self.within.is_some_and(leaves) {
            return Err(failed("a symbolic link is outside the project"));
        }
        let unreadable = |why: Diagnostic| failed(&why.message);
        let (source, text) = read::read(&whole, false).map_err(unreadable)?;
        let mut document = parse::parse(&source, &text).map_err(unreadable)?.to_json();
        schema::localize(&mut document);
        // It would change what references mean where the file is put in.
        if let Value::Object(keywords) = &mut document {
            keywords.shift_remove("$id");
        }
        self.loaded.push(SchemaFile {
            path: path.to_owned(),
            document,
            is_used: false,
            is_embedded: false,
        });
        Ok(self.loaded.len() - 1)
    }
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Names from other languages, and the types they mean.
const FOREIGN: [(&str, &str); 13] = [
    ("str", "string"),
    ("text", "string"),
    ("int", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("bool", "boolean"),
    ("dict", "object"),
    ("map", "object"),
    ("list", "array"),
    ("tuple", "array"),
    ("none", "null"),
    ("nil", "null"),
];

/// Keys whose value is a schema, or a list of them.
const SCHEMAS: &str = "items prefixItems additionalItems unevaluatedItems contains \
    additionalProperties unevaluatedProperties propertyNames allOf anyOf oneOf not if then else \
    contentSchema extends";

const NAMED: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

pub(super) fn report(schema: &ConfigNode, diagnostics: &Diagnostics) {
    if let NodeValue::List(all) = &schema.value {
        return all.iter().for_each(|one| report(one, diagnostics));
    }
    for (key, value) in schema.entries() {
        match &*key.text {
            "type" => check(value, diagnostics),
            key if is_one_of(key, SCHEMAS) => report(value, diagnostics),
            key if NAMED.contains(&key) => {
                value.entries().iter().for_each(|(_, named)| report(named, diagnostics));
            }
            _ => {}
        }
    }
}

fn check(value: &ConfigNode, diagnostics: &Diagnostics) {
    if let NodeValue::List(all) = &value.value {
        return all.iter().for_each(|one| check(one, diagnostics));
    }
    if value.is_null() {
        let message =
            "null is not a type (the type \"null\" must be quoted), so nothing is checked";
        return diagnostics.push(value.warning(message));
    }
    let word = value.as_scalar_text().unwrap_or_else(|_| value.kind().to_owned());
    if TYPES.contains(&word.as_str()) {
        return;
    }
    let diagnostic =
        value.warning(format!("JSON Schema has no type '{word}', so nothing is checked"));
    let meant = FOREIGN.iter().find(|(foreign, _)| word.eq_ignore_ascii_case(foreign));
    diagnostics.push(match meant {
        Some((_, name)) => diagnostic.with_hint(format!("did you mean '{name}'?")),
        None => diagnostic.with_suggestion(&word, TYPES),
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::node::SourceText;

    fn completed(schema: Value, files: &[(&str, &str)]) -> Result<Value, Diagnostic> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        complete(schema, dir.path(), None)
    }

    #[test]
    fn a_file_at_the_root_takes_its_place() {
        let file = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}"##;
        let schema = completed(json!({"$ref": "s.json"}), &[("s.json", file)]).unwrap();
        assert_eq!(schema, serde_json::from_str::<Value>(file).unwrap());
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(validator.is_valid(&json!({"a": "x"})));
        assert!(!validator.is_valid(&json!({"a": 1})));
    }

    #[test]
    fn files_may_refer_to_each_other() {
        let schema = json!({"type": "object", "properties": {"t": {"$ref": "tree.yaml#/tree"}}});
        let tree = "$id: https://example.com/tree\ntree:\n  type: object\n  properties:\n    left: { $ref: '#/tree' }\n    name: { $ref: name.json }\n";
        let schema =
            completed(schema, &[("tree.yaml", tree), ("name.json", r#"{"type":"string"}"#)])
                .unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(validator.is_valid(&json!({"t": {"left": {"name": "x"}}})));
        assert!(!validator.is_valid(&json!({"t": {"left": {"name": 1}}})));
    }

    #[test]
    fn nothing_outside_the_directory_is_read() {
        for path in ["../x.json", "/etc/passwd", "a/../../x.json"] {
            let why = completed(json!({"$ref": path}), &[]).unwrap_err();
            assert!(why.message.contains("only files in or below the directory"), "{why:?}");
        }
        assert!(!refers_to_files(&mut json!({"$ref": "https://example.com/x.json"})));
        assert!(!refers_to_files(&mut json!({"$ref": "#/$defs/x"})));
    }

    fn reported(schema: &str) -> Vec<String> {
        let source = SourceText::new("tools.yaml", schema);
        let diagnostics = Diagnostics::default();
        report(&parse::parse(&source, schema).unwrap(), &diagnostics);
        let place = |at: &Diagnostic| {
            let at = at.location.as_ref().unwrap();
            format!("{}:{}", at.line, at.column)
        };
        let format_line = |d: &Diagnostic| {
            format!("{} {} {}", place(d), d.message, d.hint.as_deref().unwrap_or_default())
        };
        diagnostics.take().iter().map(format_line).collect()
    }

    #[test]
    fn an_unknown_type_is_reported_where_it_stands() {
        let schema = "type: object\nproperties:\n  type: { type: str }\n  n: { anyOf: [{ type: [integer, nul] }] }\n  x: { items: { type: null } }\n";
        insta::assert_snapshot!(reported(schema).join("\n"), @r#"
        3:17 JSON Schema has no type 'str', so nothing is checked did you mean 'string'?
        4:34 JSON Schema has no type 'nul', so nothing is checked did you mean 'null'?
        5:23 null is not a type (the type "null" must be quoted), so nothing is checked 
        "#);
    }

    #[test]
    fn what_json_schema_knows_and_values_that_look_like_types_are_fine() {
        let schema = "type: [object, \"null\"]\nproperties: { a: { const: { type: str }, default: { type: x } } }\nexamples: [{ type: y }]\n";
        assert_eq!(reported(schema), Vec::<String>::new());
    }
}
