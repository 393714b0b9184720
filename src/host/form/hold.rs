//! Putting a value into the fields of a tree.

use std::sync::Arc;

use serde_json::Value;

use super::{Entry, FIELDS, Field, ITEMS, Kind, Node, Schema, VARIANTS};
use crate::host::coerce;
use crate::model::JsonObject;

impl Node {
    /// Puts a value into it. What no field of a kind can hold exactly is held as JSON. `left` is how
    /// many fields may still be made for it.
    pub fn hold(&mut self, value: &Value, left: &mut usize) {
        *left = left.saturating_sub(1);
        if *left > 0 {
            self.take(value, left);
        }
        if self.value().as_ref() != Some(value) {
            self.children.clear();
            self.is_open = false;
            self.entry = Entry::Json(value.to_string());
        }
    }

    fn take(&mut self, value: &Value, left: &mut usize) {
        self.clear();
        self.entry = match (&self.field.kind, value) {
            (_, Value::Null) => Entry::Null,
            (Kind::Object, Value::Object(object)) => {
                self.take_object(object, left);
                Entry::Made
            }
            (Kind::List, Value::Array(items)) if items.len() <= ITEMS => {
                for item in items {
                    let at = self.children.len();
                    let mut node = self.item(at);
                    node.hold(item, left);
                    self.children.push(node);
                }
                self.is_open = true;
                Entry::Made
            }
            (Kind::Variants(_), value) => {
                let forms = self.field.schema.alternatives(VARIANTS);
                let Some(at) = forms.iter().position(|form| suits(form, value)) else { return };
                self.choose_form(at);
                if let Some(form) = self.children.first_mut() {
                    form.hold(value, left);
                }
                Entry::Chosen(at)
            }
            (Kind::One(choices), value) => {
                let at = choices.iter().position(|choice| choice.value == *value);
                at.map_or_else(|| Entry::Text(written(value)), Entry::Chosen)
            }
            (Kind::Many(choices), Value::Array(values)) => {
                let at = |value: &Value| choices.iter().position(|choice| choice.value == *value);
                let ticked: Option<Vec<usize>> = values.iter().map(at).collect();
                self.is_open = ticked.is_some();
                ticked.map_or(Entry::Unset, Entry::Ticked)
            }
            (Kind::Flag, Value::Bool(value)) => Entry::Chosen(usize::from(*value)),
            (Kind::Constant(_), _) => Entry::Chosen(0),
            (_, value) => Entry::Text(written(value)),
        };
    }

    fn take_object(&mut self, object: &JsonObject, left: &mut usize) {
        self.open();
        for child in &mut self.children {
            match object.get(&child.field.key) {
                Some(value) => child.hold(value, left),
                None => child.clear(),
            }
        }
        // What the schema does not speak of is not lost.
        let known = self.children.len();
        for (key, value) in object {
            let is_new = !self.children[..known].iter().any(|child| child.field.key == *key);
            if is_new && self.children.len() < known + FIELDS {
                let nowhere = Schema::of(&Arc::default());
                let mut extra = Self::new(Field::of(key, nowhere, false), self.depth + 1);
                extra.entry = Entry::Json(value.to_string());
                self.children.push(extra);
            }
        }
    }
}

/// Whether a value looks as if it had this form: its type, and what tells forms apart.
fn suits(form: &Schema, value: &Value) -> bool {
    let types = form.types();
    let is_type =
        |name: &&str| coerce::is_a(value, name) || (*name == "string" && value.is_string());
    if !types.is_empty() && !types.iter().any(is_type) {
        return false;
    }
    if let Some(constant) = form.get("const") {
        return constant == value;
    }
    let Some(object) = value.as_object() else { return true };
    form.properties(FIELDS).iter().all(|(key, field)| match object.get(*key) {
        None => !form.requires(key),
        Some(value) => {
            field.get("const").is_none_or(|constant| constant == value)
                && field
                    .get("enum")
                    .and_then(Value::as_array)
                    .is_none_or(|values| values.contains(value))
        }
    })
}

/// A value as somebody would write it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
