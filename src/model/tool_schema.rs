//! A JSON Schema of a tool.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

type Completion = Box<dyn FnOnce() -> Arc<Value> + Send>;

/// Deeper trees are kept: their text would not be read again.
const MAX_DEPTH_OF_TEXT: usize = 100;

/// A JSON Schema of a tool, read as a [`Value`].
///
/// A catalogue may have thousands. Each is kept in the form that takes the least memory until
/// somebody asks for the tree.
#[derive(Clone, Deserialize)]
#[serde(from = "Value")]
pub struct ToolSchema(Arc<SchemaForm>);

enum SchemaForm {
    /// As text, which takes a tenth of what the tree takes.
    Text { text: Box<str>, tree: OnceLock<Arc<Value>> },
    /// Tools made of one document share most of their schemas. They are not copied for each tool
    /// before somebody looks at it.
    Composed { top: Arc<Value>, whole: LazyLock<Arc<Value>, Completion> },
}

impl ToolSchema {
    /// A schema that `complete` adds definitions to when it is looked at.
    pub(crate) fn lazy(top: Value, complete: impl FnOnce(Value) -> Value + Send + 'static) -> Self {
        let top = Arc::new(top);
        let own = Arc::clone(&top);
        let complete: Completion = Box::new(move || Arc::new(complete((*own).clone())));
        Self(Arc::new(SchemaForm::Composed { top, whole: LazyLock::new(complete) }))
    }

    /// The schema without the definitions that would have to be put together first: enough to list
    /// a tool with the names of its arguments.
    pub fn top(&self) -> Arc<Value> {
        match &*self.0 {
            SchemaForm::Composed { top, .. } => Arc::clone(top),
            SchemaForm::Text { .. } => self.read(),
        }
    }

    /// The whole schema for one look, after which its tree is not kept.
    pub fn read(&self) -> Arc<Value> {
        match &*self.0 {
            SchemaForm::Text { text, tree } => {
                tree.get().cloned().unwrap_or_else(|| Arc::new(parsed(text)))
            }
            SchemaForm::Composed { .. } => Arc::clone(self.whole()),
        }
    }

    /// The whole schema.
    pub fn whole(&self) -> &Arc<Value> {
        match &*self.0 {
            SchemaForm::Text { text, tree } => tree.get_or_init(|| Arc::new(parsed(text))),
            SchemaForm::Composed { whole, .. } => whole,
        }
    }

    /// The schema that `change` makes of it, as lazily as it is made itself.
    pub(crate) fn mapped(&self, change: impl Fn(&Value) -> Value + Send + 'static) -> Self {
        let SchemaForm::Composed { top, .. } = &*self.0 else { return change(&self.read()).into() };
        let whole = self.clone();
        Self::lazy(change(top), move |_| change(&whole))
    }

    /// Whether looking at the whole schema costs something.
    pub(crate) fn is_lazy(&self) -> bool {
        matches!(*self.0, SchemaForm::Composed { .. })
    }

    #[cfg(test)]
    pub(crate) fn is_looked_at(&self) -> bool {
        match &*self.0 {
            SchemaForm::Text { tree, .. } => tree.get().is_some(),
            SchemaForm::Composed { whole, .. } => LazyLock::get(whole).is_some(),
        }
    }
}

/// The tree of a text that was written from one.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|item| is_deeper(item, levels - 1)),
        _ => false,
    }
}

impl Deref for ToolSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.whole()
    }
}

impl Default for ToolSchema {
    /// Of any object.
    fn default() -> Self {
        static ANY_OBJECT: LazyLock<ToolSchema> =
            LazyLock::new(|| serde_json::json!({ "type": "object" }).into());
        ANY_OBJECT.clone()
    }
}

impl From<Value> for ToolSchema {
    fn from(schema: Value) -> Self {
        let text = schema.to_string().into();
        let is_kept = is_deeper(&schema, MAX_DEPTH_OF_TEXT);
        let tree = if is_kept { Arc::new(schema).into() } else { OnceLock::new() };
        Self(Arc::new(SchemaForm::Text { text, tree }))
    }
}

impl fmt::Debug for ToolSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.top(), f)
    }
}

impl fmt::Display for ToolSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            SchemaForm::Text { text, .. } if !f.alternate() => f.write_str(text),
            _ => fmt::Display::fmt(&self.read(), f),
        }
    }
}

impl Serialize for ToolSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().serialize(serializer)
    }
}

impl JsonSchema for ToolSchema {
    fn inline_schema() -> bool {
        Value::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Value::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(serde_json::json!({}), |inner, _| serde_json::json!({ "items": inner }))
    }

    #[test]
    fn a_schema_comes_back_as_it_was_however_deep_it_is() {
        for levels in [0, MAX_DEPTH_OF_TEXT - 1, MAX_DEPTH_OF_TEXT, 2 * MAX_DEPTH_OF_TEXT] {
            let schema = ToolSchema::from(nested(levels));
            assert_eq!(*schema.read(), nested(levels), "{levels}");
            assert_eq!(schema.to_string(), nested(levels).to_string(), "{levels}");
        }
    }

    #[test]
    fn a_look_at_a_schema_leaves_no_tree_behind() {
        let schema = ToolSchema::from(nested(3));
        let text = serde_json::to_string(&schema).unwrap();
        assert_eq!((text, schema.top()), (nested(3).to_string(), schema.read()));
        assert!(!schema.is_looked_at());
        assert_eq!(schema["items"]["items"]["items"], nested(0));
        assert!(schema.is_looked_at());
    }
}
