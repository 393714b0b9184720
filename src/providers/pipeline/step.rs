//! One step of a pipeline: the tool it calls, with what, when and how often.
//!
//! The keys: `id`, `tool`, `args`, `when`, `each` (or `foreach`) with `parallel`, `on_error`,
//! `timeout`, `retries`.

use std::time::Duration;

use serde_json::Value;

use super::condition::Condition;
use super::scope::RESERVED;
use super::template::{Placed, Template};
use crate::config::keys::suggestion;
use crate::config::node::{Node, NodeValue};
use crate::model::{Place, Problem};

/// How many calls of one pipeline run at the same time.
pub(super) const MAX_PARALLEL: usize = 8;

/// The most retries that can be asked for.
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

/// A checked step.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// By which others refer to it.
    pub(super) id: String,
    /// The tool, by whatever name the host understands.
    pub(super) tool: String,
    /// The arguments; a text is one placeholder for a whole object.
    pub(super) args: Template,
    /// Runs only if this holds.
    pub(super) when: Option<Condition>,
    /// Runs once for each item of this list.
    pub(super) each: Option<Template>,
    /// How many items at the same time.
    pub(super) parallel: usize,
    /// What a failure comes to.
    pub(super) on_error: OnError,
    /// The limit of an attempt, in place of the tool's own.
    pub(super) timeout: Option<Duration>,
    /// The number of retries, in place of the tool's own.
    pub(super) retries: Option<u32>,
}

/// What a failed step comes to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OnError {
    /// The pipeline fails.
    Fail,
    /// The output is nothing.
    Continue,
    /// The output is this.
    Default(Template),
}

/// A step, and what has to be compared with the rest of the pipeline.
pub(super) struct Read {
    pub(super) step: Step,
    /// Where the step's name stands, or the step.
    pub(super) place: Place,
    pub(super) references: Vec<Placed>,
}

/// Reads a step; `number` counts from 1 and names a step that does not name itself.
pub(super) fn read(node: &Node, number: usize, problems: &mut Vec<Problem>) -> Option<Read> {
    let entries = take(node.as_map(), problems)?;
    for (key, _) in entries {
        if !KEYS.contains(&key.text.as_str()) {
            let mut problem = Problem::warning(format!("unknown key '{}' in a step", key.text));
            if let Some(meant) = suggestion(&key.text, KEYS.into_iter()) {
                problem = problem.hint(format!("did you mean '{meant}'?"));
            }
            problems.push(problem.at(node.place_of(key)));
        }
    }
    let (id, place) = match node.get("id") {
        Some(id) => (take(name(id), problems).unwrap_or_default(), id.place()),
        None => (format!("step{number}"), node.place()),
    };
    let mut references = Vec::new();
    let args = match node.get_any(&["args", "arguments"]) {
        Some((_, args)) => {
            let template = Template::read(args, &mut references, problems);
            if !matches!(template, Template::Map(_) | Template::Whole(_)) {
                problems.push(
                    Problem::error("'args' has to be a mapping")
                        .hint("write args: { name: value }, or one placeholder for all of it")
                        .at(args.place()),
                );
            }
            template
        }
        None => Template::Map(Vec::new()),
    };
    let when = node.get("when").and_then(|when| Condition::read(when, &mut references, problems));
    let each = node.get_any(&["each", "foreach"]).map(|(_, list)| {
        let template = Template::read(list, &mut references, problems);
        if !matches!(template, Template::Whole(_) | Template::List(_)) {
            problems.push(list.expected("a list, or one placeholder for a list"));
        }
        template
    });
    let on_error = node
        .get("on_error")
        .map_or(OnError::Fail, |node| on_error(node, &mut references, problems));
    let step = Step {
        tool: node
            .get("tool")
            .ok_or_else(|| {
                let problem = Problem::error(format!("the step '{id}' names no tool"));
                problem.hint("add 'tool: …'").at(node.place())
            })
            .and_then(tool)
            .map_err(|problem| problems.push(problem))
            .unwrap_or_default(),
        parallel: parallel(node, each.is_some(), problems),
        timeout: node.get("timeout").and_then(|node| take(limit(node), problems)),
        retries: node.get("retries").and_then(|node| take(retries(node), problems)),
        id,
        args,
        when,
        each,
        on_error,
    };
    Some(Read { step, place, references })
}

fn take<T>(result: Result<T, Problem>, problems: &mut Vec<Problem>) -> Option<T> {
    result.map_err(|problem| problems.push(problem)).ok()
}

fn name(node: &Node) -> Result<String, Problem> {
    let name = node.as_scalar_text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        let message = format!("'{name}' is no name of a step: 1 to 64 letters, digits, '_' or '-'");
        return Err(Problem::error(message).at(node.place()));
    }
    if RESERVED.contains(&name.as_str()) {
        let message = format!("'{name}' means something else in a template");
        return Err(Problem::error(message).hint("give the step another id").at(node.place()));
    }
    Ok(name)
}

fn tool(node: &Node) -> Result<String, Problem> {
    let text = node.as_text()?.trim();
    if text.is_empty() {
        return Err(node.expected("the name of a tool"));
    }
    if text.contains(['{', '}']) {
        return Err(Problem::error("the tool itself cannot come from a value")
            .hint("name the tool; 'when' chooses between steps")
            .at(node.place()));
    }
    Ok(text.to_owned())
}

fn on_error(node: &Node, references: &mut Vec<Placed>, problems: &mut Vec<Problem>) -> OnError {
    match &node.value {
        NodeValue::Text(word) if word == "fail" => return OnError::Fail,
        NodeValue::Text(word) if word == "continue" => return OnError::Continue,
        NodeValue::Map(entries) if entries.len() == 1 => {
            if let Some(value) = node.get("default") {
                return OnError::Default(Template::read(value, references, problems));
            }
        }
        _ => {}
    }
    problems.push(
        Problem::error("'on_error' is fail, continue, or { default: value }").at(node.place()),
    );
    OnError::Fail
}

fn parallel(node: &Node, each: bool, problems: &mut Vec<Problem>) -> usize {
    let Some(value) = node.get("parallel") else { return 1 };
    let number = value.as_count().ok().and_then(|n| usize::try_from(n).ok());
    match number {
        Some(n) if each && (1..=MAX_PARALLEL).contains(&n) => return n,
        Some(_) if !each => problems.push(
            Problem::error("'parallel' as a number belongs to a step with 'each'")
                .hint("for steps at the same time write - parallel: [ {…}, {…} ]")
                .at(value.place()),
        ),
        _ => problems.push(value.expected("a number from 1 to 8")),
    }
    1
}

fn limit(node: &Node) -> Result<Duration, Problem> {
    let limit = node.as_duration()?;
    if limit.is_zero() {
        return Err(Problem::error("no step can end in no time").at(node.place()));
    }
    Ok(limit)
}

fn retries(node: &Node) -> Result<u32, Problem> {
    let count = node.as_count()?;
    match u32::try_from(count) {
        Ok(count) if u64::from(count) <= MAX_RETRIES => Ok(count),
        _ => Err(node.expected("a number from 0 to 100")),
    }
}

/// What a step is called in messages: `step 'save' (notes-write)`.
pub(super) fn title(step: &Step) -> String {
    format!("step '{}' ({})", step.id, step.tool)
}

/// A step as a preview shows it, its values filled in as far as `fill` can.
pub(super) fn show(step: &Step, fill: &dyn Fn(&Template) -> Value) -> Value {
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
