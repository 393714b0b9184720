//! The fields of a form, derived from a schema.

use serde_json::Value;

use super::{MAX_CHOICES, MAX_VARIANTS, ResolvedSchema};
use crate::audit::mask;
use crate::host::validate;
use crate::model::JsonObject;

/// One property of a schema as a person fills it in.
#[derive(Debug, Clone)]
pub struct FormField {
    /// The property; for an item its number, from 1; for a chosen form nothing.
    pub key: String,
    pub title: String,
    pub description: Option<String>,
    pub kind: FieldKind,
    pub required: bool,
    /// Whether it may be `null`.
    pub nullable: bool,
    pub default: Option<Value>,
    pub secret: bool,
    pub schema: ResolvedSchema,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    Text,
    Number {
        whole: bool,
    },
    /// A truth value, shown as yes or no.
    Boolean,
    /// Exactly one of the values of an `enum`.
    Choice(Vec<FieldChoice>),
    /// A list in which each of these values may stand once.
    MultiChoice(Vec<FieldChoice>),
    /// The value of `const`, which cannot be changed.
    Constant(Value),
    Object,
    List,
    /// A value in one of several forms; what they are called.
    Variants(Vec<String>),
    /// Anything; the schema does not say, or says several things.
    Any,
    /// JSON, because nothing else here can hold it.
    Json,
}

/// One value of an `enum` and its title.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChoice {
    pub value: Value,
    pub title: String,
}

pub fn fields(schema: &ResolvedSchema, most: usize) -> Vec<FormField> {
    let properties = schema.properties(most).into_iter();
    properties.map(|(key, property)| FormField::of(key, property, schema.requires(key))).collect()
}

pub fn defaults(fields: &[FormField]) -> JsonObject {
    let default = |field: &FormField| Some((field.key.clone(), field.default.clone()?));
    fields.iter().filter_map(default).collect()
}

impl FormField {
    pub fn of(key: &str, schema: ResolvedSchema, required: bool) -> Self {
        let text = |name: &str| schema.text(name).map(str::to_owned);
        let title = text("title").filter(|title| !title.trim().is_empty());
        let description = text("description");
        let default = schema.get("default").cloned();
        let (kind, nullable, schema) = classify(schema);
        let asks = mask::is_marked(schema.value()) || mask::is_secret_argument(key);
        Self {
            key: key.to_owned(),
            title: title.unwrap_or_else(|| key.to_owned()),
            description,
            required,
            nullable,
            default,
            secret: kind == FieldKind::Text && asks,
            kind,
            schema,
        }
    }

    /// The accepted input, as text for people.
    pub fn expectation(&self) -> String {
        let mut text = match &self.kind {
            FieldKind::Text => self.format().map_or_else(|| "text".to_owned(), str::to_owned),
            FieldKind::Number { whole: true } => "a whole number".to_owned(),
            FieldKind::Number { whole: false } => "a number".to_owned(),
            FieldKind::Boolean => "yes or no".to_owned(),
            FieldKind::Choice(_) => "one of these".to_owned(),
            FieldKind::MultiChoice(_) => "any of these, separated by commas".to_owned(),
            FieldKind::Constant(_) => "always this".to_owned(),
            FieldKind::Object => "fields of its own".to_owned(),
            FieldKind::List => "a list".to_owned(),
            FieldKind::Variants(_) => "one of several forms".to_owned(),
            FieldKind::Any => match self.schema.types().as_slice() {
                [] => "anything".to_owned(),
                types => types.join(" or "),
            },
            FieldKind::Json => "JSON".to_owned(),
        };
        self.add_bounds(&mut text);
        text
    }

    fn add_bounds(&self, text: &mut String) {
        for (key, before, after) in [
            ("minLength", "at least", "characters"),
            ("maxLength", "at most", "characters"),
            ("minimum", "at least", ""),
            ("maximum", "at most", ""),
            ("minItems", "at least", "of them"),
            ("maxItems", "at most", "of them"),
        ] {
            if let Some(bound @ Value::Number(_)) = self.schema.get(key) {
                let after = match after {
                    "characters" if bound == 1 => "character",
                    other => other,
                };
                text.push_str(format!(", {before} {bound} {after}").trim_end());
            }
        }
    }

    /// The format of a text, for people, if it is one that forms know.
    pub fn format(&self) -> Option<&'static str> {
        validate::expectation(self.schema.text("format")?)
    }
}

/// The kind, whether `null` is as good, and the schema of what is not `null`.
fn classify(schema: ResolvedSchema) -> (FieldKind, bool, ResolvedSchema) {
    if let Some(value) = schema.get("const").filter(|value| is_simple(value)) {
        return (FieldKind::Constant(value.clone()), value.is_null(), schema);
    }
    if let Some(choices) = choices_of(&schema) {
        let nullable = choices.iter().any(|choice| choice.value.is_null());
        return (FieldKind::Choice(choices), nullable, schema);
    }
    let all = schema.alternatives(MAX_VARIANTS);
    let is_null = |one: &ResolvedSchema| one.types() == ["null"];
    let nullable = all.iter().any(is_null);
    let mut forms: Vec<ResolvedSchema> = all.into_iter().filter(|one| !is_null(one)).collect();
    if forms.len() == 1
        && let Some(only) = forms.pop()
    {
        let (kind, deeper, schema) = classify(only);
        return (kind, nullable || deeper, schema);
    }
    if !forms.is_empty() {
        let titles = forms.iter().enumerate().map(|(at, form)| title(form, at)).collect();
        return (FieldKind::Variants(titles), nullable, schema);
    }
    let types = schema.types();
    let nullable = nullable || types.contains(&"null");
    let named: Vec<&str> = types.iter().copied().filter(|name| *name != "null").collect();
    let kind = match named.as_slice() {
        ["string"] => FieldKind::Text,
        ["integer"] => FieldKind::Number { whole: true },
        ["number"] => FieldKind::Number { whole: false },
        ["boolean"] => FieldKind::Boolean,
        ["object"] if schema.property_count() > 0 => FieldKind::Object,
        ["array"] => match choices_of(&schema.item(0)) {
            Some(choices) => FieldKind::MultiChoice(choices),
            None => FieldKind::List,
        },
        ["object"] => FieldKind::Json,
        _ => FieldKind::Any,
    };
    (kind, nullable, schema)
}

/// The name of a form: its title, its distinguishing value, what it refers to, or its type.
fn title(form: &ResolvedSchema, at: usize) -> String {
    let tag = || {
        let fields = form.properties(super::MAX_FIELDS).into_iter();
        let tags = fields.filter_map(|(_, field)| field.text("const").map(str::to_owned));
        tags.into_iter().next()
    };
    let own = form.value();
    let says = |key: &str| own.get(key).and_then(Value::as_str).map(str::to_owned);
    let target = || says("$ref").and_then(|to| Some(to.rsplit_once('/')?.1.to_owned()));
    let kind = || says("type").filter(|kind| kind != "object");
    let title = says("title").or_else(tag).or_else(target).or_else(kind);
    title.unwrap_or_else(|| format!("form {}", at + 1))
}

fn choices_of(schema: &ResolvedSchema) -> Option<Vec<FieldChoice>> {
    let choosing = ["enum", "oneOf", "anyOf"];
    let says = |part: &Value| choosing.iter().any(|key| part.get(key).is_some());
    schema.parts_where(says).find_map(choices)
}

/// The values of `enum` (with the older `enumNames`), `oneOf` or `anyOf` of constants.
fn choices<'s>(schema: &'s Value) -> Option<Vec<FieldChoice>> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let options: Vec<(&Value, Option<&str>)> = if let Some(values) = list("enum") {
        let names = list("enumNames");
        let name = |at: usize| names.and_then(|names| names.get(at)?.as_str());
        values.iter().enumerate().map(|(at, value)| (value, name(at))).collect()
    } else {
        let options = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?.iter();
        let titled = |option: &'s Value| {
            Some((option.get("const")?, option.get("title").and_then(Value::as_str)))
        };
        options.map(titled).collect::<Option<_>>()?
    };
    let is_few = (1..=MAX_CHOICES).contains(&options.len());
    let choice = |(value, title): (&Value, Option<&str>)| FieldChoice {
        title: title.map_or_else(|| input_text(value), str::to_owned),
        value: value.clone(),
    };
    (is_few && options.iter().all(|(value, _)| is_simple(value)))
        .then(|| options.into_iter().map(choice).collect())
}

fn is_simple(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// A value as it is typed: text without quotes.
pub(super) fn input_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
