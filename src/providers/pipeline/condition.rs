//! Conditions of steps: `when: "{find.output.items}"`, `"not {dry}"`, `"{lang} == en"`.

use serde_json::Value;

use super::scope::ScopeView;
use super::template::{LocatedReference, PipelineTemplate, located};
use crate::config::node::{ConfigNode, NodeValue};
use crate::model::{Diagnostic, Diagnostics, Error};
use crate::providers::template::TextTemplate;

/// A comparison, or a test whether a value counts as true.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepCondition {
    left: PipelineTemplate,
    /// What it is compared with; without it, it must be truthy.
    right: Option<PipelineTemplate>,
    negated: bool,
    pub(super) text: String,
}

impl StepCondition {
    pub(super) fn read(
        node: &ConfigNode,
        references: &mut Vec<LocatedReference>,
        diagnostics: &Diagnostics,
    ) -> Option<Self> {
        let text = match &node.value {
            NodeValue::Text(text) => text.trim().to_owned(),
            NodeValue::Bool(value) => {
                let (left, text) =
                    (PipelineTemplate::Fixed(Value::Bool(*value)), value.to_string());
                return Some(Self { left, right: None, negated: false, text });
            }
            _ => {
                diagnostics.push(wrong(node));
                return None;
            }
        };
        let compared = ["==", "!="].iter().find_map(|sign| {
            // The sign stands after the first placeholder, not inside of what it is compared with.
            let (left, right) = text.split_once(sign)?;
            Some((left.trim(), right.trim(), *sign == "!="))
        });
        let (left, right, negated) = match compared {
            Some((left, right, negated)) => (left, Some(right), negated),
            None => match text.strip_prefix("not ") {
                Some(rest) => (rest.trim(), None, true),
                None => (text.as_str(), None, false),
            },
        };
        let mut part = |text: &str| match TextTemplate::parse(text) {
            Ok(template) => {
                // What is compared may be absent, also inside of a text.
                let place = node.location();
                let located = located(&template, &place);
                references.extend(located.map(|one| LocatedReference { is_in_text: false, ..one }));
                Some(PipelineTemplate::Text(template))
            }
            Err(error) => {
                diagnostics.push(error.with_location(node.location()));
                None
            }
        };
        let left = part(left)?;
        let right = match right {
            Some(right) => Some(part(right)?),
            None => None,
        };
        if left.sole_placeholder().is_none() {
            diagnostics.push(wrong(node));
            return None;
        }
        Some(Self { left, right, negated, text })
    }

    pub(super) fn holds(&self, view: &ScopeView<'_>) -> Result<bool, Error> {
        let left = self.left.fill(view)?.unwrap_or_default();
        let holds = match &self.right {
            None => is_truthy(&left),
            Some(right) => equal(&left, &right.fill(view)?.unwrap_or_default()),
        };
        Ok(holds != self.negated)
    }
}

/// Not absent, null, false, 0 or empty.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(value) => value.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// The right side is text; it equals a value that is written the same way.
fn equal(left: &Value, right: &Value) -> bool {
    if left == right {
        return true;
    }
    let Value::String(text) = right else { return false };
    match (left, serde_json::from_str::<Value>(text)) {
        (Value::Number(left), Ok(Value::Number(right))) => left.as_f64() == right.as_f64(),
        (left, Ok(right)) => *left == right,
        (_, Err(_)) => false,
    }
}

fn wrong(node: &ConfigNode) -> Diagnostic {
    Diagnostic::error("this is not a condition")
        .with_hint("write \"{x}\", \"not {x}\", \"{x} == value\" or \"{x} != value\"")
        .with_location(node.location())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::scope::Scope;
    use super::*;
    use crate::config::node::{SourceText, TextPosition};

    fn read(text: &str) -> Result<StepCondition, Vec<String>> {
        let node = ConfigNode {
            value: NodeValue::Text(text.to_owned()),
            position: TextPosition::default(),
            source: SourceText::new("t", ""),
        };
        let (mut references, diagnostics) = (Vec::new(), Diagnostics::default());
        let condition = StepCondition::read(&node, &mut references, &diagnostics);
        condition.ok_or_else(|| diagnostics.take().into_iter().map(|p| p.message).collect())
    }

    fn holds(text: &str) -> bool {
        let arguments =
            json!({ "yes": true, "zero": 0, "text": "a b", "empty": [], "n": 2, "nil": null });
        let scope = Scope::of(arguments.as_object().cloned().unwrap(), None, []);
        read(text).unwrap().holds(&scope.view()).unwrap()
    }

    #[test]
    fn each_form_says_yes_and_no() {
        for yes in [
            "{yes}",
            "{text}",
            "{n}",
            "not {zero}",
            "not {empty}",
            "not {nil}",
            "not {absent}",
            "{text} == a b",
            "{text} == \"a b\"",
            "{n} == 2",
            "{n} == 2.0",
            "{n} != 3",
            "{yes} == true",
            "{nil} == null",
            "{absent} == null",
            "{text} == {text}",
            "{n} != {zero}",
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in ["{zero}", "{empty}", "{nil}", "{absent}", "not {yes}", "{n} == 3", "{text} == a"]
        {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "true", "x == {n}", "{n} > 2", "{n} and {yes}", "{"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
