//! Entries of kind `pipeline`: `steps`, and a `result` made of their outputs.

use super::check;
use super::step::{self, PipelineStep, StageDraft};
use super::template::{LocatedReference, PipelineTemplate};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::Diagnostic;

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
        let mut tools: Vec<String> = Vec::new();
        for step in self.steps() {
            if !tools.contains(&step.tool) {
                tools.push(step.tool.clone());
            }
        }
        tools
    }
}

/// Reads an entry. All its errors are added to `diagnostics`; what is only doubtful leaves
/// it usable.
pub(super) fn read(spec: &ToolSpec, diagnostics: &mut Vec<Diagnostic>) -> Option<PipelinePlan> {
    let before = diagnostics.len();
    let drafts = stages(&spec.entry, diagnostics);
    let mut references: Vec<LocatedReference> = Vec::new();
    let result = spec
        .entry
        .get("result")
        .map(|node| PipelineTemplate::read(node, &mut references, diagnostics));
    check::check(&drafts, &references, &spec.definition.input_schema, diagnostics);
    if diagnostics.iter().skip(before).any(Diagnostic::is_error) {
        return None;
    }
    let stages = drafts.into_iter().map(|draft| PipelineStage {
        steps: draft.steps.into_iter().map(|read| read.step).collect(),
        group: draft.group,
    });
    Some(PipelinePlan { stages: stages.collect(), result })
}

fn stages(entry: &ConfigNode, diagnostics: &mut Vec<Diagnostic>) -> Vec<StageDraft> {
    let Some(node) = entry.get("steps") else {
        diagnostics.push(
            Diagnostic::error("'steps' is missing")
                .with_hint("write steps: [ { id: …, tool: …, args: {…} } ]")
                .with_location(entry.location()),
        );
        return Vec::new();
    };
    let items = match node.as_list() {
        Ok([]) => {
            diagnostics.push(
                Diagnostic::error("a pipeline needs at least one step")
                    .with_location(node.location()),
            );
            return Vec::new();
        }
        Ok(items) => items,
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            return Vec::new();
        }
    };
    let mut drafts = Vec::new();
    let mut number = 0;
    for item in items {
        let group = item.get("parallel").and_then(|node| node.as_list().ok());
        if group.is_some() && item.entries().len() > 1 {
            diagnostics.push(
                Diagnostic::error("a group of steps takes no key other than 'parallel'")
                    .with_hint("put 'when', 'each' and similar keys into the steps themselves")
                    .with_location(item.location()),
            );
        }
        let members = group.unwrap_or(std::slice::from_ref(item));
        let mut steps = Vec::new();
        for member in members {
            number += 1;
            steps.extend(step::read(member, number, diagnostics));
        }
        if number > MAX_STEPS {
            let message = format!("a pipeline can have at most {MAX_STEPS} steps");
            diagnostics.push(Diagnostic::error(message).with_location(item.location()));
            break;
        }
        drafts.push(StageDraft { steps, group: group.is_some() });
    }
    drafts
}
