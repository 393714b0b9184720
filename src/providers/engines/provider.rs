//! The provider of one entry over an engine, for every such kind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::Engine;
use super::config::{self, EngineConfig, EngineKeys, EngineLocation};
use super::kind::{EngineCall, EngineKind, EngineTool, StoreAccess, StoreEffect};
use super::open_engines::{EngineLease, OpenEngines};
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, Located};
use crate::model::{Diagnostics, Error, HostEvent, ToolCall, ToolContext, ToolResult, ToolScope};
use crate::provider::{BuiltProviders, Preview, ProviderDeps};
use crate::providers::arguments::Arguments;
use crate::providers::local::{self, LocalProvider, LocalTool};
use crate::providers::toolkit::{self, SelectedTool, ToolkitKeys};

/// What the tools of one entry share.
struct OpenStore {
    kind: &'static EngineKind,
    component: String,
    config: EngineConfig,
    engine: Arc<dyn Engine>,
    /// Until the entry is closed.
    lease: Mutex<Option<EngineLease>>,
    /// Whether the notice about an engine in memory was given.
    has_warned: AtomicBool,
}

struct StoreTool {
    row: &'static EngineTool,
    is_by_session: bool,
    store: Arc<OpenStore>,
}

pub(in crate::providers) fn build(
    kind: &'static EngineKind,
    specs: &[&ToolSpec],
    context: &ProviderDeps,
) -> BuiltProviders {
    let engines = context.shared.get_or_init(OpenEngines::default);
    BuiltProviders::each(specs, |spec, diagnostics| {
        provider(kind, spec, context, &engines, diagnostics)
    })
}

fn provider(
    kind: &'static EngineKind,
    spec: &ToolSpec,
    context: &ProviderDeps,
    engines: &OpenEngines,
    diagnostics: &Diagnostics,
) -> Option<LocalProvider<StoreTool>> {
    let toolkit = typed::read_part::<ToolkitKeys>(&spec.entry, diagnostics);
    let access = (kind.access)(spec, diagnostics);
    let keys = typed::read_part::<EngineKeys>(&spec.entry, diagnostics);
    let (toolkit, keys) = (toolkit?, keys?);
    let available = kind.tools.iter().map(|row| &row.tool);
    let selected = toolkit::choose(spec, &toolkit, available, diagnostics);
    let selected = allowed(kind, selected, toolkit.selects(), access.as_ref(), diagnostics);
    let component = toolkit::component(spec, &toolkit).unwrap_or_default();
    let writable = access.is_none_or(|access| access.value == StoreAccess::Write);
    let config = config::resolve(spec, &keys, &component, kind.defaults, writable, context);
    let config = diagnostics.ok(config).filter(|_| diagnostics.errors() == 0)?;
    let lease = engines.lease(kind.noun, &config.location, &component);
    let store = Arc::new(OpenStore {
        kind,
        engine: Arc::clone(&*lease),
        lease: Mutex::new(Some(lease)),
        config,
        component,
        has_warned: AtomicBool::new(false),
    });
    let tools = selected.iter().map(|(tool, row)| {
        let definition = kind.define(spec, tool, row, &store.config);
        let is_by_session = definition.scope == ToolScope::Session;
        (Arc::new(definition), StoreTool { row, is_by_session, store: Arc::clone(&store) })
    });
    Some(LocalProvider { tools: tools.collect(), component: Some(store.component.clone()) })
}

/// Which of the selected tools an entry gives: those that it names, or the usual ones that its
/// access allows. It is an error if a read-only entry names a tool that makes changes.
fn allowed(
    kind: &EngineKind,
    selected: Vec<SelectedTool>,
    names_them: bool,
    access: Option<&Located<StoreAccess>>,
    diagnostics: &Diagnostics,
) -> Vec<(SelectedTool, &'static EngineTool)> {
    let read_only = access.filter(|access| access.value == StoreAccess::Read);
    let mut tools = Vec::new();
    for tool in selected {
        let Some(row) = kind.row(&tool) else { continue };
        let changes = row.effect.changes();
        if !names_them && (!row.is_default || (changes && read_only.is_some())) {
            continue;
        }
        if let Some(access) = read_only.filter(|_| changes) {
            let message =
                format!("'{}' changes the {}, but the entry is read-only", tool.name, kind.noun);
            diagnostics
                .push(access.error(message).with_hint("set 'access: write', or leave it out"));
        }
        tools.push((tool, row));
    }
    tools
}

impl OpenStore {
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
impl LocalTool for StoreTool {
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let Self { row, is_by_session, store } = self;
        let session = is_by_session.then_some(&*context.session_id);
        let work = (row.run)(EngineCall {
            engine: store.engine.as_ref(),
            config: &store.config,
            space: config::session_space(store.kind.space, session),
            arguments: Arguments(&call.arguments),
            context,
        });
        let result = match store.kind.cancelled {
            Some(error) => {
                context.cancel.run_until_cancelled(work).await.unwrap_or_else(|| Err(error()))
            }
            None => work.await,
        };
        let result = local::answered(result)?;
        if row.effect == StoreEffect::Keeps && result.success {
            store.warn_if_in_memory(context);
        }
        Ok(result)
    }

    fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let OpenStore { kind, config, .. } = self.store.as_ref();
        let summary = (self.row.summary)(&call.arguments);
        Ok((kind.preview)(summary, &config.location.place(), &call.arguments))
    }

    async fn close(&self) {
        let lease = self.store.lease.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(engine) = lease.and_then(Arc::into_inner) {
            engine.close().await;
        }
    }
}
