//! Validation with the `jsonschema` crate: every dialect and keyword.
//!
//! Bounding the size and danger of a schema before it is compiled.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, PatternOptions, Retrieve, Uri, ValidationError, Validator};
use serde_json::{Map, Value};

use super::violation::{ValuePath, Violation, count, must_be, must_be_one_of, quote, type_of};
use super::{MAX_BYTES, MAX_DEPTH, MAX_NODES, UncheckedReason};
use crate::util::schema;

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
        let options = if checks_formats { super::check(options) } else { options };
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
            Kind::Format { format } if let Some(expectation) = super::expectation(format) => {
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

/// A schema that unfolds to at most this size, references included, is checked quickly.
const CHEAP: usize = 2_000;

/// Maximum length and number of patterns that are compiled without precautions.
const CHEAP_PATTERNS: usize = 20;

/// Whether compiling a schema or checking with it may take long; why it is not used at all.
pub fn is_expensive(schema: &Value) -> Result<bool, UncheckedReason> {
    if !(schema.is_object() || schema.is_boolean()) {
        return Err(UncheckedReason::NotASchema);
    }
    let mut walk = SchemaWalk::default();
    walk.visit(schema, 0)?;
    let mut left = CHEAP;
    Ok(walk.patterns > CHEAP_PATTERNS
        || walk.dynamic
        || (walk.references && !expands_within(schema, schema, 0, &mut left))
        || walk.nodes > CHEAP)
}

#[derive(Default)]
struct SchemaWalk {
    bytes: usize,
    nodes: usize,
    patterns: usize,
    references: bool,
    dynamic: bool,
}

impl SchemaWalk {
    fn visit(&mut self, value: &Value, depth: usize) -> Result<(), UncheckedReason> {
        if depth > MAX_DEPTH {
            return Err(UncheckedReason::TooDeep);
        }
        self.bytes += 2;
        match value {
            Value::Object(map) => {
                self.nodes += 1;
                for (key, member) in map {
                    self.bytes += key.len() + 4;
                    match key.as_str() {
                        "$ref" => self.references = true,
                        "$dynamicRef" | "$recursiveRef" => self.dynamic = true,
                        "pattern" => self.patterns += 1,
                        "patternProperties" => {
                            self.patterns += member.as_object().map_or(0, serde_json::Map::len);
                        }
                        // Quadratic in the value.
                        "uniqueItems" | "contains" => self.dynamic |= *member != Value::Bool(false),
                        _ => {}
                    }
                    self.visit(member, depth + 1)?;
                }
            }
            Value::Array(items) => {
                self.nodes += 1;
                // Some dialects compare each with each.
                self.dynamic |= items.len() > CHEAP;
                for item in items {
                    self.visit(item, depth + 1)?;
                }
            }
            Value::String(text) => self.bytes += text.len(),
            Value::Number(_) => self.bytes += 8,
            Value::Bool(_) | Value::Null => self.bytes += 3,
        }
        if self.nodes > MAX_NODES {
            return Err(UncheckedReason::TooManyNodes);
        }
        if self.bytes > MAX_BYTES {
            return Err(UncheckedReason::TooLarge);
        }
        Ok(())
    }
}

/// Whether a schema with all its references replaced by what they mean stays below `left` nodes.
/// A recursive one, and one that doubles with each reference, does not.
fn expands_within(value: &Value, root: &Value, depth: usize, left: &mut usize) -> bool {
    if *left == 0 || depth > MAX_DEPTH {
        return false;
    }
    match value {
        Value::Object(map) => {
            *left -= 1;
            map.iter().all(|(key, member)| match (key.as_str(), member.as_str()) {
                ("$ref", Some(reference)) => schema::target(root, reference)
                    // A target that is not there is found out by the compiler.
                    .is_none_or(|target| expands_within(target, root, depth + 1, left)),
                // Definitions count where they are used.
                ("$defs" | "definitions", _) => true,
                _ => expands_within(member, root, depth + 1, left),
            })
        }
        Value::Array(items) => {
            *left -= 1;
            items.iter().all(|item| expands_within(item, root, depth + 1, left))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({}), |inner, _| json!({ "items": inner }))
    }

    #[test]
    fn limits_are_kept() {
        assert!(is_expensive(&nested(MAX_DEPTH)).is_ok());
        assert!(is_expensive(&nested(MAX_DEPTH + 1)).is_err());
        let wide: Vec<Value> = (0..MAX_NODES).map(|_| json!({})).collect();
        assert!(is_expensive(&json!({ "anyOf": wide })).is_err());
        assert!(is_expensive(&json!({ "description": "x".repeat(MAX_BYTES) })).is_err());
        assert!(is_expensive(&json!(3)).is_err());
    }

    #[test]
    fn ordinary_schemas_are_not_suspicious() {
        let schema = json!({
            "type": "object",
            "properties": {
                "who": {"$ref": "#/$defs/Person"},
                "note": {"anyOf": [{"type": "string", "pattern": "^a"}, {"type": "null"}]}
            },
            "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string"}}}}
        });
        assert!(!is_expensive(&schema).unwrap());
    }

    #[test]
    fn recursion_and_doubling_are_suspicious() {
        let tree = json!({"$ref": "#/$defs/T", "$defs": {"T": {"items": {"$ref": "#/$defs/T"}}}});
        assert!(is_expensive(&tree).unwrap());
        let mut definitions = serde_json::Map::new();
        for i in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
            definitions.insert(format!("d{i}"), json!({ "anyOf": [next, next] }));
        }
        definitions.insert("d30".into(), json!({}));
        let bomb = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        assert!(is_expensive(&bomb).unwrap());
    }
}
