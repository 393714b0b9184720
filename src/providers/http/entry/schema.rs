//! The input schema of an entry: declared, or derived from its placeholders.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{EntryParser, TextPart};
use crate::config::spec::INPUT_SCHEMA_KEYS;
use crate::model::{Diagnostic, ToolDefinition};
use crate::providers::properties::{SchemaProperties, object_schema};

impl EntryParser<'_> {
    /// What the schema declares about arguments. Without a schema, one is made of the placeholders
    /// and of `params`.
    pub(super) fn properties(&mut self, definition: &mut ToolDefinition) -> SchemaProperties {
        if self.spec.entry.get_any(INPUT_SCHEMA_KEYS).is_none() {
            definition.input_schema = self.schema().into();
            return SchemaProperties::of(&definition.input_schema.read());
        }
        let properties = SchemaProperties::of(&definition.input_schema.top());
        let mut warned = BTreeSet::new();
        for text in &self.texts {
            for name in text.template.arguments() {
                let remedy = text.needs_arguments().then_some("or give it a default");
                let diagnostic = properties.check(name, name, remedy, &text.location);
                let is_new = |one: &Diagnostic| one.is_error() || warned.insert(name.to_owned());
                self.diagnostics.extend(diagnostic.filter(is_new));
            }
        }
        properties
    }

    fn schema(&self) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for text in &self.texts {
            for name in text.template.arguments() {
                let is_in_path = text.part == TextPart::Path;
                let shape = if is_in_path { json!({ "type": "string" }) } else { json!({}) };
                properties.entry(name.to_owned()).or_insert(shape);
                if text.needs_arguments() && !required.contains(&name) {
                    required.push(name);
                }
            }
        }
        for name in self.keys.params.iter().flat_map(BTreeMap::keys) {
            properties.entry(name.clone()).or_insert(json!({}));
        }
        object_schema(Value::Object(properties), &required)
    }
}
