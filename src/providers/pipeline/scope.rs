//! The values that templates can refer to while a pipeline runs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::reference::{PathSegment, ValueReference};
use crate::model::{JsonObject, ToolContext};

pub(super) const RESERVED_NAMES: [&str; 4] = ["args", "context", "item", "index"];

/// How many keys of a value are named when one is missing.
const MAX_LISTED_KEYS: usize = 10;

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

#[derive(Debug)]
pub(super) enum ReferenceValue<'a> {
    Value(Cow<'a, Value>),
    /// The caller did not say.
    NotGiven,
    /// A step that has not run, or a context that is not there yet.
    NotYetKnown,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum ReferenceError {
    /// A step or item does not have what the reference names.
    #[error("'{reference}' does not exist: {reached}")]
    Missing { reference: ValueReference, reached: ReachedValue },
    /// The caller did not give it, and the reference is inside a larger text.
    #[error("'{0}' was not given, but is used inside text")]
    NotGiven(ValueReference),
}

/// The last value on the path of a reference that cannot be resolved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum ReachedValue {
    #[error("the object is empty")]
    EmptyObject,
    #[error("it has {}{}", .keys.join(", "), .more)]
    Object {
        keys: Vec<String>,
        /// Text that there are others; otherwise empty.
        more: &'static str,
    },
    #[error("the list has 1 item")]
    SingleItem,
    #[error("the list has {0} items")]
    List(usize),
    #[error("that value is text")]
    Text,
    #[error("that value is a number")]
    Number,
    #[error("that value is true or false")]
    Bool,
    #[error("that value is null")]
    Null,
}

impl ReachedValue {
    fn of(value: &Value) -> Self {
        match value {
            Value::Object(map) if map.is_empty() => Self::EmptyObject,
            Value::Object(map) => Self::Object {
                keys: map.keys().take(MAX_LISTED_KEYS).map(|key| format!("'{key}'")).collect(),
                more: if map.len() > MAX_LISTED_KEYS { " and more" } else { "" },
            },
            Value::Array(items) if items.len() == 1 => Self::SingleItem,
            Value::Array(items) => Self::List(items.len()),
            Value::String(_) => Self::Text,
            Value::Number(_) => Self::Number,
            Value::Bool(_) => Self::Bool,
            Value::Null => Self::Null,
        }
    }
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

    pub(super) fn find(
        &self,
        reference: &ValueReference,
    ) -> Result<ReferenceValue<'a>, ReferenceError> {
        let ValueReference { root, path } = reference;
        let (value, lenient) = match root.as_str() {
            "args" => (&self.scope.arguments, true),
            "context" => match &self.scope.context {
                Some(context) => (context, true),
                None => return Ok(ReferenceValue::NotYetKnown),
            },
            "item" => match self.item {
                Some((_, item)) => (item, false),
                None => return Ok(ReferenceValue::NotYetKnown),
            },
            "index" => {
                return Ok(match self.item {
                    Some((index, _)) => ReferenceValue::Value(Cow::Owned(json!(index))),
                    None => ReferenceValue::NotYetKnown,
                });
            }
            step if self.scope.steps.contains(step) => match self.scope.done.get(step) {
                Some(state) => (state, false),
                None => return Ok(ReferenceValue::NotYetKnown),
            },
            argument => match self.scope.arguments.get(argument) {
                Some(value) => (value, true),
                None => return Ok(ReferenceValue::NotGiven),
            },
        };
        match walk(value, path) {
            Ok(value) => Ok(ReferenceValue::Value(Cow::Borrowed(value))),
            Err(_) if lenient => Ok(ReferenceValue::NotGiven),
            Err(last) => {
                let reached = ReachedValue::of(last);
                Err(ReferenceError::Missing { reference: reference.clone(), reached })
            }
        }
    }
}

/// The value at the end of a path. Nothing is in nothing: a step that was skipped has no parts to
/// miss. The error is the last value on the way.
fn walk<'v>(mut value: &'v Value, path: &[PathSegment]) -> Result<&'v Value, &'v Value> {
    for segment in path {
        let next = match (value, segment) {
            (Value::Null, _) => return Ok(value),
            (Value::Object(map), PathSegment::Key(key)) => map.get(key),
            (Value::Object(map), PathSegment::Index(index)) => map.get(&index.to_string()),
            (Value::Array(items), PathSegment::Index(index)) => items.get(*index),
            (Value::Array(items), PathSegment::Key(key)) => {
                key.parse().ok().and_then(|index: usize| items.get(index))
            }
            _ => None,
        };
        value = next.ok_or(value)?;
    }
    Ok(value)
}
