//! Validation with the `jsonschema` crate: every dialect and keyword.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, PatternOptions, Retrieve, Uri, ValidationError, Validator};
use serde_json::Value;

use super::formats;
use super::unchecked::UncheckedReason;
use super::violation::{ValuePath, Violation, quote};

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
        let path = path(error.instance_path().as_str(), value);
        let one = match error.kind() {
            Kind::Required { property } => {
                Violation::required(&path, property.as_str().unwrap_or_default())
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                let keys = self.known_keys(error.schema_path().as_str());
                return unexpected
                    .iter()
                    .map(|key| Violation::unknown(&path, key, keys.iter().map(String::as_str)))
                    .collect();
            }
            Kind::Type { kind } => Violation::types(path, &types(kind), error.instance()),
            Kind::Enum { options } => match options.as_array() {
                Some(options) => Violation::options(path, options, error.instance()),
                None => Violation::constant(path, options),
            },
            Kind::Constant { expected_value } => Violation::constant(path, expected_value),
            Kind::Minimum { limit } => Violation::bound(path, "at least", limit),
            Kind::Maximum { limit } => Violation::bound(path, "at most", limit),
            Kind::ExclusiveMinimum { limit } => Violation::bound(path, "more than", limit),
            Kind::ExclusiveMaximum { limit } => Violation::bound(path, "less than", limit),
            Kind::MinLength { limit } => Violation::count(path, "at least", *limit, "character"),
            Kind::MaxLength { limit } => Violation::count(path, "at most", *limit, "character"),
            Kind::MinItems { limit } => Violation::count(path, "at least", *limit, "item"),
            Kind::MaxItems { limit } => Violation::count(path, "at most", *limit, "item"),
            Kind::AnyOf { context: forms } | Kind::OneOfNotValid { context: forms } => {
                return self.translate_forms(error, forms, value);
            }
            Kind::OneOfMultipleValid { .. } => {
                Violation::new(path, "matches several forms, but only one is allowed")
            }
            // Without sibling `properties` the crate points at the object, not at its keys.
            Kind::FalseSchema if is_additional(error.schema_path().as_str()) => {
                let Some(object) = path.of(value).and_then(Value::as_object) else {
                    return vec![Violation::never(path)];
                };
                return object.keys().map(|key| Violation::unknown(&path, key, [])).collect();
            }
            Kind::FalseSchema => Violation::never(path),
            Kind::Pattern { pattern } => {
                Violation::new(path, format!("does not match the pattern {}", quote(pattern)))
            }
            Kind::Format { format } if let Some(expectation) = formats::expectation(format) => {
                Violation::new(path, format!("must be {expectation}"))
            }
            Kind::UniqueItems => Violation::new(path, "must not contain the same item twice"),
            _ => Violation::new(path, quote(&error.masked().to_string())),
        };
        vec![one]
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
        let one = match choices(&likely) {
            Some((choice, options)) => Violation::options(
                path(choice.instance_path().as_str(), value),
                &options,
                choice.instance(),
            ),
            None => Violation::any_of(path(at, value)),
        };
        vec![one]
    }

    /// The properties next to the `additionalProperties` at a place in the schema.
    fn known_keys(&self, schema_path: &str) -> Vec<String> {
        schema_path
            .rsplit_once('/')
            .and_then(|(parent, _)| self.schema.pointer(parent))
            .and_then(|object| object.get("properties"))
            .and_then(Value::as_object)
            .map(|properties| properties.keys().cloned().collect())
            .unwrap_or_default()
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

fn types(kind: &TypeKind) -> Vec<&'static str> {
    let has = |json_type: JsonType| match kind {
        TypeKind::Single(one) => *one == json_type,
        TypeKind::Multiple(set) => set.iter().any(|one| one == json_type),
    };
    [
        (JsonType::Null, "null"),
        (JsonType::Boolean, "boolean"),
        (JsonType::Integer, "integer"),
        (JsonType::Number, "number"),
        (JsonType::String, "string"),
        (JsonType::Array, "array"),
        (JsonType::Object, "object"),
    ]
    .into_iter()
    .filter(|(kind, _)| has(*kind))
    .map(|(_, word)| word)
    .collect()
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
