//! OpenAPI documents: parsing, and resolving references.

use std::path::Path;

use serde_json::Value;

use super::error::OperationError;
use crate::config::spec::ToolSpec;
use crate::config::{parse, read};
use crate::model::Diagnostic;

/// How many references are followed one after the other.
const MAX_REFERENCES: usize = 16;

const MAX_OPERATIONS: usize = 10_000;

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// A parsed document of version 3.0 or 3.1.
pub(super) struct OpenApiDocument {
    root: Value,
    /// The version is 3.0, whose schemas differ from JSON Schema.
    pub(super) is_v3_0: bool,
}

/// A method of a path of the document, which can become a tool.
#[derive(Debug, Clone)]
pub(super) struct OpenApiOperation {
    /// Its `operationId`, or one made of method and path.
    pub(super) id: String,
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) tags: Vec<String>,
    pub(super) value: Value,
    pub(super) shared: Vec<Value>,
}

impl OpenApiDocument {
    /// Reads the document at `path`, relative to `base`.
    pub(super) fn read(path: &str, base: &Path) -> Result<Self, Diagnostic> {
        if path.contains("://") {
            return Err(Diagnostic::error("an OpenAPI document is a local file")
                .with_hint("download it and name the file"));
        }
        let (source, text) = read::read(&base.join(path), false)?;
        let root = parse::parse(&source, &text)?.root.to_json();
        let version = root.get("openapi").and_then(Value::as_str).unwrap_or_default();
        let old = version.starts_with("3.0");
        if !old && !version.starts_with("3.1") {
            let diagnostic = if root.get("swagger").is_some() {
                Diagnostic::error("this is Swagger 2.0, which is not supported")
                    .with_hint("convert it to OpenAPI 3")
            } else {
                Diagnostic::error(format!("'openapi: {version}' is neither 3.0 nor 3.1"))
            };
            return Err(diagnostic);
        }
        Ok(Self { root, is_v3_0: old })
    }

    pub(super) fn lookup(&self, reference: &str) -> Result<&Value, OperationError> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(OperationError::ReferenceOutside(reference.to_owned()));
        };
        self.root
            .pointer(pointer)
            .ok_or_else(|| OperationError::ReferenceMissing(reference.to_owned()))
    }

    pub(super) fn resolved<'a>(
        &'a self,
        mut value: &'a Value,
    ) -> Result<&'a Value, OperationError> {
        for _ in 0..MAX_REFERENCES {
            match value.get("$ref").and_then(Value::as_str) {
                Some(reference) => value = self.lookup(reference)?,
                None => return Ok(value),
            }
        }
        Err(OperationError::ReferenceCycle)
    }

    pub(super) fn operations(&self) -> Vec<OpenApiOperation> {
        let mut operations = Vec::new();
        let paths = self.root.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            let Ok(item) = self.resolved(item) else { continue };
            let list = |value: &Value, key: &str| {
                value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
            };
            let shared = list(item, "parameters");
            for method in METHODS {
                let Some(value) = item.get(method).filter(|value| value.is_object()) else {
                    continue;
                };
                if operations.len() == MAX_OPERATIONS {
                    return operations;
                }
                let id = value.get("operationId").and_then(Value::as_str);
                let tags = list(value, "tags");
                operations.push(OpenApiOperation {
                    id: id.map_or_else(|| format!("{method}{path}"), str::to_owned),
                    method,
                    path: path.clone(),
                    tags: tags.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                    value: value.clone(),
                    shared: shared.clone(),
                });
            }
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
