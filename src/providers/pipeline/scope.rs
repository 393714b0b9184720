//! The values that templates can refer to while a pipeline runs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::reference::ValueReference;
use crate::model::{Error, JsonObject, ToolContext};

pub(super) const RESERVED_NAMES: [&str; 4] = ["args", "context", "item", "index"];

pub(super) struct Scope {
    arguments: Value,
    /// `None` for a preview, which belongs to no call.
    context: Option<Value>,
    steps: BTreeSet<String>,
    done: BTreeMap<String, Value>,
}

/// A scope, and the item that is at hand where a step runs for each of several.
#[derive(Clone, Copy)]
pub(super) struct ScopeView<'a> {
    scope: &'a Scope,
    item: Option<(usize, &'a Value)>,
}

pub(super) fn context(context: &ToolContext) -> Value {
    json!({
        "call_id": context.call_id.0,
        "session_id": context.session_id,
        "user_id": context.user_id,
        "cwd": context.cwd.display().to_string(),
        "environment": context.environment,
        "metadata": context.metadata,
    })
}

impl Scope {
    /// The beginning of a run, with the names of all its steps.
    pub(super) fn of<'n>(
        arguments: JsonObject,
        context: Option<Value>,
        steps: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        Self {
            arguments: Value::Object(arguments),
            context,
            steps: steps.into_iter().map(str::to_owned).collect(),
            done: BTreeMap::new(),
        }
    }

    pub(super) fn record(&mut self, step: &str, state: Value) {
        self.done.insert(step.to_owned(), state);
    }

    pub(super) fn view(&self) -> ScopeView<'_> {
        ScopeView { scope: self, item: None }
    }
}

impl<'a> ScopeView<'a> {
    pub(super) fn with_item(self, index: usize, item: &'a Value) -> Self {
        Self { item: Some((index, item)), ..self }
    }

    /// The value of a reference; `None` if the caller did not give it. Of a step that has not run,
    /// and of a context or an item that is not there yet, it is the reference as written.
    pub(super) fn find(&self, reference: &ValueReference) -> Result<Option<Cow<'a, Value>>, Error> {
        let ValueReference { root, path, text } = reference;
        let (value, lenient) = match root.as_str() {
            "args" => (Some(&self.scope.arguments), true),
            "context" => (self.scope.context.as_ref(), true),
            "item" => (self.item.map(|(_, item)| item), false),
            "index" if self.item.is_some() => {
                return Ok(self.item.map(|(index, _)| Cow::Owned(json!(index))));
            }
            "index" => (None, false),
            step if self.scope.steps.contains(step) => (self.scope.done.get(step), false),
            argument => match self.scope.arguments.get(argument) {
                Some(value) => (Some(value), true),
                None => return Ok(None),
            },
        };
        let Some(value) = value else {
            return Ok(Some(Cow::Owned(Value::String(format!("{{{text}}}")))));
        };
        match walk(value, path) {
            Ok(value) => Ok(Some(Cow::Borrowed(value))),
            Err(_) if lenient => Ok(None),
            Err(last) => {
                let reached = crate::util::json::summary(last);
                Err(Error::tool(format!("'{text}' does not exist: it {reached}")))
            }
        }
    }
}

/// The value at the end of a path. Nothing is in nothing: a step that was skipped has no parts to
/// miss. The error is the last value on the way.
fn walk<'v>(mut value: &'v Value, path: &[String]) -> Result<&'v Value, &'v Value> {
    for segment in path {
        let next = match (value, segment) {
            (Value::Null, _) => return Ok(value),
            (Value::Object(map), key) => map.get(key),
            (Value::Array(items), index) => {
                index.parse().ok().and_then(|index: usize| items.get(index))
            }
            _ => None,
        };
        value = next.ok_or(value)?;
    }
    Ok(value)
}
