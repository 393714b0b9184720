//! One step of a pipeline: its tool, arguments, condition and loop.
//!
//! Conditions of steps: `when: "{find.output.items}"`, `"not {dry}"`, `"{lang} == en"`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::template::{LocatedReference, PipelineTemplate, RESERVED_NAMES, ScopeView, located};
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::typed::{self, Either, Limit, Located, Retries};
use crate::model::{Diagnostic, Diagnostics, Error, SourceLocation};
use crate::providers::template::TextTemplate;

/// How many calls of one pipeline run at the same time.
pub(super) const MAX_PARALLEL: usize = 8;

/// The keys of a step, or of a group of steps.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct StepKeys {
    /// The name by which later steps refer to its output.
    id: Option<Located<String>>,
    /// The tool to call.
    pub(super) tool: Option<Located<String>>,
    /// The arguments, with placeholders such as {find.output}.
    #[serde(alias = "arguments")]
    pub(super) args: Option<ConfigNode>,
    /// Run it only if this holds.
    when: Option<ConfigNode>,
    /// Run it once for each item of this list.
    #[serde(alias = "foreach")]
    each: Option<ConfigNode>,
    /// Steps that run at the same time; with 'each', how many items at the same time, from 1 to 8.
    parallel: Option<Located<Either<u64, Vec<Located<Self>>>>>,
    /// What a failure leads to: fail (default), continue, or { default: value }.
    on_error: Option<ConfigNode>,
    /// The limit of an attempt, in place of the tool's own.
    timeout: Option<Limit>,
    /// How often a failed attempt is retried, in place of the tool's own.
    retries: Option<Retries>,
}

impl Located<StepKeys> {
    fn group(&self) -> Option<&[Self]> {
        match self.parallel.as_deref() {
            Some(Either::Nested(steps)) => Some(steps),
            _ => None,
        }
    }

    pub(super) fn is_group(&self) -> bool {
        self.group().is_some()
    }

    pub(super) fn members(&self) -> &[Self] {
        self.group().unwrap_or(std::slice::from_ref(self))
    }

    pub(super) fn has_more_than_parallel(&self) -> bool {
        [&self.id, &self.tool].iter().any(|key| key.is_some())
            || [&self.args, &self.when, &self.each, &self.on_error].iter().any(|key| key.is_some())
            || self.timeout.is_some()
            || self.retries.is_some()
    }
}

/// A step whose keys are checked; its references are checked with the pipeline.
#[derive(Debug, Clone)]
pub(super) struct PipelineStep {
    pub(super) id: String,
    pub(super) tool: String,
    /// The arguments; a text is one placeholder for a whole object.
    pub(super) args: PipelineTemplate,
    /// Runs only if this condition is met.
    pub(super) when: Option<StepCondition>,
    /// Runs once for each item of this list.
    pub(super) each: Option<PipelineTemplate>,
    /// How many items at the same time.
    pub(super) parallel: usize,
    pub(super) on_error: OnError,
    /// The limit of an attempt, in place of the tool's own.
    pub(super) timeout: Option<Duration>,
    pub(super) retries: Option<u32>,
    pub(super) place: SourceLocation,
    /// What must be checked against the rest of the pipeline.
    pub(super) references: Vec<LocatedReference>,
}

/// How a failed step is handled.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OnError {
    /// The pipeline fails with the error of the step; the default.
    Fail,
    Continue,
    Default(PipelineTemplate),
}

/// Reads a step; `number` counts from 1 and names a step that does not name itself.
pub(super) fn read(
    keys: &Located<StepKeys>,
    number: usize,
    diagnostics: &Diagnostics,
) -> PipelineStep {
    let (id, place) = match &keys.id {
        Some(id) => {
            diagnostics.extend(wrong_name(id));
            (id.value.clone(), &id.location)
        }
        None => (format!("step{number}"), &keys.location),
    };
    let mut references = Vec::new();
    let args = match &keys.args {
        Some(args) => {
            let template = PipelineTemplate::read(args, &mut references, diagnostics);
            if !matches!(template, PipelineTemplate::Map(_))
                && template.sole_placeholder().is_none()
            {
                diagnostics.push(
                    Diagnostic::error("'args' must be a mapping")
                        .with_hint("write args: { name: value }, or one placeholder for all of it")
                        .with_location(args.location()),
                );
            }
            template
        }
        None => PipelineTemplate::Map(Vec::new()),
    };
    let when = keys.when.as_ref();
    let when = when.and_then(|when| StepCondition::read(when, &mut references, diagnostics));
    let each = keys.each.as_ref().map(|list| {
        let template = PipelineTemplate::read(list, &mut references, diagnostics);
        if !matches!(template, PipelineTemplate::List(_)) && template.sole_placeholder().is_none() {
            diagnostics.push(list.expected("a list, or one placeholder for a list"));
        }
        template
    });
    let on_error = keys.on_error.as_ref();
    let on_error =
        on_error.map_or(OnError::Fail, |node| on_error_of(node, &mut references, diagnostics));
    if let Some(diagnostic) = wrong_tool(&id, keys) {
        diagnostics.push(diagnostic);
    }
    PipelineStep {
        tool: keys.tool.as_ref().map_or("", |tool| tool.trim()).to_owned(),
        parallel: parallel(keys, diagnostics),
        timeout: keys.timeout.map(|limit| limit.0),
        retries: keys.retries.map(|retries| retries.0),
        id,
        args,
        when,
        each,
        on_error,
        place: place.clone(),
        references,
    }
}

fn wrong_name(name: &Located<String>) -> Option<Diagnostic> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let text = &name.value;
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
        let message =
            format!("'{text}' is not a name of a step: 1 to 64 letters, digits, '_' or '-'");
        return Some(name.error(message));
    }
    RESERVED_NAMES.contains(&text.as_str()).then(|| {
        name.error(format!("'{text}' is reserved in templates"))
            .with_hint("give the step another id")
    })
}

fn wrong_tool(id: &str, keys: &Located<StepKeys>) -> Option<Diagnostic> {
    let Some(tool) = &keys.tool else {
        let message = format!("the step '{id}' names no tool");
        return Some(keys.error(message).with_hint("add 'tool: …'"));
    };
    if tool.trim().is_empty() {
        return Some(tool.error("expected the name of a tool"));
    }
    tool.contains(['{', '}']).then(|| {
        tool.error("the tool itself cannot come from a value")
            .with_hint("name the tool; 'when' chooses between steps")
    })
}

fn on_error_of(
    node: &ConfigNode,
    references: &mut Vec<LocatedReference>,
    diagnostics: &Diagnostics,
) -> OnError {
    match &node.value {
        NodeValue::Text(word) if word == "fail" => return OnError::Fail,
        NodeValue::Text(word) if word == "continue" => return OnError::Continue,
        NodeValue::Map(entries) if entries.len() == 1 => {
            if let Some(value) = node.get("default") {
                return OnError::Default(PipelineTemplate::read(value, references, diagnostics));
            }
        }
        _ => {}
    }
    diagnostics.push(
        Diagnostic::error("'on_error' must be fail, continue, or { default: value }")
            .with_location(node.location()),
    );
    OnError::Fail
}

fn parallel(keys: &StepKeys, diagnostics: &Diagnostics) -> usize {
    let Some(written) = &keys.parallel else { return 1 };
    let number = match &written.value {
        Either::Short(number) => usize::try_from(*number).ok(),
        Either::Nested(_) => None,
    };
    match number.filter(|number| (1..=MAX_PARALLEL).contains(number)) {
        Some(number) if keys.each.is_some() => return number,
        _ if keys.each.is_none() => diagnostics.push(
            written
                .error("'parallel' as a number is only for a step with 'each'")
                .with_hint("to run steps at the same time, write - parallel: [ {…}, {…} ]"),
        ),
        _ => diagnostics.push(written.error("expected a number from 1 to 8")),
    }
    1
}

/// What a step is called in messages: `step 'save' (notes-write)`.
pub(super) fn title(step: &PipelineStep) -> String {
    format!("step '{}' ({})", step.id, step.tool)
}

/// A step as a preview shows it, its values filled in as far as `fill` can.
pub(super) fn show(step: &PipelineStep, fill: &dyn Fn(&PipelineTemplate) -> Value) -> Value {
    let mut shown = json!({ "id": step.id, "tool": step.tool });
    if let Some(when) = &step.when {
        shown["when"] = when.text.as_str().into();
    }
    if let Some(each) = &step.each {
        shown["each"] = fill(each);
    }
    shown["args"] = fill(&step.args);
    match &step.on_error {
        OnError::Fail => {}
        OnError::Continue => shown["on_error"] = "continue".into(),
        OnError::Default(value) => shown["on_error"] = json!({ "default": fill(value) }),
    }
    shown
}

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
        let signs = ["==", "!="].into_iter().filter_map(|sign| {
            let (left, right) = text.split_once(sign)?;
            let negated = sign == "!=";
            // `!==` is no sign.
            (!negated || !right.starts_with('=')).then_some((left.trim(), right.trim(), negated))
        });
        // The first one stands after the placeholder, others inside of what it is compared with.
        let compared = signs.min_by_key(|(left, ..)| left.len());
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

    use super::*;
    use crate::config::node::{SourceText, TextPosition};
    use crate::providers::pipeline::template::Scope;

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
            "{text} != \"a==b\"",
            "{text} != a == b",
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in [
            "{zero}",
            "{empty}",
            "{nil}",
            "{absent}",
            "not {yes}",
            "{n} == 3",
            "{text} == a",
            "{text} == a != b",
        ] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "true", "x == {n}", "{n} > 2", "{n} !== 2", "{n} and {yes}", "{"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
