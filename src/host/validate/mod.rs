//! Validating a value against a JSON Schema when neither is trusted.
//! Formats of texts are demanded of arguments; those of results are notes, as in the
//! newest dialect of JSON Schema, and so are all others: servers take more than their definitions say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jsonschema::ValidationOptions;
use serde_json::Value;
use url::Url;

use full::FullValidator;
pub use violation::{ValuePath, ValuePathSegment, Violation};

pub mod full;
mod violation;

/// The largest schema that is used, in bytes of JSON (estimated).
pub const MAX_BYTES: usize = 1024 * 1024;

/// The deepest nesting of objects and arrays.
pub const MAX_DEPTH: usize = 64;

pub const MAX_NODES: usize = 10_000;

/// How long a suspicious schema may take to compile, and again to check a value.
pub const BUDGET: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct SchemaChecker {
    compiled: Result<Arc<FullValidator>, UncheckedReason>,
    is_expensive: bool,
    /// A check ran out of time; the next one would too.
    has_timed_out: AtomicBool,
}

impl SchemaChecker {
    pub async fn compile(schema: &Arc<Value>) -> Self {
        Self::new(schema, false).await
    }

    /// For arguments and answers, whose formats are checked.
    pub async fn with_formats(schema: &Arc<Value>) -> Self {
        Self::new(schema, true).await
    }

    async fn new(schema: &Arc<Value>, checks_formats: bool) -> Self {
        let is_expensive = full::is_expensive(schema);
        let compiled = match &is_expensive {
            Err(reason) => Err(reason.clone()),
            Ok(false) => FullValidator::compile(schema, checks_formats),
            Ok(true) => {
                let schema = Arc::clone(schema);
                run_with_budget(move || FullValidator::compile(&schema, checks_formats))
                    .await
                    .unwrap_or(Err(UncheckedReason::CompileTimeout))
            }
        };
        Self {
            compiled: compiled.map(Arc::new),
            is_expensive: is_expensive.unwrap_or_default(),
            has_timed_out: AtomicBool::new(false),
        }
    }

    /// Everything in `value` that does not fit; empty when it does.
    pub async fn check(&self, value: &Value) -> Result<Vec<Violation>, UncheckedReason> {
        let validator = self.compiled.as_ref().map_err(Clone::clone)?;
        if !self.is_expensive {
            return Ok(validator.check(value));
        }
        if self.has_timed_out.load(Ordering::Relaxed) {
            return Err(UncheckedReason::CheckTimeout);
        }
        let (validator, value) = (Arc::clone(validator), value.clone());
        run_with_budget(move || validator.check(&value)).await.ok_or_else(|| {
            self.has_timed_out.store(true, Ordering::Relaxed);
            UncheckedReason::CheckTimeout
        })
    }
}

/// The first thing in an argument that does not fit, if the schema is checked quickly.
pub fn first_violation(schema: &Value, value: &Value) -> Option<Violation> {
    full::is_expensive(schema).ok().filter(|is_expensive| !is_expensive)?;
    FullValidator::compile(schema, true).ok()?.check(value).into_iter().next()
}

/// Runs work that may never end. It cannot be stopped, so it is left behind when the budget is
/// spent or when it panics; a separate thread blocks neither the runtime nor its shutdown.
async fn run_with_budget<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, receive) = tokio::sync::oneshot::channel();
    let run = move || {
        // The caller has given up: the result is not needed.
        let _abandoned = send.send(work());
    };
    std::thread::Builder::new().name("schema".into()).spawn(run).ok()?;
    tokio::time::timeout(BUDGET, receive).await.ok()?.ok()
}

/// Why a schema checks nothing. The messages complete a sentence such as "the arguments were not
/// checked".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UncheckedReason {
    /// It is neither an object nor a truth value.
    #[error("its schema is not an object")]
    NotASchema,
    /// It is nested deeper than [`MAX_DEPTH`].
    #[error("its schema is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// It is larger than [`MAX_BYTES`].
    #[error("its schema is larger than {} KiB", MAX_BYTES / 1024)]
    TooLarge,
    /// It has more objects and arrays than [`MAX_NODES`].
    #[error("its schema has more than {MAX_NODES} parts")]
    TooManyNodes,
    /// The validator does not accept it: a remote reference, an unknown dialect, a broken keyword.
    #[error("its schema cannot be used: {cause}")]
    Unusable {
        /// What the validator says, without values of the schema, made safe to be shown.
        cause: String,
    },
    /// It was not compiled within [`BUDGET`].
    #[error("compiling its schema takes longer than {BUDGET:?}")]
    CompileTimeout,
    /// A value was not checked within [`BUDGET`], this one or one before.
    #[error("checking takes longer than {BUDGET:?}")]
    CheckTimeout,
}

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

fn check<R>(options: ValidationOptions<'_, R>) -> ValidationOptions<'_, R> {
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

    use serde_json::json;

    use super::*;

    async fn check(schema: Value, value: Value) -> Result<Vec<String>, UncheckedReason> {
        let checker = SchemaChecker::compile(&Arc::new(schema)).await;
        checker.check(&value).await.map(|v| v.iter().map(ToString::to_string).collect())
    }

    #[tokio::test]
    async fn all_problems_come_at_once_with_their_paths() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 3},
                "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
                "size": {"type": ["integer", "null"], "maximum": 9}
            },
            "required": ["name", "id"],
            "additionalProperties": false
        });
        let value = json!({"name": "x", "tags": ["a", "c"], "size": 10, "nmae": 1});
        assert_eq!(
            check(schema, value).await.unwrap(),
            [
                "id: is required",
                "name: must have at least 3 characters",
                "tags[1]: must be one of \"a\", \"b\"",
                "size: must be at most 9",
                "nmae: is not known; did you mean 'name'?"
            ]
        );
    }

    #[tokio::test]
    async fn choices_within_forms_are_named() {
        let titled = json!([{"const": "red", "title": "Red"}, {"const": "blue", "title": "Blue"}]);
        let choice = json!({"type": "string", "enum": ["red", "blue"]});
        let nothing = json!({"type": "null"});
        let list = json!({"type": "array", "items": choice});
        let one = "(value): must be one of \"red\", \"blue\"";
        let item = "[0]: must be one of \"red\", \"blue\"";
        let other = "(value): matches none of the allowed forms";
        for (schema, value, problem) in [
            (json!({"oneOf": titled}), json!("mauve"), one),
            (json!({"type": "array", "items": {"anyOf": titled}}), json!(["mauve"]), item),
            (json!({"anyOf": [choice, nothing]}), json!("mauve"), one),
            (json!({"anyOf": [list, nothing]}), json!(["mauve"]), item),
            (json!({"anyOf": [choice, list]}), json!("mauve"), one),
            (json!({"anyOf": [choice, {"minLength": 9}]}), json!("mauve"), other),
        ] {
            assert_eq!(check(schema.clone(), value).await.unwrap(), [problem], "{schema}");
        }
    }

    #[tokio::test]
    async fn references_inside_the_schema_are_followed() {
        let schema = json!({
            "type": "object",
            "properties": {"who": {"$ref": "#/$defs/Person"}},
            "$defs": {"Person": {
                "type": "object",
                "properties": {"age": {"type": "integer"}, "0": {"type": "string"}},
                "additionalProperties": false
            }}
        });
        assert_eq!(
            check(schema, json!({"who": {"age": "old", "0": 1, "agee": 1}})).await.unwrap().len(),
            3
        );
    }

    #[tokio::test]
    async fn remote_references_and_odd_dialects_are_not_checked() {
        for schema in [
            json!({"$ref": "http://127.0.0.1:1/x.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"type": "object", "properties": {"a": {"$ref": "other.json#/x"}}}),
            json!({"$schema": "http://odd.invalid/schema", "type": "object"}),
            json!({"type": 5}),
            json!("text"),
        ] {
            let result = check(schema.clone(), json!({})).await;
            assert!(result.is_err(), "{schema} {result:?}");
        }
    }

    #[tokio::test]
    async fn patterns_that_ruin_backtracking_engines_are_harmless() {
        let schema = json!({"type": "string", "pattern": "^(a+)+$"});
        let text = format!("{}!", "a".repeat(40));
        let problems = check(schema, json!(text)).await.unwrap();
        assert_eq!(problems, ["(value): does not match the pattern ^(a+)+$"]);
    }

    #[tokio::test]
    async fn a_check_without_end_is_given_up() {
        // Each definition tries the next one twice: 2^60 ways to fail.
        let mut definitions = serde_json::Map::new();
        for i in 0..60 {
            let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
            definitions.insert(format!("d{i}"), json!({"allOf": [{"anyOf": [next, next]}]}));
        }
        definitions.insert("d60".into(), json!({"type": "string"}));
        let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        let checker = SchemaChecker::compile(&Arc::new(schema)).await;
        let first = checker.check(&json!(1)).await;
        // A validator clever enough to answer in time is welcome too.
        assert!(first.is_err() || !first.unwrap().is_empty());
    }

    #[tokio::test]
    async fn long_lists_in_a_schema_are_not_compared_each_with_each() {
        // Quadratic work on these takes minutes.
        let many: Vec<String> = (0..40_000).map(|n| format!("value {n}")).collect();
        let choice = json!({"properties": {"x": {"enum": many}}});
        // On a busy machine the budget may still be exceeded.
        let result = check(choice, json!({"x": "value 7"})).await;
        assert!(result.as_ref().map_or(true, Vec::is_empty), "{result:?}");
        let required = json!({"required": many});
        let result = check(required, json!({})).await;
        assert!(
            result.is_err() || result.is_ok_and(|problems| problems.len() == full::MAX_PROBLEMS)
        );
    }

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
