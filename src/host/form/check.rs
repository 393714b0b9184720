//! Validating a whole form value.

use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::{FieldChoice, FieldInput, FieldKind, FormNode, MAX_FIELDS, ResolvedSchema};
use crate::host::validate::{SchemaChecker, ValuePath, Violation, first_violation};
use crate::model::JsonObject;

/// Everything in `object` that does not fit its schema, the formats that forms know among it: checkers
/// of schemas take those for notes. What cannot be checked is one problem, which says why.
pub async fn validate(schema: &Arc<Value>, object: &JsonObject) -> Vec<Violation> {
    let value = Value::Object(object.clone());
    let checker = SchemaChecker::compile(schema).await;
    let mut problems = match checker.check(&value).await {
        Ok(problems) => problems,
        Err(reason) => vec![Violation::new(ValuePath::default(), reason.to_string())],
    };
    for (key, property) in ResolvedSchema::of(schema).properties(MAX_FIELDS) {
        if let Some(value) = object.get(key)
            && let Err(mismatch) = check_format(&property, value)
        {
            problems.push(Violation::new(ValuePath::default().key(key), mismatch.to_string()));
        }
    }
    problems
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
            let begun = text.to_lowercase();
            let begins = |choice: &FieldChoice| choice.title.to_lowercase().starts_with(&begun);
            let fits = choices.iter().any(begins);
            return (!fits).then(|| "is not one of the choices".to_owned());
        }
        let wrong_format =
            || Some(check_format(&self.field.schema, &self.value()?).err()?.to_string());
        let violation = || {
            first_violation(self.field.schema.value(), &self.value()?)
                .map(|violation| violation.message)
        };
        self.syntax_error().or_else(wrong_format).or_else(violation)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {expected}")]
pub struct FormatMismatch {
    pub expected: &'static str,
}

/// Checks that a text has the format its schema asks for. Formats that forms do not know are not
/// checked.
pub fn check_format(schema: &ResolvedSchema, value: &Value) -> Result<(), FormatMismatch> {
    let (Some(text), Some(expected)) = (value.as_str(), format_of(schema)) else { return Ok(()) };
    let fits = match schema.text("format") {
        Some("email") => is_mail_address(text),
        Some("uri") => Url::parse(text).is_ok(),
        Some("date") => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        _ => true,
    };
    if fits { Ok(()) } else { Err(FormatMismatch { expected }) }
}

pub(super) fn format_of(schema: &ResolvedSchema) -> Option<&'static str> {
    match schema.text("format")? {
        "email" => Some("an email address"),
        "uri" => Some("a URI"),
        "date" => Some("a date such as 2026-07-28"),
        "date-time" => Some("a time such as 2026-07-28T12:00:00Z"),
        _ => None,
    }
}

fn is_mail_address(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(name, host)| {
        !name.is_empty() && !host.is_empty() && !text.contains(|c: char| c.is_whitespace())
    })
}
