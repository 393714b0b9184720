//! Making a document's schemas self-contained.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::document::OpenApiDocument;
use super::error::OperationError;
use super::{MAX_DEFS, MAX_DEPTH};

/// Keys whose value is a map of schemas under names that are not keywords.
const SCHEMA_MAP_KEYS: [&str; 4] = ["properties", "patternProperties", "$defs", "dependentSchemas"];

const DATA_KEYS: [&str; 5] = ["enum", "const", "default", "example", "examples"];

pub(super) struct SchemaBundler<'a> {
    document: &'a OpenApiDocument,
    /// The names in `$defs`, by reference.
    names: BTreeMap<String, String>,
    /// References whose schemas are not in `defs` yet.
    pending: Vec<String>,
}

impl<'a> SchemaBundler<'a> {
    pub(super) fn of(document: &'a OpenApiDocument) -> Self {
        Self { document, names: BTreeMap::new(), pending: Vec::new() }
    }

    /// A schema in which every reference leads into `$defs`.
    pub(super) fn rewrite(
        &mut self,
        schema: &Value,
        depth: usize,
    ) -> Result<Value, OperationError> {
        if depth > MAX_DEPTH {
            return Err(OperationError::SchemaTooDeep);
        }
        let Value::Object(map) = schema else { return Ok(schema.clone()) };
        let mut out = Map::new();
        for (key, value) in map {
            let value = match value {
                Value::String(reference) if key == "$ref" => {
                    Value::String(self.reference_to_def(reference)?)
                }
                value if DATA_KEYS.contains(&key.as_str()) => value.clone(),
                Value::Object(named) if SCHEMA_MAP_KEYS.contains(&key.as_str()) => {
                    let mut all = Map::new();
                    for (name, schema) in named {
                        all.insert(name.clone(), self.rewrite(schema, depth + 1)?);
                    }
                    Value::Object(all)
                }
                Value::Array(items) => {
                    let all = items.iter().map(|item| self.rewrite(item, depth + 1));
                    Value::Array(all.collect::<Result<_, _>>()?)
                }
                other => self.rewrite(other, depth + 1)?,
            };
            out.insert(key.clone(), value);
        }
        if self.document.is_v3_0 {
            convert_v3_0(&mut out);
        }
        Ok(Value::Object(out))
    }

    fn reference_to_def(&mut self, reference: &str) -> Result<String, OperationError> {
        if let Some(name) = self.names.get(reference) {
            return Ok(format!("#/$defs/{name}"));
        }
        self.document.lookup(reference)?;
        if self.names.len() == MAX_DEFS {
            return Err(OperationError::TooManySchemas);
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

    /// Puts all referenced schemas into the `$defs` of `root`.
    pub(super) fn attach_defs(mut self, mut root: Value) -> Result<Value, OperationError> {
        let mut defs = Map::new();
        while let Some(reference) = self.pending.pop() {
            let schema = self.rewrite(self.document.lookup(&reference)?, 0)?;
            if let Some(name) = self.names.get(&reference) {
                defs.insert(name.clone(), schema);
            }
        }
        if !defs.is_empty()
            && let Value::Object(root) = &mut root
        {
            root.insert("$defs".to_owned(), Value::Object(defs));
        }
        Ok(root)
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
