//! The provider of one entry over an engine, for every such kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use super::config::{self, EngineConfig, EngineLocation};
use super::kind::{EngineCall, EngineKind, EngineTool};
use super::open_engines::{EngineLease, OpenEngines};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::{
    Diagnostic, Error, HostEvent, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolScope,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps, ToolProvider};
use crate::providers::toolkit::{self, SelectedTool};
use crate::util::clock::{Clock, SystemClock};

/// The tools of one entry.
struct EngineProvider {
    kind: &'static EngineKind,
    component: String,
    tools: Vec<(Arc<ToolDefinition>, &'static EngineTool)>,
    config: EngineConfig,
    engine: EngineLease,
    clock: Arc<dyn Clock>,
    /// Whether the notice about an engine in memory was given.
    has_warned: AtomicBool,
}

pub(in crate::providers) fn build(
    kind: &'static EngineKind,
    specs: &[&ToolSpec],
    context: &ProviderDeps,
) -> BuiltProviders {
    let engines = context.shared.get_or_init(OpenEngines::default);
    BuiltProviders::each(specs, |spec| provider(kind, spec, context, &engines))
}

fn provider(
    kind: &'static EngineKind,
    spec: &ToolSpec,
    context: &ProviderDeps,
    engines: &OpenEngines,
) -> Result<EngineProvider, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut note = |mut more: Vec<Diagnostic>| diagnostics.append(&mut more);
    let component = toolkit::component(spec).map_err(|diagnostic| note(vec![diagnostic])).ok();
    let writable =
        (kind.may_write)(spec).map_err(|diagnostic| note(vec![diagnostic])).unwrap_or(true);
    let selected = match &component {
        // Without a component nothing can be selected; that was reported.
        None => None,
        Some(_) => toolkit::choose(spec, kind.tools.iter().map(|row| &row.tool))
            .and_then(|selected| allowed(kind, spec, selected, writable))
            .map_err(&mut note)
            .ok(),
    };
    let shared = component.as_deref().unwrap_or_default();
    let config = config::read(spec, shared, kind.defaults, writable, context).map_err(&mut note);
    let (Some(component), Some(selected), Ok(config)) = (component, selected, config) else {
        return Err(diagnostics);
    };
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let define = |(tool, row): &(SelectedTool, &'static EngineTool)| {
        (Arc::new(kind.define(spec, tool, row, &config)), *row)
    };
    Ok(EngineProvider {
        kind,
        tools: selected.iter().map(define).collect(),
        engine: engines.lease(kind.noun, &config.location, &component),
        config,
        component,
        clock: Arc::new(SystemClock),
        has_warned: AtomicBool::new(false),
    })
}

/// Which of the selected tools an entry gives: those that it names, or the usual ones that its
/// access allows.
///
/// # Errors
/// A read-only entry names a tool that makes changes.
fn allowed(
    kind: &EngineKind,
    spec: &ToolSpec,
    selected: Vec<SelectedTool>,
    writable: bool,
) -> Result<Vec<(SelectedTool, &'static EngineTool)>, Vec<Diagnostic>> {
    let selects = ["tools", "selected_tools", "original_tool_name"];
    let selects = selects.iter().any(|key| spec.entry.get(key).is_some());
    let mut diagnostics = Vec::new();
    let mut tools = Vec::new();
    for tool in selected {
        let Some(row) = kind.row(&tool) else { continue };
        if !selects && (!row.is_default || (row.changes && !writable)) {
            continue;
        }
        if row.changes && !writable {
            diagnostics.push(
                Diagnostic::error(format!(
                    "'{}' changes the {}, but the entry is read-only",
                    tool.name, kind.noun
                ))
                .with_hint("set 'access: write', or leave it out")
                .with_location(
                    spec.entry
                        .get("access")
                        .map_or_else(|| spec.location.clone(), ConfigNode::location),
                ),
            );
        }
        tools.push((tool, row));
    }
    if diagnostics.is_empty() { Ok(tools) } else { Err(diagnostics) }
}

impl EngineProvider {
    fn tool(&self, call: &ToolCall) -> Result<(&ToolDefinition, &'static EngineTool), Error> {
        let tool = self.tools.iter().find(|(definition, _)| definition.name == call.name);
        tool.map(|(definition, row)| (&**definition, *row)).ok_or_else(|| {
            Error::internal(format!("'{}' is not a tool of this {}", call.name, self.kind.noun))
        })
    }

    /// Warns once that values in memory are lost when this process exits.
    fn warn_if_in_memory(&self, context: &ToolContext) {
        if matches!(self.config.location, EngineLocation::Memory)
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            context.events.emit(HostEvent::Notice {
                origin: self.component.clone(),
                text: self.kind.memory_notice.to_owned(),
            });
        }
    }
}

#[async_trait]
impl ToolProvider for EngineProvider {
    fn component(&self) -> Option<&str> {
        Some(&self.component)
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|(definition, _)| Arc::clone(definition)).collect()
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let (definition, row) = self.tool(call)?;
        let session = (definition.scope == ToolScope::Session).then_some(&*context.session_id);
        let work = (row.run)(EngineCall {
            engine: self.engine.engine(),
            config: &self.config,
            space: config::session_space(self.kind.space, session),
            arguments: &call.arguments,
            context,
            clock: self.clock.as_ref(),
        });
        let result = match self.kind.cancelled {
            Some(error) => {
                context.cancel.run_until_cancelled(work).await.unwrap_or_else(|| Err(error()))
            }
            None => work.await,
        }?;
        if row.keeps && result.success {
            self.warn_if_in_memory(context);
        }
        Ok(result)
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let (_, row) = self.tool(call)?;
        let summary = (row.summary)(&call.arguments);
        Ok((self.kind.preview)(summary, &self.config.location.place(), &call.arguments))
    }

    async fn close(&self) {
        self.engine.close().await;
    }
}
