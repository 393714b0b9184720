//! The value that a tree of fields makes, and what of it may be shown.

use serde_json::Value;

use super::{Entry, Kind, Node};
use crate::host::coerce;

impl Node {
    /// The value it makes; `None` when it is left out.
    pub fn value(&self) -> Option<Value> {
        let schema = &self.field.schema;
        match (&self.entry, &self.field.kind) {
            (Entry::Null, _) => Some(Value::Null),
            (Entry::Json(text), _) => {
                Some(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())))
            }
            (Entry::Text(text), Kind::One(choices)) => {
                let titled = choices.iter().find(|choice| choice.title == *text);
                let read = || coerce::text(text, schema.value(), schema.root());
                Some(titled.map_or_else(read, |choice| choice.value.clone()))
            }
            (Entry::Text(text), _) => Some(coerce::text(text, schema.value(), schema.root())),
            (Entry::Chosen(at), Kind::One(choices)) => {
                choices.get(*at).map(|choice| choice.value.clone())
            }
            (Entry::Chosen(at), Kind::Flag) => Some(Value::Bool(*at == 1)),
            (Entry::Chosen(_), Kind::Constant(value)) => Some(value.clone()),
            (Entry::Chosen(_), _) => self.children.first().and_then(Self::value),
            (Entry::Ticked(ticked), Kind::Many(choices)) => {
                let values = ticked.iter().filter_map(|at| Some(choices.get(*at)?.value.clone()));
                Some(values.collect())
            }
            (Entry::Made, _) => Some(self.gathered()),
            (Entry::Unset, Kind::Object | Kind::List) => {
                self.children.iter().any(Self::is_present).then(|| self.gathered())
            }
            (Entry::Unset | Entry::Ticked(_), _) => None,
        }
    }

    /// Whether it makes a value.
    pub fn is_present(&self) -> bool {
        match (&self.entry, &self.field.kind) {
            (Entry::Unset, Kind::Object | Kind::List) | (Entry::Chosen(_), Kind::Variants(_)) => {
                self.children.iter().any(Self::is_present)
            }
            (Entry::Unset, _) => false,
            _ => true,
        }
    }

    fn gathered(&self) -> Value {
        let present = self.children.iter().filter_map(|child| Some((child, child.value()?)));
        match self.field.kind {
            Kind::List => present.map(|(_, value)| value).collect(),
            _ => Value::Object(
                present.map(|(child, value)| (child.field.key.clone(), value)).collect(),
            ),
        }
    }

    /// Why its text cannot mean anything, when that is plain.
    pub fn fault(&self) -> Option<String> {
        match (&self.entry, &self.field.kind) {
            (Entry::Json(text), _) => {
                let why = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
                Some(format!("is not JSON: {why}"))
            }
            (Entry::Text(text), Kind::Number { .. }) if !text.trim().is_empty() => {
                self.value().filter(|value| !value.is_number()).map(|_| "is no number".to_owned())
            }
            _ => None,
        }
    }

    /// Whether anything in it that looks like a secret was filled in.
    pub fn holds_secret(&self) -> bool {
        (self.field.secret && self.is_present()) || self.children.iter().any(Self::holds_secret)
    }

    /// Whether anything that is shown of it asks for a secret.
    pub fn asks_for_secret(&self) -> bool {
        self.field.secret || self.children.iter().any(Self::asks_for_secret)
    }

    /// The value it makes, with a mark in the place of what looks like a secret.
    pub fn shown_value(&self) -> Option<Value> {
        if !self.holds_secret() {
            return self.value();
        }
        let mut whole = self.value()?;
        self.cover(&mut whole);
        Some(whole)
    }

    fn cover(&self, value: &mut Value) {
        if self.field.secret {
            *value = Value::from("‹secret›");
            return;
        }
        match self.field.kind {
            Kind::Variants(_) => {
                self.children.iter().for_each(|child| child.cover(value));
            }
            Kind::List => {
                let present = self.children.iter().filter(|child| child.is_present());
                for (at, child) in present.enumerate() {
                    if let Some(item) = value.get_mut(at) {
                        child.cover(item);
                    }
                }
            }
            _ => {
                for child in &self.children {
                    if let Some(inside) = value.get_mut(&child.field.key) {
                        child.cover(inside);
                    }
                }
            }
        }
    }
}
