//! What an entry of kind `pipeline` says: `steps`, and a `result` made of their outputs.

use super::check;
use super::step::{self, Read, Step};
use super::template::{Placed, Template};
use crate::config::node::Node;
use crate::config::spec::ToolSpec;
use crate::model::Problem;

/// The most steps of one pipeline, those in groups counted one by one.
const MAX_STEPS: usize = 100;

/// A checked pipeline.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// What runs one after the other.
    pub(super) stages: Vec<Stage>,
    /// The result; without it, the output of the last stage.
    pub(super) result: Option<Template>,
}

/// What runs at one time.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    /// One step, or several that know nothing of each other.
    pub(super) steps: Vec<Step>,
    /// Whether it was written as a group; its output then is that of all, by their names.
    pub(super) group: bool,
}

impl Plan {
    /// All steps, in order.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stages.iter().flat_map(|stage| &stage.steps)
    }

    /// The tools it calls, each once, in order.
    pub(super) fn tools(&self) -> Vec<String> {
        let mut tools: Vec<String> = Vec::new();
        for step in self.steps() {
            if !tools.contains(&step.tool) {
                tools.push(step.tool.clone());
            }
        }
        tools
    }
}

/// A stage as it was read, with what has to be compared.
pub(super) struct Draft {
    pub(super) steps: Vec<Read>,
    group: bool,
}

/// Reads an entry. All that is wrong with it is added to `problems`; what is only doubtful leaves
/// it usable.
pub(super) fn read(spec: &ToolSpec, problems: &mut Vec<Problem>) -> Option<Plan> {
    let before = problems.len();
    let drafts = stages(&spec.entry, problems);
    let mut references: Vec<Placed> = Vec::new();
    let result =
        spec.entry.get("result").map(|node| Template::read(node, &mut references, problems));
    check::check(&drafts, &references, &spec.definition.input_schema, problems);
    if problems.iter().skip(before).any(Problem::is_error) {
        return None;
    }
    let stages = drafts.into_iter().map(|draft| Stage {
        steps: draft.steps.into_iter().map(|read| read.step).collect(),
        group: draft.group,
    });
    Some(Plan { stages: stages.collect(), result })
}

fn stages(entry: &Node, problems: &mut Vec<Problem>) -> Vec<Draft> {
    let Some(node) = entry.get("steps") else {
        problems.push(
            Problem::error("'steps' is missing")
                .hint("write steps: [ { id: …, tool: …, args: {…} } ]")
                .at(entry.place()),
        );
        return Vec::new();
    };
    let items = match node.as_list() {
        Ok([]) => {
            problems.push(Problem::error("a pipeline has at least one step").at(node.place()));
            return Vec::new();
        }
        Ok(items) => items,
        Err(problem) => {
            problems.push(problem);
            return Vec::new();
        }
    };
    let mut drafts = Vec::new();
    let mut number = 0;
    for item in items {
        let group = item.get("parallel").and_then(|node| node.as_list().ok());
        if group.is_some() && item.entries().len() > 1 {
            problems.push(
                Problem::error("a group of steps has no other keys beside 'parallel'")
                    .hint("'when', 'each' and the like stand in the steps themselves")
                    .at(item.place()),
            );
        }
        let members = group.unwrap_or(std::slice::from_ref(item));
        let mut steps = Vec::new();
        for member in members {
            number += 1;
            steps.extend(step::read(member, number, problems));
        }
        if number > MAX_STEPS {
            let message = format!("a pipeline has at most {MAX_STEPS} steps");
            problems.push(Problem::error(message).at(item.place()));
            break;
        }
        drafts.push(Draft { steps, group: group.is_some() });
    }
    drafts
}
