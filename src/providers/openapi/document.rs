//! OpenAPI documents: parsing, and resolving references.
//!
//! Making a document's schemas self-contained.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::MAX_DEFS;
use crate::config::node::SourceText;
use crate::config::spec::ToolSpec;
use crate::config::{parse, read};
use crate::model::{Diagnostic, ToolSchema};
use crate::util::schema;

/// How many references are followed one after the other.
const MAX_REFERENCES: usize = 16;

/// Maximum size of a document. The largest that are published have some 40 MiB.
const MAX_BYTES: u64 = 64 << 20;

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

pub(super) struct OpenApiDocument {
    root: Value,
    /// The version is 3.0, whose schemas differ from JSON Schema.
    pub(super) is_v3_0: bool,
}

/// A method of a path of the document, which can become a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenApiOperation<'d> {
    pub(super) method: &'static str,
    pub(super) path: &'d str,
    pub(super) value: &'d Value,
    /// The parameters of all operations of the path.
    pub(super) shared: &'d [Value],
}

impl OpenApiOperation<'_> {
    /// Its `operationId`, or one made of method and path.
    pub(super) fn id(&self) -> Cow<'_, str> {
        match self.value.get("operationId").and_then(Value::as_str) {
            Some(id) => id.into(),
            None => format!("{}{}", self.method, self.path).into(),
        }
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &str> {
        list(self.value, "tags").iter().filter_map(Value::as_str)
    }
}

pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl OpenApiDocument {
    /// Reads the document at `path`, relative to `base`.
    pub(super) fn read(path: &str, base: &Path) -> Result<Self, Diagnostic> {
        if path.contains("://") {
            return Err(Diagnostic::error("an OpenAPI document is a local file")
                .with_hint("download it and name the file"));
        }
        let path = base.join(path);
        let text = read::text(&path, false, MAX_BYTES)?;
        // A large document is JSON; what is wrong with it is found by the slower parser.
        let root = match serde_json::from_str(&text) {
            Ok(root) => root,
            Err(_) => parse::parse(&SourceText::new(&path, &text), &text)?.to_json(),
        };
        let version = root.get("openapi").and_then(Value::as_str).unwrap_or_default();
        if !version.starts_with("3.") {
            let diagnostic = if root.get("swagger").is_some() {
                Diagnostic::error("this is Swagger 2.0, which is not supported")
                    .with_hint("convert it to OpenAPI 3")
            } else {
                Diagnostic::error(format!("'openapi: {version}' is not version 3"))
            };
            return Err(diagnostic);
        }
        Ok(Self { is_v3_0: version.starts_with("3.0"), root })
    }

    pub(super) fn lookup(&self, reference: &str) -> Result<&Value, String> {
        if !reference.starts_with('#') {
            return Err(format!("'{reference}' is outside the document"));
        }
        schema::target(&self.root, reference)
            .ok_or_else(|| format!("there is nothing at '{reference}'"))
    }

    pub(super) fn resolved<'a>(&'a self, mut value: &'a Value) -> Result<&'a Value, String> {
        for _ in 0..MAX_REFERENCES {
            match value.get("$ref").and_then(Value::as_str) {
                Some(reference) => value = self.lookup(reference)?,
                None => return Ok(value),
            }
        }
        Err("references form a cycle".to_owned())
    }

    pub(super) fn operations(&self) -> Vec<OpenApiOperation<'_>> {
        let mut operations = Vec::new();
        let paths = self.root.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            let Ok(item) = self.resolved(item) else { continue };
            let shared = list(item, "parameters");
            operations.extend(METHODS.into_iter().filter_map(|method| {
                let value = item.get(method).filter(|value| value.is_object())?;
                Some(OpenApiOperation { method, path, value, shared })
            }));
        }
        operations
    }

    /// The address of its first server, with the defaults of its variables. A relative one is
    /// appended to the `base_url` of the file's defaults.
    pub(super) fn server(&self, spec: &ToolSpec) -> Result<String, Diagnostic> {
        let server = self.root.pointer("/servers/0");
        let mut url = server.and_then(|s| s.get("url")?.as_str()).unwrap_or_default().to_owned();
        let variables = server.and_then(|s| s.get("variables")?.as_object());
        for (name, variable) in variables.into_iter().flatten() {
            let value = variable.get("default").and_then(Value::as_str).unwrap_or_default();
            url = url.replace(&format!("{{{name}}}"), value);
        }
        if url.contains("://") {
            return Ok(url);
        }
        let Some(base) = spec.defaults().base_url else {
            return Err(Diagnostic::error("the document names no server")
                .with_hint("add 'base_url' to the entry"));
        };
        Ok(format!("{}/{}", base.trim_end_matches('/'), url.trim_start_matches('/')))
    }
}

/// What holds a file, in place of what a document says: its text, or its bytes.
const FILE: &str = r#"{"description":"its text, or {\"base64\": …} with its bytes","type":["string","object"],"properties":{"base64":{"type":"string","contentEncoding":"base64"},"text":{"type":"string"},"filename":{"type":"string"},"type":{"type":"string"}},"additionalProperties":false}"#;

fn too_many() -> String {
    format!("more than {MAX_DEFS} schemas are referenced")
}

/// Which schemas of a document refer to which others, found out once for all its operations.
#[derive(Default)]
pub(super) struct ReferenceGraph(IndexMap<String, Option<Arc<[usize]>>>);

impl ReferenceGraph {
    /// Whether everything that `references` lead to, directly or not, is there and is not too much.
    fn check(&mut self, document: &OpenApiDocument, references: &[String]) -> Result<(), String> {
        let mut pending: Vec<usize> = references.iter().map(|one| self.id(one)).collect();
        let (mut is_seen, mut count) = (Vec::new(), 0);
        while let Some(id) = pending.pop() {
            is_seen.resize(self.0.len(), false);
            if std::mem::replace(&mut is_seen[id], true) {
                continue;
            }
            count += 1;
            if count > MAX_DEFS {
                return Err(too_many());
            }
            pending.extend(self.targets(document, id)?.iter());
        }
        Ok(())
    }

    fn id(&mut self, reference: &str) -> usize {
        let id = self.0.get_index_of(reference);
        id.unwrap_or_else(|| self.0.insert_full(reference.to_owned(), None).0)
    }

    fn targets(&mut self, document: &OpenApiDocument, id: usize) -> Result<Arc<[usize]>, String> {
        if let Some(targets) = &self.0[id] {
            return Ok(Arc::clone(targets));
        }
        let mut schema = document.lookup(&self.0.keys()[id])?.clone();
        let mut targets = Vec::new();
        schema::for_each(&mut schema, &mut String::new(), &mut |_, keywords| {
            let reference = keywords.get("$ref").and_then(Value::as_str);
            targets.extend(reference.map(|reference| self.id(reference)));
        });
        let targets: Arc<[usize]> = targets.into();
        self.0[id] = Some(Arc::clone(&targets));
        Ok(targets)
    }
}

pub(super) struct SchemaBundler {
    document: Arc<OpenApiDocument>,
    /// The names in `$defs`, by reference.
    names: BTreeMap<String, String>,
    /// References whose schemas are not in `defs` yet.
    pending: Vec<String>,
    /// Values of the format binary are files: they are not JSON.
    pub(super) has_files: bool,
}

impl SchemaBundler {
    pub(super) fn of(document: &Arc<OpenApiDocument>) -> Self {
        let document = Arc::clone(document);
        Self { document, names: BTreeMap::new(), pending: Vec::new(), has_files: false }
    }

    /// A schema in which every reference leads into `$defs`.
    pub(super) fn rewrite(&mut self, schema: &Value) -> Result<Value, String> {
        let (mut schema, mut rewritten) = (schema.clone(), Ok(()));
        let (is_v3_0, has_files) = (self.document.is_v3_0, self.has_files);
        schema::for_each(&mut schema, &mut String::new(), &mut |_, keywords| {
            if let Some(Value::String(reference)) = keywords.get_mut("$ref")
                && rewritten.is_ok()
            {
                rewritten = self.reference_to_def(reference).map(|to| *reference = to);
            }
            if is_v3_0 {
                convert_v3_0(keywords);
            }
            if has_files
                && keywords.get("format").is_some_and(|format| format == "binary")
                && let Ok(file) = serde_json::from_str::<Map<String, Value>>(FILE)
            {
                keywords.shift_remove("format");
                for (keyword, value) in file {
                    if keyword != "description" || !keywords.contains_key("description") {
                        keywords.insert(keyword, value);
                    }
                }
            }
        });
        rewritten.map(|()| schema)
    }

    fn reference_to_def(&mut self, reference: &str) -> Result<String, String> {
        if let Some(name) = self.names.get(reference) {
            return Ok(format!("#/$defs/{name}"));
        }
        self.document.lookup(reference)?;
        if self.names.len() == MAX_DEFS {
            return Err(too_many());
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let mut name: String = last.chars().filter(fits).collect();
        if name.is_empty() || self.names.values().any(|taken| *taken == name) {
            name = format!("{name}_{}", self.names.len());
        }
        self.names.insert(reference.to_owned(), name.clone());
        self.pending.push(reference.to_owned());
        Ok(format!("#/$defs/{name}"))
    }

    /// The schema with all that it refers to in its `$defs`. Operations share most of that, so it is
    /// put there when the schema is looked at.
    pub(super) fn attach_defs(
        self,
        root: Value,
        graph: &mut ReferenceGraph,
    ) -> Result<ToolSchema, String> {
        if self.pending.is_empty() {
            return Ok(root.into());
        }
        graph.check(&self.document, &self.pending)?;
        Ok(ToolSchema::lazy(root, |root| self.complete(root)))
    }

    fn complete(mut self, mut root: Value) -> Value {
        let document = Arc::clone(&self.document);
        let mut defs = Map::new();
        while let Some(reference) = self.pending.pop() {
            let schema = document.lookup(&reference).and_then(|schema| self.rewrite(schema));
            // The graph was checked, so nothing is missing.
            if let (Ok(schema), Some(name)) = (schema, self.names.get(&reference)) {
                defs.insert(name.clone(), schema);
            }
        }
        if let Value::Object(root) = &mut root {
            root.insert("$defs".to_owned(), Value::Object(defs));
        }
        root
    }
}

/// Translates the keywords of 3.0 to those of JSON Schema.
fn convert_v3_0(schema: &mut Map<String, Value>) {
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match schema.get(flag) {
            Some(Value::Bool(true)) => {
                schema.remove(flag);
                if let Some(value) = schema.remove(bound) {
                    schema.insert(flag.to_owned(), value);
                }
            }
            Some(Value::Bool(false)) => drop(schema.remove(flag)),
            _ => {}
        }
    }
    if schema.remove("nullable") != Some(Value::Bool(true)) {
        return;
    }
    if let Some(Value::String(kind)) = schema.get("type") {
        let kinds = json!([kind, "null"]);
        schema.insert("type".to_owned(), kinds);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}
