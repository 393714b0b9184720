//! Validation with the `jsonschema` crate: every dialect and keyword.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, PatternOptions, Retrieve, Uri, ValidationError, Validator};
use serde_json::{Map, Value};

use super::formats;
use super::unchecked::UncheckedReason;
use super::violation::{ValuePath, Violation, count, must_be, must_be_one_of, quote, type_of};

/// The largest compiled pattern, in bytes.
const PATTERN_SIZE: usize = 1024 * 1024;

pub(super) const MAX_PROBLEMS: usize = 100;

/// A schema compiled by the `jsonschema` crate.
#[derive(Debug)]
pub(super) struct FullValidator {
    validator: Validator,
    schema: Value,
}

struct RefuseRetrieval;

impl Retrieve for RefuseRetrieval {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("'{uri}' is an external document, which is never fetched").into())
    }
}

impl FullValidator {
    pub(super) fn compile(schema: &Value, checks_formats: bool) -> Result<Self, UncheckedReason> {
        let patterns =
            PatternOptions::regex().size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE);
        let options = jsonschema::options()
            .with_retriever(RefuseRetrieval)
            .with_pattern_options(patterns)
            .should_validate_formats(false);
        let options = if checks_formats { formats::check(options) } else { options };
        let validator = options.build(schema).map_err(|error| UncheckedReason::Unusable {
            cause: quote(&error.masked().to_string()),
        })?;
        Ok(Self { validator, schema: schema.clone() })
    }

    pub(super) fn check(&self, value: &Value) -> Vec<Violation> {
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        self.validator
            .iter_errors(value)
            .flat_map(|error| self.translate(&error, value))
            .take(MAX_PROBLEMS)
            .collect()
    }

    fn translate(&self, error: &ValidationError<'_>, value: &Value) -> Vec<Violation> {
        use ValidationErrorKind as Kind;
        let (schema_path, instance) = (error.schema_path().as_str(), error.instance());
        let path = path(error.instance_path().as_str(), value);
        let message = match error.kind() {
            Kind::Required { property } => {
                let key = property.as_str().unwrap_or_default();
                return vec![Violation::new(path.key(key), "is required")];
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                let known = self.properties_beside(schema_path);
                let names = || known.into_iter().flat_map(Map::keys).map(String::as_str);
                let unknown = unexpected.iter();
                return unknown.map(|key| Violation::unknown(&path, key, names())).collect();
            }
            Kind::AnyOf { context: forms } | Kind::OneOfNotValid { context: forms } => {
                return self.translate_forms(error, forms, value);
            }
            // Without sibling `properties` the crate points at the object, not at its keys.
            Kind::FalseSchema
                if is_additional(schema_path)
                    && let Some(Value::Object(object)) = path.of(value) =>
            {
                return object.keys().map(|key| Violation::unknown(&path, key, [])).collect();
            }
            Kind::FalseSchema => "is not allowed".to_owned(),
            Kind::Type { kind } => {
                let types: Vec<&str> = match kind {
                    TypeKind::Single(one) => vec![one.as_str()],
                    TypeKind::Multiple(several) => several.iter().map(JsonType::as_str).collect(),
                };
                format!("must be {}, not {}", types.join(" or "), type_of(instance))
            }
            Kind::Enum { options } => match options.as_array() {
                Some(options) => must_be_one_of(options, instance),
                None => must_be(options),
            },
            Kind::Constant { expected_value } => must_be(expected_value),
            Kind::Minimum { limit } => format!("must be at least {limit}"),
            Kind::Maximum { limit } => format!("must be at most {limit}"),
            Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
            Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
            Kind::MinLength { limit } => count("at least", *limit, "character"),
            Kind::MaxLength { limit } => count("at most", *limit, "character"),
            Kind::MinItems { limit } => count("at least", *limit, "item"),
            Kind::MaxItems { limit } => count("at most", *limit, "item"),
            Kind::OneOfMultipleValid { .. } => {
                "matches several forms, but only one is allowed".to_owned()
            }
            Kind::Pattern { pattern } => format!("does not match the pattern {}", quote(pattern)),
            Kind::Format { format } if let Some(expectation) = formats::expectation(format) => {
                format!("must be {expectation}")
            }
            Kind::UniqueItems => "must not contain the same item twice".to_owned(),
            _ => quote(&error.masked().to_string()),
        };
        vec![Violation::new(path, message)]
    }

    /// What is wrong with a value that fits none of several forms: what the only form of its type
    /// says, or the choices of all of them.
    fn translate_forms(
        &self,
        error: &ValidationError<'_>,
        forms: &[Vec<ValidationError<'_>>],
        value: &Value,
    ) -> Vec<Violation> {
        let at = error.instance_path().as_str();
        let is_of_type = |form: &&Vec<ValidationError<'_>>| {
            let is_type = |kind: &_| matches!(kind, ValidationErrorKind::Type { .. });
            !form.iter().any(|one| one.instance_path().as_str() == at && is_type(one.kind()))
        };
        let mut likely: Vec<_> = forms.iter().filter(is_of_type).collect();
        if likely.is_empty() {
            likely = forms.iter().collect();
        }
        if let [form] = likely[..] {
            return form.iter().flat_map(|one| self.translate(one, value)).collect();
        }
        let (at, message) = match choices(&likely) {
            Some((choice, options)) => {
                (choice.instance_path().as_str(), must_be_one_of(&options, choice.instance()))
            }
            None => (at, "matches none of the allowed forms".to_owned()),
        };
        vec![Violation::new(path(at, value), message)]
    }

    /// The properties next to a keyword at a place in the schema.
    fn properties_beside(&self, schema_path: &str) -> Option<&Map<String, Value>> {
        let (parent, _) = schema_path.rsplit_once('/')?;
        self.schema.pointer(parent)?.get("properties")?.as_object()
    }
}

/// The values that forms allow at the same place, if each of them names some there.
fn choices<'e, 'v>(
    forms: &[&'e Vec<ValidationError<'v>>],
) -> Option<(&'e ValidationError<'v>, Vec<Value>)> {
    let options = |error: &ValidationError<'_>| match error.kind() {
        ValidationErrorKind::Enum { options } => options.as_array().cloned(),
        ValidationErrorKind::Constant { expected_value } => {
            Some(vec![Value::clone(expected_value)])
        }
        _ => None,
    };
    forms.first()?.iter().find_map(|choice| {
        let mut all = Vec::new();
        for form in forms {
            let mut here = form.iter().filter(|one| one.instance_path() == choice.instance_path());
            all.extend(here.find_map(options)?);
        }
        Some((choice, all))
    })
}

/// Whether a place in a schema is the keyword, and not a property of that name.
fn is_additional(schema_path: &str) -> bool {
    schema_path.ends_with("/additionalProperties")
        && !schema_path.ends_with("/properties/additionalProperties")
}

fn path(pointer: &str, value: &Value) -> ValuePath {
    let mut path = ValuePath::default();
    let mut at = Some(value);
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        match at {
            Some(Value::Array(items)) => {
                let index = part.parse().unwrap_or_default();
                path = path.index(index);
                at = items.get(index);
            }
            other => {
                path = path.key(&part);
                at = other.and_then(|object| object.get(&part));
            }
        }
    }
    path
}
