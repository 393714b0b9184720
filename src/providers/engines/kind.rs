//! Kinds of tools over an engine: the table of tools, and facts shared by all of them.
//!
//! The provider of one entry over an engine, for every such kind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::config::{self, EngineConfig, EngineKeys, EngineLimits, EngineLocation};
use super::{Engine, EngineLease, OpenEngines};
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, Located, words};
use crate::model::{
    Diagnostics, Error, HostEvent, JsonObject, Speed, ToolCall, ToolContext, ToolDefinition,
    ToolName, ToolResult, ToolSchema, ToolScope,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps};
use crate::providers::arguments::{Arguments, object_schema};
use crate::providers::local::{self, LocalProvider, LocalTool};
use crate::providers::toolkit::{self, SelectedTool, ToolkitKeys, ToolkitTool};

pub(in crate::providers) struct EngineKind {
    /// What an entry is called in messages, such as `store`.
    pub(in crate::providers) noun: &'static str,
    /// Its space in every engine; sessions have their own spaces besides it.
    pub(in crate::providers) space: &'static str,
    pub(in crate::providers) defaults: EngineLimits,
    pub(in crate::providers) tools: &'static [EngineTool],
    /// What `access` of an entry says, for kinds that have it.
    pub(in crate::providers) access: fn(&ToolSpec, &Diagnostics) -> Option<Located<StoreAccess>>,
    /// The notice after the first write to an engine in memory.
    pub(in crate::providers) memory_notice: &'static str,
    /// What definitions of an entry with `scope: session` add to `touches`.
    pub(in crate::providers) session_note: &'static str,
    /// Whether calls may use the other spellings of a tool too.
    pub(in crate::providers) has_aliases: bool,
    pub(in crate::providers) is_instant_in_memory: bool,
    /// The error of a call that is cancelled; `None` leaves cancellation to the tool.
    pub(in crate::providers) cancelled: Option<fn() -> Error>,
    /// The preview of a call: what it does, where, and with which arguments.
    pub(in crate::providers) preview: fn(&str, &str, &JsonObject) -> Preview,
}

/// What calls may do with what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename = "Access", rename_all = "lowercase")]
#[schemars(transform = words::<Self>)]
pub(in crate::providers) enum StoreAccess {
    /// Only read it.
    Read,
    /// Read and change it.
    #[serde(alias = "read_write")]
    Write,
}

pub(in crate::providers) struct EngineTool {
    /// Its name and the other spellings that entries may select it by.
    pub(in crate::providers) tool: ToolkitTool,
    pub(in crate::providers) is_default: bool,
    pub(in crate::providers) effect: StoreEffect,
    /// Whether a second call with the same arguments has no further effect.
    pub(in crate::providers) is_idempotent: bool,
    /// The limit of a call when the entry sets none; `None` is the host's default.
    pub(in crate::providers) timeout: Option<Duration>,
    pub(in crate::providers) description: fn(&str, &str) -> String,
    /// The properties of its arguments, and the names of the required ones.
    pub(in crate::providers) input: fn(&EngineLimits) -> (Value, &'static [&'static str]),
    /// The properties of its result; all are required.
    pub(in crate::providers) output: fn() -> Value,
    /// What a call with these arguments does, for previews.
    pub(in crate::providers) summary: fn(&JsonObject) -> &'static str,
    /// Prepares a call; nothing happens before the future is polled.
    pub(in crate::providers) run: for<'a> fn(EngineCall<'a>) -> EngineFuture<'a>,
}

/// What a tool does with what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers) enum StoreEffect {
    Reads,
    /// Reads as well, and whether that loses something is for the entry to say.
    Lists,
    /// Stores something that a user expects to find again.
    Keeps,
    /// Hands something out that is gone then.
    Takes,
    /// Loses something, unless the entry says that nothing is lost.
    Deletes,
}

impl StoreEffect {
    pub(in crate::providers) fn changes(self) -> bool {
        !matches!(self, Self::Reads | Self::Lists)
    }
}

pub(in crate::providers) type EngineFuture<'a> = BoxFuture<'a, Result<ToolResult, Error>>;

pub(in crate::providers) struct EngineCall<'a> {
    pub(in crate::providers) engine: &'a dyn Engine,
    pub(in crate::providers) config: &'a EngineConfig,
    pub(in crate::providers) space: String,
    pub(in crate::providers) arguments: Arguments<'a>,
    pub(in crate::providers) context: &'a ToolContext,
}

impl EngineKind {
    pub(super) fn row(&self, tool: &SelectedTool) -> Option<&'static EngineTool> {
        self.tools.iter().find(|row| row.tool.name == tool.original.name)
    }

    pub(super) fn define(
        &self,
        spec: &ToolSpec,
        selected: &SelectedTool,
        row: &EngineTool,
        config: &EngineConfig,
    ) -> ToolDefinition {
        let mut definition = selected.definition(spec);
        if self.has_aliases {
            definition.aliases = aliases(&definition.name, &row.tool);
        }
        let component = selected.name.component().unwrap_or(selected.name.tool());
        definition
            .description
            .get_or_insert_with(|| (row.description)(component, config.location.kind()));
        let (properties, required) = (row.input)(&config.limits);
        definition.input_schema = object_schema(properties, required).into();
        let properties = (row.output)();
        let required: Vec<&String> =
            properties.as_object().into_iter().flat_map(JsonObject::keys).collect();
        definition.output_schema = Some(ToolSchema::from(
            json!({ "type": "object", "properties": properties, "required": required }),
        ));
        if self.is_instant_in_memory
            && spec.entry.get("speed").is_none()
            && matches!(config.location, EngineLocation::Memory)
        {
            definition.speed = Speed::Instant;
        }
        let changes = row.effect.changes();
        let annotations = &mut definition.annotations;
        annotations.read_only = Some(!changes);
        annotations.idempotent = Some(row.is_idempotent);
        annotations.open_world = Some(false);
        annotations.destructive = match row.effect {
            StoreEffect::Reads => None,
            StoreEffect::Lists | StoreEffect::Keeps | StoreEffect::Takes => annotations.destructive,
            StoreEffect::Deletes => Some(annotations.destructive.unwrap_or(true)),
        };
        definition.is_repeatable &= !changes;
        definition.has_own_retries &= !changes;
        definition.timeout = definition.timeout.or(row.timeout);
        definition.touches.push(config.location.touches(changes));
        if definition.scope == ToolScope::Session {
            definition.touches.push(self.session_note.to_owned());
        }
        definition
    }
}

fn aliases(name: &ToolName, tool: &ToolkitTool) -> Vec<ToolName> {
    let Some(component) = name.component() else { return Vec::new() };
    std::iter::once(tool.name)
        .chain(tool.aliases.iter().copied())
        .filter(|word| *word != name.tool())
        .map(|word| ToolName::of(component, word))
        .collect()
}

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
