//! What can be told about a pipeline before any call: names that lead nowhere, steps that wait for
//! later ones, pipelines that call each other in a circle.

use std::collections::BTreeMap;

use serde_json::Value;

use super::entry::Draft;
use super::template::{Embedding, Placed, Reference, Segment};
use crate::config::keys::suggestion;
use crate::model::{Place, Problem};

/// What a step has: see `run`.
const FIELDS: [&str; 4] = ["output", "error", "success", "skipped"];

/// What a context has: see `scope`.
const CONTEXT: [&str; 5] = ["call_id", "session_id", "cwd", "environment", "metadata"];

/// Compares the steps with each other, with the schema and with the result.
pub(super) fn check(
    drafts: &[Draft],
    result: &[Placed],
    schema: &Value,
    problems: &mut Vec<Problem>,
) {
    let mut order: BTreeMap<&str, usize> = BTreeMap::new();
    let arguments = Arguments::of(schema);
    for (stage, draft) in drafts.iter().enumerate() {
        for read in &draft.steps {
            let id = read.step.id.as_str();
            let why = if order.contains_key(id) {
                format!("two steps have the id '{id}'")
            } else if arguments.names.contains(&id) {
                format!("'{id}' is the name of an argument and of a step")
            } else {
                order.insert(id, stage);
                continue;
            };
            let hint = "give one of them another name";
            problems.push(Problem::error(why).hint(hint).at(read.place.clone()));
        }
    }
    for (stage, draft) in drafts.iter().enumerate() {
        for read in &draft.steps {
            let here = Here { stage, of: Some(&read.step.id), item: read.step.each.is_some() };
            for placed in &read.references {
                problems.extend(reference(placed, &here, &order, &arguments));
            }
        }
    }
    let end = Here { stage: usize::MAX, of: None, item: false };
    problems.extend(result.iter().filter_map(|r| reference(r, &end, &order, &arguments)));
}

/// Where a reference stands.
struct Here<'a> {
    stage: usize,
    of: Option<&'a str>,
    item: bool,
}

fn reference(
    (reference, place, how): &Placed,
    here: &Here<'_>,
    order: &BTreeMap<&str, usize>,
    arguments: &Arguments<'_>,
) -> Option<Problem> {
    let error = |message: String| Some(Problem::error(message).at(place.clone()));
    let first = match reference.path.first() {
        Some(Segment::Key(key)) => Some(key.as_str()),
        _ => None,
    };
    match reference.root.as_str() {
        "item" | "index" if !here.item => {
            error(format!("'{{{reference}}}' means something only in a step with 'each'"))
        }
        "item" | "index" => None,
        "context" => match first {
            Some(key) if CONTEXT.contains(&key) => None,
            _ => Some(
                Problem::error(format!("the context has no '{{{reference}}}'"))
                    .hint(format!("it has {}", CONTEXT.join(", ")))
                    .at(place.clone()),
            ),
        },
        "args" => first.and_then(|name| arguments.check(name, reference, place, *how)),
        root => match order.get(root) {
            None => {
                let mut problem = arguments.check(root, reference, place, *how)?;
                if problem.is_error() && FIELDS.contains(&first.unwrap_or_default()) {
                    problem = Problem::error(format!("there is no step '{root}'"));
                    let near = suggestion(root, order.keys().copied());
                    if let Some(near) = near {
                        problem = problem.hint(format!("did you mean '{near}'?"));
                    }
                    problem = problem.at(place.clone());
                }
                Some(problem)
            }
            Some(_) if here.of == Some(root) => {
                error(format!("the step '{root}' cannot use its own output"))
            }
            Some(stage) if *stage == here.stage => error(format!(
                "the step '{root}' runs at the same time, so its output is not known"
            )),
            Some(stage) if *stage > here.stage => error(format!("the step '{root}' comes later")),
            Some(_) if first.is_some_and(|field| FIELDS.contains(&field)) => None,
            Some(_) => Some(
                Problem::error(format!("a step has no '{{{reference}}}'"))
                    .hint(format!("write {{{root}.output}}, or one of {}", FIELDS.join(", ")))
                    .at(place.clone()),
            ),
        },
    }
}

/// The arguments that the schema speaks of.
struct Arguments<'a> {
    names: Vec<&'a str>,
    /// Those that are always there.
    always: Vec<&'a str>,
    /// The names may stand anywhere in the schema; only the call can tell.
    open: bool,
}

impl<'a> Arguments<'a> {
    fn of(schema: &'a Value) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let defaults = properties.into_iter().flatten();
        let defaults = defaults.filter(|(_, schema)| schema.get("default").is_some());
        Self {
            names: properties
                .map(|map| map.keys().map(String::as_str).collect())
                .unwrap_or_default(),
            always: required
                .filter_map(Value::as_str)
                .chain(defaults.map(|(name, _)| name.as_str()))
                .collect(),
            open: ["allOf", "anyOf", "oneOf", "$ref", "patternProperties"]
                .iter()
                .any(|key| schema.get(key).is_some()),
        }
    }

    fn check(
        &self,
        name: &str,
        reference: &Reference,
        place: &Place,
        how: Embedding,
    ) -> Option<Problem> {
        if self.open {
            return None;
        }
        if !self.names.contains(&name) {
            let problem = Problem::error(format!("'{{{reference}}}' is no property of the schema"));
            let hint = match suggestion(name, self.names.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None if self.names.is_empty() => "declare it in parameters_schema".to_owned(),
                None => format!("the schema has {}", self.names.join(", ")),
            };
            return Some(problem.hint(hint).at(place.clone()));
        }
        (how == Embedding::InText && !self.always.contains(&name)).then(|| {
            Problem::warning(format!("calls without '{name}' will be refused"))
                .hint("make it required, give it a default, or a value of its own")
                .at(place.clone())
        })
    }
}

/// The pipelines that would come back to themselves: each with the way it takes. `calls` are the
/// tools that each pipeline calls.
pub(super) fn circles(calls: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, String> {
    let mut circles = BTreeMap::new();
    for start in calls.keys() {
        if let Some(way) = way_back(start, calls) {
            circles.insert(start.clone(), way.join(" → "));
        }
    }
    circles
}

/// The shortest way from a pipeline to itself.
fn way_back(start: &str, calls: &BTreeMap<String, Vec<String>>) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        for next in calls.get(at).into_iter().flatten() {
            if next == start {
                let mut way = vec![start.to_owned()];
                let mut step = at;
                while step != start {
                    way.push(step.to_owned());
                    step = came_from.get(step)?;
                }
                way.push(start.to_owned());
                way.reverse();
                return Some(way);
            }
            if calls.contains_key(next) && !came_from.contains_key(next.as_str()) {
                came_from.insert(next, at);
                open.push_back(next);
            }
        }
    }
    None
}
