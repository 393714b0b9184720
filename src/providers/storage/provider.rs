//! The provider of one store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::operations::StoreOperations;
use super::tools::{self, StoreOperation, TOOLS};
use crate::config::spec::ToolSpec;
use crate::model::{
    Diagnostic, Error, HostEvent, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolScope,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps, ToolProvider};
use crate::providers::engines::config::{
    self, EngineConfig, EngineLimits, EngineLocation, Engines,
};
use crate::providers::engines::{Engine, Quota};
use crate::providers::toolkit;

/// What a store may hold when its entry says nothing.
const DEFAULTS: EngineLimits = EngineLimits {
    quota: Quota { keys: 10_000, bytes: 64 << 20 },
    max_key_bytes: 256,
    max_value_bytes: 1 << 20,
};

/// The space of values, in every engine.
const SPACE: &str = "store";

/// The tools of one entry.
struct StorageProvider {
    component: String,
    tools: Vec<(Arc<ToolDefinition>, StoreOperation)>,
    config: EngineConfig,
    engine: Arc<dyn Engine>,
    /// Whether it was said that values in memory do not last.
    has_warned: AtomicBool,
}

/// Builds one provider for each entry.
pub(super) fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    let mut engines = Engines::default();
    BuiltProviders::each(specs, |spec| store(spec, context, &mut engines))
}

fn store(
    spec: &ToolSpec,
    context: &ProviderDeps,
    engines: &mut Engines,
) -> Result<StorageProvider, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut note = |mut more: Vec<Diagnostic>| diagnostics.append(&mut more);
    let component = toolkit::component(spec).map_err(|diagnostic| note(vec![diagnostic])).ok();
    let writable = access(spec).map_err(|diagnostic| note(vec![diagnostic])).unwrap_or(true);
    let chosen = match &component {
        // Without a component nothing can be chosen, and that was said.
        None => None,
        Some(_) => toolkit::choose(spec, TOOLS)
            .and_then(|chosen| tools::allowed(spec, chosen, writable))
            .map_err(&mut note)
            .ok(),
    };
    let shared = component.as_deref().unwrap_or_default();
    let config = config::read(spec, shared, DEFAULTS, writable, context).map_err(&mut note).ok();
    let (Some(component), Some(chosen), Some(config)) = (component, chosen, config) else {
        return Err(diagnostics);
    };
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let define = |(tool, operation): &(toolkit::SelectedTool, StoreOperation)| {
        let definition = tools::define(spec, tool, *operation, &config);
        (Arc::new(definition), *operation)
    };
    Ok(StorageProvider {
        tools: chosen.iter().map(define).collect(),
        engine: engines.get_or_open(&config.location, &component),
        config,
        component,
        has_warned: AtomicBool::new(false),
    })
}

/// Whether an entry may write.
fn access(spec: &ToolSpec) -> Result<bool, Diagnostic> {
    let Some(node) = spec.entry.get("access").filter(|node| !node.is_null()) else {
        return Ok(true);
    };
    match node.as_text()? {
        "read" => Ok(false),
        "write" | "read_write" => Ok(true),
        _ => Err(node.expected("read or write")),
    }
}

impl StorageProvider {
    fn tool(&self, call: &ToolCall) -> Result<&(Arc<ToolDefinition>, StoreOperation), Error> {
        self.tools
            .iter()
            .find(|(definition, _)| definition.name == call.name)
            .ok_or_else(|| Error::internal(format!("'{}' is no tool of this store", call.name)))
    }

    /// Says once that what is written to memory is gone with this process.
    fn warn_if_in_memory(&self, context: &ToolContext) {
        if matches!(self.config.location, EngineLocation::Memory)
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            context.events.emit(HostEvent::Notice {
                origin: self.component.clone(),
                text: "keeps values in memory: they are gone when toolhost ends; 'storage_type: \
                       disk' keeps them"
                    .to_owned(),
            });
        }
    }
}

#[async_trait]
impl ToolProvider for StorageProvider {
    fn component(&self) -> Option<&str> {
        Some(&self.component)
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|(definition, _)| Arc::clone(definition)).collect()
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let (definition, operation) = self.tool(call)?;
        let session = (definition.scope == ToolScope::Session).then_some(&*context.session_id);
        let store = StoreOperations {
            engine: self.engine.as_ref(),
            config: &self.config,
            space: config::session_space(SPACE, session),
        };
        let given = &call.arguments;
        let work = async {
            match operation {
                StoreOperation::Read => store.read(given).await,
                StoreOperation::Write => {
                    let written = store.write(given).await?;
                    if written.success {
                        self.warn_if_in_memory(context);
                    }
                    Ok(written)
                }
                StoreOperation::List => store.list(given).await,
                StoreOperation::Delete => store.delete(given).await,
                StoreOperation::Clear => store.clear().await,
            }
        };
        context.cancel.run_until_cancelled(work).await.unwrap_or_else(|| {
            Err(Error::timeout("the store was not waited for")
                .with_hint("what was asked of it may still happen"))
        })
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let (_, operation) = self.tool(call)?;
        let verb = match operation {
            StoreOperation::Read => "reads a key",
            StoreOperation::Write => "writes a key",
            StoreOperation::List => "lists the keys",
            StoreOperation::Delete => "deletes a key",
            StoreOperation::Clear => "deletes all keys",
        };
        Ok(Preview {
            summary: format!("{verb} of the store {}", self.config.location.words()),
            request: json!({
                "operation": verb.split(' ').next(),
                "store": self.config.location.words(),
                "arguments": Value::Object(call.arguments.clone()),
            }),
        })
    }

    async fn close(&self) {
        self.engine.close().await;
    }
}
