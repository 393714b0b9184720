//! The provider of all built-in entries.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{BuiltinFunction, FunctionBody, FunctionKeys};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::config::typed;
use crate::model::{
    Diagnostic, Diagnostics, Error, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolSchema,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps};
use crate::providers::arguments::Arguments;
use crate::providers::http;
use crate::providers::local::{self, LocalTool};
use crate::util::clock::{Clock, SystemClock};

/// A function as an entry uses it.
struct BuiltinTool {
    function: &'static BuiltinFunction,
    policy: http::FetchPolicy,
    clock: Arc<dyn Clock>,
}

pub(super) fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    build_with(specs, &(Arc::new(SystemClock) as _), context.insecure)
}

fn build_with(specs: &[&ToolSpec], clock: &Arc<dyn Clock>, insecure: bool) -> BuiltProviders {
    local::build(specs, |spec, diagnostics| {
        let function = function_of(spec, diagnostics)?;
        let definition = complete(spec, function);
        let requires_public = !definition.requires_approval;
        let policy = http::FetchPolicy { requires_public, insecure };
        Some((definition, BuiltinTool { function, policy, clock: Arc::clone(clock) }))
    })
}

fn function_of(spec: &ToolSpec, diagnostics: &Diagnostics) -> Option<&'static BuiltinFunction> {
    let FunctionKeys { module, function } = typed::read_part(&spec.entry, diagnostics)?;
    if !diagnostics.is_empty() {
        return None;
    }
    let Some(module) = module else {
        diagnostics.push(
            Diagnostic::error("'module' is missing")
                .with_hint("name one, such as module: builtin.calculator")
                .with_location(spec.location.clone()),
        );
        return None;
    };
    diagnostics.ok(super::find(&module, function.as_ref()))
}

fn complete(spec: &ToolSpec, function: &BuiltinFunction) -> ToolDefinition {
    let mut definition = spec.definition.clone();
    definition.title.get_or_insert_with(|| function.title.to_owned());
    definition.description.get_or_insert_with(|| function.description.to_owned());
    if *definition.input_schema == json!({ "type": "object" }) {
        definition.input_schema = ToolSchema::from((function.input)());
    }
    if definition.output_schema.is_none() {
        definition.output_schema = function.output.map(|schema| ToolSchema::from(schema()));
    }
    if function.uses_network() {
        // The user approves its destination and content, unless the entry says otherwise.
        definition.requires_approval |=
            spec.entry.get("requires_approval").is_none_or(ConfigNode::is_null);
        definition.annotations.open_world.get_or_insert(true);
        definition.touches.push("sends a request to the address given in the call".to_owned());
        return definition;
    }
    let annotations = &mut definition.annotations;
    annotations.read_only.get_or_insert(true);
    annotations.destructive.get_or_insert(false);
    annotations.idempotent.get_or_insert(function.idempotent);
    annotations.open_world.get_or_insert(false);
    // The author of a built-in is this crate, so its promise is as good as one in a file; an
    // entry that says otherwise keeps its word.
    definition.is_repeatable |=
        annotations.read_only == Some(true) || annotations.idempotent == Some(true);
    definition.touches.push("nothing outside the process".to_owned());
    definition
}

#[async_trait]
impl LocalTool for BuiltinTool {
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let arguments = Arguments(&call.arguments);
        match self.function.run {
            FunctionBody::Sync(run) => local::answered(run(self.clock.as_ref(), arguments)),
            FunctionBody::Async(run) => local::answered(run(context, arguments).await),
            FunctionBody::Network(request) => {
                http::fetch(&request(arguments)?, self.policy, &context.cancel).await
            }
        }
    }

    fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let function = self.function;
        if let FunctionBody::Network(request) = function.run {
            let request = request(Arguments(&call.arguments))?;
            let summary = format!("sends {} {}", request.method, request.url);
            let request = http::preview_fetch(&request, self.policy)?;
            return Ok(Preview { summary, request });
        }
        Ok(Preview {
            summary: format!("runs the built-in {}.{}", function.module, function.name),
            request: json!({
                "module": function.module,
                "function": function.name,
                "arguments": Value::Object(call.arguments.clone()),
            }),
        })
    }
}

#[cfg(test)]
mod tests;
