//! Forms: a JSON Schema as fields that a person can fill in.
//!
//! Owns: which parts of a schema are fields, and of which kind; the tree of fields with the input
//! of each (nothing, `null` or a value), which are required, and their rows; the value of the whole
//! form, read from a JSON value and written to one; whether it is valid. Parts that fit no kind of
//! field take JSON. Everything is bounded, and nested fields are read only when a person opens them,
//! so that a recursive schema terminates. Never does: ask or draw.

use std::sync::Arc;

use serde_json::Value;

use super::arguments;
use super::validate::{SchemaChecker, UncheckedReason, ValuePath, Violation, first_violation};
use crate::model::JsonObject;
use field::input_text;
pub use field::{FieldChoice, FieldKind, FormField, defaults, fields};
use node::begins_with;
pub use node::{FieldInput, FormNode};
pub use schema::ResolvedSchema;

mod field;
mod node;
mod schema;

#[cfg(test)]
mod tests;

pub const MAX_FIELDS: usize = 200;
/// How many choices a field may have; with more it is a text.
pub const MAX_CHOICES: usize = 500;
/// How many forms a field may take; with more it takes JSON.
pub const MAX_VARIANTS: usize = 50;
/// Maximum nesting depth of fields; deeper ones take JSON.
pub const MAX_DEPTH: usize = 12;
/// How many items of a list are fields; a longer list is one field that takes JSON.
pub const MAX_ITEMS: usize = 200;
/// How many fields are made for a value that is held; the rest of it takes JSON.
pub const MAX_VALUE_FIELDS: usize = 2_000;

/// Everything in `object` that does not fit its schema. What cannot be checked is one problem, which
/// says why.
pub async fn validate(schema: &Arc<Value>, object: &JsonObject) -> Vec<Violation> {
    let value = Value::Object(object.clone());
    let checker = SchemaChecker::with_formats(schema).await;
    let unchecked =
        |reason: UncheckedReason| vec![Violation::new(ValuePath::default(), reason.to_string())];
    checker.check(&value).await.unwrap_or_else(unchecked)
}

impl FormNode {
    /// What is wrong with the text that is being typed into it, as far as that is plain from its
    /// own schema; the start of a choice is not an error.
    pub fn draft_problem(&self) -> Option<String> {
        let (FieldInput::Text(text) | FieldInput::Json(text)) = &self.input else { return None };
        if text.is_empty() {
            return None;
        }
        if let FieldKind::Choice(choices) = &self.field.kind {
            let fits = choices.iter().any(|choice| begins_with(&choice.title, text));
            return (!fits).then(|| "is not one of the choices".to_owned());
        }
        let violation = || {
            first_violation(self.field.schema.value(), &self.value()?)
                .map(|violation| violation.message)
        };
        self.syntax_error().or_else(violation)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredFields {
    pub total: usize,
    /// The ways to those that are not.
    pub missing: Vec<Vec<usize>>,
}

impl FormNode {
    /// What has to be there, and what of it is not.
    pub fn required_fields(&self) -> RequiredFields {
        let mut required = RequiredFields::default();
        self.collect_required(&mut Vec::new(), &mut required);
        required
    }

    fn collect_required(&self, index_path: &mut Vec<usize>, required: &mut RequiredFields) {
        if matches!(self.input, FieldInput::Null | FieldInput::Json(_)) {
            return;
        }
        let is_variants = matches!(self.field.kind, FieldKind::Variants(_));
        for (at, child) in self.children.iter().enumerate() {
            index_path.push(at);
            // The fields of a chosen form are asked for, not the form.
            if child.field.required && !(is_variants && child.field.kind == FieldKind::Object) {
                required.total += 1;
                if !child.has_value() {
                    required.missing.push(index_path.clone());
                }
            }
            if child.has_value() {
                child.collect_required(index_path, required);
            }
            index_path.pop();
        }
        if index_path.is_empty() && is_variants && !self.has_value() {
            required.total += 1;
            required.missing.push(Vec::new());
        }
    }

    /// Whether it makes a value, or would if what is in it did.
    fn has_value(&self) -> bool {
        self.is_present() || matches!(self.input, FieldInput::Choice(_))
    }
}

/// A line of the form as it is shown.
#[derive(Debug, Clone)]
pub struct FieldRow {
    /// Which children lead to it, from the whole.
    pub index_path: Vec<usize>,
    pub part: RowPart,
    /// How many objects and lists it stands in, for indentation.
    pub depth: usize,
    pub path: ValuePath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPart {
    Field,
    Choice(usize),
}

impl FormNode {
    pub fn rows(&self) -> Vec<FieldRow> {
        let mut rows = Vec::new();
        if matches!(self.field.kind, FieldKind::Variants(_)) {
            let (index_path, path) = (Vec::new(), ValuePath::default());
            rows.push(FieldRow { index_path, part: RowPart::Field, depth: 0, path });
        }
        self.collect_rows(&mut Vec::new(), &ValuePath::default(), 0, &mut rows);
        rows
    }

    fn collect_rows(
        &self,
        index_path: &mut Vec<usize>,
        path: &ValuePath,
        depth: usize,
        rows: &mut Vec<FieldRow>,
    ) {
        if !self.is_open || matches!(self.input, FieldInput::Null | FieldInput::Json(_)) {
            return;
        }
        if let FieldKind::MultiChoice(choices) = &self.field.kind {
            rows.extend((0..choices.len()).map(|at| FieldRow {
                index_path: index_path.clone(),
                part: RowPart::Choice(at),
                depth,
                path: path.clone(),
            }));
        }
        for (at, child) in self.children.iter().enumerate() {
            let path = match self.field.kind {
                FieldKind::List => path.index(at),
                FieldKind::Variants(_) => path.clone(),
                _ => path.key(&child.field.key),
            };
            index_path.push(at);
            // The fields of a chosen form stand where the form would.
            let is_bare = child.field.key.is_empty() && child.field.kind == FieldKind::Object;
            let deeper = if is_bare && !matches!(child.input, FieldInput::Json(_)) {
                depth
            } else {
                let (index_path, path) = (index_path.clone(), path.clone());
                rows.push(FieldRow { index_path, part: RowPart::Field, depth, path });
                depth + 1
            };
            child.collect_rows(index_path, &path, deeper, rows);
            index_path.pop();
        }
    }
}

impl FormNode {
    /// The value it makes; `None` when it is left out.
    pub fn value(&self) -> Option<Value> {
        self.read(false)
    }

    /// Its value, with a mark in place of anything that looks like a secret.
    pub fn masked_value(&self) -> Option<Value> {
        self.read(true)
    }

    fn read(&self, masks: bool) -> Option<Value> {
        let schema = &self.field.schema;
        match (&self.input, &self.field.kind) {
            _ if masks && self.field.secret && self.is_present() => Some(Value::from("‹secret›")),
            (FieldInput::Null, _) => Some(Value::Null),
            (FieldInput::Json(text), _) => {
                Some(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())))
            }
            (FieldInput::Text(text), FieldKind::Choice(choices)) => {
                let titled = choices.iter().find(|choice| choice.title == *text);
                let read = || arguments::coerce_text(text, schema.value(), schema.root());
                Some(titled.map_or_else(read, |choice| choice.value.clone()))
            }
            (FieldInput::Text(text), _) => {
                Some(arguments::coerce_text(text, schema.value(), schema.root()))
            }
            (FieldInput::Choice(at), FieldKind::Choice(choices)) => {
                choices.get(*at).map(|choice| choice.value.clone())
            }
            (FieldInput::Choice(at), FieldKind::Boolean) => Some(Value::Bool(*at == 1)),
            (FieldInput::Choice(_), FieldKind::Constant(value)) => Some(value.clone()),
            (FieldInput::Choice(_), _) => self.children.first()?.read(masks),
            (FieldInput::Choices(ticked), FieldKind::MultiChoice(choices)) => {
                let values = ticked.iter().filter_map(|at| Some(choices.get(*at)?.value.clone()));
                Some(values.collect())
            }
            (FieldInput::Container, _) => Some(self.gathered(masks)),
            (FieldInput::Unset, FieldKind::Object | FieldKind::List) => {
                self.children.iter().any(Self::is_present).then(|| self.gathered(masks))
            }
            (FieldInput::Unset | FieldInput::Choices(_), _) => None,
        }
    }

    pub fn is_present(&self) -> bool {
        match (&self.input, &self.field.kind) {
            (FieldInput::Unset, FieldKind::Object | FieldKind::List)
            | (FieldInput::Choice(_), FieldKind::Variants(_)) => {
                self.children.iter().any(Self::is_present)
            }
            (FieldInput::Unset, _) => false,
            _ => true,
        }
    }

    fn gathered(&self, masks: bool) -> Value {
        let present = self.children.iter().filter_map(|child| Some((child, child.read(masks)?)));
        match self.field.kind {
            FieldKind::List => present.map(|(_, value)| value).collect(),
            _ => Value::Object(
                present.map(|(child, value)| (child.field.key.clone(), value)).collect(),
            ),
        }
    }

    /// Why its text cannot mean anything, when that is plain.
    pub fn syntax_error(&self) -> Option<String> {
        match (&self.input, &self.field.kind) {
            (FieldInput::Json(text), _) => {
                let why = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
                Some(format!("is not JSON: {why}"))
            }
            (FieldInput::Text(text), FieldKind::Number { .. }) if !text.trim().is_empty() => self
                .value()
                .filter(|value| !value.is_number())
                .map(|_| "is not a number".to_owned()),
            _ => None,
        }
    }

    pub fn holds_secret(&self) -> bool {
        (self.field.secret && self.is_present()) || self.children.iter().any(Self::holds_secret)
    }

    pub fn asks_for_secret(&self) -> bool {
        self.field.secret || self.children.iter().any(Self::asks_for_secret)
    }
}

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
    let is_type = |name: &&str| {
        arguments::is_of_type(value, name) || (*name == "string" && value.is_string())
    };
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
