//! The formats of texts that arguments and answers have to have. Those of results are notes, as in the
//! newest dialect of JSON Schema, and so are all others: servers take more than their definitions say.

use jsonschema::ValidationOptions;
use url::Url;

const NOTES: [&str; 15] = [
    "duration",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// A format that is checked: its name, what it is for people, and its rule.
type CheckedFormat = (&'static str, &'static str, fn(&str) -> bool);

const CHECKED: [CheckedFormat; 4] = [
    ("email", "an email address", is_mail_address),
    ("uri", "a URI", |text| Url::parse(text).is_ok()),
    ("date", "a date such as 2026-07-28", is_date),
    ("date-time", "a time such as 2026-07-28T12:00:00Z", is_time),
];

pub(super) fn check<R>(options: ValidationOptions<'_, R>) -> ValidationOptions<'_, R> {
    let options = options.should_validate_formats(true);
    let options =
        CHECKED.iter().fold(options, |all, (name, _, fits)| all.with_format(*name, *fits));
    NOTES.iter().fold(options, |all, name| all.with_format(*name, |_: &str| true))
}

/// What a text of this format is, if that is checked.
pub fn expectation(format: &str) -> Option<&'static str> {
    CHECKED.iter().find(|(name, ..)| *name == format).map(|(_, expectation, _)| *expectation)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// A moment, or a local time: many servers take both.
fn is_time(text: &str) -> bool {
    let is_local = || text.parse::<jiff::civil::DateTime>().is_ok();
    text.parse::<jiff::Timestamp>().is_ok() || (text.len() > 10 && is_local())
}

fn is_mail_address(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(name, host)| {
        !name.is_empty() && !host.is_empty() && !text.contains(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::host::validate::SchemaChecker;

    #[tokio::test]
    async fn arguments_have_the_formats_that_people_take_for_granted() {
        let check = async |format: &str, text: &str| {
            let schema = json!({ "properties": { "at": { "type": "string", "format": format } } });
            let checker = SchemaChecker::with_formats(&Arc::new(schema)).await;
            let problems = checker.check(&json!({ "at": text })).await.unwrap();
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let none = Vec::<String>::new();
        assert_eq!(check("date", "2026-13-45").await, ["at: must be a date such as 2026-07-28"]);
        assert_eq!(check("date", "2026-12-24").await, none);
        assert_eq!(check("date-time", "2026-12-24T18:00:00").await, none);
        assert_eq!(check("date-time", "2026-12-24T18:00:00+01:00").await, none);
        let expected = ["at: must be a time such as 2026-07-28T12:00:00Z"];
        assert_eq!(check("date-time", "2026-12-24").await, expected);
        assert_eq!(check("email", "nobody").await, ["at: must be an email address"]);
        assert_eq!(check("uri", "no scheme").await, ["at: must be a URI"]);
        // Left to those who define them.
        for format in ["time", "uuid", "ipv4", "regex", "duration", "colour"] {
            assert_eq!(check(format, "( whatever").await, none, "{format}");
        }
    }

    #[tokio::test]
    async fn in_a_result_a_format_is_a_note() {
        let schema: Value = json!({ "type": "string", "format": "date" });
        let checker = SchemaChecker::compile(&Arc::new(schema)).await;
        assert!(checker.check(&json!("tomorrow")).await.unwrap().is_empty());
    }
}
