//! The provider of all pipeline entries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::check;
use super::entry::{self, PipelinePlan};
use super::run::PipelineRun;
use super::scope::Scope;
use super::step;
use super::template::PipelineTemplate;
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::{
    Diagnostic, Error, JsonObject, Speed, ToolCall, ToolContext, ToolDefinition, ToolResult,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps, ToolProvider};
use crate::util::clock::{Clock, SystemClock};

pub(super) struct PipelineProvider {
    tools: Vec<PipelineTool>,
    clock: Arc<dyn Clock>,
}

struct PipelineTool {
    definition: Arc<ToolDefinition>,
    plan: PipelinePlan,
}

pub(super) fn build(specs: &[&ToolSpec], _context: &ProviderDeps) -> BuiltProviders {
    let mut diagnostics = Vec::new();
    let mut plans: Vec<(&ToolSpec, PipelinePlan)> = Vec::new();
    for spec in specs {
        let mut own_diagnostics = Vec::new();
        plans.extend(entry::read(spec, &mut own_diagnostics).map(|plan| (*spec, plan)));
        let name = spec.definition.name.full();
        diagnostics.extend(
            own_diagnostics.into_iter().map(|diagnostic| diagnostic.with_entry(name.clone())),
        );
    }
    let calls: BTreeMap<String, Vec<String>> =
        plans.iter().map(|(spec, plan)| (spec.definition.name.full(), plan.tools())).collect();
    let cycles = check::find_cycles(&calls);
    let mut tools = Vec::new();
    for (spec, plan) in plans {
        let name = spec.definition.name.full();
        if let Some(cycle) = cycles.get(&name) {
            let place =
                spec.entry.get("steps").map_or_else(|| spec.location.clone(), ConfigNode::location);
            let diagnostic = Diagnostic::error(format!("this pipeline would call itself: {cycle}"));
            diagnostics.push(diagnostic.with_location(place).with_entry(name));
            continue;
        }
        let definition = Arc::new(complete(spec, &plan));
        tools.push(PipelineTool { definition, plan });
    }
    let provider = (!tools.is_empty()).then(|| {
        Arc::new(PipelineProvider { tools, clock: Arc::new(SystemClock) }) as Arc<dyn ToolProvider>
    });
    BuiltProviders { providers: provider.into_iter().collect(), diagnostics }
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

impl PipelineProvider {
    fn tool(&self, call: &ToolCall) -> Result<&PipelineTool, Error> {
        self.tools
            .iter()
            .find(|tool| tool.definition.name == call.name)
            .ok_or_else(|| Error::internal(format!("'{}' is not one of the pipelines", call.name)))
    }
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
impl ToolProvider for PipelineProvider {
    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|tool| Arc::clone(&tool.definition)).collect()
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let tool = self.tool(call)?;
        let Some(caller) = context.caller.clone() else {
            return Err(Error::internal("a pipeline was called outside of a host"));
        };
        let run = PipelineRun {
            name: call.name.full(),
            plan: &tool.plan,
            context,
            caller,
            clock: self.clock.as_ref(),
            finished_steps: AtomicUsize::new(0),
        };
        run.run(arguments(&tool.definition, &call.arguments)).await
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let PipelineTool { definition, plan, .. } = self.tool(call)?;
        let ids = plan.steps().map(|step| step.id.as_str());
        let scope = Scope::of(arguments(definition, &call.arguments), None, ids);
        let fill = |template: &PipelineTemplate| match template.fill(&scope.view()) {
            Ok(value) => value.unwrap_or_default(),
            Err(error) => Value::String(format!("({error})")),
        };
        let steps: Vec<Value> = plan.steps().map(|step| step::show(step, &fill)).collect();
        let mut request = json!({ "steps": steps });
        if let (Some(result), Some(fields)) = (&plan.result, request.as_object_mut()) {
            fields.insert("result".to_owned(), fill(result));
        }
        let tools: Vec<&str> = plan.steps().map(|step| step.tool.as_str()).collect();
        Ok(Preview { summary: format!("calls {}", tools.join(", then ")), request })
    }
}

#[cfg(test)]
mod tests;
