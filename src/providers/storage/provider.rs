//! The provider of one store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::offers::{self, OFFERS, Operation};
use super::operations::Store;
use crate::config::spec::ToolSpec;
use crate::model::{
    Event, Fault, Problem, ToolCall, ToolContext, ToolDefinition, ToolResult, ToolScope,
};
use crate::provider::{Built, KindContext, Preview, ToolProvider};
use crate::providers::engines::choice::{self, Choice, Engines, Limits, Place};
use crate::providers::engines::{Engine, Quota};
use crate::providers::toolkit;

/// What a store may hold when its entry says nothing.
const DEFAULTS: Limits =
    Limits { quota: Quota { keys: 10_000, bytes: 64 << 20 }, key: 256, value: 1 << 20 };

/// The space of values, in every engine.
const SPACE: &str = "store";

/// The tools of one entry.
struct StorageProvider {
    component: String,
    tools: Vec<(Arc<ToolDefinition>, Operation)>,
    choice: Choice,
    engine: Arc<dyn Engine>,
    /// Whether it was said that values in memory do not last.
    told: AtomicBool,
}

/// Builds one provider for each entry.
pub(super) fn build(specs: &[&ToolSpec], context: &KindContext) -> Built {
    let mut engines = Engines::default();
    Built::each(specs, |spec| store(spec, context, &mut engines))
}

fn store(
    spec: &ToolSpec,
    context: &KindContext,
    engines: &mut Engines,
) -> Result<StorageProvider, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut note = |mut more: Vec<Problem>| problems.append(&mut more);
    let component = toolkit::component(spec).map_err(|problem| note(vec![problem])).ok();
    let writable = access(spec).map_err(|problem| note(vec![problem])).unwrap_or(true);
    let chosen = match &component {
        // Without a component nothing can be chosen, and that was said.
        None => None,
        Some(_) => toolkit::choose(spec, OFFERS)
            .and_then(|chosen| offers::allowed(spec, chosen, writable))
            .map_err(&mut note)
            .ok(),
    };
    let shared = component.as_deref().unwrap_or_default();
    let choice = choice::read(spec, shared, DEFAULTS, writable, context).map_err(&mut note).ok();
    let (Some(component), Some(chosen), Some(choice)) = (component, chosen, choice) else {
        return Err(problems);
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    let define = |(tool, operation): &(toolkit::Chosen, Operation)| {
        let definition = offers::define(spec, tool, *operation, &choice);
        (Arc::new(definition), *operation)
    };
    Ok(StorageProvider {
        tools: chosen.iter().map(define).collect(),
        engine: engines.at(&choice.place, &component),
        choice,
        component,
        told: AtomicBool::new(false),
    })
}

/// Whether an entry may write.
fn access(spec: &ToolSpec) -> Result<bool, Problem> {
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
    fn tool(&self, call: &ToolCall) -> Result<&(Arc<ToolDefinition>, Operation), Fault> {
        self.tools
            .iter()
            .find(|(definition, _)| definition.name == call.name)
            .ok_or_else(|| Fault::internal(format!("'{}' is no tool of this store", call.name)))
    }

    /// Says once that what is written to memory is gone with this process.
    fn tell(&self, context: &ToolContext) {
        if matches!(self.choice.place, Place::Memory) && !self.told.swap(true, Ordering::Relaxed) {
            context.events.emit(Event::Notice {
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

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Fault> {
        let (definition, operation) = self.tool(call)?;
        let session = (definition.scope == ToolScope::Session).then_some(&*context.session_id);
        let store = Store {
            engine: self.engine.as_ref(),
            choice: &self.choice,
            space: choice::session_space(SPACE, session),
        };
        let given = &call.arguments;
        let work = async {
            match operation {
                Operation::Read => store.read(given).await,
                Operation::Write => {
                    let written = store.write(given).await?;
                    if written.success {
                        self.tell(context);
                    }
                    Ok(written)
                }
                Operation::List => store.list(given).await,
                Operation::Delete => store.delete(given).await,
                Operation::Clear => store.clear().await,
            }
        };
        context.cancel.run_until_cancelled(work).await.unwrap_or_else(|| {
            Err(Fault::timeout("the store was not waited for")
                .hint("what was asked of it may still happen"))
        })
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Fault> {
        let (_, operation) = self.tool(call)?;
        let verb = match operation {
            Operation::Read => "reads a key",
            Operation::Write => "writes a key",
            Operation::List => "lists the keys",
            Operation::Delete => "deletes a key",
            Operation::Clear => "deletes all keys",
        };
        Ok(Preview {
            summary: format!("{verb} of the store {}", self.choice.place.words()),
            request: json!({
                "operation": verb.split(' ').next(),
                "store": self.choice.place.words(),
                "arguments": Value::Object(call.arguments.clone()),
            }),
        })
    }

    async fn close(&self) {
        self.engine.close().await;
    }
}
