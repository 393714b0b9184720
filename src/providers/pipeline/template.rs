//! Templates in values: `{topic}`, `{find.output.items[0]}`, `{context.session_id}`.
//!
//! The values that templates can refer to while a pipeline runs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::entry::ValueReference;
use crate::config::node::ConfigNode;
use crate::model::{Diagnostics, Error, JsonObject, SourceLocation, ToolContext};
use crate::providers::template::{TemplateTree, TextTemplate, value_text};

pub(super) type PipelineTemplate = TemplateTree<ValueReference>;

#[derive(Debug, Clone)]
pub(super) struct LocatedReference {
    pub(super) reference: ValueReference,
    pub(super) place: SourceLocation,
    /// Whether there is other text around it.
    pub(super) is_in_text: bool,
}

/// The references of a text at `place`.
pub(super) fn located(
    template: &TextTemplate<ValueReference>,
    place: &SourceLocation,
) -> impl Iterator<Item = LocatedReference> {
    let is_in_text = template.sole_placeholder().is_none();
    template.placeholders().map(move |reference| LocatedReference {
        reference: reference.clone(),
        place: place.clone(),
        is_in_text,
    })
}

impl TemplateTree<ValueReference> {
    /// Reads a value; its references are added to `references`, what is wrong to `diagnostics`.
    pub(super) fn read(
        node: &ConfigNode,
        references: &mut Vec<LocatedReference>,
        diagnostics: &Diagnostics,
    ) -> Self {
        Self::of(node, &mut |text, node| match TextTemplate::parse(text) {
            Ok(template) => {
                references.extend(located(&template, &node.location()));
                Some(template)
            }
            Err(error) => {
                diagnostics.push(error.with_location(node.location()));
                None
            }
        })
    }

    /// Its value in a run; `None` if it is only an argument that was not given.
    pub(super) fn fill(&self, view: &ScopeView<'_>) -> Result<Option<Value>, Error> {
        self.filled(&|template| {
            if let Some(only) = template.sole_placeholder() {
                return Ok(view.find(only)?.map(Cow::into_owned));
            }
            let text = |reference: &ValueReference| {
                Ok(view.find(reference)?.map(|value| value_text(&value).unwrap_or_default()))
            };
            let missing = |ValueReference { text, .. }: &ValueReference| {
                Error::tool(format!("'{text}' was not given, but is used inside text"))
            };
            Ok(template.render(text, missing)?.map(Value::String))
        })
    }
}

pub(super) const RESERVED_NAMES: [&str; 4] = ["args", "context", "item", "index"];

pub(super) struct Scope {
    arguments: Value,
    /// `None` for a preview, which belongs to no call.
    context: Option<Value>,
    steps: BTreeSet<String>,
    done: BTreeMap<String, Value>,
}

/// A scope, and the item that is at hand where a step runs for each of several.
#[derive(Clone, Copy)]
pub(super) struct ScopeView<'a> {
    scope: &'a Scope,
    item: Option<(usize, &'a Value)>,
}

pub(super) fn context(context: &ToolContext) -> Value {
    json!({
        "call_id": context.call_id.0,
        "session_id": context.session_id,
        "user_id": context.user_id,
        "cwd": context.cwd.display().to_string(),
        "environment": context.environment,
        "metadata": context.metadata,
    })
}

impl Scope {
    /// The beginning of a run, with the names of all its steps.
    pub(super) fn of<'n>(
        arguments: JsonObject,
        context: Option<Value>,
        steps: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        Self {
            arguments: Value::Object(arguments),
            context,
            steps: steps.into_iter().map(str::to_owned).collect(),
            done: BTreeMap::new(),
        }
    }

    pub(super) fn record(&mut self, step: &str, state: Value) {
        self.done.insert(step.to_owned(), state);
    }

    pub(super) fn view(&self) -> ScopeView<'_> {
        ScopeView { scope: self, item: None }
    }
}

impl<'a> ScopeView<'a> {
    pub(super) fn with_item(self, index: usize, item: &'a Value) -> Self {
        Self { item: Some((index, item)), ..self }
    }

    /// The value of a reference; `None` if the caller did not give it. Of a step that has not run,
    /// and of a context or an item that is not there yet, it is the reference as written.
    pub(super) fn find(&self, reference: &ValueReference) -> Result<Option<Cow<'a, Value>>, Error> {
        let ValueReference { root, path, text } = reference;
        let (value, lenient) = match root.as_str() {
            "args" => (Some(&self.scope.arguments), true),
            "context" => (self.scope.context.as_ref(), true),
            "item" => (self.item.map(|(_, item)| item), false),
            "index" if self.item.is_some() => {
                return Ok(self.item.map(|(index, _)| Cow::Owned(json!(index))));
            }
            "index" => (None, false),
            step if self.scope.steps.contains(step) => (self.scope.done.get(step), false),
            argument => match self.scope.arguments.get(argument) {
                Some(value) => (Some(value), true),
                None => return Ok(None),
            },
        };
        let Some(value) = value else {
            return Ok(Some(Cow::Owned(Value::String(format!("{{{text}}}")))));
        };
        match walk(value, path) {
            Ok(value) => Ok(Some(Cow::Borrowed(value))),
            Err(_) if lenient => Ok(None),
            Err(last) => {
                let reached = crate::util::json::summary(last);
                Err(Error::tool(format!("'{text}' does not exist: it {reached}")))
            }
        }
    }
}

/// The value at the end of a path. Nothing is in nothing: a step that was skipped has no parts to
/// miss. The error is the last value on the way.
fn walk<'v>(mut value: &'v Value, path: &[String]) -> Result<&'v Value, &'v Value> {
    for segment in path {
        let next = match (value, segment) {
            (Value::Null, _) => return Ok(value),
            (Value::Object(map), key) => map.get(key),
            (Value::Array(items), index) => {
                index.parse().ok().and_then(|index: usize| items.get(index))
            }
            _ => None,
        };
        value = next.ok_or(value)?;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::Diagnostic;

    fn scope() -> Scope {
        let arguments = json!({ "topic": "rust", "n": 3, "list": [1, {"a b": "x"}], "none": null });
        let Value::Object(arguments) = arguments else { panic!() };
        let mut scope = Scope::of(arguments, Some(json!({ "session_id": "s" })), ["find", "late"]);
        scope.record("find", json!({ "output": { "items": ["a", "b"] }, "error": null }));
        scope
    }

    fn parse(text: &str) -> Result<PipelineTemplate, Diagnostic> {
        TextTemplate::parse(text).map(PipelineTemplate::Text)
    }

    fn fill(text: &str) -> Result<Option<Value>, String> {
        let template = parse(text).map_err(|error| error.message)?;
        template.fill(&scope().view()).map_err(|error| error.message().to_owned())
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
            ("a".into(), parse("{other}").unwrap()),
            ("b".into(), PipelineTemplate::List(vec![parse("{other}").unwrap()])),
        ]);
        assert_eq!(node.fill(&scope().view()).unwrap(), Some(json!({ "b": [] })));
        assert!(fill("<{other}>").unwrap_err().contains("was not given"));
    }

    #[test]
    fn what_a_step_did_not_give_is_named() {
        assert_eq!(
            fill("{find.output.item}").unwrap_err(),
            "'find.output.item' does not exist: it has items"
        );
        assert_eq!(
            fill("{find.output.items[2]}").unwrap_err(),
            "'find.output.items[2]' does not exist: it is a list of 2"
        );
        assert!(fill("{find.output.items[0].x}").unwrap_err().ends_with("it is text"));
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
                let template = parse(&format!("{{{key}}}")).unwrap();
                prop_assert_eq!(template.fill(&scope.view()).unwrap(), Some(value.clone()));
            }
            let inside = parse("<{text}>").unwrap().fill(&scope.view());
            prop_assert_eq!(inside.unwrap(), Some(json!(format!("<{text}>"))));
        }

        /// A value is filled in once: braces in it are no placeholders.
        #[test]
        fn values_are_never_read_as_templates(name in "[a-z]{1,8}") {
            let value = format!("{{{name}}} {{{{ {{args}}");
            let arguments = JsonObject::from_iter([("v".to_owned(), json!(value))]);
            let scope = Scope::of(arguments, None, []);
            let filled = parse("{v}").unwrap().fill(&scope.view());
            prop_assert_eq!(filled.unwrap(), Some(json!(value)));
        }

        #[test]
        fn escaped_text_is_itself(text in any::<String>()) {
            let escaped = text.replace('{', "{{").replace('}', "}}");
            let filled = parse(&escaped).unwrap().fill(&scope().view());
            prop_assert_eq!(filled.unwrap(), Some(json!(text)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[{}\\[\\].\"a0 -]{0,16}") {
            if let Ok(template) = parse(&text) {
                // What is read can be written again.
                for reference in template.texts().into_iter().flat_map(TextTemplate::placeholders) {
                    let again = ValueReference::read(&reference.text);
                    prop_assert_eq!(again.as_ref(), Some(reference));
                }
                let _filled = template.fill(&scope().view());
            }
        }
    }
}
