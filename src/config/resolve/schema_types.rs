//! Detects types that JSON Schema does not know in the schemas of entries.

use crate::config::node::{ConfigNode, NodeValue};
use crate::model::Diagnostics;
use crate::util::text::is_one_of;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Names from other languages, and the types they mean.
const FOREIGN: [(&str, &str); 13] = [
    ("str", "string"),
    ("text", "string"),
    ("int", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("bool", "boolean"),
    ("dict", "object"),
    ("map", "object"),
    ("list", "array"),
    ("tuple", "array"),
    ("none", "null"),
    ("nil", "null"),
];

/// Keys whose value is a schema, or a list of them.
const SCHEMAS: &str = "items prefixItems additionalItems unevaluatedItems contains \
    additionalProperties unevaluatedProperties propertyNames allOf anyOf oneOf not if then else \
    contentSchema extends";

const NAMED: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

pub(super) fn report(schema: &ConfigNode, diagnostics: &Diagnostics) {
    if let NodeValue::List(all) = &schema.value {
        return all.iter().for_each(|one| report(one, diagnostics));
    }
    for (key, value) in schema.entries() {
        match &*key.text {
            "type" => check(value, diagnostics),
            key if is_one_of(key, SCHEMAS) => report(value, diagnostics),
            key if NAMED.contains(&key) => {
                value.entries().iter().for_each(|(_, named)| report(named, diagnostics));
            }
            _ => {}
        }
    }
}

fn check(value: &ConfigNode, diagnostics: &Diagnostics) {
    if let NodeValue::List(all) = &value.value {
        return all.iter().for_each(|one| check(one, diagnostics));
    }
    if value.is_null() {
        let message =
            "null is not a type (the type \"null\" must be quoted), so nothing is checked";
        return diagnostics.push(value.warning(message));
    }
    let word = value.as_scalar_text().unwrap_or_else(|_| value.kind().to_owned());
    if TYPES.contains(&word.as_str()) {
        return;
    }
    let diagnostic =
        value.warning(format!("JSON Schema has no type '{word}', so nothing is checked"));
    let meant = FOREIGN.iter().find(|(foreign, _)| word.eq_ignore_ascii_case(foreign));
    diagnostics.push(match meant {
        Some((_, name)) => diagnostic.with_hint(format!("did you mean '{name}'?")),
        None => diagnostic.with_suggestion(&word, TYPES),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse;
    use crate::model::Diagnostic;

    fn reported(schema: &str) -> Vec<String> {
        let source = SourceText::new("tools.yaml", schema);
        let diagnostics = Diagnostics::default();
        report(&parse::parse(&source, schema).unwrap().root, &diagnostics);
        let place = |at: &Diagnostic| {
            let at = at.location.as_ref().unwrap();
            format!("{}:{}", at.line, at.column)
        };
        let format_line = |d: &Diagnostic| {
            format!("{} {} {}", place(d), d.message, d.hint.as_deref().unwrap_or_default())
        };
        diagnostics.take().iter().map(format_line).collect()
    }

    #[test]
    fn an_unknown_type_is_reported_where_it_stands() {
        let schema = "type: object\nproperties:\n  type: { type: str }\n  n: { anyOf: [{ type: [integer, nul] }] }\n  x: { items: { type: null } }\n";
        insta::assert_snapshot!(reported(schema).join("\n"), @r#"
        3:17 JSON Schema has no type 'str', so nothing is checked did you mean 'string'?
        4:34 JSON Schema has no type 'nul', so nothing is checked did you mean 'null'?
        5:23 null is not a type (the type "null" must be quoted), so nothing is checked 
        "#);
    }

    #[test]
    fn what_json_schema_knows_and_values_that_look_like_types_are_fine() {
        let schema = "type: [object, \"null\"]\nproperties: { a: { const: { type: str }, default: { type: x } } }\nexamples: [{ type: y }]\n";
        assert_eq!(reported(schema), Vec::<String>::new());
    }
}
