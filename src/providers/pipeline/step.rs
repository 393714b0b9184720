//! One step of a pipeline: its tool, arguments, condition and loop.
//!
//! The keys: `id`, `tool`, `args`, `when`, `each` (or `foreach`) with `parallel`, `on_error`,
//! `timeout`, `retries`.

use std::time::Duration;

use serde_json::Value;

use super::condition::StepCondition;
use super::scope::RESERVED_NAMES;
use super::template::{LocatedReference, PipelineTemplate};
use crate::config::node::{ConfigNode, NodeValue};
use crate::model::{Diagnostic, SourceLocation};

/// How many calls of one pipeline run at the same time.
pub(super) const MAX_PARALLEL: usize = 8;

/// The largest value of the key `retries`.
const MAX_RETRIES: u64 = 100;

const KEYS: [&str; 11] = [
    "id",
    "tool",
    "args",
    "arguments",
    "when",
    "each",
    "foreach",
    "parallel",
    "on_error",
    "timeout",
    "retries",
];

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
}

/// How a failed step is handled.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OnError {
    /// The pipeline fails with the error of the step; the default.
    Fail,
    Continue,
    Default(PipelineTemplate),
}

/// A stage as read, with what must be checked.
pub(super) struct StageDraft {
    pub(super) steps: Vec<StepDraft>,
    /// Whether its steps run at the same time.
    pub(super) group: bool,
}

/// A step, and what must be checked against the rest of the pipeline.
pub(super) struct StepDraft {
    pub(super) step: PipelineStep,
    pub(super) place: SourceLocation,
    pub(super) references: Vec<LocatedReference>,
}

/// Reads a step; `number` counts from 1 and names a step that does not name itself.
pub(super) fn read(
    node: &ConfigNode,
    number: usize,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<StepDraft> {
    let entries = ok_or_report(node.as_map(), diagnostics)?;
    for (key, _) in entries {
        if !KEYS.contains(&key.text.as_str()) {
            let diagnostic = Diagnostic::warning(format!("unknown key '{}' in a step", key.text));
            let diagnostic = diagnostic.with_suggestion(&key.text, KEYS);
            diagnostics.push(diagnostic.with_location(node.location_of(key)));
        }
    }
    let (id, place) = match node.get("id") {
        Some(id) => (ok_or_report(name(id), diagnostics).unwrap_or_default(), id.location()),
        None => (format!("step{number}"), node.location()),
    };
    let mut references = Vec::new();
    let args = match node.get_any(&["args", "arguments"]) {
        Some((_, args)) => {
            let template = PipelineTemplate::read(args, &mut references, diagnostics);
            if !matches!(template, PipelineTemplate::Map(_) | PipelineTemplate::Whole(_)) {
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
    let when =
        node.get("when").and_then(|when| StepCondition::read(when, &mut references, diagnostics));
    let each = node.get_any(&["each", "foreach"]).map(|(_, list)| {
        let template = PipelineTemplate::read(list, &mut references, diagnostics);
        if !matches!(template, PipelineTemplate::Whole(_) | PipelineTemplate::List(_)) {
            diagnostics.push(list.expected("a list, or one placeholder for a list"));
        }
        template
    });
    let on_error = node
        .get("on_error")
        .map_or(OnError::Fail, |node| on_error(node, &mut references, diagnostics));
    let step = PipelineStep {
        tool: node
            .get("tool")
            .ok_or_else(|| {
                let diagnostic = Diagnostic::error(format!("the step '{id}' names no tool"));
                diagnostic.with_hint("add 'tool: …'").with_location(node.location())
            })
            .and_then(tool)
            .map_err(|diagnostic| diagnostics.push(diagnostic))
            .unwrap_or_default(),
        parallel: parallel(node, each.is_some(), diagnostics),
        timeout: node.get("timeout").and_then(|node| ok_or_report(limit(node), diagnostics)),
        retries: node.get("retries").and_then(|node| ok_or_report(retries(node), diagnostics)),
        id,
        args,
        when,
        each,
        on_error,
    };
    Some(StepDraft { step, place, references })
}

fn ok_or_report<T>(result: Result<T, Diagnostic>, diagnostics: &mut Vec<Diagnostic>) -> Option<T> {
    result.map_err(|diagnostic| diagnostics.push(diagnostic)).ok()
}

fn name(node: &ConfigNode) -> Result<String, Diagnostic> {
    let name = node.as_scalar_text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        let message =
            format!("'{name}' is not a name of a step: 1 to 64 letters, digits, '_' or '-'");
        return Err(Diagnostic::error(message).with_location(node.location()));
    }
    if RESERVED_NAMES.contains(&name.as_str()) {
        let message = format!("'{name}' is reserved in templates");
        return Err(Diagnostic::error(message)
            .with_hint("give the step another id")
            .with_location(node.location()));
    }
    Ok(name)
}

fn tool(node: &ConfigNode) -> Result<String, Diagnostic> {
    let text = node.as_text()?.trim();
    if text.is_empty() {
        return Err(node.expected("the name of a tool"));
    }
    if text.contains(['{', '}']) {
        return Err(Diagnostic::error("the tool itself cannot come from a value")
            .with_hint("name the tool; 'when' chooses between steps")
            .with_location(node.location()));
    }
    Ok(text.to_owned())
}

fn on_error(
    node: &ConfigNode,
    references: &mut Vec<LocatedReference>,
    diagnostics: &mut Vec<Diagnostic>,
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

fn parallel(node: &ConfigNode, each: bool, diagnostics: &mut Vec<Diagnostic>) -> usize {
    let Some(value) = node.get("parallel") else { return 1 };
    let number = value.as_count().ok().and_then(|n| usize::try_from(n).ok());
    match number {
        Some(n) if each && (1..=MAX_PARALLEL).contains(&n) => return n,
        Some(_) if !each => diagnostics.push(
            Diagnostic::error("'parallel' as a number is only for a step with 'each'")
                .with_hint("to run steps at the same time, write - parallel: [ {…}, {…} ]")
                .with_location(value.location()),
        ),
        _ => diagnostics.push(value.expected("a number from 1 to 8")),
    }
    1
}

fn limit(node: &ConfigNode) -> Result<Duration, Diagnostic> {
    let limit = node.as_duration()?;
    if limit.is_zero() {
        return Err(Diagnostic::error("the timeout must be greater than zero")
            .with_location(node.location()));
    }
    Ok(limit)
}

fn retries(node: &ConfigNode) -> Result<u32, Diagnostic> {
    let count = node.as_count()?;
    match u32::try_from(count) {
        Ok(count) if u64::from(count) <= MAX_RETRIES => Ok(count),
        _ => Err(node.expected("a number from 0 to 100")),
    }
}

/// What a step is called in messages: `step 'save' (notes-write)`.
pub(super) fn title(step: &PipelineStep) -> String {
    format!("step '{}' ({})", step.id, step.tool)
}

/// A step as a preview shows it, its values filled in as far as `fill` can.
pub(super) fn show(step: &PipelineStep, fill: &dyn Fn(&PipelineTemplate) -> Value) -> Value {
    let mut shown = serde_json::json!({ "id": step.id, "tool": step.tool });
    if let Some(fields) = shown.as_object_mut() {
        if let Some(when) = &step.when {
            fields.insert("when".to_owned(), Value::String(when.text.clone()));
        }
        if let Some(each) = &step.each {
            fields.insert("each".to_owned(), fill(each));
        }
        fields.insert("args".to_owned(), fill(&step.args));
        match &step.on_error {
            OnError::Fail => {}
            OnError::Continue => drop(fields.insert("on_error".to_owned(), "continue".into())),
            OnError::Default(value) => {
                let value = serde_json::json!({ "default": fill(value) });
                fields.insert("on_error".to_owned(), value);
            }
        }
    }
    shown
}
