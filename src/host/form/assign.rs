//! Assigning a JSON value to a tree of form fields.

use std::sync::Arc;

use serde_json::Value;

use super::field::input_text;
use super::{
    FieldInput, FieldKind, FormField, FormNode, MAX_FIELDS, MAX_ITEMS, MAX_VARIANTS, ResolvedSchema,
};
use crate::host::coerce;
use crate::model::JsonObject;

impl FormNode {
    /// Puts a value into it. What no field of a kind can hold exactly is held as JSON. `left` is how
    /// many fields may still be made for it.
    pub fn set_value(&mut self, value: &Value, left: &mut usize) {
        *left = left.saturating_sub(1);
        if *left > 0 {
            self.assign(value, left);
        }
        if self.value().as_ref() != Some(value) {
            self.children.clear();
            self.is_open = false;
            self.input = FieldInput::Json(value.to_string());
        }
    }

    fn assign(&mut self, value: &Value, left: &mut usize) {
        self.clear();
        self.input = match (&self.field.kind, value) {
            (_, Value::Null) => FieldInput::Null,
            (FieldKind::Object, Value::Object(object)) => {
                self.assign_object(object, left);
                FieldInput::Container
            }
            (FieldKind::List, Value::Array(items)) if items.len() <= MAX_ITEMS => {
                for item in items {
                    let at = self.children.len();
                    let mut node = self.item(at);
                    node.set_value(item, left);
                    self.children.push(node);
                }
                self.is_open = true;
                FieldInput::Container
            }
            (FieldKind::Variants(_), value) => {
                let forms = self.field.schema.alternatives(MAX_VARIANTS);
                let Some(at) = forms.iter().position(|form| matches_variant(form, value)) else {
                    return;
                };
                self.select_variant(at);
                if let Some(form) = self.children.first_mut() {
                    form.set_value(value, left);
                }
                FieldInput::Choice(at)
            }
            (FieldKind::Choice(choices), value) => {
                let at = choices.iter().position(|choice| choice.value == *value);
                at.map_or_else(|| FieldInput::Text(input_text(value)), FieldInput::Choice)
            }
            (FieldKind::MultiChoice(choices), Value::Array(values)) => {
                let at = |value: &Value| choices.iter().position(|choice| choice.value == *value);
                let ticked: Option<Vec<usize>> = values.iter().map(at).collect();
                self.is_open = ticked.is_some();
                ticked.map_or(FieldInput::Unset, FieldInput::Choices)
            }
            (FieldKind::Boolean, Value::Bool(value)) => FieldInput::Choice(usize::from(*value)),
            (FieldKind::Constant(_), _) => FieldInput::Choice(0),
            (_, value) => FieldInput::Text(input_text(value)),
        };
    }

    fn assign_object(&mut self, object: &JsonObject, left: &mut usize) {
        self.open();
        for child in &mut self.children {
            match object.get(&child.field.key) {
                Some(value) => child.set_value(value, left),
                None => child.clear(),
            }
        }
        // What the schema does not speak of is not lost.
        let old_count = self.children.len();
        for (key, value) in object {
            let is_new = !self.children[..old_count].iter().any(|child| child.field.key == *key);
            if is_new && self.children.len() < old_count + MAX_FIELDS {
                let nowhere = ResolvedSchema::of(&Arc::default());
                let mut extra = Self::new(FormField::of(key, nowhere, false), self.depth + 1);
                extra.input = FieldInput::Json(value.to_string());
                self.children.push(extra);
            }
        }
    }
}

/// Whether a value looks as if it had this form: its type, and what tells forms apart.
fn matches_variant(form: &ResolvedSchema, value: &Value) -> bool {
    let types = form.types();
    let is_type =
        |name: &&str| coerce::is_of_type(value, name) || (*name == "string" && value.is_string());
    if !types.is_empty() && !types.iter().any(is_type) {
        return false;
    }
    if let Some(constant) = form.get("const") {
        return constant == value;
    }
    let Some(object) = value.as_object() else { return true };
    form.properties(MAX_FIELDS).iter().all(|(key, field)| match object.get(*key) {
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
