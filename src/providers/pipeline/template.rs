//! Templates in values: `{topic}`, `{find.output.items[0]}`, `{context.session_id}`.

use serde_json::Value;

use super::reference::ValueReference;
use super::scope::{ReferenceError, ReferenceValue, ScopeView};
use crate::config::node::{ConfigNode, NodeValue};
use crate::model::{Diagnostic, JsonObject, SourceLocation};
use crate::providers::hinted_error::HintedError as _;
use crate::providers::template::{TemplateError, TextTemplate, value_text};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum PipelineTemplate {
    Fixed(Value),
    /// Exactly one placeholder: the value keeps its type.
    Whole(ValueReference),
    /// A text with more in it than one placeholder: it stays text.
    Text(TextTemplate<ValueReference>),
    /// A list, without the items for which no value was given.
    List(Vec<Self>),
    /// An object of templates. Keys are never templates.
    Map(Vec<(String, Self)>),
}

pub(super) type LocatedReference = (ValueReference, SourceLocation, Embedding);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Embedding {
    Whole,
    InText,
}

impl PipelineTemplate {
    /// Reads a value of a file. What it refers to is added to `references`, what is wrong with it
    /// to `diagnostics`.
    pub(super) fn read(
        node: &ConfigNode,
        references: &mut Vec<LocatedReference>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        match &node.value {
            NodeValue::Text(text) => match Self::parse(text) {
                Ok(template) => {
                    let how = match &template {
                        Self::Whole(_) => Embedding::Whole,
                        _ => Embedding::InText,
                    };
                    let located = template.references().into_iter();
                    references.extend(located.map(|r| (r.clone(), node.location(), how)));
                    template
                }
                Err(error) => {
                    diagnostics.push(error.diagnostic(&node.location()));
                    Self::Fixed(Value::Null)
                }
            },
            NodeValue::List(items) => {
                Self::List(items.iter().map(|n| Self::read(n, references, diagnostics)).collect())
            }
            NodeValue::Map(entries) => Self::Map(
                entries
                    .iter()
                    .map(|(key, n)| (key.text.clone(), Self::read(n, references, diagnostics)))
                    .collect(),
            ),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
                Self::Fixed(node.to_json())
            }
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let template = TextTemplate::<ValueReference>::parse(text)?;
        Ok(match (template.literal(), template.sole_placeholder()) {
            (Some(literal), _) => Self::Fixed(Value::String(literal.to_owned())),
            (None, Some(only)) => Self::Whole(only.clone()),
            (None, None) => Self::Text(template),
        })
    }

    pub(super) fn references(&self) -> Vec<&ValueReference> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Whole(reference) => vec![reference],
            Self::Text(template) => template.placeholders().collect(),
            Self::List(items) => items.iter().flat_map(Self::references).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(_, t)| t.references()).collect(),
        }
    }

    /// The value, with every place filled; `None` when it is one placeholder for something that
    /// was not given. An entry of an object or list for which nothing was given is left out.
    pub(super) fn fill(&self, view: &ScopeView<'_>) -> Result<Option<Value>, ReferenceError> {
        Ok(match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Whole(reference) => match view.find(reference)? {
                ReferenceValue::Value(value) => Some(value.into_owned()),
                ReferenceValue::NotGiven => None,
                ReferenceValue::NotYetKnown => Some(Value::String(format!("{{{reference}}}"))),
            },
            Self::Text(template) => {
                let value = |reference: &ValueReference| {
                    Ok(match view.find(reference)? {
                        ReferenceValue::Value(value) => {
                            Some(value_text(&value).unwrap_or_default())
                        }
                        ReferenceValue::NotYetKnown => Some(format!("{{{reference}}}")),
                        ReferenceValue::NotGiven => None,
                    })
                };
                let missing =
                    |reference: &ValueReference| ReferenceError::NotGiven(reference.clone());
                template.render(value, missing)?.map(Value::String)
            }
            Self::List(items) => {
                let mut filled = Vec::with_capacity(items.len());
                for item in items {
                    filled.extend(item.fill(view)?);
                }
                Some(Value::Array(filled))
            }
            Self::Map(entries) => {
                let mut filled = JsonObject::new();
                for (key, template) in entries {
                    if let Some(value) = template.fill(view)? {
                        filled.insert(key.clone(), value);
                    }
                }
                Some(Value::Object(filled))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::reference::PathSegment;
    use super::super::scope::Scope;
    use super::*;

    fn scope() -> Scope {
        let arguments = json!({ "topic": "rust", "n": 3, "list": [1, {"a b": "x"}], "none": null });
        let Value::Object(arguments) = arguments else { panic!() };
        let mut scope = Scope::of(arguments, Some(json!({ "session_id": "s" })), ["find", "late"]);
        scope.record("find", json!({ "output": { "items": ["a", "b"] }, "error": null }));
        scope
    }

    fn fill(text: &str) -> Result<Option<Value>, String> {
        let template = PipelineTemplate::parse(text).map_err(|error| error.to_string())?;
        template.fill(&scope().view()).map_err(|error| error.to_string())
    }

    #[test]
    fn one_placeholder_keeps_the_type_and_several_become_text() {
        for (text, expected) in [
            ("{topic}", json!("rust")),
            ("{n}", json!(3)),
            ("{list}", json!([1, {"a b": "x"}])),
            ("{list[1]}", json!({"a b": "x"})),
            ("{list[1][\"a b\"]}", json!("x")),
            ("{list.0}", json!(1)),
            ("{none}", json!(null)),
            ("{args.n}", json!(3)),
            ("{context.session_id}", json!("s")),
            ("{find.output.items[1]}", json!("b")),
            ("{find.error.anything}", json!(null)),
            ("{n}/{topic}", json!("3/rust")),
            ("a {find.output.items} b", json!("a [\"a\",\"b\"] b")),
            ("[{none}]", json!("[]")),
            ("{{n}}", json!("{n}")),
            ("{{{n}}}", json!("{3}")),
            ("", json!("")),
            // What has not run yet stays as it is written: for previews.
            ("{late.output.x}", json!("{late.output.x}")),
            ("<{late.output}>", json!("<{late.output}>")),
        ] {
            assert_eq!(fill(text), Ok(Some(expected)), "{text}");
        }
    }

    #[test]
    fn what_was_not_given_is_left_out_or_asked_for() {
        for text in ["{other}", "{args.other}", "{context.metadata.user}", "{topic.x}"] {
            assert_eq!(fill(text), Ok(None), "{text}");
        }
        let node = PipelineTemplate::Map(vec![
            ("a".into(), PipelineTemplate::parse("{other}").unwrap()),
            ("b".into(), PipelineTemplate::List(vec![PipelineTemplate::parse("{other}").unwrap()])),
        ]);
        assert_eq!(node.fill(&scope().view()), Ok(Some(json!({ "b": [] }))));
        assert!(fill("<{other}>").unwrap_err().contains("was not given"));
    }

    #[test]
    fn what_a_step_did_not_give_is_named() {
        assert_eq!(
            fill("{find.output.item}").unwrap_err(),
            "'find.output.item' does not exist: it has 'items'"
        );
        assert_eq!(
            fill("{find.output.items[2]}").unwrap_err(),
            "'find.output.items[2]' does not exist: the list has 2 items"
        );
        assert!(fill("{find.output.items[0].x}").unwrap_err().ends_with("that value is text"));
    }

    #[test]
    fn stray_braces_are_refused() {
        for text in ["{", "}", "{}", "{a", "a}", "{a b}", "{a.}", "{a[x]}", "{.a}", "{\"a\": 1}"] {
            assert!(fill(text).unwrap_err().contains("is not part of a placeholder"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_value_passes_through_unchanged(text in any::<String>(), number in any::<i64>()) {
            let arguments = json!({ "text": text, "number": number, "all": [text, number] });
            let Value::Object(arguments) = arguments.clone() else { panic!() };
            let scope = Scope::of(arguments.clone(), None, []);
            for (key, value) in &arguments {
                let template = PipelineTemplate::parse(&format!("{{{key}}}")).unwrap();
                prop_assert_eq!(template.fill(&scope.view()), Ok(Some(value.clone())));
            }
            let inside = PipelineTemplate::parse("<{text}>").unwrap().fill(&scope.view());
            prop_assert_eq!(inside, Ok(Some(json!(format!("<{text}>")))));
        }

        /// A value is filled in once: braces in it are no placeholders.
        #[test]
        fn values_are_never_read_as_templates(name in "[a-z]{1,8}") {
            let value = format!("{{{name}}} {{{{ {{args}}");
            let arguments = JsonObject::from_iter([("v".to_owned(), json!(value))]);
            let scope = Scope::of(arguments, None, []);
            let filled = PipelineTemplate::parse("{v}").unwrap().fill(&scope.view());
            prop_assert_eq!(filled, Ok(Some(json!(value))));
        }

        #[test]
        fn escaped_text_is_itself(text in any::<String>()) {
            let escaped = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(PipelineTemplate::parse(&escaped), Ok(PipelineTemplate::Fixed(json!(text))));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[{}\\[\\].\"a0 -]{0,16}") {
            if let Ok(template) = PipelineTemplate::parse(&text) {
                // What is read can be written again.
                for reference in template.references() {
                    let again = ValueReference::read(&reference.to_string());
                    let odd = reference.path.iter().any(|s| matches!(s, PathSegment::Key(k) if k.contains(['.', ' ', '[', '"', '{', '}']) || k.is_empty()));
                    prop_assert!(odd || again.as_ref() == Some(reference));
                }
                let _filled = template.fill(&scope().view());
            }
        }
    }
}
