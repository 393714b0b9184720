//! The value of a tree of form fields, and what of it may be displayed.

use serde_json::Value;

use super::{FieldInput, FieldKind, FormNode};
use crate::host::coerce;

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
                let read = || coerce::coerce_text(text, schema.value(), schema.root());
                Some(titled.map_or_else(read, |choice| choice.value.clone()))
            }
            (FieldInput::Text(text), _) => {
                Some(coerce::coerce_text(text, schema.value(), schema.root()))
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
