//! Static checks of a pipeline: unknown names, steps that use later ones, pipelines that call each
//! other in a cycle.

use std::collections::BTreeMap;

use serde_json::Value;

use super::entry::PipelineStage;
use super::template::LocatedReference;
use crate::model::{Diagnostic, Diagnostics};
use crate::providers::properties::SchemaProperties;

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
