//! Whether a whole value fits what was asked.

use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::{MAX_FIELDS, ResolvedSchema};
use crate::host::validate::{SchemaChecker, ValuePath, Violation};
use crate::model::JsonObject;

/// Everything in `object` that does not fit its schema, the formats that forms know among it: checkers
/// of schemas take those for notes. What cannot be checked is one problem, which says why.
pub async fn validate(schema: &Arc<Value>, object: &JsonObject) -> Vec<Violation> {
    let value = Value::Object(object.clone());
    let checker = SchemaChecker::compile(schema).await;
    let mut problems = match checker.check(&value).await {
        Ok(problems) => problems,
        Err(why) => vec![Violation::new(ValuePath::default(), why)],
    };
    for (key, property) in ResolvedSchema::of(schema).properties(MAX_FIELDS) {
        if let Some(value) = object.get(key)
            && let Err(why) = format_error(&property, value)
        {
            problems.push(Violation::new(ValuePath::default().key(key), why));
        }
    }
    problems
}

/// Whether a text has the format that is asked for.
///
/// # Errors
/// What it must be.
pub fn format_error(schema: &ResolvedSchema, value: &Value) -> Result<(), String> {
    let (Some(text), Some(expected)) = (value.as_str(), format_of(schema)) else { return Ok(()) };
    let fits = match schema.text("format") {
        Some("email") => is_mail_address(text),
        Some("uri") => Url::parse(text).is_ok(),
        Some("date") => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("must be {expected}")) }
}

/// A format that forms know, in words.
pub(super) fn format_of(schema: &ResolvedSchema) -> Option<&'static str> {
    match schema.text("format")? {
        "email" => Some("an e-mail address"),
        "uri" => Some("an address (URI)"),
        "date" => Some("a date such as 2026-07-28"),
        "date-time" => Some("a moment such as 2026-07-28T12:00:00Z"),
        _ => None,
    }
}

fn is_mail_address(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(name, host)| {
        !name.is_empty() && !host.is_empty() && !text.contains(|c: char| c.is_whitespace())
    })
}
