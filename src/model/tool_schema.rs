//! A JSON Schema of a tool.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

type Completion = Box<dyn FnOnce() -> Arc<Value> + Send>;

/// A JSON Schema of a tool, read as a [`Value`].
///
/// Tools made of one document share most of their schemas. They are not copied for each tool before
/// somebody looks at it.
#[derive(Clone, Deserialize)]
#[serde(from = "Value")]
pub struct ToolSchema {
    top: Arc<Value>,
    whole: Option<Arc<LazyLock<Arc<Value>, Completion>>>,
}

impl ToolSchema {
    /// A schema that `complete` adds definitions to when it is looked at.
    pub(crate) fn lazy(top: Value, complete: impl FnOnce(Value) -> Value + Send + 'static) -> Self {
        let top = Arc::new(top);
        let own = Arc::clone(&top);
        let complete: Completion = Box::new(move || Arc::new(complete((*own).clone())));
        Self { top, whole: Some(Arc::new(LazyLock::new(complete))) }
    }

    /// The schema without the definitions that would have to be put together first: enough to list
    /// a tool with the names of its arguments.
    pub fn top(&self) -> &Value {
        &self.top
    }

    /// The schema that `change` makes of it, as lazily as it is made itself.
    pub(crate) fn mapped(&self, change: impl Fn(&Value) -> Value + Send + 'static) -> Self {
        let Some(whole) = self.whole.clone() else { return change(&self.top).into() };
        Self::lazy(change(&self.top), move |_| change(&whole))
    }

    /// Whether looking at the whole schema costs something.
    pub(crate) fn is_lazy(&self) -> bool {
        self.whole.is_some()
    }

    #[cfg(test)]
    pub(crate) fn is_looked_at(&self) -> bool {
        self.whole.as_ref().is_none_or(|whole| LazyLock::get(whole).is_some())
    }

    /// The whole schema.
    pub fn whole(&self) -> &Arc<Value> {
        self.whole.as_ref().map_or(&self.top, |whole| whole)
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
        serde_json::json!({ "type": "object" }).into()
    }
}

impl From<Value> for ToolSchema {
    fn from(schema: Value) -> Self {
        Arc::new(schema).into()
    }
}

impl From<Arc<Value>> for ToolSchema {
    fn from(top: Arc<Value>) -> Self {
        Self { top, whole: None }
    }
}

impl fmt::Debug for ToolSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.top, f)
    }
}

impl fmt::Display for ToolSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.whole(), f)
    }
}

impl Serialize for ToolSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.whole().serialize(serializer)
    }
}
