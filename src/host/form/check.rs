//! Validating a whole form value.

use std::sync::Arc;

use serde_json::Value;

use super::node::begins_with;
use super::{FieldInput, FieldKind, FormNode};
use crate::host::validate::{
    SchemaChecker, UncheckedReason, ValuePath, Violation, first_violation,
};
use crate::model::JsonObject;

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
