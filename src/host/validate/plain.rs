//! Validation of plain schemas, which most tools have, without the full validator.
//!
//! Owns: the keywords `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`,
//! `items`, `anyOf`, the bounds on numbers, lengths and counts, and references to definitions that
//! are not recursive. A schema that uses anything else is not plain. Agrees with the full validator
//! on every plain schema (verified by a property test). Never does: guess.
//!
//! Why it exists: the first use of a full validator in a process costs 3.7 ms, twice a whole call
//! of a local server; this costs microseconds.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::violation::ValuePath;
use super::violation::Violation;

/// The largest number of parts a schema may unfold to.
const MAX_PARTS: usize = 2_000;

/// The deepest nesting, references included.
const MAX_DEPTH: usize = 64;

/// Beyond this, a limit given as a number cannot be compared exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The words of the JSON types, in the order in which they are reported.
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// A schema of only the keywords that this module checks itself.
#[derive(Debug, Clone)]
pub struct PlainValidator(Subschema);

#[derive(Debug, Clone, Default)]
struct Subschema {
    /// Whether the schema is `false`, which no value fits.
    never: bool,
    types: Option<Vec<&'static str>>,
    options: Option<Vec<Value>>,
    constant: Option<Value>,
    minimum: Option<Limit>,
    maximum: Option<Limit>,
    exclusive_minimum: Option<Limit>,
    exclusive_maximum: Option<Limit>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    properties: Vec<(String, Self)>,
    required: Vec<String>,
    additional_properties: Additional,
    items: Option<Box<Self>>,
    any_of: Vec<Self>,
    /// The target of a reference, which must fit too.
    target: Option<Box<Self>>,
}

#[derive(Debug, Clone)]
struct Limit {
    value: f64,
    shown: Value,
}

#[derive(Debug, Clone, Default)]
enum Additional {
    #[default]
    Any,
    None,
    Schema(Box<Subschema>),
}

impl PlainValidator {
    /// Compiles a schema; `None` when it is not plain (or not a valid schema, which the full
    /// validator explains better).
    pub fn compile(schema: &Value) -> Option<Self> {
        let mut compiler = Compiler { root: schema, parts: 0 };
        compiler.part(schema, 0).map(Self)
    }

    /// Everything in `value` that does not fit.
    pub fn check(&self, value: &Value) -> Vec<Violation> {
        // Nearly every value fits, and then no path has to be kept.
        if self.0.is_valid(value) {
            return Vec::new();
        }
        let mut found = Vec::new();
        self.0.check(value, &ValuePath::default(), &mut found);
        found
    }
}

struct Compiler<'a> {
    root: &'a Value,
    parts: usize,
}

impl Compiler<'_> {
    fn part(&mut self, schema: &Value, depth: usize) -> Option<Subschema> {
        self.parts += 1;
        if self.parts > MAX_PARTS || depth > MAX_DEPTH {
            return None;
        }
        let keywords = match schema {
            Value::Bool(allowed) => {
                return Some(Subschema { never: !allowed, ..Subschema::default() });
            }
            Value::Object(keywords) => keywords,
            _ => return None,
        };
        let mut part = Subschema::default();
        for (keyword, value) in keywords {
            self.keyword(&mut part, keyword, value, depth)?;
        }
        Some(part)
    }

    fn keyword(
        &mut self,
        part: &mut Subschema,
        keyword: &str,
        value: &Value,
        depth: usize,
    ) -> Option<()> {
        match keyword {
            "type" => part.types = Some(types(value)?),
            "enum" => part.options = Some(options(value)?),
            "const" => part.constant = Some(value.clone()),
            "minimum" => part.minimum = Some(limit(value)?),
            "maximum" => part.maximum = Some(limit(value)?),
            "exclusiveMinimum" => part.exclusive_minimum = Some(limit(value)?),
            "exclusiveMaximum" => part.exclusive_maximum = Some(limit(value)?),
            "minLength" => part.min_length = Some(value.as_u64()?),
            "maxLength" => part.max_length = Some(value.as_u64()?),
            "minItems" => part.min_items = Some(value.as_u64()?),
            "maxItems" => part.max_items = Some(value.as_u64()?),
            "required" => part.required = names(value)?,
            "properties" => {
                for (name, schema) in value.as_object()? {
                    part.properties.push((name.clone(), self.part(schema, depth + 1)?));
                }
            }
            "additionalProperties" => {
                part.additional_properties = match value {
                    Value::Bool(true) => Additional::Any,
                    Value::Bool(false) => Additional::None,
                    schema => Additional::Schema(Box::new(self.part(schema, depth + 1)?)),
                }
            }
            "items" => part.items = Some(Box::new(self.part(value, depth + 1)?)),
            "anyOf" => {
                let branches = value.as_array().filter(|branches| !branches.is_empty())?;
                for branch in branches {
                    part.any_of.push(self.part(branch, depth + 1)?);
                }
            }
            "$ref" => {
                let pointer = value.as_str()?.strip_prefix('#')?;
                // Escapes in pointers and anchors are left to the full validator.
                if !pointer.starts_with("/$defs/") || pointer.contains(['~', '%']) {
                    return None;
                }
                let target = self.root.pointer(pointer)?;
                part.target = Some(Box::new(self.part(target, depth + 1)?));
            }
            "$defs" => self.definitions(value, depth)?,
            _ => return is_annotation(keyword, value, depth).then_some(()),
        }
        Some(())
    }

    /// Definitions that are not used may still make a schema invalid.
    fn definitions(&mut self, value: &Value, depth: usize) -> Option<()> {
        if depth > 0 {
            return None;
        }
        value.as_object()?.values().try_for_each(|schema| self.part(schema, depth + 1).map(drop))
    }
}

impl Subschema {
    fn is_valid(&self, value: &Value) -> bool {
        let mut found = Vec::new();
        self.check_own_keywords(value, None, &mut found);
        found.is_empty()
            && self.matches_any_of(value)
            && self.target.as_ref().is_none_or(|target| target.is_valid(value))
            && match value {
                Value::Object(map) => map.iter().all(|(key, value)| match self.property(key) {
                    PropertyRule::Known(part) => part.is_valid(value),
                    PropertyRule::Forbidden => false,
                    PropertyRule::Allowed => true,
                }),
                Value::Array(items) => self
                    .items
                    .as_ref()
                    .is_none_or(|part| items.iter().all(|item| part.is_valid(item))),
                _ => true,
            }
    }

    fn check(&self, value: &Value, path: &ValuePath, found: &mut Vec<Violation>) {
        self.check_own_keywords(value, Some(path), found);
        if !self.matches_any_of(value) {
            found.push(Violation::any_of(path.clone()));
        }
        if let Some(target) = &self.target {
            target.check(value, path, found);
        }
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    match self.property(key) {
                        PropertyRule::Known(part) => part.check(value, &path.key(key), found),
                        PropertyRule::Forbidden => {
                            let known = self.properties.iter().map(|(name, _)| name.as_str());
                            found.push(Violation::unknown(path, key, known));
                        }
                        PropertyRule::Allowed => {}
                    }
                }
            }
            Value::Array(items) => {
                if let Some(part) = &self.items {
                    for (index, item) in items.iter().enumerate() {
                        part.check(item, &path.index(index), found);
                    }
                }
            }
            _ => {}
        }
    }

    /// What this part says about the value itself. Without a path only whether it fits counts.
    fn check_own_keywords(
        &self,
        value: &Value,
        path: Option<&ValuePath>,
        found: &mut Vec<Violation>,
    ) {
        let mut say = |violation: &dyn Fn(ValuePath) -> Violation| {
            found.push(path.map_or_else(
                || Violation::new(ValuePath::default(), String::new()),
                |path| violation(path.clone()),
            ));
        };
        if self.never {
            say(&Violation::never);
        }
        if let Some(types) = &self.types
            && !types.iter().any(|word| is_type(value, word))
        {
            say(&|path| Violation::types(path, types, value));
        }
        if let Some(options) = &self.options
            && !options.iter().any(|option| equal(option, value))
        {
            say(&|path| Violation::options(path, options, value));
        }
        if let Some(constant) = &self.constant
            && !equal(constant, value)
        {
            say(&|path| Violation::constant(path, constant));
        }
        match value {
            Value::Number(number) => self.number(number, &mut say),
            Value::String(text) => {
                if self.min_length.is_some() || self.max_length.is_some() {
                    let length = text.chars().count();
                    counts(length, self.min_length, self.max_length, "character", &mut say);
                }
            }
            Value::Array(items) => {
                counts(items.len(), self.min_items, self.max_items, "item", &mut say);
            }
            Value::Object(map) => {
                for name in self.required.iter().filter(|name| !map.contains_key(*name)) {
                    say(&|path| Violation::required(&path, name));
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn number(&self, number: &Number, say: &mut impl FnMut(&dyn Fn(ValuePath) -> Violation)) {
        let Some(value) = number.as_f64() else { return };
        let bounds: [(&Option<Limit>, &str, LimitTest); 4] = [
            (&self.minimum, "at least", |value, limit| value < limit),
            (&self.maximum, "at most", |value, limit| value > limit),
            (&self.exclusive_minimum, "more than", |value, limit| value <= limit),
            (&self.exclusive_maximum, "less than", |value, limit| value >= limit),
        ];
        for (limit, words, broken) in bounds {
            if let Some(limit) = limit
                && broken(value, limit.value)
            {
                say(&|path| Violation::bound(path, words, &limit.shown));
            }
        }
    }

    fn matches_any_of(&self, value: &Value) -> bool {
        self.any_of.is_empty() || self.any_of.iter().any(|part| part.is_valid(value))
    }

    fn property(&self, key: &str) -> PropertyRule<'_> {
        if let Some((_, part)) = self.properties.iter().find(|(name, _)| name == key) {
            return PropertyRule::Known(part);
        }
        match &self.additional_properties {
            Additional::Any => PropertyRule::Allowed,
            Additional::None => PropertyRule::Forbidden,
            Additional::Schema(part) => PropertyRule::Known(part),
        }
    }
}

/// Whether a number breaks a limit.
type LimitTest = fn(f64, f64) -> bool;

enum PropertyRule<'a> {
    Known(&'a Subschema),
    Forbidden,
    Allowed,
}

fn counts(
    count: usize,
    min: Option<u64>,
    max: Option<u64>,
    of: &str,
    say: &mut impl FnMut(&dyn Fn(ValuePath) -> Violation),
) {
    let count = count as u64;
    if let Some(min) = min.filter(|min| count < *min) {
        say(&|path| Violation::count(path, "at least", min, of));
    }
    if let Some(max) = max.filter(|max| count > *max) {
        say(&|path| Violation::count(path, "at most", max, of));
    }
}

fn types(value: &Value) -> Option<Vec<&'static str>> {
    let known = |word: &Value| TYPES.into_iter().find(|known| Some(*known) == word.as_str());
    match value {
        Value::String(_) => Some(vec![known(value)?]),
        Value::Array(words) if !words.is_empty() => {
            let mut types = words.iter().map(known).collect::<Option<Vec<_>>>()?;
            types.sort_by_key(|word| TYPES.iter().position(|known| known == word));
            let given = types.len();
            types.dedup();
            (types.len() == given).then_some(types)
        }
        _ => None,
    }
}

fn options(value: &Value) -> Option<Vec<Value>> {
    // Comparing each with each is quadratic, so that few must be left before it is done.
    let options = value.as_array().filter(|options| (1..=1_000).contains(&options.len()))?;
    // Older dialects forbid duplicates; the full validator knows which.
    let unique = options.iter().enumerate().all(|(i, a)| !options[..i].iter().any(|b| equal(a, b)));
    unique.then(|| options.clone())
}

fn names(value: &Value) -> Option<Vec<String>> {
    let names: Vec<String> = value
        .as_array()?
        .iter()
        .map(|name| name.as_str().map(str::to_owned))
        .collect::<Option<_>>()?;
    let unique = names.iter().collect::<HashSet<_>>().len() == names.len();
    unique.then_some(names)
}

fn limit(value: &Value) -> Option<Limit> {
    let number = value.as_f64().filter(|number| number.abs() <= EXACT)?;
    Some(Limit { value: number, shown: value.clone() })
}

/// Keywords that allow or forbid nothing, with values that are valid for them.
fn is_annotation(keyword: &str, value: &Value, depth: usize) -> bool {
    match keyword {
        "title" | "description" | "$comment" | "format" => value.is_string(),
        "default" => true,
        "examples" => value.is_array(),
        "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        "$schema" => {
            depth == 0
                && matches!(
                    value.as_str().map(|dialect| dialect.trim_end_matches('#')),
                    Some(
                        "https://json-schema.org/draft/2020-12/schema"
                            | "http://json-schema.org/draft-07/schema"
                    )
                )
        }
        other => other.starts_with("x-"),
    }
}

fn is_type(value: &Value, word: &str) -> bool {
    match value {
        Value::Null => word == "null",
        Value::Bool(_) => word == "boolean",
        Value::Number(number) => word == "number" || (word == "integer" && is_integer(number)),
        Value::String(_) => word == "string",
        Value::Array(_) => word == "array",
        Value::Object(_) => word == "object",
    }
}

/// Numbers without a fraction are integers, however they are written.
fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|v| v.fract() == 0.0)
}

/// Equality of JSON Schema: `1` and `1.0` are one number, the order of keys does not count.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a == b,
            _ => a == b || a.as_f64() == b.as_f64(),
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => same_members(a, b),
        _ => a == b,
    }
}

fn same_members(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::full::FullValidator;
    use super::*;

    #[test]
    fn what_is_not_plain_is_left_to_others() {
        for schema in [
            json!({"pattern": "a"}),
            json!({"$ref": "#"}),
            json!({"oneOf": [{}]}),
            json!({"type": "strang"}),
            json!({"required": ["a", "a"]}),
            json!({"minLength": -1}),
            json!({"properties": {"a": {"not": {}}}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
            json!([]),
        ] {
            assert!(PlainValidator::compile(&schema).is_none(), "{schema}");
        }
    }

    fn scalar() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-4_i64..5).prop_map(Value::from),
            prop_oneof![Just(1.0), Just(2.5), Just(-0.5)].prop_map(Value::from),
            "[ab]{0,3}".prop_map(Value::from),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        scalar().prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[abc0]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn keyword(
        inner: impl Strategy<Value = Value> + Clone + 'static,
    ) -> impl Strategy<Value = (String, Value)> {
        let word = proptest::sample::select(TYPES.to_vec());
        let named = |name: &'static str, value: BoxedStrategy<Value>| {
            value.prop_map(move |value| (name.to_owned(), value)).boxed()
        };
        let number = (-3_i64..4).prop_map(Value::from).boxed();
        let count = (0_u64..4).prop_map(Value::from).boxed();
        let unique = |values: Vec<Value>| {
            let mut out: Vec<Value> = Vec::new();
            for value in values {
                if !out.iter().any(|seen| equal(seen, &value)) {
                    out.push(value);
                }
            }
            Value::from(out)
        };
        proptest::strategy::Union::new([
            named("type", word.clone().prop_map(Value::from).boxed()),
            named(
                "type",
                proptest::collection::btree_set(word, 1..4)
                    .prop_map(|s| s.into_iter().collect())
                    .boxed(),
            ),
            named("enum", proptest::collection::vec(value(), 1..4).prop_map(unique).boxed()),
            named("const", value().boxed()),
            named("minimum", number.clone()),
            named("maximum", number.clone()),
            named("exclusiveMinimum", number.clone()),
            named("exclusiveMaximum", number),
            named("minLength", count.clone()),
            named("maxLength", count.clone()),
            named("minItems", count.clone()),
            named("maxItems", count),
            named(
                "required",
                proptest::collection::btree_set("[abc0]", 0..3)
                    .prop_map(|s| s.into_iter().collect())
                    .boxed(),
            ),
            named(
                "properties",
                proptest::collection::btree_map("[abc0]", inner.clone(), 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect()))
                    .boxed(),
            ),
            named("additionalProperties", inner.clone().boxed()),
            named("items", inner.clone().boxed()),
            named("anyOf", proptest::collection::vec(inner, 1..3).prop_map(Value::from).boxed()),
            named("$ref", Just(json!("#/$defs/a")).boxed()),
            named("title", Just(json!("a note")).boxed()),
        ])
    }

    fn schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!({})), any::<bool>().prop_map(Value::from)];
        let schema = leaf.prop_recursive(3, 24, 4, |inner| {
            proptest::collection::vec(keyword(inner), 0..5)
                .prop_map(|words| Value::Object(words.into_iter().collect()))
        });
        let definition = proptest::sample::select(vec![
            json!({"type": "string"}),
            json!({"minimum": 2}),
            json!(true),
        ]);
        (schema, definition).prop_map(|(schema, definition)| match schema {
            Value::Object(mut keywords) => {
                keywords.insert("$defs".into(), json!({ "a": definition }));
                Value::Object(keywords)
            }
            // A reference has nothing to point at in a schema that is just `true`.
            other => other,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn plain_and_full_checking_agree(schema in schema(), values in proptest::collection::vec(value(), 1..6)) {
            let Some(plain) = PlainValidator::compile(&schema) else {
                return Err(TestCaseError::fail(format!("not plain: {schema}")));
            };
            let full = FullValidator::compile(&schema)
                .map_err(|reason| TestCaseError::fail(reason.to_string()))?;
            for value in values {
                let (mut ours, mut theirs) = (plain.check(&value), full.check(&value));
                ours.sort_unstable();
                theirs.sort_unstable();
                prop_assert_eq!(ours, theirs, "{} against {}", value, schema);
            }
        }
    }
}
