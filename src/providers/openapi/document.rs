//! OpenAPI documents: parsing, and resolving references.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;

use crate::config::node::SourceText;
use crate::config::spec::ToolSpec;
use crate::config::{parse, read};
use crate::model::Diagnostic;
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
            Err(_) => parse::parse(&SourceText::new(&path, &text), &text)?.root.to_json(),
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
