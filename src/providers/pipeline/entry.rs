//! Entries of kind `pipeline`: `steps`, and a `result` made of their outputs.
//!
//! Static checks of a pipeline: unknown names, steps that use later ones, pipelines that call each
//! other in a cycle.
//!
//! Placeholders of pipelines as written: a name, and the path into its value.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::step::{self, PipelineStep, StepKeys};
use super::template::{LocatedReference, PipelineTemplate};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, Located};
use crate::model::{Diagnostic, Diagnostics};
use crate::providers::arguments::SchemaProperties;
use crate::providers::template::Placeholder;

/// The most steps of one pipeline, those in groups counted one by one.
const MAX_STEPS: usize = 100;

/// A pipeline in which every reference leads to an earlier step or an argument.
#[derive(Debug, Clone)]
pub(super) struct PipelinePlan {
    /// The stages, run one after the other.
    pub(super) stages: Vec<PipelineStage>,
    /// The result; without it, the output of the last stage.
    pub(super) result: Option<PipelineTemplate>,
}

/// What runs at the same time.
#[derive(Debug, Clone)]
pub(super) struct PipelineStage {
    pub(super) steps: Vec<PipelineStep>,
    /// Whether it was written as a group; its output then is that of all, by their names.
    pub(super) group: bool,
}

impl PipelinePlan {
    pub(super) fn steps(&self) -> impl Iterator<Item = &PipelineStep> {
        self.stages.iter().flat_map(|stage| &stage.steps)
    }

    pub(super) fn tools(&self) -> Vec<String> {
        let tools: IndexSet<String> = self.steps().map(|step| step.tool.clone()).collect();
        tools.into_iter().collect()
    }
}

/// The keys of an entry.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct PipelineKeys {
    /// The steps, run one after the other.
    pub(super) steps: Option<Located<Vec<Located<StepKeys>>>>,
    /// The result, made of the outputs of steps; default: the output of the last one.
    result: Option<ConfigNode>,
}

/// Reads an entry. All its errors are added to `diagnostics`; what is only doubtful leaves
/// it usable.
pub(super) fn read(spec: &ToolSpec, diagnostics: &Diagnostics) -> Option<PipelinePlan> {
    let before = diagnostics.errors();
    let keys: PipelineKeys = typed::read_part(&spec.entry, diagnostics)?;
    let stages = stages(spec, &keys, diagnostics);
    let mut references: Vec<LocatedReference> = Vec::new();
    let result =
        keys.result.as_ref().map(|node| PipelineTemplate::read(node, &mut references, diagnostics));
    check(&stages, &references, &spec.definition.input_schema, diagnostics);
    if diagnostics.errors() > before {
        return None;
    }
    Some(PipelinePlan { stages, result })
}

fn stages(spec: &ToolSpec, keys: &PipelineKeys, diagnostics: &Diagnostics) -> Vec<PipelineStage> {
    let Some(steps) = &keys.steps else {
        // A wrong one was reported.
        if spec.entry.get("steps").is_none_or(ConfigNode::is_null) {
            diagnostics.push(
                Diagnostic::error("'steps' is missing")
                    .with_hint("write steps: [ { id: …, tool: …, args: {…} } ]")
                    .with_location(spec.location.clone()),
            );
        }
        return Vec::new();
    };
    if steps.is_empty() {
        diagnostics.push(steps.error("a pipeline needs at least one step"));
    }
    let mut stages = Vec::new();
    let mut number = 0;
    for item in &steps.value {
        let group = item.is_group();
        if group && item.has_more_than_parallel() {
            diagnostics.push(
                item.error("a group of steps takes no key other than 'parallel'")
                    .with_hint("put 'when', 'each' and similar keys into the steps themselves"),
            );
        }
        let mut steps = Vec::new();
        for member in item.members() {
            number += 1;
            steps.push(step::read(member, number, diagnostics));
        }
        if number > MAX_STEPS {
            diagnostics.push(item.error(format!("a pipeline can have at most {MAX_STEPS} steps")));
            break;
        }
        stages.push(PipelineStage { steps, group });
    }
    stages
}

/// The fields of a step: see `run`.
const STEP_FIELDS: [&str; 4] = ["output", "error", "success", "skipped"];

/// The fields of a context: see `scope`.
const CONTEXT_FIELDS: [&str; 6] =
    ["call_id", "session_id", "user_id", "cwd", "environment", "metadata"];

/// Compares the steps with each other, with the schema and with the result.
pub(super) fn check(
    stages: &[PipelineStage],
    result: &[LocatedReference],
    schema: &Value,
    diagnostics: &Diagnostics,
) {
    let mut order: BTreeMap<&str, usize> = BTreeMap::new();
    let arguments = SchemaProperties::of(schema);
    for (at, stage) in stages.iter().enumerate() {
        for step in &stage.steps {
            let id = step.id.as_str();
            let why = if order.contains_key(id) {
                format!("two steps have the id '{id}'")
            } else if arguments.names.iter().any(|name| name == id) {
                format!("'{id}' is the name of an argument and of a step")
            } else {
                order.insert(id, at);
                continue;
            };
            let hint = "give one of them another name";
            diagnostics
                .push(Diagnostic::error(why).with_hint(hint).with_location(step.place.clone()));
        }
    }
    for (at, stage) in stages.iter().enumerate() {
        for step in &stage.steps {
            let (id, has_item) = (Some(step.id.as_str()), step.each.is_some());
            let here = ReferenceSite { stage: at, step: id, has_item };
            let checked = step.references.iter();
            diagnostics.extend(checked.filter_map(|one| reference(one, &here, &order, &arguments)));
        }
    }
    let end = ReferenceSite { stage: usize::MAX, step: None, has_item: false };
    diagnostics.extend(result.iter().filter_map(|r| reference(r, &end, &order, &arguments)));
}

struct ReferenceSite<'a> {
    stage: usize,
    step: Option<&'a str>,
    has_item: bool,
}

fn reference(
    LocatedReference { reference, place, is_in_text }: &LocatedReference,
    here: &ReferenceSite<'_>,
    order: &BTreeMap<&str, usize>,
    arguments: &SchemaProperties,
) -> Option<Diagnostic> {
    let text = reference.text.as_str();
    let remedy = "give it a default, or its own value";
    let remedy = is_in_text.then_some(remedy);
    let check = |name: &str| arguments.check(name, text, remedy, place);
    let error = |message: String| Some(Diagnostic::error(message).with_location(place.clone()));
    let first = reference.path.first().map(String::as_str);
    match reference.root.as_str() {
        "item" | "index" if !here.has_item => {
            error(format!("'{{{text}}}' is only available in a step with 'each'"))
        }
        "item" | "index" => None,
        "context" => match first {
            Some(key) if CONTEXT_FIELDS.contains(&key) => None,
            _ => Some(
                Diagnostic::error(format!("the context has no '{{{text}}}'"))
                    .with_hint(format!("it has {}", CONTEXT_FIELDS.join(", ")))
                    .with_location(place.clone()),
            ),
        },
        "args" => first.and_then(check),
        root => match order.get(root) {
            None => {
                let mut diagnostic = check(root)?;
                if diagnostic.is_error() && STEP_FIELDS.contains(&first.unwrap_or_default()) {
                    diagnostic = Diagnostic::error(format!("there is no step '{root}'"));
                    diagnostic = diagnostic.with_suggestion(root, order.keys().copied());
                    diagnostic = diagnostic.with_location(place.clone());
                }
                Some(diagnostic)
            }
            Some(_) if here.step == Some(root) => {
                error(format!("the step '{root}' cannot use its own output"))
            }
            Some(stage) if *stage == here.stage => error(format!(
                "the step '{root}' runs at the same time, so its output is not known"
            )),
            Some(stage) if *stage > here.stage => error(format!("the step '{root}' comes later")),
            Some(_) if first.is_some_and(|field| STEP_FIELDS.contains(&field)) => None,
            Some(_) => Some(
                Diagnostic::error(format!("a step has no '{{{text}}}'"))
                    .with_hint(format!(
                        "write {{{root}.output}}, or one of {}",
                        STEP_FIELDS.join(", ")
                    ))
                    .with_location(place.clone()),
            ),
        },
    }
}

/// The pipelines that would come back to themselves: each with the way it takes. `calls` are the
/// tools that each pipeline calls.
pub(super) fn find_cycles(calls: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, String> {
    let mut cycles = BTreeMap::new();
    for start in calls.keys() {
        if let Some(cycle) = shortest_cycle(start, calls) {
            cycles.insert(start.clone(), cycle.join(" → "));
        }
    }
    cycles
}

fn shortest_cycle(start: &str, calls: &BTreeMap<String, Vec<String>>) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        for next in calls.get(at).into_iter().flatten() {
            if next == start {
                let mut cycle = vec![start.to_owned()];
                let mut step = at;
                while step != start {
                    cycle.push(step.to_owned());
                    step = came_from.get(step)?;
                }
                cycle.push(start.to_owned());
                cycle.reverse();
                return Some(cycle);
            }
            if calls.contains_key(next) && !came_from.contains_key(next.as_str()) {
                came_from.insert(next, at);
                open.push_back(next);
            }
        }
    }
    None
}

/// A placeholder: a name, and the way into its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueReference {
    /// An argument, a step, or one of the words `args`, `context`, `item`, `index`.
    pub(super) root: String,
    /// Keys of objects and numbers of items, from 0.
    pub(super) path: Vec<String>,
    /// How it is written.
    pub(super) text: String,
}

impl Placeholder for ValueReference {
    fn parse(inside: &str) -> Result<Option<Self>, Diagnostic> {
        Ok(Self::read(inside))
    }
}

impl ValueReference {
    /// `root`, then `.key`, `[number]` or `["key"]`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let word = |text: &str| {
            let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            let end = text.find(|c| !fits(c)).unwrap_or(text.len());
            (end > 0).then(|| text.split_at(end)).map(|(a, b)| (a.to_owned(), b.to_owned()))
        };
        let (root, mut rest) = word(text)?;
        let mut path = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let (key, after) = word(after)?;
                path.push(key);
                rest = after;
            } else {
                let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
                let quoted = inside.strip_prefix('"').and_then(|inside| inside.strip_suffix('"'));
                match quoted {
                    Some(key) => path.push(key.to_owned()),
                    None => path.push(inside.parse::<usize>().ok()?.to_string()),
                }
                rest = after.to_owned();
            }
        }
        Some(Self { root, path, text: text.to_owned() })
    }
}
