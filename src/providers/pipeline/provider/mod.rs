//! The provider of all pipeline entries.

use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::entry::{self, PipelinePlan};
use super::run::PipelineRun;
use super::step;
use super::template::{PipelineTemplate, Scope};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::{
    Diagnostic, Diagnostics, Error, JsonObject, Speed, ToolCall, ToolContext, ToolDefinition,
    ToolResult,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps};
use crate::providers::local::{self, LocalTool};

struct PipelineTool {
    definition: ToolDefinition,
    plan: PipelinePlan,
}

pub(super) fn build(specs: &[&ToolSpec], _context: &ProviderDeps) -> BuiltProviders {
    let called = |spec: &&ToolSpec| {
        let plan = entry::read(spec, &Diagnostics::default())?;
        Some((spec.definition.name.full(), plan.tools()))
    };
    let cycles = entry::find_cycles(&specs.iter().filter_map(called).collect());
    local::build(specs, |spec, diagnostics| {
        let plan = entry::read(spec, diagnostics)?;
        if let Some(cycle) = cycles.get(&spec.definition.name.full()) {
            let place =
                spec.entry.get("steps").map_or_else(|| spec.location.clone(), ConfigNode::location);
            let diagnostic = Diagnostic::error(format!("this pipeline would call itself: {cycle}"));
            diagnostics.push(diagnostic.with_location(place));
            return None;
        }
        let definition = complete(spec, &plan);
        Some((definition.clone(), PipelineTool { definition, plan }))
    })
}

/// Fills what the entry left out. A pipeline claims nothing about its effects by itself: it has
/// those of its steps.
fn complete(spec: &ToolSpec, plan: &PipelinePlan) -> ToolDefinition {
    let mut definition = spec.definition.clone();
    let tools = plan.tools();
    definition.description.get_or_insert_with(|| format!("Calls {}.", tools.join(", then ")));
    definition.touches.push(format!("calls {}", tools.join(", ")));
    definition.calls = tools;
    // Each step has its own limit, so the whole may take long unless the entry sets one.
    if definition.timeout.is_none() && spec.entry.get("speed").is_none() {
        definition.speed = Speed::Slow;
    }
    definition
}

/// The arguments, with the defaults of the schema for those that were not given.
fn arguments(definition: &ToolDefinition, call_arguments: &JsonObject) -> JsonObject {
    let mut arguments = call_arguments.clone();
    let properties = definition.input_schema.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if let (false, Some(default)) = (arguments.contains_key(name), schema.get("default")) {
            arguments.insert(name.clone(), default.clone());
        }
    }
    arguments
}

#[async_trait]
impl LocalTool for PipelineTool {
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let Some(caller) = context.caller.clone() else {
            return Err(Error::internal("a pipeline was called outside of a host"));
        };
        let run = PipelineRun {
            name: call.name.full(),
            plan: &self.plan,
            context,
            caller,
            finished_steps: AtomicUsize::new(0),
        };
        run.run(arguments(&self.definition, &call.arguments)).await
    }

    fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let Self { definition, plan } = self;
        let ids = plan.steps().map(|step| step.id.as_str());
        let scope = Scope::of(arguments(definition, &call.arguments), None, ids);
        let fill = |template: &PipelineTemplate| match template.fill(&scope.view()) {
            Ok(value) => value.unwrap_or_default(),
            Err(error) => Value::String(format!("({error})")),
        };
        let steps: Vec<Value> = plan.steps().map(|step| step::show(step, &fill)).collect();
        let mut request = json!({ "steps": steps });
        if let Some(result) = &plan.result {
            request["result"] = fill(result);
        }
        let tools: Vec<&str> = plan.steps().map(|step| step.tool.as_str()).collect();
        Ok(Preview { summary: format!("calls {}", tools.join(", then ")), request })
    }
}

#[cfg(test)]
mod tests;
