//! Entries of kind `pipeline`: `steps`, and a `result` made of their outputs.

use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::Deserialize;

use super::check;
use super::step::{self, PipelineStep, StepKeys};
use super::template::{LocatedReference, PipelineTemplate};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, Located};
use crate::model::{Diagnostic, Diagnostics};

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
    check::check(&stages, &references, &spec.definition.input_schema, diagnostics);
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
