//! The provider of one entry over an engine, for every such kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use super::config::{self, EngineConfig, EngineKeys, EngineLocation};
use super::kind::{EngineCall, EngineKind, EngineTool, StoreAccess};
use super::open_engines::{EngineLease, OpenEngines};
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, Located};
use crate::model::{
    Diagnostic, Error, HostEvent, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolScope,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps, ToolProvider};
use crate::providers::toolkit::{self, SelectedTool, ToolkitKeys};
use crate::util::clock::{Clock, SystemClock};

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
    let toolkit = typed::read_part::<ToolkitKeys>(&spec.entry, &mut diagnostics);
    let access = (kind.access)(spec, &mut diagnostics);
    let keys = typed::read_part::<EngineKeys>(&spec.entry, &mut diagnostics);
    let (Some(toolkit), Some(keys)) = (toolkit, keys) else { return Err(diagnostics) };
    let available = kind.tools.iter().map(|row| &row.tool);
    let selected = toolkit::choose(spec, &toolkit, available, &mut diagnostics);
    let selected = allowed(kind, selected, toolkit.selects(), access.as_ref(), &mut diagnostics);
    let component = toolkit::component(spec, &toolkit).unwrap_or_default();
    let writable = access.is_none_or(|access| access.value == StoreAccess::Write);
    let config = config::resolve(spec, &keys, &component, kind.defaults, writable, context);
    let config = match config {
        Ok(config) if diagnostics.is_empty() => config,
        config => {
            diagnostics.extend(config.err());
            return Err(diagnostics);
        }
    };
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
/// access allows. It is an error if a read-only entry names a tool that makes changes.
fn allowed(
    kind: &EngineKind,
    selected: Vec<SelectedTool>,
    names_them: bool,
    access: Option<&Located<StoreAccess>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<(SelectedTool, &'static EngineTool)> {
    let read_only = access.filter(|access| access.value == StoreAccess::Read);
    let mut tools = Vec::new();
    for tool in selected {
        let Some(row) = kind.row(&tool) else { continue };
        if !names_them && (!row.is_default || (row.changes && read_only.is_some())) {
            continue;
        }
        if let Some(access) = read_only.filter(|_| row.changes) {
            let message =
                format!("'{}' changes the {}, but the entry is read-only", tool.name, kind.noun);
            diagnostics
                .push(access.error(message).with_hint("set 'access: write', or leave it out"));
        }
        tools.push((tool, row));
    }
    tools
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
